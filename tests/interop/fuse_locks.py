#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fuse_locks.py CASE A B HERE: locks of one file system seen from three sides.

A and B are mounts of the same export, each with a client of its own, as two hosts would have them;
HERE is the directory itself on the server, where locks are the kernel's. Cases are functions below;
each makes a file of its own name. Exits 0, or says what was not as it must be.
"""
import ctypes
import errno
import fcntl
import os
import signal
import sqlite3
import struct
import sys
import time

A = B = HERE = ""
FLOCK = struct.Struct("hhqqi4x")
F_OFD_SETLK = 37


def open_in(where, flags=os.O_RDWR):
    return os.open(os.path.join(where, sys.argv[1]), flags | os.O_CREAT, 0o666)


def new_file(data=b"x" * 200):
    fd = os.open(os.path.join(A, sys.argv[1]), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)


def lock(fd, kind, start=0, length=0, wait=False, command=None):
    """True: granted; False: somebody else's is in the way."""
    if command is None:
        command = fcntl.F_SETLKW if wait else fcntl.F_SETLK
    try:
        fcntl.fcntl(fd, command, FLOCK.pack(kind, os.SEEK_SET, start, length, 0))
        return True
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise


def read_lock(fd, *rest, **more):
    return lock(fd, fcntl.F_RDLCK, *rest, **more)


def write_lock(fd, *rest, **more):
    return lock(fd, fcntl.F_WRLCK, *rest, **more)


def unlock(fd, *rest, **more):
    return lock(fd, fcntl.F_UNLCK, *rest, **more)


def holder(fd, kind=fcntl.F_WRLCK, start=0, length=0):
    """(kind, start, length, pid) of what is in the way, or None."""
    answer = fcntl.fcntl(fd, fcntl.F_GETLK, FLOCK.pack(kind, os.SEEK_SET, start, length, 0))
    found, _, start, length, pid = FLOCK.unpack(answer)
    return None if found == fcntl.F_UNLCK else (found, start, length, pid)


def flock(fd, what):
    try:
        fcntl.flock(fd, what)
        return True
    except BlockingIOError:
        return False


def expect(found, wanted, what):
    if found != wanted:
        sys.exit(f"{what}: {found!r} and not {wanted!r}")


def in_child(function):
    """Runs it in a child; returns its pid. The child's result is its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = int(function() or 0)
        finally:
            os._exit(code)
    return pid


def wait_for(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def eventually(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def ranges():
    new_file()
    a, b, here = open_in(A), open_in(B), open_in(HERE)
    expect(write_lock(a, 10, 90), True, "A locks 10..99")
    for name, other in (("B", b), ("the server's host", here)):
        expect(write_lock(other, 99, 1), False, f"{name} locks a byte of it")
        expect(read_lock(other, 10, 1), False, f"{name} read-locks a byte of it")
        expect(write_lock(other, 0, 10), True, f"{name} locks in front of it")
        expect(unlock(other, 0, 10), True, f"{name} unlocks")
    expect(unlock(a, 40, 20), True, "A unlocks the middle")
    expect(write_lock(b, 40, 20), True, "B locks the middle")
    expect(write_lock(b, 39, 1), False, "B locks what is left in front")
    expect(write_lock(a, 59, 1), False, "A locks what is B's")
    expect(unlock(b), True, "B unlocks everything")
    expect(write_lock(a, 1 << 40, 0), True, "A locks to the end of the file, far away")
    expect(write_lock(b, (1 << 62) + 5, 1), False, "B locks there")


def holders():
    new_file()
    a, b = open_in(A), open_in(B)
    expect(holder(a), None, "nobody")
    expect(write_lock(a, 10, 90), True, "A locks")
    expect(holder(b), (fcntl.F_WRLCK, 10, 90, 0), "B asks who has it")
    mine = os.getpid()

    def child():
        expect(holder(open_in(A), fcntl.F_RDLCK, 50, 1), (fcntl.F_WRLCK, 10, 90, mine), "child asks")

    expect(wait_for(in_child(child)), 0, "another process of A")


def shared():
    new_file()
    a, b, here = open_in(A), open_in(B), open_in(HERE)
    for name, one in (("A", a), ("B", b), ("the server's host", here)):
        expect(read_lock(one), True, f"{name} reads")
    expect(write_lock(a), False, "A wants to write")
    unlock(b), unlock(here)
    expect(write_lock(a), True, "A writes when it is alone")
    expect(read_lock(b), False, "B reads meanwhile")
    expect(read_lock(a), True, "A only reads again")
    expect(read_lock(b), True, "B reads, too")


def waits():
    new_file()
    b = open_in(B)
    for where in (A, HERE, B):
        ready_r, ready_w = os.pipe()
        go_r, go_w = os.pipe()

        def hold(where=where):
            fd = open_in(where)
            expect(write_lock(fd), True, "the child locks")
            os.write(ready_w, b"r")
            os.read(go_r, 1)
            unlock(fd)
            time.sleep(3600)

        child = in_child(hold)
        os.read(ready_r, 1)

        def alarm(*_):
            raise TimeoutError

        signal.signal(signal.SIGALRM, alarm)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        try:
            write_lock(b, wait=True)
            sys.exit("B got what the child has")
        except TimeoutError:
            pass
        os.write(go_w, b"g")
        expect(write_lock(b, wait=True), True, "B waits")
        unlock(b)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def deadlock():
    """Two processes of one mount that wait for each other: one of them is told."""
    new_file()
    ready_r, ready_w = os.pipe()

    def told(fd, start):
        try:
            expect(write_lock(fd, start, 10, wait=True), True, "who waits")
        except OSError as error:
            expect(error.errno, errno.EDEADLK, "who waits")
            return True
        return False

    def other():
        fd = open_in(A)
        expect(write_lock(fd, 10, 10), True, "the child locks")
        os.write(ready_w, b"r")
        return told(fd, 0)

    a = open_in(A)
    expect(write_lock(a, 0, 10), True, "the parent locks")
    child = in_child(other)
    os.read(ready_r, 1)
    parent_is_told = told(a, 10)
    unlock(a)
    expect(wait_for(child), 0 if parent_is_told else 1, "exactly one is told")


def ends():
    """Locks go with a descriptor, and with the process."""
    new_file()
    a, b = open_in(A), open_in(B)
    expect(write_lock(a), True, "A locks")
    os.close(open_in(A))
    expect(write_lock(b), True, "B locks when A has closed another descriptor")
    unlock(b)
    ready_r, ready_w = os.pipe()

    def hold():
        expect(write_lock(open_in(A)), True, "the child locks")
        os.write(ready_w, b"r")
        time.sleep(3600)

    child = in_child(hold)
    os.read(ready_r, 1)
    expect(write_lock(b), False, "B locks what the child has")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    eventually(lambda: write_lock(b), "B locks when the child was killed")


def whole():
    """flock(2)."""
    new_file()
    a, b, here = open_in(A), open_in(B), open_in(HERE)
    expect(flock(a, fcntl.LOCK_EX | fcntl.LOCK_NB), True, "A")
    expect(flock(b, fcntl.LOCK_SH | fcntl.LOCK_NB), False, "B while A has it")
    other = open_in(A)
    expect(flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB), False, "another open file of A")
    twin = os.dup(a)
    os.close(a)
    expect(flock(b, fcntl.LOCK_SH | fcntl.LOCK_NB), False, "B while A has a duplicate")
    os.close(twin)
    eventually(lambda: flock(b, fcntl.LOCK_SH | fcntl.LOCK_NB), "B when A has closed it")
    expect(flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB), True, "both read")
    expect(flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB), False, "A wants to write")
    flock(b, fcntl.LOCK_UN)
    expect(flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB), True, "A alone writes")
    expect(write_lock(here), False, "the server's host, by fcntl")
    flock(other, fcntl.LOCK_UN)

    # Two that read and both want to write must not wait for each other for ever.
    def upgrade(where):
        fd = open_in(where)
        flock(fd, fcntl.LOCK_SH)
        time.sleep(0.3)
        flock(fd, fcntl.LOCK_EX)
        flock(fd, fcntl.LOCK_UN)

    children = [in_child(lambda where=where: upgrade(where)) for where in (A, B)]
    for child in children:
        expect(wait_for(child), 0, "an upgrade")


def open_file():
    """F_OFD_SETLK: the lock is the open file's."""
    new_file()
    a, b = open_in(A), open_in(B)
    expect(write_lock(a, 0, 10, command=F_OFD_SETLK), True, "A")
    os.close(open_in(A))
    expect(write_lock(b, 5, 1), False, "B when A has closed another descriptor")
    keep = open_in(A)  # so that it is not the last close of the file
    os.close(a)
    eventually(lambda: write_lock(b, 5, 1), "B when A has closed it")
    os.close(keep)


def counter(fd, times):
    for _ in range(times):
        write_lock(fd, wait=True)
        value = int(os.pread(fd, 20, 0))
        os.pwrite(fd, b"%-20d" % (value + 1), 0)
        unlock(fd)


def count():
    """What is read under a lock is what was written under the one before."""
    new_file(b"%-20d" % 0)
    children = [in_child(lambda w=w: counter(open_in(w), 50)) for w in (A, B, A, B, HERE)]
    for child in children:
        expect(wait_for(child), 0, "a counting child")
    expect(int(os.pread(open_in(A), 20, 0)), 250, "the sum")


def append():
    """O_APPEND under a lock: no line is lost, each is whole."""
    new_file(b"")

    def child(where, mark):
        fd = open_in(where, os.O_WRONLY | os.O_APPEND)
        for i in range(60):
            flock(fd, fcntl.LOCK_EX)
            os.write(fd, b"%s %d\n" % (mark, i))
            flock(fd, fcntl.LOCK_UN)

    children = [in_child(lambda w=w, m=m: child(w, m)) for w, m in ((A, b"a"), (B, b"b"), (A, b"c"))]
    for one in children:
        expect(wait_for(one), 0, "an appending child")
    with open(os.path.join(HERE, sys.argv[1]), "rb") as lines:
        found = sorted(lines.read().splitlines())
    expect(found, sorted(b"%s %d" % (m, i) for m in (b"a", b"b", b"c") for i in range(60)), "lines")


def database():
    """SQLite, whose only protection is locks, used from both sides at once."""
    names = [os.path.join(where, sys.argv[1]) for where in (A, B)]
    with sqlite3.connect(names[0]) as first:
        first.execute("CREATE TABLE t (who TEXT, n INTEGER)")
    first.close()

    def work(name, who):
        one = sqlite3.connect(name, timeout=240, isolation_level=None)
        for n in range(25):
            one.execute("BEGIN IMMEDIATE")
            (before,) = one.execute("SELECT count(*) FROM t").fetchone()
            one.execute("INSERT INTO t VALUES (?, ?)", (who, before))
            one.execute("COMMIT")
        one.close()

    children = [in_child(lambda n=n, w=w: work(n, w)) for w, n in enumerate(names + names)]
    for child in children:
        expect(wait_for(child), 0, "a child with transactions")
    last = sqlite3.connect(names[1])
    expect(last.execute("PRAGMA integrity_check").fetchone(), ("ok",), "integrity check")
    found = [n for (n,) in last.execute("SELECT n FROM t ORDER BY rowid")]
    expect(found, list(range(100)), "each transaction has seen all before it")
    last.close()


def say_written(fd, data):
    try:
        os.pwrite(fd, data, 0)
        os.fsync(fd)
        print("written", flush=True)
    except OSError as error:
        print(f"error {errno.errorcode[error.errno]}", flush=True)


def hold():
    """Locks 0..9 in A, says so, and writes there when told; for tests that hurt the server."""
    new_file()
    a = open_in(A)
    expect(write_lock(a, 0, 10), True, "A locks")
    print("locked", flush=True)
    sys.stdin.readline()
    say_written(a, b"0123456789")
    sys.stdin.readline()
    unlock(a, 0, 10)
    say_written(a, b"9876543210")


def taken():
    """Is there a lock of somebody else's on byte 5? From B."""
    sys.exit(0 if not write_lock(open_in(B), 5, 1) else 1)


def free():
    """It becomes free, if after the lease of a client that is silent."""
    b = open_in(B)
    eventually(lambda: write_lock(b, 5, 1), "byte 5 is free", 240)


CASES = (ranges, holders, shared, waits, deadlock, ends, whole, open_file, count, append, database)

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # children end with us: PR_SET_PDEATHSIG
    if sys.argv[1:] == ["--list"]:
        print(*(case.__name__ for case in CASES))
        sys.exit(0)
    A, B, HERE = sys.argv[2:5]
    globals()[sys.argv[5] if len(sys.argv) > 5 else sys.argv[1]]()
