#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nlm_locks.py A B LOCAL: locks of one file by two clients of NFSv3 and by the server's own
processes, in the manner of the Connectathon lock tests.

A and B are mounts of one export by two hosts, LOCAL is the exported directory itself. Prints one
line for each case; ends with status 1 when any failed. A process per client carries out what it is
told by a pipe, so that every lock has an owner of its own.
"""
import errno
import fcntl
import os
import select
import signal
import struct
import sys
import time

END = 0  # a length: to the end of the file
BIG = 1 << 40
FLOCK = struct.Struct("hhqqi4x")


class Client:
    """A process that has FILE open in `directory` and does as it is told."""

    def __init__(self, directory, name="file", flags=os.O_RDWR):
        told, self.tell = os.pipe()
        self.hear, tells = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.tell)
            os.close(self.hear)
            self.serve(os.path.join(directory, name), flags, told, tells)
            os._exit(0)
        os.close(told)
        os.close(tells)

    @staticmethod
    def serve(path, flags, told, tells):
        def interrupted(*_):
            raise InterruptedError(errno.EINTR, "interrupted")

        signal.signal(signal.SIGUSR1, interrupted)
        fd = os.open(path, flags)
        with os.fdopen(told) as orders:
            for order in orders:
                what, *rest = order.split()
                numbers = [int(word) for word in rest]
                try:
                    answer = Client.carry_out(fd, what, numbers)
                except OSError as error:
                    answer = errno.errorcode[error.errno]
                os.write(tells, (answer + "\n").encode())

    @staticmethod
    def carry_out(fd, what, numbers):
        if what == "flock":
            fcntl.flock(fd, numbers[0])
            return "ok"
        if what == "write":
            os.pwrite(fd, b"x" * numbers[1], numbers[0])
            return "ok"
        kind, start, length = numbers
        request = FLOCK.pack(kind, os.SEEK_SET, start, length, 0)
        if what == "test":
            kind, _, start, length, _ = FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, request))
            return "free" if kind == fcntl.F_UNLCK else f"{kind} {start} {length}"
        command = {"try": fcntl.F_SETLK, "wait": fcntl.F_SETLKW}[what]
        fcntl.fcntl(fd, command, request)
        return "ok"

    def start(self, *order):
        os.write(self.tell, (" ".join(str(word) for word in order) + "\n").encode())

    def answer(self, patience=60.0):
        end = time.monotonic() + patience
        text = b""
        while not text.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0 or not wait_for(self.hear, left):
                return "nothing"
            text += os.read(self.hear, 1) or b"gone\n"
        return text.decode().strip()

    def do(self, *order):
        self.start(*order)
        return self.answer()

    def interrupt(self):
        os.kill(self.pid, signal.SIGUSR1)

    def end(self, how=signal.SIGKILL):
        os.kill(self.pid, how)
        os.waitpid(self.pid, 0)
        os.close(self.tell)
        os.close(self.hear)


def wait_for(fd, seconds):
    return bool(select.select([fd], [], [], seconds)[0])


R, W, U = fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK
failed = []


def expect(case, got, *wanted):
    good = got in wanted
    print(f"{'ok  ' if good else 'FAIL'} {case}: {got}", flush=True)
    if not good:
        print(f"     wanted {' or '.join(wanted)}", flush=True)
        failed.append(case)


def denied(case, got):
    expect(case, got, "EAGAIN", "EACCES")


def main():
    a_dir, b_dir, local_dir = sys.argv[1:4]
    with open(os.path.join(a_dir, "file"), "wb") as file:
        file.write(b"0" * 4096)
    a, b, local = Client(a_dir), Client(b_dir), Client(local_dir)

    expect("A locks all to write", a.do("try", W, 0, END), "ok")
    denied("B cannot lock it to read", b.do("try", R, 0, 1))
    denied("nor can a process of the server", local.do("try", R, 100, 1))
    expect("B sees whose it is", b.do("test", W, 0, END), f"{W} 0 0")
    expect("A unlocks", a.do("try", U, 0, END), "ok")
    expect("B locks to read", b.do("try", R, 0, 100), "ok")
    expect("A does, too", a.do("try", R, 50, 100), "ok")
    denied("but not to write", a.do("try", W, 50, 100))
    expect("what is B's alone keeps A out", a.do("test", W, 0, 50), f"{R} 0 100")
    expect("B unlocks its middle", b.do("try", U, 40, 20), "ok")
    expect("which A may write", a.do("try", W, 40, 20), "ok")
    denied("the rest it may not", a.do("try", W, 60, 10))
    expect("B unlocks all", b.do("try", U, 0, END), "ok")
    expect("A unlocks all", a.do("try", U, 0, END), "ok")

    expect("beyond 4 GiB", a.do("try", W, BIG, 10), "ok")
    denied("is one lock", b.do("try", W, BIG + 9, 1))
    expect("of ten bytes", b.do("try", W, BIG + 10, 1), "ok")
    a.do("try", U, 0, END)
    b.do("try", U, 0, END)

    expect("A has it", a.do("try", W, 0, 10), "ok")
    b.start("wait", W, 0, 10)
    expect("B waits", b.answer(1.5), "nothing")
    begun = time.monotonic()
    expect("A lets go", a.do("try", U, 0, 10), "ok")
    expect("B is given it", b.answer(20), "ok")
    # Linux's client asks again after 30 s: earlier, it was called back.
    expect("by a call", "called" if time.monotonic() - begun < 20 else "asked", "called")
    denied("so that A cannot have it", a.do("try", R, 0, 10))
    expect("B lets go", b.do("try", U, 0, 10), "ok")

    expect("a process of the server locks", local.do("try", W, 0, 10), "ok")
    denied("A cannot", a.do("try", R, 5, 1))
    expect("A sees that it is locked", a.do("test", R, 0, 10), f"{W} 0 10")
    a.start("wait", W, 0, 10)
    expect("A waits for it", a.answer(1.5), "nothing")
    expect("it unlocks", local.do("try", U, 0, 10), "ok")
    expect("A is given it", a.answer(20), "ok")
    denied("which the server's process sees", local.do("try", R, 0, 1))
    a.do("try", U, 0, 10)

    expect("B has it", b.do("try", W, 0, 10), "ok")
    a.start("wait", W, 0, 10)
    expect("A waits", a.answer(1.5), "nothing")
    a.interrupt()
    expect("and is interrupted", a.answer(20), "EINTR")
    expect("B lets go", b.do("try", U, 0, 10), "ok")
    time.sleep(2)
    expect("nothing is left of that", b.do("try", W, 0, 10), "ok")
    b.do("try", U, 0, END)

    expect("A to read", a.do("try", R, 0, 10), "ok")
    expect("B to read", b.do("try", R, 0, 10), "ok")
    b.start("wait", W, 0, 10)
    expect("B waits to write", b.answer(1.5), "nothing")
    a.start("wait", W, 0, 10)
    # Whoever comes second closes the circle; on a slow machine that may be B.
    ready = select.select([a.hear, b.hear], [], [], 60)[0]
    second, first = (b, a) if b.hear in ready else (a, b)
    expect("the second to wait closes a circle", second.answer(), "EDEADLK", "EDEADLOCK")
    second.do("try", U, 0, 10)
    expect("and the first gets it when that lets go", first.answer(20), "ok")
    first.do("try", U, 0, END)

    expect("flock", a.do("flock", fcntl.LOCK_EX | fcntl.LOCK_NB), "ok")
    expect("of the other", b.do("flock", fcntl.LOCK_EX | fcntl.LOCK_NB), "EAGAIN", "EACCES")
    expect("unlocked", a.do("flock", fcntl.LOCK_UN), "ok")
    expect("of the other", b.do("flock", fcntl.LOCK_SH | fcntl.LOCK_NB), "ok")
    b.do("flock", fcntl.LOCK_UN)

    expect("many", {a.do("try", W, 4 * i, 1) for i in range(200)}.pop(), "ok")
    denied("each is there", b.do("try", R, 4 * 150, 1))
    expect("and between them it is free", b.do("try", W, 4 * 150 + 1, 1), "ok")
    a.end()
    time.sleep(1)
    expect("a process that dies holds nothing", b.do("try", W, 0, END), "ok")
    b.end()
    local.end()
    print(f"{len(failed)} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
