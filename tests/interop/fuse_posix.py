#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""POSIX behaviour of a FUSE mount, as the user that runs this.

    fuse_posix.py DIR OTHER EXPORT    the same empty directory in two mounts and on the server

Each check is a function; a failed assertion is a failed check. Exit code: the number of them.
Variable mount_by: the mount's options.
"""
import ctypes
import errno
import mmap
import os
import stat
import struct
import sys
import threading
import time
import traceback

here, other, export = sys.argv[1:4]


def path(name, base=here):
    return os.path.join(base, name)


def write(name, data, base=here):
    with open(path(name, base), "wb") as f:
        f.write(data)


def read(name, base=here):
    with open(path(name, base), "rb") as f:
        return f.read()


def silly_names(directory):
    return [name for name in os.listdir(directory) if name.startswith(".nfs")]


def soon(condition):
    """Names of closed files go in the background."""
    for _ in range(100):
        if condition():
            return True
        time.sleep(0.05)
    return False


def expect_error(number, function, *arguments):
    try:
        function(*arguments)
    except OSError as e:
        assert e.errno == number, f"{errno.errorcode[e.errno]}, not {errno.errorcode[number]}"
    else:
        raise AssertionError(f"worked, instead of {errno.errorcode[number]}")


def open_file_is_unlinked():
    fd = os.open(path("u"), os.O_RDWR | os.O_CREAT)
    os.write(fd, b"before")
    os.unlink(path("u"))
    expect_error(errno.ENOENT, os.stat, path("u"))
    assert len(silly_names(export)) == 1
    os.write(fd, b" after")
    os.fsync(fd)
    assert os.pread(fd, 100, 0) == b"before after"
    os.ftruncate(fd, 3)
    assert os.fstat(fd).st_size == 3 and os.pread(fd, 100, 0) == b"bef"
    write("u", b"another")
    assert os.pread(fd, 100, 0) == b"bef" and read("u") == b"another"
    os.close(fd)
    assert soon(lambda: not silly_names(export)), silly_names(export)
    assert read("u", export) == b"another"


def open_file_is_replaced():
    write("old", b"old")
    write("new", b"new")
    fd = os.open(path("old"), os.O_RDWR)
    second = os.open(path("old"), os.O_RDONLY)
    os.rename(path("new"), path("old"))
    assert read("old") == b"new" and os.pread(fd, 10, 0) == b"old"
    os.pwrite(fd, b"OLD", 0)
    os.close(fd)
    assert silly_names(export), "still open once"
    assert os.pread(second, 10, 0) == b"OLD"
    os.close(second)
    assert soon(lambda: not silly_names(export)), silly_names(export)
    assert read("old", export) == b"new"


def shared_mapping():
    size = 1 << 20
    fd = os.open(path("map"), os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, size)
    m = mmap.mmap(fd, size)
    for at in range(0, size, 4096):
        m[at:at + 8] = b"%08d" % at
    m.flush()  # msync(MS_SYNC)
    data = read("map", export)
    assert all(data[at:at + 8] == b"%08d" % at for at in range(0, size, 4096))
    os.pwrite(fd, b"written!", 4096)
    assert m[4096:4104] == b"written!"
    m[8192:8200] = b"mapped!!"
    assert os.pread(fd, 8, 8192) == b"mapped!!"
    os.close(fd)
    m[0:8] = b"closed!!"
    m.flush()
    m.close()
    assert read("map", export)[:8] == b"closed!!"


def append_from_two_mounts():
    write("log", b"")
    for i in range(50):
        for base in (here, other):
            fd = os.open(path("log", base), os.O_WRONLY | os.O_APPEND)
            os.write(fd, b"%03d %d\n" % (i, base == other))
            os.close(fd)
    wanted = b"".join(b"%03d 0\n%03d 1\n" % (i, i) for i in range(50))
    assert read("log", export) == wanted
    assert read("log", here) == wanted and read("log", other) == wanted


def append_in_threads():
    write("threads", b"")
    fd = os.open(path("threads"), os.O_WRONLY | os.O_APPEND)

    def work(letter):
        for _ in range(100):
            os.write(fd, letter * 10 + b"\n")

    threads = [threading.Thread(target=work, args=(bytes([65 + i]),)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    os.close(fd)
    lines = read("threads", export).splitlines()
    assert len(lines) == 400 and all(line == line[:1] * 10 for line in lines)


def truncating():
    write("t", b"0123456789" * 1000)
    fd = os.open(path("t"), os.O_RDWR | os.O_TRUNC)
    assert os.fstat(fd).st_size == 0 and os.stat(path("t", export)).st_size == 0
    # Dirty data is cut and does not come back.
    os.write(fd, b"x" * 300_000)
    os.ftruncate(fd, 100_000)
    os.pwrite(fd, b"end", 150_000)
    os.ftruncate(fd, 120_000)
    os.ftruncate(fd, 200_000)
    assert os.fstat(fd).st_size == 200_000
    os.close(fd)
    wanted = b"x" * 100_000 + b"\0" * 100_000
    assert read("t") == wanted and read("t", export) == wanted
    # By path, while a descriptor holds dirty data.
    fd = os.open(path("t"), os.O_RDWR)
    os.write(fd, b"y" * 50_000)
    os.truncate(path("t"), 10)
    assert os.pread(fd, 100, 0) == b"y" * 10
    os.pwrite(fd, b"z", 11)
    os.close(fd)
    assert read("t", export) == b"y" * 10 + b"\0z"


def direct_writes_beside_cached_reads():
    # io_submit(2), which returns before the data is written, while another thread reads the same
    # place by way of the kernel's pages: what it finds there once the write is done is the new data.
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = {"x86_64": (206, 207, 208, 209), "aarch64": (0, 1, 4, 2)}
    setup, destroy, getevents, submit = numbers[os.uname().machine]
    context = ctypes.c_ulong(0)
    assert libc.syscall(setup, 1, ctypes.byref(context)) == 0, "io_setup"
    size, rounds = 256 << 10, 60
    buffer = mmap.mmap(-1, size)
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    write("aio", bytes(size))
    direct = os.open(path("aio"), os.O_RDWR | os.O_DIRECT)
    cached = os.open(path("aio"), os.O_RDONLY)
    event = ctypes.create_string_buffer(32)
    under_way = threading.Event()
    over = threading.Event()

    def read_all_the_time():
        while not over.is_set():
            under_way.wait()
            os.pread(cached, size, 0)
    reader = threading.Thread(target=read_all_the_time)
    reader.start()
    try:
        for n in range(1, rounds + 1):
            buffer[:] = bytes([n]) * size
            # struct iocb: IOCB_CMD_PWRITE is 1
            block = struct.pack("=QIIHhIQQqQII", 0, 0, 0, 1, 0, direct, address, size, 0, 0, 0, 0)
            block = ctypes.create_string_buffer(block, len(block))
            blocks = (ctypes.c_void_p * 1)(ctypes.addressof(block))
            under_way.set()
            assert libc.syscall(submit, context, 1, blocks) == 1, "io_submit"
            assert libc.syscall(getevents, context, 1, 1, event, None) == 1, "io_getevents"
            under_way.clear()
            assert struct.unpack("=QQqq", event.raw)[2] == size, "the write's result"
            found = os.pread(cached, size, 0)
            assert found == bytes([n]) * size, f"old data behind write {n}"
    finally:
        over.set()
        under_way.set()
        reader.join()
        libc.syscall(destroy, context)
        os.close(direct)
        os.close(cached)


def cutting_is_for_writers():
    # A server lets the owner write whatever the mode says; the application is not to notice.
    write("cut", b"data")
    writer = os.open(path("cut"), os.O_WRONLY)
    os.chmod(path("cut"), 0o444)
    def empty_by_open():
        os.close(os.open(path("cut"), os.O_RDONLY | os.O_TRUNC))
    if os.getuid() != 0:
        expect_error(errno.EACCES, os.truncate, path("cut"), 1)
        expect_error(errno.EACCES, empty_by_open)
        assert read("cut", export) == b"data"
        os.ftruncate(writer, 2)  # was allowed when it was opened
        assert read("cut", export) == b"da"
        os.chmod(path("cut"), 0o644)
    os.truncate(path("cut"), 1)
    assert read("cut", export) == b"d"
    empty_by_open()
    assert read("cut", export) == b""
    os.close(writer)


def holes():
    fd = os.open(path("h"), os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"end", 10 << 20)
    size = (10 << 20) + 3
    assert os.fstat(fd).st_size == size
    assert os.pread(fd, 4096, 1 << 20) == b"\0" * 4096
    if "vers=4.2" in os.environ["mount_by"]:
        assert os.lseek(fd, 0, os.SEEK_HOLE) == 0
        assert os.lseek(fd, 5000, os.SEEK_DATA) == 10 << 20
        assert os.lseek(fd, 10 << 20, os.SEEK_HOLE) == size
    else:  # The server cannot be asked for holes: all is data, and the only hole is the end.
        assert os.lseek(fd, 0, os.SEEK_HOLE) == size
        assert os.lseek(fd, 5000, os.SEEK_DATA) == 5000
    expect_error(errno.ENXIO, os.lseek, fd, size, os.SEEK_DATA)
    os.close(fd)
    assert os.stat(path("h", export)).st_blocks < 1000, "the hole stays a hole"


def hard_links():
    write("l1", b"data")
    os.link(path("l1"), path("l2"))
    a, b = os.stat(path("l1")), os.stat(path("l2"))
    assert a.st_ino == b.st_ino and a.st_nlink == b.st_nlink == 2
    expect_error(errno.EEXIST, os.link, path("l1"), path("l2"))
    os.mkdir(path("ld"))
    os.link(path("l1"), path("ld/l3"))
    os.unlink(path("l1"))
    assert os.stat(path("l2")).st_nlink == 2 and read("ld/l3") == b"data"
    os.rename(path("l2"), path("ld/l3"))  # the same file: nothing happens
    assert read("l2") == b"data" and read("ld/l3") == b"data"


def times():
    write("times", b"x")
    second = 10 ** 9
    os.utime(path("times"), ns=(1_111_111_111 * second + 123_456_789, 2 * second + 7))
    for base in (here, other, export):
        s = os.stat(path("times", base))
        assert s.st_atime_ns == 1_111_111_111 * second + 123_456_789, base
        assert s.st_mtime_ns == 2 * second + 7, base
    in_2050 = 2_524_608_000  # more than 31 bits
    write("times-of-2050", b"x")  # the other mount knows those of the first file for a while
    os.utime(path("times-of-2050"), ns=(in_2050 * second, (in_2050 + 1) * second))
    for base in (here, other, export):
        s = os.stat(path("times-of-2050", base))
        assert (s.st_atime, s.st_mtime) == (in_2050, in_2050 + 1), base
    fd = os.open(path("times"), os.O_RDWR)
    os.write(fd, b"dirty")
    os.utime(fd, ns=(5 * second, 6 * second))
    os.close(fd)
    assert os.stat(path("times")).st_mtime_ns == 6 * second, "the data went first"
    before = time.time()
    os.utime(path("times"))
    assert abs(os.stat(path("times")).st_mtime - before) < 60


def renaming():
    os.makedirs(path("r/a/deep"))
    os.mkdir(path("r/b"))
    write("r/a/f", b"f")
    fd = os.open(path("r/a/f"), os.O_RDWR)
    os.rename(path("r/a/f"), path("r/b/g"))
    expect_error(errno.ENOENT, os.stat, path("r/a/f"))
    os.pwrite(fd, b"moved", 0)
    os.close(fd)
    assert read("r/b/g", export) == b"moved"
    os.rename(path("r/a"), path("r/b/a"))
    assert os.path.isdir(path("r/b/a/deep")) and not os.path.exists(path("r/a"))
    assert os.stat(path("r/b/a/deep/../..")).st_ino == os.stat(path("r/b")).st_ino
    os.mkdir(path("r/full"))
    write("r/full/x", b"")
    expect_error(errno.ENOTEMPTY, os.rename, path("r/b"), path("r/full"))
    expect_error(errno.EINVAL, os.rename, path("r/b"), path("r/b/a/deep/x"))
    expect_error(errno.EISDIR, os.rename, path("r/full/x"), path("r/b"))
    expect_error(errno.ENOTDIR, os.rename, path("r/b"), path("r/full/x"))


def space():
    mine, servers = os.statvfs(here), os.statvfs(export)
    assert mine.f_namemax == 255
    total, wanted = mine.f_blocks * mine.f_frsize, servers.f_blocks * servers.f_frsize
    assert abs(total - wanted) <= 4096 and mine.f_bavail <= mine.f_bfree <= mine.f_blocks
    assert mine.f_files == servers.f_files


def long_symbolic_links():
    target = "/".join(["x" * 127] * 8)
    assert len(target) == 1023
    os.symlink(target, path("s"))
    assert os.readlink(path("s")) == target and os.readlink(path("s", export)) == target
    assert os.lstat(path("s")).st_size == 1023 and stat.S_ISLNK(os.lstat(path("s")).st_mode)


def long_names():
    for name in ("n" * 255, "\u00e9" * 127 + "x"):
        assert len(name.encode()) == 255
        write(name, b"data")
        assert read(name, export) == b"data" and name in os.listdir(here)
        os.rename(path(name), path("m" + name[1:-1]))
        os.unlink(path("m" + name[1:-1]))
    expect_error(errno.ENAMETOOLONG, write, "n" * 256, b"")


def listing_while_it_changes():
    os.mkdir(path("many"))
    for i in range(10_000):
        os.close(os.open(path(f"many/keep{i}" if i % 2 else f"many/drop{i}"), os.O_CREAT))
    seen = []
    with os.scandir(path("many")) as entries:
        for entry in entries:
            seen.append(entry.name)
            if len(seen) <= 2000:
                os.unlink(path(f"many/drop{2 * len(seen) - 2}"))
                os.close(os.open(path(f"many/new{len(seen)}"), os.O_CREAT))
    assert len(seen) == len(set(seen)), "no name twice"
    missing = {f"keep{i}" for i in range(1, 10_000, 2)} - set(seen)
    assert not missing, f"{len(missing)} names that were there all the time are missing"
    assert sorted(os.listdir(path("many"))) == sorted(os.listdir(path("many", export)))


checks = [open_file_is_unlinked, open_file_is_replaced, shared_mapping, append_from_two_mounts,
          append_in_threads, truncating,
          direct_writes_beside_cached_reads, cutting_is_for_writers, holes, hard_links, times, renaming, space,
          long_symbolic_links, long_names, listing_while_it_changes]
failures = 0
for check in checks:
    try:
        check()
        print(f"ok   uid {os.getuid()}: {check.__name__}")
    except (AssertionError, OSError):
        failures += 1
        print(f"FAIL uid {os.getuid()}: {check.__name__}")
        print("     " + traceback.format_exc().replace("\n", "\n     "))
sys.exit(failures)
