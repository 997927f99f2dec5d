# SPDX-License-Identifier: Apache-2.0
"""What version 4.2 brought to programs: space and holes, extended attributes, clones."""
import errno
import fcntl
import os
import struct
import subprocess

import sides
from bench import data, expect_digest, get, put
from case import case, expect, expect_equal, expect_error

KIB = 1024
MIB = 1024 * KIB
FICLONERANGE = 0x4020940D  # linux/fs.h


def blocks(path):
    """Bytes that the file takes on the disk."""
    return os.stat(path).st_blocks * 512


def extents(path):
    """[(start, end)] of the data, by SEEK_DATA and SEEK_HOLE."""
    found, at = [], 0
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        while at < size:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError as error:
                expect_equal(error.errno, errno.ENXIO, "errno of SEEK_DATA in the last hole")
                break
            at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            found.append((start, at))
        expect_error(errno.ENXIO, "SEEK_DATA at the end", os.lseek, file.fileno(), size, os.SEEK_DATA)
        expect_error(errno.ENXIO, "SEEK_HOLE at the end", os.lseek, file.fileno(), size, os.SEEK_HOLE)
    return found


@case("space")
def space(t):
    content = bytearray(data(4 * MIB))
    put(t.path("file"), content, sync=True)
    expect_equal(extents(t.path("file")), [(0, 4 * MIB)], "data of a file without holes")
    sides.run("fallocate", "-p", "-o", str(MIB), "-l", str(MIB), t.path("file"))
    content[MIB:2 * MIB] = bytes(MIB)
    expect_equal(blocks(t.server_path("file")), 3 * MIB, "bytes on the disk with a hole")
    t.check_same("file", content)
    expect_equal(extents(t.path("file")), [(0, MIB), (2 * MIB, 4 * MIB)], "data around the hole")
    # Up to the end and beyond: neither does the size change.
    sides.run("fallocate", "-p", "-o", str(3 * MIB), "-l", str(8 * MIB), t.path("file"))
    content[3 * MIB:] = bytes(MIB)
    t.check_same("file", content)
    expect_equal(extents(t.path("file")), [(0, MIB), (2 * MIB, 3 * MIB)], "data before the last hole")
    t.remount()
    t.check_same("file", content)
    expect_equal(extents(t.path("file")), extents(t.server_path("file")), "data as the server sees it")

    # Space for what is to come: taken on the disk, read as zeros.
    sides.run("fallocate", "-l", str(8 * MIB), t.path("reserved"))
    expect_equal(os.stat(t.path("reserved")).st_size, 8 * MIB, "the size that the client sees")
    expect(blocks(t.server_path("reserved")) >= 8 * MIB, "the space was not taken")
    t.check_same("reserved", bytes(8 * MIB))
    sides.run("fallocate", "-o", str(MIB), "-l", str(MIB), t.path("file"))
    expect(blocks(t.server_path("file")) >= 3 * MIB, "the hole was not filled")
    t.check_same("file", content)
    # More than there is.
    room = os.statvfs(t.here).f_bfree * os.statvfs(t.here).f_frsize  # root may take all of it
    with open(t.path("too-much"), "wb") as file:
        expect_error(errno.ENOSPC, "more than there is", os.posix_fallocate, file.fileno(), 0,
                     room + 64 * MIB)


def user_names(path):
    """Linux's client lists system.nfs4_acl as well."""
    return sorted(name for name in os.listxattr(path) if name.startswith("user."))


@case("xattrs")
def xattrs(t):
    put(t.path("file"), b"content")
    os.mkdir(t.path("dir"))
    for name in ("file", "dir"):
        there, here = t.path(name), t.server_path(name)
        sides.run("setfattr", "-n", "user.one", "-v", "first", there)
        os.setxattr(there, "user.empty", b"", os.XATTR_CREATE)
        os.setxattr(there, "user.long", data(3000), os.XATTR_CREATE)
        expect_equal(user_names(there), user_names(here), f"attributes of {name}")
        expect_equal(os.getxattr(here, "user.one"), b"first", "the value on the server")
        expect_equal(os.getxattr(here, "user.long"), data(3000), "a long value on the server")
        expect_error(errno.EEXIST, "making one that is there", os.setxattr, there, "user.one", b"x",
                     os.XATTR_CREATE)
        expect_error(errno.ENODATA, "replacing one that is not", os.setxattr, there, "user.two", b"x",
                     os.XATTR_REPLACE)
        expect_error(errno.ENODATA, "reading one that is not there", os.getxattr, there, "user.two")
        expect_error(errno.ENODATA, "removing one that is not", os.removexattr, there, "user.two")
        sides.run("setfattr", "-x", "user.empty", there)
    # What a local process changes is seen by a client that has nothing cached.
    os.setxattr(t.server_path("file"), "user.one", b"second")
    t.remount()
    text = sides.run("getfattr", "--absolute-names", "--only-values", "-n", "user.one", t.path("file"))
    expect_equal(text, "second", "what getfattr shows")
    for name in ("file", "dir"):
        expect_equal(os.getxattr(t.path(name), "user.long"), data(3000), f"a long value of {name}")
        expect_equal(user_names(t.path(name)), ["user.long", "user.one"],
                     f"attributes of {name} in the end")

    # Many names: the list does not fit into one message of RPC-over-RDMA.
    put(t.server_path("many"), b"")
    names = sorted(f"user.{'n' * 60}{number:02}" for number in range(40))
    for name in names:
        os.setxattr(t.path("many"), name, b"v")
    t.remount()
    expect_equal(user_names(t.path("many")), names, "many names")


def mount_xfs(t, image):
    """An XFS below the export: it has clones."""
    folder = t.server_path("xfs")
    with open(image, "wb") as file:
        file.truncate(400 * MIB)
    sides.run(f"{sides.PROGRAMS}/mkfs.xfs", "-q", image, limit=60, env=sides.our_environment())
    os.mkdir(folder)
    sides.run("modprobe", "-a", "loop", "xfs")  # no udev makes the devices
    sides.run("mount", "-o", "loop", image, folder, limit=60)
    os.chmod(folder, 0o1777)
    return folder


@case("reflink", export="rw,no_root_squash,insecure,crossmnt", tools=("mkfs.xfs",), limit=150)
def reflink(t):
    image = "/export/reflink.img"
    folder = mount_xfs(t, image)
    content = data(8 * MIB)
    put(t.path("xfs/from"), content, sync=True)
    before = os.statvfs(folder)
    sides.run("cp", "--reflink=always", t.path("xfs/from"), t.path("xfs/to"))
    expect_digest(t.server_path("xfs/to"), content, "the clone")
    now = os.statvfs(folder)
    expect((before.f_bfree - now.f_bfree) * now.f_frsize < MIB, "the clone took space of its own")
    # What is written to the one is not seen in the other.
    with open(t.path("xfs/to"), "r+b", buffering=0) as file:
        file.write(b"changed")
    t.check_same("xfs/from", content)
    t.check_same("xfs/to", b"changed" + content[7:])
    # A part, into another place of another file.
    put(t.path("xfs/part"), bytes(4 * MIB), sync=True)
    with open(t.path("xfs/from"), "rb") as source, open(t.path("xfs/part"), "r+b") as target:
        fcntl.ioctl(target, FICLONERANGE, struct.pack("qQQQ", source.fileno(), MIB, 2 * MIB, MIB))
    t.check_same("xfs/part", bytes(MIB) + content[MIB:3 * MIB] + bytes(MIB))
    # Where the file system has no clones, cp says so, and copies when it may.
    put(t.path("plain"), content, sync=True)
    done = subprocess.run(["cp", "--reflink=always", t.path("plain"), t.path("never")],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    expect(done.returncode != 0 and "not supported" in done.stderr, f"cp on ext4 said {done.stderr!r}")
    sides.run("cp", "--reflink=auto", t.path("plain"), t.path("copied"))
    expect_digest(t.server_path("copied"), content, "the copy")
    t.remount()
    expect_equal(get(t.path("xfs/from")), content, "the source in the end")
    sides.run("umount", "-l", folder)
    os.unlink(image)


@case("clone-ours", export="rw,no_root_squash,insecure,crossmnt", tools=("mkfs.xfs",), limit=150)
def clone_ours(t):
    """copy_file_range(2) of our mount: a CLONE where the file system has that, else a COPY."""
    image = "/export/clone.img"
    folder = mount_xfs(t, image)
    # More than one COPY is asked for; it never goes over the wire.
    content = data(100 * MIB)

    def copy(source, target):
        with open(t.path(source), "rb") as there, open(t.path(target), "wb") as here:
            left = len(content)
            calls = 0
            while left > 0:
                copied = os.copy_file_range(there.fileno(), here.fileno(), left)
                expect(copied > 0, f"{copied} bytes copied, {left} left")
                left -= copied
                calls += 1
        expect_digest(t.server_path(target), content, target)
        return calls

    put(t.server_path("xfs/from"), content, sync=True)
    before = os.statvfs(folder)
    expect_equal(copy("xfs/from", "xfs/to"), 1, "calls for a clone of all")
    now = os.statvfs(folder)
    expect((before.f_bfree - now.f_bfree) * now.f_frsize < MIB, "the clone took space of its own")
    with open(t.path("xfs/to"), "r+b", buffering=0) as file:
        file.write(b"changed")
    expect_digest(t.server_path("xfs/from"), content, "the source of a clone that was changed")
    expect_digest(t.server_path("xfs/to"), b"changed" + content[7:], "the clone that was changed")
    with open(t.path("xfs/to"), "rb", buffering=0) as file:
        expect_equal(file.read(MIB), b"changed" + content[7:MIB], "the changed clone as the mount has it")
    put(t.server_path("plain"), content, sync=True)
    expect(copy("plain", "copied") > 1, "copied by one call where there are no clones")
    sides.run("umount", "-l", folder)
    os.unlink(image)
