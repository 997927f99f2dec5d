#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the caches of two clients meet, two mounts with several processes on each: open and close, or locks.

    close_to_open.py A B opens|locks|appends|together SECONDS SEED

A and B are mounts of one directory.

opens  Who writes a file has it for himself (a lock of this program, which no file system hears of) and says, once it
       is closed, which version that was; a reader notes that before he opens it. Readers do not wait for writers, but
       half of them keep writers away: they have to read exactly the last version, whole.
locks  Each process keeps the files open. Who has a lock of a file (fcntl) has to read exactly what was written under
       the one before. Others ask for the file's size meanwhile.
appends  Each process keeps one file open with O_APPEND, and appends to it under a lock. Nothing of it may be lost.
together  Whenever a file was written by way of A, some processes open it by way of B, all at once.

The last line counts versions and reads; exit status 1 and a line for each when something else was read.
"""
import ctypes
import fcntl
import mmap
import multiprocessing
import os
import random
import sys
import time
from multiprocessing.sharedctypes import RawArray

FILES = 3
PROCESSES = 3  # on each mount
MOST = 300000
LENGTHS = (17, 3000, 5000, 70000, MOST)
LINE = 17
READERS = 4  # that read together
TO_END = 60  # seconds: who has failed with a lock would keep the others waiting


class Board:
    """What all processes know: the version of each file that was closed last, and the last one begun."""

    def __init__(self):
        self.room = RawArray(ctypes.c_uint64, 2 * FILES)
        self.read = RawArray(ctypes.c_uint64, READERS)
        self.locks = [multiprocessing.Lock() for _ in range(FILES)]

    def get(self, kind, file):
        return self.room[2 * file + kind]

    def put(self, kind, file, version):
        self.room[2 * file + kind] = version


CLOSED, BEGUN = 0, 1


def content(version, length):
    lines = b"%016d\n" % version
    return lines * -(-length // LINE)


def rewrite(path, data):
    with open(path, "wb", 0) as handle:
        handle.write(data)


def overwrite(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    os.pwrite(fd, data, 0)
    os.close(fd)


def cut_and_write(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    os.ftruncate(fd, len(data))
    os.pwrite(fd, data, 0)
    os.close(fd)


def write_mapped(path, data):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    os.ftruncate(fd, len(data))
    with mmap.mmap(fd, len(data)) as memory:
        memory[:] = data
        memory.flush()
    os.close(fd)


# An overwrite leaves nothing of what was there only when it is as long as any.
WAYS = ((rewrite, LENGTHS), (overwrite, (MOST,)), (cut_and_write, LENGTHS), (write_mapped, LENGTHS))


def read_file(path):
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    data = os.pread(fd, 2 * MOST, 0)
    os.close(fd)
    return size, data


def read_mapped(path):
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    with mmap.mmap(fd, size, prot=mmap.PROT_READ) as memory:
        data = memory[:]
    os.close(fd)
    return size, data


def wrong(version, seen, alone):
    """What is wrong about what was read, where `version` was closed before; None: nothing."""
    size, data = seen
    if len(data) < LINE:
        return f"{len(data)} bytes" if alone else None
    found = int(data[:LINE]) if data[:LINE].strip(b"\0") else 0
    if found < version and (alone or found > 0):
        return f"version {found}"
    if alone and (len(data) != size or data != content(found, len(data))[:len(data)] or found != version):
        bad = [at for at in range(0, len(data), LINE) if data[at:at + LINE] != data[:LINE]]
        there = data[bad[0]:bad[0] + LINE] if bad else b""
        return f"version {found}, size {size}, {len(data)} bytes, others from {bad[:1]} to {bad[-1:]}, there {there}"
    return None


def work(board, directory, end, dice):
    writes = reads = 0
    complaints = []
    while time.monotonic() < end and len(complaints) < 5:
        file = dice.randrange(FILES)
        path = f"{directory}/file{file}"
        if dice.random() < 0.35:
            way, lengths = dice.choice(WAYS)
            with board.locks[file]:
                version = board.get(CLOSED, file) + 1
                board.put(BEGUN, file, version)
                way(path, content(version, dice.choice(lengths)))
                board.put(CLOSED, file, version)
            writes += 1
            continue
        alone = dice.random() < 0.5
        if alone:
            board.locks[file].acquire()
        version = board.get(CLOSED, file)
        if version > 0:
            # A mapping of what is cut meanwhile ends in a signal, as on any file system.
            seen = (read_mapped if alone and dice.random() < 0.5 else read_file)(path)
            quiet = alone or board.get(BEGUN, file) == version
            what = wrong(version, seen, quiet)
            if what is not None:
                complaints.append(f"{path}: {what} where {version} was closed before")
            reads += 1
        if alone:
            board.locks[file].release()
    for complaint in complaints:
        print(complaint, flush=True)
    return writes, reads, len(complaints)


def work_with_locks(board, directory, end, dice):
    writes = reads = 0
    complaints = []
    paths = [f"{directory}/locked{file}" for file in range(FILES)]
    fds = [os.open(path, os.O_RDWR | os.O_CREAT, 0o644) for path in paths]
    while time.monotonic() < end and len(complaints) < 5:
        file = dice.randrange(FILES)
        fd = fds[file]
        if dice.random() < 0.3:
            os.stat(paths[file])
            continue
        fcntl.lockf(fd, fcntl.LOCK_EX)
        version = board.get(CLOSED, file)
        if version > 0 and dice.random() < 0.5:
            data = os.pread(fd, 2 * MOST, 0)  # first: nobody has asked for the size since
            what = wrong(version, (os.fstat(fd).st_size, data), True)
            if what is not None:
                complaints.append(f"{paths[file]}: {what} where {version} was unlocked before")
            reads += 1
        if dice.random() < 0.6:
            # Cut, also where it is long enough: client/fuse/README.md, "Where caches meet", says what is left.
            data = content(version + 1, dice.choice(LENGTHS))
            os.ftruncate(fd, len(data))
            os.pwrite(fd, data, 0)
            board.put(CLOSED, file, version + 1)
            writes += 1
        fcntl.lockf(fd, fcntl.LOCK_UN)
    for complaint in complaints:
        print(complaint, flush=True)
    return writes, reads, len(complaints)


def work_appending(board, directory, end, dice):
    """Counts what was appended, by all, in BEGUN of file 0."""
    path = f"{directory}/appended"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    writes = reads = 0
    complaints = []
    while time.monotonic() < end and len(complaints) < 5:
        if dice.random() < 0.5:
            os.stat(path)
            continue
        fcntl.lockf(fd, fcntl.LOCK_EX)
        count = board.get(BEGUN, 0)
        os.write(fd, b"%016d\n" % (count + 1))
        board.put(BEGUN, 0, count + 1)
        writes += 1
        if dice.random() < 0.1:
            with open(path, "rb") as handle:
                found = handle.read()
            if found != b"".join(b"%016d\n" % number for number in range(1, count + 2)):
                complaints.append(f"{path}: {len(found)} bytes, not {count + 1} lines of {LINE} one after another")
            reads += 1
        fcntl.lockf(fd, fcntl.LOCK_UN)
    for complaint in complaints:
        print(complaint, flush=True)
    return writes, reads, len(complaints)


def write_for_all(board, directory, end):
    path = f"{directory}/together"
    versions = 0
    while time.monotonic() < end:
        versions += 1
        rewrite(path, content(versions, LENGTHS[versions % 3]))
        board.put(CLOSED, 0, versions)
        while min(board.read) < versions and time.monotonic() < end:
            os.sched_yield()
    board.put(BEGUN, 0, 1)
    return versions, 0, 0


def read_at_once(board, directory, number):
    path = f"{directory}/together"
    reads = wrongs = 0
    while not board.get(BEGUN, 0):
        version = board.get(CLOSED, 0)
        if version == reads:
            os.sched_yield()
            continue
        fd = os.open(path, os.O_RDONLY)
        sizes = {os.fstat(fd).st_size, os.fstat(fd).st_size}
        data = os.pread(fd, 2 * MOST, 0)
        os.close(fd)
        if sizes != {len(data)} or data != content(version, LENGTHS[version % 3]):
            print(f"{path}: sizes {sizes}, {len(data)} bytes, {data[:LINE]} where {version} was closed before", flush=True)
            wrongs += 1
        reads = version
        board.read[number] = version
    return 0, reads, wrongs


def main():
    a, b, by, seconds, seed = *sys.argv[1:4], float(sys.argv[4]), int(sys.argv[5])
    board = Board()
    results = multiprocessing.Queue()
    end = time.monotonic() + seconds
    if by == "together":
        tasks = [lambda: write_for_all(board, a, end)]
        tasks += [lambda number=number: read_at_once(board, b, number) for number in range(READERS)]
    else:
        task = {"opens": work, "locks": work_with_locks, "appends": work_appending}[by]
        tasks = [
            lambda number=number: task(board, (a, b)[number % 2], end, random.Random(seed * 1000 + number))
            for number in range(2 * PROCESSES)
        ]

    def run(number):
        results.put(tasks[number]())

    workers = [multiprocessing.Process(target=run, args=(number,)) for number in range(len(tasks))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(max(0, end + TO_END - time.monotonic()))
        if worker.is_alive():
            worker.kill()
            worker.join()
    ended = [worker.exitcode for worker in workers if worker.exitcode != 0]
    counts = [results.get() for worker in workers if worker.exitcode == 0]
    writes, reads, bad = (sum(count[i] for count in counts) for i in range(3))
    print(f"{writes} versions, {reads} reads, {bad} of them wrong, {len(ended)} processes failed {ended}")
    sys.exit(1 if bad or ended or not writes or not reads else 0)


main()
