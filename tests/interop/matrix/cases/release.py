# SPDX-License-Identifier: Apache-2.0
"""`nfs-rdma release`: an administrator takes a file system away from clients that have it in use."""
import errno
import fcntl
import json
import os
import time
import types

from bench import SECOND_MOUNT, get, put
from case import case, expect, expect_equal
from cases.locks import lock
from sides import NeighbourClient, PROGRAMS, mounted, our_environment, run, wait_for
from worker import Worker

PLACE = "/released"  # on the server: a file system of its own
THIRD_MOUNT = "/mnt/c"
DENIED, TAKEN, DONE = 2, 3, 5  # progress of who wants the lock
LOST = 1000           # progress of who had it; what is added is the errno, 0: none


def ask(t, command, *words):
    return run(f"{PROGRAMS}/nfs-rdma", command, "--server", f"{t.server.near}/control", *words,
               env=our_environment(), limit=60)


def holding(path):
    """Has the file locked, and writes there when it is told to: what comes of that it says."""
    def hold(worker):
        with open(path, "r+b", buffering=0) as file:
            lock(file, fcntl.F_WRLCK, 0, 4)
            worker.progress = 1
            wait_for(lambda: worker.progress == 2, 120, "the release")
            try:
                os.pwrite(file.fileno(), b"lost", 0)
                os.fsync(file.fileno())
                worker.progress = LOST
            except OSError as error:
                worker.progress = LOST + error.errno
    return Worker(hold)


def wanting(path):
    """Is refused the lock at first and gets it when it is told to ask again; keeps the file open until it
    is told that all is done."""
    def use(worker):
        with open(path, "r+b", buffering=0) as file:
            try:
                lock(file, fcntl.F_WRLCK, 0, 4)
            except OSError as error:
                expect(error.errno in (errno.EAGAIN, errno.EACCES), f"refused by {error}")
                worker.progress = DENIED
            wait_for(lambda: worker.progress == TAKEN, 120, "the release")
            lock(file, fcntl.F_WRLCK, 0, 4, wait=True)
            os.pwrite(file.fileno(), b"mine", 0)
            os.fsync(file.fileno())
            worker.progress = TAKEN + 1
            wait_for(lambda: worker.progress == DONE, 120, "the end of the case")

    def want(worker):
        try:
            use(worker)
        except OSError:
            if worker.progress != DONE:  # then it may have been the close
                raise
    return Worker(want)


def released(t):
    """The answer, and (opens, locks) of each client that lost any."""
    told = json.loads(ask(t, "release", PLACE, "--json"))
    print(json.dumps(told), flush=True)
    return told, sorted((one["opens"], one["locks"]) for one in told["clients"]
                        if one["opens"] + one["locks"])


def unmount_place():
    """None, or why not."""
    try:
        run("umount", PLACE)
    except Exception as error:  # pylint: disable=broad-exception-caught
        return str(error)
    return None


def recovering():
    """Does Linux's client see to its state? A thread called "ADDRESS-manager", cut, does."""
    for process in os.listdir("/proc"):
        try:
            with open(f"/proc/{process}/comm", encoding="ascii", errors="replace") as comm:
                if "-manag" in comm.read():
                    return True
        except OSError:  # no process, or no more
            pass
    return False


def wait_for_recovery():
    """Linux 6.1 has "busy inodes after unmount" and stops there (kernel BUG at fs/super.c) where it is
    unmounted while it finds out what it has lost."""
    quiet_since = time.monotonic()

    def quiet():
        nonlocal quiet_since
        if recovering():
            quiet_since = time.monotonic()
        return time.monotonic() - quiet_since > 3
    wait_for(quiet, 90, "the end of the clients' recovery")


@case("release", limit=300)
def release(t):
    os.makedirs(PLACE, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "size=16m", "none", PLACE)
    neighbour = NeighbourClient(t.client.version)
    holder = taker = None
    try:
        ask(t, "exports", "add", "-o", "rw,no_root_squash,insecure", f"*:{PLACE}")
        elsewhere = types.SimpleNamespace(
            network=t.network, settings=t.settings,
            server=types.SimpleNamespace(ours=True, exported=PLACE, rdma_port=t.server.rdma_port,
                                         tcp_port=t.server.tcp_port))
        t.client.mount(elsewhere, SECOND_MOUNT)
        neighbour.mount(elsewhere, THIRD_MOUNT)
        here, there = os.path.join(SECOND_MOUNT, "file"), os.path.join(THIRD_MOUNT, "file")
        put(here, b"what was there", sync=True)
        holder = holding(here)
        holder.wait_until(1)
        taker = wanting(there)
        taker.wait_until(DENIED)

        told, lost = released(t)
        expect_equal(lost, [(1, 0), (1, 1)], "opens and locks that were revoked")
        expect_equal(told["exports"], [PLACE], "what is exported still")
        expect(unmount_place() is not None, "an exported file system was unmounted")
        taker.progress = TAKEN
        taker.wait_until(TAKEN + 1)
        # Whoever had the lock is told that it is lost. From version 4.1 on any call brings that to light.
        os.statvfs(SECOND_MOUNT)
        wait_for_recovery()
        holder.progress = 2
        wait_for(lambda: holder.progress >= LOST, 120, "the end of the first one's write")
        holder.finish(20)
        # Linux gives EIO for a lock that is marked as lost; a write that meets the recovery may go out by the
        # file's new open instead, which is seen now and then. It is not the server's to tell these apart.
        came_of_it = holder.progress - LOST
        print(f"a write under the lost lock: {errno.errorcode.get(came_of_it, 'done')}", flush=True)
        expect(came_of_it in (errno.EIO, 0), f"a write under the lost lock gives {came_of_it}")
        # The mount goes on, and so does the other one.
        expect_equal(get(here), b"lost was there" if came_of_it == 0 else b"mine was there", "the file, opened anew")
        put(os.path.join(SECOND_MOUNT, "more"), b"more", sync=True)
        expect_equal(get(os.path.join(PLACE, "more")), b"more", "a new file on the server")

        ask(t, "exports", "remove", f"*:{PLACE}")
        expect(unmount_place() is not None, "a file system that is in use was unmounted")
        told, lost = released(t)
        # Beside what the first client has yet to close.
        expect((1, 1) in lost, f"opens and locks that were revoked: {lost}")
        expect_equal((told["exports"], told["files_in_use"]), ([], 0), "what keeps it busy")
        expect_equal(unmount_place(), None, "unmounting it")
        expect_equal(os.listdir(PLACE), [], "what is there without it")
        taker.progress = DONE  # it closes what is lost
        taker.finish(60)
    finally:
        for worker in (holder, taker):
            if worker is not None:
                worker.kill()
        wait_for_recovery()
        for where in (SECOND_MOUNT, THIRD_MOUNT):
            if mounted(where):
                run("umount", "-l", where, limit=45)
        if mounted(PLACE):
            run("umount", "-l", PLACE)
    # The server has other exports, which went on meanwhile.
    put(t.path("alive"), b"alive", sync=True)
    expect_equal(get(t.server_path("alive")), b"alive", "a file of the other export")
