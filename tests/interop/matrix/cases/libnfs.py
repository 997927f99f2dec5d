# SPDX-License-Identifier: Apache-2.0
"""libnfs over TCP as the client, through ctypes: the same behaviours, without a mount."""
import ctypes
import errno
import itertools
import os
import time

import sides
from bench import data, expect_digest, get
from case import Failed, case, expect, expect_equal
from worker import Worker

KIB = 1 << 10
MIB = 1 << 20


NUMBERS = itertools.count()


class Client:
    """One libnfs context, mounted on the case's directory. Calls that fail raise Failed.

    By version 4, libnfs 4.0 (Debian 12's) has faults of its own, each seen in its source:
    - it encodes a COMPOUND into 4 KiB and no more (rpc_nfs4_compound_async, lib/pdu.c): WRITE takes less;
    - it asks for all of a READ at once and takes no reply beyond a MiB (NFS_MAX_XFER_SIZE, lib/socket.c);
    - whatever it creates, it creates with EXCLUSIVE4 and without a mode (`flags|O_EXCL` in
      nfs4_populate_open, lib/nfs_v4.c): a new file has mode 0, of knfsd, too, and is ours to open up, and
      one that is there is in the way;
    - the number of an open-owner's request does not go on after one that failed: the next OPEN of the
      same context counts as that one again, and gets its answer;
    - a client's name is its process and the second, so that two of one second are one to a server;
    - readlink gives the text without its end.
    """

    def __init__(self, t, uid=None):
        self.version4 = t.client.version != "3"
        self.t = t
        self.library = ctypes.CDLL("libnfs.so.13")
        self.library.nfs_init_context.restype = ctypes.c_void_p
        self.library.nfs_get_error.restype = ctypes.c_char_p
        self.library.nfs_get_error.argtypes = [ctypes.c_void_p]
        self.context = ctypes.c_void_p(self.library.nfs_init_context())
        # Taking an URL apart is how the library is told ports; otherwise it asks rpcbind.
        self.library.nfs_parse_url_dir.restype = ctypes.c_void_p
        address = t.network.server_address
        if self.version4:
            self.library.nfs4_set_client_name(self.context, f"{os.getpid()} {next(NUMBERS)}".encode())
        url = f"nfs://{address}{t.here}?version={t.client.version}&nfsport=2049&mountport=2049"
        parsed = self.library.nfs_parse_url_dir(self.context, url.encode())
        expect(parsed, f"libnfs does not take {url}: {self.error()}")
        self.library.nfs_destroy_url(ctypes.c_void_p(parsed))
        self.call("mount", address.encode(), t.here.encode())
        if uid is not None:
            self.library.nfs_set_uid(self.context, uid)
            self.library.nfs_set_gid(self.context, uid)

    def call(self, name, *arguments):
        got = getattr(self.library, f"nfs_{name}")(self.context, *arguments)
        if got < 0:
            raise Failed(f"nfs_{name}{str(arguments)[:60]}: {got}, {self.error()}")
        return got

    def call_fails(self, number, name, *arguments):
        got = getattr(self.library, f"nfs_{name}")(self.context, *arguments)
        expect_equal(got, -number, f"result of nfs_{name}{arguments}")

    def error(self):
        return (self.library.nfs_get_error(self.context) or b"").decode(errors="replace")

    def close(self):
        self.library.nfs_destroy_context(self.context)

    # --- files ---

    def open(self, name, flags, mode=0o644):
        handle = ctypes.c_void_p()
        path = os.fsencode(self.t.here) + name
        if self.version4 and os.path.exists(path):
            flags &= ~os.O_CREAT
        self.call("open2", name, flags, mode, ctypes.byref(handle))
        if self.version4 and flags & os.O_CREAT:
            os.chmod(path, mode)
        return handle

    def readlink(self, name, length):
        """`length` is what the target has."""
        buffer = ctypes.create_string_buffer(5000)
        self.call("readlink", name, buffer, 5000)
        return buffer.raw[:length] if self.version4 else buffer.value

    def write(self, name, content, flags=os.O_CREAT | os.O_WRONLY, piece=256 * KIB,
              progress=lambda at: None):
        """In calls of `piece` bytes, each a WRITE or several."""
        if self.version4:
            piece = min(piece, 2 * KIB)
        handle = self.open(name, flags)
        at = 0
        while at < len(content):
            part = content[at:at + piece]
            at += self.call("write", handle, ctypes.c_uint64(len(part)), part)
            progress(at)
        self.call("fsync", handle)
        self.call("close", handle)

    def read(self, name, piece=MIB, progress=lambda at: None):
        if self.version4:
            piece = min(piece, MIB)
        handle = ctypes.c_void_p()
        self.call("open", name, os.O_RDONLY, ctypes.byref(handle))
        pieces = []
        at = 0
        buffer = ctypes.create_string_buffer(piece)
        while True:
            got = self.call("read", handle, ctypes.c_uint64(piece), buffer)
            if got == 0:
                break
            pieces.append(buffer.raw[:got])
            at += got
            progress(at)
        self.call("close", handle)
        return b"".join(pieces)


@case("libnfs-sizes", kind="libnfs", limit=120)
def sizes(t):
    client = Client(t)
    for size in (1, 4095, 4097, MIB - 1, MIB, MIB + 1):
        client.write(b"/out-%d" % size, data(size))
        expect_digest(t.server_path(f"out-{size}"), data(size), f"out-{size} on the server")
        with open(t.server_path(f"in-{size}"), "wb") as out:
            out.write(data(size, 1))
        expect(client.read(b"/in-%d" % size) == data(size, 1), f"in-{size} read otherwise")
        expect(client.read(b"/out-%d" % size) == data(size), f"out-{size} read otherwise")
    client.close()


@case("libnfs-big-file", kind="libnfs", limit=180)
def big_file(t):
    client = Client(t)
    content = data(64 * MIB)
    client.write(b"/big", content)
    expect_digest(t.server_path("big"), content, "the file on the server")
    expect(client.read(b"/big") == content, "the file is read back otherwise")
    client.close()


@case("libnfs-changes", kind="libnfs")
def changes(t):
    client = Client(t)
    client.write(b"/file", b"0123456789")
    client.call("truncate", b"/file", ctypes.c_uint64(4))
    expect_equal(get(t.server_path("file")), b"0123", "truncated content")
    client.call("truncate", b"/file", ctypes.c_uint64(6))
    expect_equal(client.read(b"/file"), b"0123\0\0", "grown content")
    client.call("link", b"/file", b"/hard")
    expect_equal(os.stat(t.server_path("hard")).st_nlink, 2, "links")
    client.call("rename", b"/file", b"/renamed")
    expect(not os.path.exists(t.server_path("file")), "the old name is still there")
    client.call("unlink", b"/renamed")
    client.call("mkdir", b"/dir")
    client.call_fails(errno.EEXIST, "mkdir", b"/dir")
    client.write(b"/dir/inside", b"x")
    client.call_fails(errno.ENOTEMPTY, "rmdir", b"/dir")
    client.call("unlink", b"/dir/inside")
    client.call("rmdir", b"/dir")
    client.call("chmod", b"/hard", 0o4751)
    expect_equal(os.stat(t.server_path("hard")).st_mode & 0o7777, 0o4751, "mode")
    client.call_fails(errno.ENOENT, "unlink", b"/missing")
    # With 4000 bytes libnfs 4.0 itself gives up: "Failed to send SYMLINK call".
    for length in (1, 255, 1023, 3000):
        target = (b"t/" * length)[:length]
        client.call("symlink", target, b"/to-%d" % length)
        expect_equal(os.readlink(t.server_path(f"to-{length}")), target.decode(), "target")
        expect_equal(client.readlink(b"/to-%d" % length, length), target, "target read")
    client.close()


@case("libnfs-append-and-holes", kind="libnfs")
def append_and_holes(t):
    client = Client(t)
    client.write(b"/log", b"one,")
    client.write(b"/log", b"two,", os.O_WRONLY | os.O_APPEND)
    with open(t.server_path("log"), "ab") as log:
        log.write(b"three,")
    client.write(b"/log", b"four", os.O_WRONLY | os.O_APPEND)
    expect_equal(get(t.server_path("log")), b"one,two,three,four", "what was appended")

    handle = client.open(b"/holes", os.O_CREAT | os.O_WRONLY)
    for offset in (0, 5 * MIB, 10 * MIB + 7):
        client.call("pwrite", handle, ctypes.c_uint64(offset), ctypes.c_uint64(4), b"here")
    client.call("close", handle)
    wanted = bytearray(10 * MIB + 11)
    for offset in (0, 5 * MIB, 10 * MIB + 7):
        wanted[offset:offset + 4] = b"here"
    expect(client.read(b"/holes") == bytes(wanted), "the holes are read otherwise")
    expect_digest(t.server_path("holes"), bytes(wanted), "the file with holes on the server")
    expect(os.stat(t.server_path("holes")).st_blocks * 512 < MIB, "the holes take space")
    client.close()


@case("libnfs-rename-over-open", kind="libnfs")
def rename_over_open(t):
    """libnfs keeps no file alive that it has open: what is gone is stale, and never another's."""
    client, other = Client(t), Client(t)
    client.write(b"/old", b"old content")
    client.write(b"/new", b"new")
    handle = ctypes.c_void_p()
    client.call("open", b"/old", os.O_RDONLY, ctypes.byref(handle))
    other.call("rename", b"/new", b"/old")
    buffer = ctypes.create_string_buffer(100)
    got = client.library.nfs_pread(client.context, handle, ctypes.c_uint64(0), ctypes.c_uint64(100), buffer)
    # libnfs 4.0 makes EFAULT of NFS3ERR_STALE.
    expect(got in (-errno.ESTALE, -errno.EFAULT) or buffer.raw[:max(got, 0)] == b"old content",
           f"the open file that is gone: {got}, {client.error()}")
    client.call("close", handle)
    expect_equal(client.read(b"/old"), b"new", "content under the name")
    client.close()
    other.close()


@case("libnfs-rights", kind="libnfs", export="rw,root_squash,insecure")
def rights(t):
    client = Client(t, 1000)
    client.write(b"/mine", b"mine")
    expect_equal(os.stat(t.server_path("mine")).st_uid, 1000, "owner")
    client.call("chmod", b"/mine", 0o600)
    handle = ctypes.c_void_p()
    for uid in (2000, 0):  # another, and root, who is nobody here
        other = Client(t, uid)
        other.call_fails(errno.EACCES, "open", b"/mine", os.O_RDONLY, ctypes.byref(handle))
        # By version 4 libnfs opens it for that, for writing.
        other.call_fails(errno.EACCES if client.version4 else errno.EPERM, "chmod", b"/mine", 0o644)
        other.call_fails(errno.EPERM, "unlink", b"/mine")  # the directory is sticky
        other.close()
    root = Client(t, 0)
    root.write(b"/roots", b"x")
    root.close()
    expect_equal(os.stat(t.server_path("roots")).st_uid, 65534, "owner of what root made")
    expect_equal(client.read(b"/mine"), b"mine", "content, to its owner")
    client.call("unlink", b"/mine")
    client.close()


class StatVfs(ctypes.Structure):
    """struct statvfs of 64-bit Linux."""
    _fields_ = [(name, ctypes.c_ulong) for name in (
        "f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_favail",
        "f_fsid", "f_flag", "f_namemax")] + [("f_spare", ctypes.c_int * 6)]


@case("libnfs-statvfs", kind="libnfs")
def statvfs(t):
    client = Client(t)
    there, here = StatVfs(), os.statvfs(t.here)
    client.call("statvfs", b"/", ctypes.byref(there))
    size = here.f_blocks * here.f_frsize
    shown = there.f_blocks * there.f_frsize
    expect(abs(shown - size) <= MIB, f"size: {shown} bytes, not {size}")
    free = there.f_bavail * there.f_frsize
    expect(abs(free - here.f_bavail * here.f_frsize) < 16 * MIB, f"room: {free} bytes")
    expect_equal(there.f_files, here.f_files, "f_files")
    client.close()


def transfers(t):
    """Data there and back, in calls of many sizes."""
    client = Client(t)
    content = data(3 * MIB + 5)
    for piece in (4 * KIB, 64 * KIB, 256 * KIB, MIB, 3 * MIB + 5):
        name = b"/in-pieces-of-%d" % piece
        client.write(name, content, piece=piece)
        expect_digest(t.server_path(os.fsdecode(name[1:])), content, f"written {piece} bytes at a time")
        expect(client.read(name, piece=piece) == content, f"read otherwise {piece} bytes at a time")
    client.close()


case("libnfs-transfers", kind="libnfs", limit=120)(transfers)
for size_ in (1500, 9000):
    case(f"libnfs-mtu-{size_}", kind="libnfs", limit=120, mtu=size_)(transfers)


class Entry(ctypes.Structure):
    """struct nfsdirent up to what is read here."""


Entry._fields_ = [("next", ctypes.POINTER(Entry)), ("name", ctypes.c_char_p)]


def listing(client, path):
    directory = ctypes.c_void_p()
    client.call("opendir", path, ctypes.byref(directory))
    client.library.nfs_readdir.restype = ctypes.POINTER(Entry)
    names = []
    while entry := client.library.nfs_readdir(client.context, directory):
        names.append(entry.contents.name)
    client.library.nfs_closedir(client.context, directory)
    return sorted(name for name in names if name not in (b".", b".."))


@case("libnfs-big-directory", kind="libnfs", limit=180)
def big_directory(t):
    wanted = [b"an-entry-of-a-large-directory-%05d" % number for number in range(10_000)]
    for name in wanted:
        os.close(os.open(t.server_path(name), os.O_CREAT | os.O_WRONLY, 0o644))
    client = Client(t)
    expect_equal(listing(client, b"/"), wanted, "names")
    for name in wanted[::100]:
        client.call("unlink", b"/" + name)
    expect_equal(len(listing(client, b"/")), 9900, "names after removing a hundred")
    client.close()


@case("libnfs-odd-names", kind="libnfs")
def odd_names(t):
    names = [b"a" * 255, "ä".encode() * 127, b"\xff\xfe\x80", b" ", b"a\nb", b"-rf"]
    client = Client(t)
    for name in names:
        client.write(b"/" + name, name)
    expect_equal(sorted(os.listdir(os.fsencode(t.here))), sorted(names), "names on the server")
    expect_equal(listing(client, b"/"), sorted(names), "names at the client")
    for name in names:
        expect_equal(client.read(b"/" + name), name, f"content of {name!r}")
    client.call_fails(errno.ENAMETOOLONG, "mkdir", b"/" + b"a" * 256)
    client.close()


@case("libnfs-two-clients", kind="libnfs")
def two_clients(t):
    one, two = Client(t), Client(t)
    one.write(b"/file", b"one")
    expect_equal(two.read(b"/file"), b"one", "what the first wrote")
    two.write(b"/file", b"two!")
    expect_equal(one.read(b"/file"), b"two!", "what the second wrote")
    expect_equal(len(t.server.connections()) >= 2, True, "two connections at the server")
    one.close()
    two.close()
    sides.wait_for(lambda: not t.server.connections(), 20, "closed connections are gone")


@case("libnfs-server-restart", kind="libnfs", limit=120)
def server_restart(t):
    client = Client(t)
    client.write(b"/before", data(MIB))
    t.server.crash_and_restart()
    expect(client.read(b"/before") == data(MIB), "read otherwise after a restart")
    client.write(b"/after", data(MIB, 1))
    expect_digest(t.server_path("after"), data(MIB, 1), "written after a restart")
    client.close()


@case("libnfs-link-cut-idle", kind="libnfs", limit=240)
def link_cut_idle(t):
    """The link goes down while nothing is under way; what is begun meanwhile goes on afterwards."""
    content = data(8 * MIB)
    client = Client(t)
    client.write(b"/before", data(MIB))
    with t.link_cut("server"):
        # From here on the connection is the worker's alone.
        worker = Worker(lambda _: client.write(b"/file", content))
        time.sleep(5)
        expect(not worker.ended(), "the link was not cut")
    worker.finish(150)
    expect_digest(t.server_path("file"), content, "the file on the server")
    reader = Client(t)
    expect(reader.read(b"/file") == content, "the file is read back otherwise")
    expect(reader.read(b"/before") == data(MIB), "the older file is read otherwise")
    reader.close()
    client.close()


def writing(t, name, content):
    """With a client of its own."""
    def write(worker):
        def progress(at):
            worker.progress = at
        client = Client(t)
        client.write(name, content, progress=progress)
        client.close()
    return Worker(write)


def reading(t, name, content):
    def read(worker):
        def progress(at):
            worker.progress = at
        client = Client(t)
        expect(client.read(name, 64 * KIB, progress) == content, f"{name} is read otherwise")
        client.close()
    return Worker(read)


def disturbed(t, disturb):
    """Writes and reads a file while something happens."""
    content = data(32 * MIB)
    worker = writing(t, b"/file", content)
    worker.wait_until(4 * MIB)
    disturb(worker)
    worker.finish(150)
    expect_digest(t.server_path("file"), content, "the file on the server")
    worker = reading(t, b"/file", content)
    worker.wait_until(MIB)
    disturb(worker)
    worker.finish(150)


@case("libnfs-restart-under-load", kind="libnfs", limit=360)
def restart_under_load(t):
    disturbed(t, lambda _: t.server.crash_and_restart())


@case("libnfs-link-cut", kind="libnfs", limit=360)
def link_cut(t):
    """In mid-transfer, writing and reading."""
    def cut(worker):
        with t.link_cut("server"):
            time.sleep(5)
            expect(not worker.ended(), "all was done before the link was cut")
    disturbed(t, cut)


@case("libnfs-client-kill", kind="libnfs", limit=120)
def client_kill(t):
    content = data(64 * MIB)
    worker = writing(t, b"/torn", content)
    worker.wait_until(8 * MIB)
    worker.kill()
    sides.wait_for(lambda: not t.server.connections(), 30, "the dead client's connection is gone")
    client = Client(t)
    expect(content.startswith(client.read(b"/torn")[:4 * MIB]), "what was written before is otherwise")
    client.write(b"/torn", b"anew", os.O_WRONLY | os.O_TRUNC)
    expect_equal(get(t.server_path("torn")), b"anew", "the file after that")
    client.close()


@case("libnfs-idle", kind="libnfs", limit=480, slow=True)
def idle(t):
    """Six minutes: longer than the server keeps an unused connection."""
    client = Client(t)
    client.write(b"/before", data(100_000))
    time.sleep(360)
    expect(client.read(b"/before") == data(100_000), "read otherwise after a while")
    client.write(b"/after", data(MIB + 1))
    expect_digest(t.server_path("after"), data(MIB + 1), "written after a while")
    client.close()
