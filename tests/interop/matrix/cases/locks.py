# SPDX-License-Identifier: Apache-2.0
"""Locks that hold between clients: fcntl's and flock's, by two clients of one kernel; and between a
client and a process on the server."""
import errno
import fcntl
import os
import struct
import time

from bench import SECOND_MOUNT, put
from case import case, expect, expect_equal, expect_error
from sides import NeighbourClient, wait_for
from worker import Worker

# struct flock of Linux on 64 bits: type, whence, start, length, pid.
FLOCK = struct.Struct("hhqqi4x")


def lock(file, kind, start, length, wait=False):
    fcntl.fcntl(file, fcntl.F_SETLKW if wait else fcntl.F_SETLK,
                FLOCK.pack(kind, os.SEEK_SET, start, length, 0))


def in_the_way(file, kind, start, length):
    """(type, start, length) of what F_GETLK finds."""
    asked = FLOCK.pack(kind, os.SEEK_SET, start, length, 0)
    found = FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))
    return (found[0], found[2], found[3]) if found[0] != fcntl.F_UNLCK else None


def check_ranges(ours, theirs):
    lock(ours, fcntl.F_WRLCK, 100, 50)
    expect_error(errno.EAGAIN, "a lock over another's", lock, theirs, fcntl.F_WRLCK, 149, 10)
    expect_error(errno.EAGAIN, "a read lock over a write lock", lock, theirs, fcntl.F_RDLCK, 0, 0)
    expect_equal(in_the_way(theirs, fcntl.F_RDLCK, 0, 0), (fcntl.F_WRLCK, 100, 50), "F_GETLK")
    lock(theirs, fcntl.F_WRLCK, 150, 10)
    lock(theirs, fcntl.F_WRLCK, 0, 100)
    # In two pieces, with room for another between them.
    lock(ours, fcntl.F_UNLCK, 120, 10)
    lock(theirs, fcntl.F_WRLCK, 120, 10)
    expect_error(errno.EAGAIN, "a lock over the first half", lock, theirs, fcntl.F_RDLCK, 119, 1)
    expect_error(errno.EAGAIN, "a lock over the second half", lock, theirs, fcntl.F_RDLCK, 130, 1)
    # Both may read; then neither may write.
    for file in (ours, theirs):
        lock(file, fcntl.F_UNLCK, 0, 0)
    for file in (ours, theirs):
        lock(file, fcntl.F_RDLCK, 0, 0)
    expect_error(errno.EAGAIN, "turning a shared lock into a write lock", lock, ours, fcntl.F_WRLCK,
                 0, 0)
    lock(theirs, fcntl.F_UNLCK, 0, 0)
    lock(ours, fcntl.F_WRLCK, 0, 0)
    lock(ours, fcntl.F_UNLCK, 0, 0)
    expect_equal(in_the_way(theirs, fcntl.F_WRLCK, 0, 0), None, "what is left locked")


@case("locks", limit=180)
def locks(t):
    neighbour = NeighbourClient(t.client.version)
    neighbour.mount(t, SECOND_MOUNT)
    put(t.path("file"), b"content")
    there = os.path.join(SECOND_MOUNT, t.case.name, "file")
    with open(t.path("file"), "r+b") as ours, open(there, "r+b") as theirs:
        check_ranges(ours, theirs)

        fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        expect_error(errno.EAGAIN, "flock of what another has", fcntl.flock, theirs,
                     fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(ours, fcntl.LOCK_UN)
        fcntl.flock(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(theirs, fcntl.LOCK_UN)

    # Whoever waits gets the lock when it is let go, here by the end of the process that has it.
    def hold(worker):
        with open(t.path("file"), "r+b") as file:
            lock(file, fcntl.F_WRLCK, 0, 0)
            worker.progress = 1
            time.sleep(3600)

    def await_lock(worker):
        with open(there, "r+b") as file:
            worker.progress = 1
            lock(file, fcntl.F_WRLCK, 0, 0, wait=True)
            worker.progress = 2
    holder = Worker(hold)
    holder.wait_until(1)
    waiter = Worker(await_lock)
    waiter.wait_until(1)
    expect(not waiter.ended(), "a lock was given to two")
    holder.kill()
    waiter.finish(90)
    expect_equal(waiter.progress, 2, "how far the waiter came")


@case("locks-local", limit=240)
def locks_local(t):
    put(t.path("file"), b"content")
    with open(t.server_path("file"), "r+b") as local, open(t.path("file"), "r+b") as far:
        check_ranges(far, local)
        lock(far, fcntl.F_WRLCK, 0, 10)
        lock(local, fcntl.F_WRLCK, 10, 10)
        expect_error(errno.EAGAIN, "a client's lock over a local one", lock, far, fcntl.F_RDLCK, 0, 0)
        expect_equal(in_the_way(far, fcntl.F_RDLCK, 10, 90), (fcntl.F_WRLCK, 10, 10),
                     "the client's F_GETLK")
        lock(local, fcntl.F_UNLCK, 0, 0)
        lock(far, fcntl.F_WRLCK, 0, 0)
        expect_error(errno.EAGAIN, "a local lock over a client's", lock, local, fcntl.F_RDLCK, 5, 1)
    # The client's CLOSE lets go.
    with open(t.server_path("file"), "r+b") as local:
        lock(local, fcntl.F_WRLCK, 0, 0, wait=True)

    # A client may have been promised the file when it locks, and then has told nobody: whoever opens
    # the file here waits until it has.
    put(t.path("promised"), b"content")
    with open(t.path("promised"), "r+b") as far:
        lock(far, fcntl.F_WRLCK, 3, 4)
        with open(t.server_path("promised"), "r+b") as local:
            expect_error(errno.EAGAIN, "a local lock over a client's", lock, local, fcntl.F_WRLCK, 0, 4)
            lock(local, fcntl.F_WRLCK, 0, 3)

    # Whoever waits gets it: a process here is told by the kernel, a client asks again.
    def await_lock(path):
        def run(worker):
            with open(path, "r+b") as file:
                worker.progress = 1
                lock(file, fcntl.F_WRLCK, 0, 0, wait=True)
                worker.progress = 2
        return run
    for holder, waiter in ((t.path, t.server_path), (t.server_path, t.path)):
        with open(holder("file"), "r+b") as file:
            lock(file, fcntl.F_WRLCK, 0, 0)
            waiting = Worker(await_lock(waiter("file")))
            waiting.wait_until(1)
            time.sleep(1)
            expect(not waiting.ended(), "a lock was given to two")
            lock(file, fcntl.F_UNLCK, 0, 0)
            waiting.finish(90)
            expect_equal(waiting.progress, 2, "how far the waiter came")


@case("locks-dead", limit=240)
def locks_dead(t):
    """Two mounts of one host are two to the server. One that dies leaves its locks there, which the next
    lets go of, and of nobody else's."""
    t.mount(SECOND_MOUNT)
    put(t.path("file"), b"content", sync=True)
    there = os.path.join(SECOND_MOUNT, t.case.name, "file")
    with open(t.path("file"), "r+b") as ours, open(there, "r+b") as theirs:
        check_ranges(ours, theirs)

    def hold(worker):
        with open(t.path("file"), "r+b") as file:
            lock(file, fcntl.F_WRLCK, 0, 10)
            worker.progress = 1
            time.sleep(3600)
    holder = Worker(hold)
    holder.wait_until(1)
    with open(there, "r+b") as theirs:
        lock(theirs, fcntl.F_WRLCK, 20, 10)
        t.client.abandon(t.mount_point)
        holder.kill()
        expect_error(errno.EAGAIN, "what the dead mount had", lock, theirs, fcntl.F_WRLCK, 0, 10)
        t.mount()

        def freed():
            try:
                lock(theirs, fcntl.F_WRLCK, 0, 10)
                return True
            except OSError as error:
                expect_equal(error.errno, errno.EAGAIN, "why it is not to be had")
                return False
        wait_for(freed, 60, "what the dead mount had is free")
        with open(t.path("file"), "r+b") as ours:
            expect_error(errno.EAGAIN, "what the other mount has", lock, ours, fcntl.F_RDLCK, 25, 1)
