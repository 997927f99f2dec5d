#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random operations on a few files of a mounted directory, as fsx does: what is read is what was written.

  random_io.py [--seconds N] [--seed S] [--behind DIR] [--no-direct] DIRECTORY

Each file has a copy in memory. Reads by read(2), mmap(2) and through page cache or O_DIRECT, writes, truncation up
and down, holes, allocation, copies within and between files, closing, opening again. --behind names the same
directory on the server: after fsync and close it is compared, too. What a mount cannot do (EOPNOTSUPP) is left out
and named at the end. A difference ends it with status 1, the place, and the last operations on that file; the seed
repeats the sequence.
"""
import argparse
import ctypes
import errno
import mmap
import os
import random
import sys
import time

LARGEST = 6 << 20
FILES = 3
UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTTY)
KEEP_SIZE, PUNCH_HOLE = 1, 2

libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong)


class Difference(Exception):
    pass


class File:
    def __init__(self, name):
        self.name = name
        self.content = bytearray()
        self.fds = []
        self.direct = False
        self.log = []

    def note(self, text):
        self.log.append(text)
        del self.log[:-30]


class RandomIo:
    def __init__(self, folder, seed, behind=None, direct=True):
        self.folder, self.behind, self.random = folder, behind, random.Random(seed)
        self.files = [File(f"random-{i}") for i in range(FILES)]
        self.direct = 0.25 if direct else 0
        self.left_out = set()
        self.done = {}
        self.operations = [
            (self.write, 30), (self.read, 30), (self.map_read, 6), (self.map_write, 8), (self.truncate, 6),
            (self.punch, 4), (self.allocate, 2), (self.copy, 4), (self.sync, 3), (self.reopen, 4), (self.holes, 2),
            (self.size, 6), (self.forget, 2)]
        for file in self.files:
            self.open(file, os.O_CREAT | os.O_TRUNC)

    # --- helpers ---

    def open(self, file, more=0):
        flags = os.O_RDWR | more | (os.O_DIRECT if file.direct else 0)
        file.fds.append(os.open(os.path.join(self.folder, file.name), flags, 0o644))

    def close(self, file):
        for fd in file.fds:
            os.close(fd)
        file.fds = []

    def fd(self, file):
        return self.random.choice(file.fds)

    def length(self):
        """Mostly short, sometimes more than a request of 1 MiB."""
        return self.random.randint(1, self.random.choice((16, 5000, 70000, 70000, 300000, 1500000)))

    def place(self, file, beyond=0):
        at = self.random.randint(0, min(len(file.content) + beyond, LARGEST - 1))
        return at & ~4095 if self.random.random() < 0.3 else at

    def differ(self, file, what, at, wanted, got):
        where = next((i for i, (a, b) in enumerate(zip(wanted, got)) if a != b), min(len(wanted), len(got)))
        raise Difference(f"{file.name}: {what} at {at}: {len(got)} bytes for {len(wanted)}, different from byte "
                         f"{at + where} on: {bytes(got[where:where + 16]).hex()} for "
                         f"{bytes(wanted[where:where + 16]).hex()}\nbefore that:\n  " + "\n  ".join(file.log))

    def put(self, file, at, content):
        if at > len(file.content):
            file.content.extend(bytes(at - len(file.content)))
        file.content[at:at + len(content)] = content

    def some(self, length):
        """Bytes that tell where they belong: runs of one letter, other runs each time."""
        piece = self.random.randbytes(min(length, 257))
        return (piece * (length // len(piece) + 1))[:length]

    # --- operations: each with a file; False where it does not apply ---

    def write(self, file):
        at = self.place(file, 100000)
        content = self.some(min(self.length(), LARGEST - at))
        if file.direct:  # memory that may be used for it as it is
            with mmap.mmap(-1, len(content)) as memory:
                memory.write(content)
                with memoryview(memory) as view:
                    wrote = os.pwrite(self.fd(file), view, at)
        else:
            wrote = os.pwrite(self.fd(file), content, at)
        self.put(file, at, content[:wrote])
        file.note(f"write {wrote} of {len(content)} at {at}{' direct' if file.direct else ''}")

    def read(self, file):
        at, length = self.place(file, 5000), self.length()
        if file.direct:
            with mmap.mmap(-1, length) as memory:
                got = memory[:os.preadv(self.fd(file), [memory], at)]
        else:
            got = os.pread(self.fd(file), length, at)
        wanted = file.content[at:at + length]
        if got != wanted:
            self.differ(file, "read", at, wanted, got)

    def map_read(self, file):
        if file.direct or not file.content:
            return False
        at = self.place(file) // mmap.PAGESIZE * mmap.PAGESIZE
        length = min(self.length(), len(file.content) - at)
        if length <= 0:
            return False
        with mmap.mmap(self.fd(file), length, mmap.MAP_SHARED, mmap.PROT_READ, offset=at) as memory:
            if memory[:] != file.content[at:at + length]:
                self.differ(file, "mapping", at, file.content[at:at + length], memory[:])
        return True

    def map_write(self, file):
        if file.direct or not file.content:
            return False
        start = self.place(file) // mmap.PAGESIZE * mmap.PAGESIZE
        length = min(self.length(), len(file.content) - start)
        if length <= 0:
            return False
        skip = self.random.randint(0, length - 1)
        content = self.some(length - skip)
        with mmap.mmap(self.fd(file), length, mmap.MAP_SHARED, offset=start) as memory:
            memory[skip:] = content
            if self.random.random() < 0.5:
                memory.flush()
        self.put(file, start + skip, content)
        file.note(f"mapped write {len(content)} at {start + skip}")
        return True

    def truncate(self, file):
        size = self.random.randint(0, min(LARGEST, len(file.content) + 200000))
        if self.random.random() < 0.5:
            os.ftruncate(self.fd(file), size)
        else:
            os.truncate(os.path.join(self.folder, file.name), size)
        file.note(f"truncate {len(file.content)} to {size}")
        if size < len(file.content):
            del file.content[size:]
        else:
            file.content.extend(bytes(size - len(file.content)))

    def fallocate(self, file, mode, at, length):
        if libc.fallocate(self.fd(file), mode, at, length) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def punch(self, file):
        if not file.content:
            return False
        at, length = self.place(file), self.length()
        self.fallocate(file, PUNCH_HOLE | KEEP_SIZE, at, length)
        end = min(at + length, len(file.content))
        if at < end:
            file.content[at:end] = bytes(end - at)
        file.note(f"hole of {length} at {at}")
        return True

    def allocate(self, file):
        at = self.place(file, 50000)
        length = min(self.length(), LARGEST - at)
        self.fallocate(file, 0, at, length)
        if at + length > len(file.content):
            file.content.extend(bytes(at + length - len(file.content)))
        file.note(f"allocate {length} at {at}")

    def copy(self, file):
        source = self.random.choice(self.files)
        if not source.content:
            return False
        start, at = self.place(source), self.place(file, 50000)
        length = min(self.length(), len(source.content) - start, LARGEST - at)
        if length <= 0 or (source is file and abs(start - at) < length):
            return False
        copied = os.copy_file_range(self.fd(source), self.fd(file), length, start, at)
        self.put(file, at, source.content[start:start + copied])
        file.note(f"copy {copied} of {length} from {source.name} at {start} to {at}")
        return True

    def sync(self, file):
        os.fsync(self.fd(file))
        file.note("fsync")
        self.compare_behind(file)

    def open_behind(self, file):
        """QEMU's 9P opens with O_NONBLOCK: it does not wait for a delegation that it has recalled, but fails."""
        deadline = time.monotonic() + 30
        while True:
            try:
                return open(os.path.join(self.behind, file.name), "rb")
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    def compare_behind(self, file):
        if self.behind is None:
            return
        with self.open_behind(file) as there:
            got = there.read()
        if got != file.content:
            self.differ(file, "on the server", 0, file.content, got)

    def reopen(self, file):
        self.close(file)
        file.direct = self.random.random() < self.direct
        file.note("close, open" + (" direct" if file.direct else ""))
        if self.random.random() < 0.5:
            self.compare_behind(file)
        for _ in range(self.random.randint(1, 3)):
            self.open(file)

    def holes(self, file):
        """Whatever is said to be a hole reads as zeros."""
        size, at = len(file.content), 0
        fd = self.fd(file)
        while at < size:
            try:
                data = os.lseek(fd, at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                data = size
            if any(file.content[at:data]):
                raise Difference(f"{file.name}: a hole from {at} to {data}, where there is data\n  "
                                 + "\n  ".join(file.log))
            if data >= size:
                break
            at = os.lseek(fd, data, os.SEEK_HOLE)

    def size(self, file):
        got = os.fstat(self.fd(file)).st_size if self.random.random() < 0.5 else \
            os.stat(os.path.join(self.folder, file.name)).st_size
        if got != len(file.content):
            raise Difference(f"{file.name}: size {got}, not {len(file.content)}\n  " + "\n  ".join(file.log))

    def forget(self, file):
        fd = self.fd(file)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        file.note("fsync, forget")

    # --- the run ---

    def step(self):
        table = [entry for entry in self.operations if entry[0].__name__ not in self.left_out]
        operation = self.random.choices([each for each, _ in table], [weight for _, weight in table])[0]
        file = self.random.choice(self.files)
        try:
            if operation(file) is not False:
                self.done[operation.__name__] = self.done.get(operation.__name__, 0) + 1
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise Difference(f"{file.name}: {operation.__name__}: {error}\n  " + "\n  ".join(file.log)) from error
            self.left_out.add(operation.__name__)

    def run(self, seconds, remount=None, every=30):
        """`remount`: called now and then with nothing open; the files are read whole behind it."""
        end = time.monotonic() + seconds
        again = time.monotonic() + every
        while time.monotonic() < end:
            for _ in range(50):
                self.step()
            if remount is not None and time.monotonic() > again:
                self.finish()
                remount()
                self.check_all()
                again = time.monotonic() + every
        self.finish()
        self.check_all()
        self.finish()

    def finish(self):
        for file in self.files:
            self.close(file)
            self.compare_behind(file)

    def check_all(self):
        for file in self.files:
            file.direct = False
            self.open(file)
            got = os.pread(file.fds[0], LARGEST + 1, 0)
            if got != file.content:
                self.differ(file, "whole file", 0, file.content, got)

    def summary(self):
        text = ", ".join(f"{count} {name}" for name, count in sorted(self.done.items()))
        return text + (f"; not supported: {', '.join(sorted(self.left_out))}" if self.left_out else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("directory")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--behind", metavar="DIR", help="the same directory on the server")
    parser.add_argument("--no-direct", action="store_true", help="no O_DIRECT: local file systems want it aligned")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    work = RandomIo(arguments.directory, arguments.seed, arguments.behind, not arguments.no_direct)
    try:
        work.run(arguments.seconds)
    except Difference as difference:
        print(f"FAILED after {work.summary()}\n{difference}")
        return 1
    print(work.summary())
    return 0


if __name__ == "__main__":
    sys.exit(main())
