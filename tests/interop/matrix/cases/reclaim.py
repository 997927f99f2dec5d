# SPDX-License-Identifier: Apache-2.0
"""A server that is killed under open files and locks of two clients, and what they have afterwards."""
import errno
import fcntl
import os
import time

from bench import SECOND_MOUNT, get, put
from case import case, expect, expect_equal, expect_error
from cases.locks import in_the_way, lock
from sides import NeighbourClient, wait_for
from worker import Worker

# Of version 4.0 nobody can say that he has reclaimed all: what is new waits for all of the 90 s.
GRACE = 150


def holding(path, start, text):
    """Has the file open and the bytes locked; writes there once the server is back (2), and goes on with
    that until it is killed."""
    def hold(worker):
        with open(path, "r+b", buffering=0) as file:
            lock(file, fcntl.F_WRLCK, start, len(text))
            worker.progress = 1
            wait_for(lambda: worker.progress == 2, 2 * GRACE, "the server is back")
            # By the open file and the lock from before: nothing is opened anew.
            os.pwrite(file.fileno(), text, start)
            os.fsync(file.fileno())
            worker.progress = 3
            time.sleep(3600)
    return Worker(hold)


def held(t):
    """(opens, locks) of each client that has any, as the server counts."""
    clients = t.server.status()["nfs4"]["client_list"]
    return sorted((one["opens"], one["locks"]) for one in clients if one["opens"] + one["locks"])


@case("reclaim", limit=400)
def reclaim(t):
    neighbour = NeighbourClient(t.client.version)
    neighbour.mount(t, SECOND_MOUNT)
    put(t.path("file"), bytes(1000), sync=True)
    there = os.path.join(SECOND_MOUNT, t.case.name, "file")
    ours, theirs = holding(t.path("file"), 100, b"ours"), holding(there, 200, b"theirs")
    for holder in (ours, theirs):
        holder.wait_until(1)
    wait_for(lambda: held(t) == [(1, 1), (1, 1)], 10, "an open and a lock of each client")

    # Twice, so that the second server has to know of clients that the first has heard nothing of.
    t.server.crash_and_restart()
    t.server.crash_and_restart()
    expect(t.server.status()["nfs4"]["in_grace"], "nobody is waited for")
    for holder in (ours, theirs):
        holder.progress = 2
    for holder in (ours, theirs):
        holder.wait_until(3, GRACE)
    wait_for(lambda: held(t) == [(1, 1), (1, 1)], 30, "an open and a lock of each client again")
    wait_for(lambda: not t.server.status()["nfs4"]["in_grace"], GRACE, "the end of the grace period")

    def check(worker):
        """Somebody else of each client: what the other client has is in the way, the rest is free."""
        with open(t.path("file"), "r+b", buffering=0) as here, open(there, "r+b", buffering=0) as other:
            expect_error(errno.EAGAIN, "what our client has", lock, other, fcntl.F_WRLCK, 103, 1)
            expect_error(errno.EAGAIN, "what the neighbour has", lock, here, fcntl.F_WRLCK, 200, 1)
            expect_equal(in_the_way(other, fcntl.F_RDLCK, 0, 150), (fcntl.F_WRLCK, 100, 4), "F_GETLK")
            lock(other, fcntl.F_WRLCK, 0, 100)
            lock(here, fcntl.F_WRLCK, 300, 100)
        worker.progress = 1
    checking = Worker(check)
    checking.finish(60)

    # With the process its lock goes, and the other client may have it.
    def take(worker):
        with open(there, "r+b", buffering=0) as other:
            lock(other, fcntl.F_WRLCK, 100, 4)
        worker.progress = 1
    ours.kill()
    wait_for(ours.ended, 30, "the end of the process that had the lock")
    taking = Worker(take)
    taking.finish(60)
    theirs.kill()
    wait_for(theirs.ended, 30, "the end of the neighbour's process")
    wanted = bytes(100) + b"ours" + bytes(96) + b"theirs" + bytes(794)
    expect_equal(get(t.server_path("file")), wanted, "the file on the server")
    wait_for(lambda: not held(t), 10, "everything to be closed and let go")


@case("locks-restart", limit=400)
def locks_restart(t):
    """The same for any server, without looking into it; and the client has nothing to say meanwhile."""
    neighbour = NeighbourClient(t.client.version)
    neighbour.mount(t, SECOND_MOUNT)
    put(t.path("file"), bytes(1000), sync=True)
    there = os.path.join(SECOND_MOUNT, t.case.name, "file")
    ours = holding(t.path("file"), 100, b"ours")
    ours.wait_until(1)
    t.server.crash_and_restart()

    def check(worker):
        # What is new waits for the end of the grace period.
        with open(there, "r+b", buffering=0) as other:
            expect_error(errno.EAGAIN, "what our client has", lock, other, fcntl.F_WRLCK, 103, 1)
            lock(other, fcntl.F_WRLCK, 104, 1)
        worker.progress = 1
    checking = Worker(check)
    checking.finish(GRACE)
    expect_equal(checking.progress, 1, "how far the other client came")
    ours.progress = 2
    ours.wait_until(3, GRACE)
    expect_equal(get(there)[100:104], b"ours", "what was written under the lock")

    def take(worker):
        with open(there, "r+b", buffering=0) as other:
            lock(other, fcntl.F_WRLCK, 100, 4, wait=True)
        worker.progress = 1
    taking = Worker(take)
    time.sleep(1)
    expect(not taking.ended(), "a lock was given to two")
    ours.kill()
    taking.finish(90)
    expect_equal(taking.progress, 1, "how far the other client came")
