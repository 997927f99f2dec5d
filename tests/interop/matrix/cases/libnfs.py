# SPDX-License-Identifier: Apache-2.0
"""libnfs over TCP as the client, through ctypes: the same behaviours, without a mount."""
import ctypes
import errno
import os
import time

import sides
from bench import data, expect_digest, get
from case import Failed, case, expect, expect_equal
from worker import Worker

MIB = 1 << 20


class Client:
    """One libnfs context, mounted on the case's directory. Calls that fail raise Failed."""

    def __init__(self, t):
        self.library = ctypes.CDLL("libnfs.so.13")
        self.library.nfs_init_context.restype = ctypes.c_void_p
        self.library.nfs_get_error.restype = ctypes.c_char_p
        self.library.nfs_get_error.argtypes = [ctypes.c_void_p]
        self.context = ctypes.c_void_p(self.library.nfs_init_context())
        # Taking an URL apart is how the library is told ports; otherwise it asks rpcbind.
        self.library.nfs_parse_url_dir.restype = ctypes.c_void_p
        address = t.network.server_address
        url = f"nfs://{address}{t.here}?version=3&nfsport=2049&mountport=2049"
        parsed = self.library.nfs_parse_url_dir(self.context, url.encode())
        expect(parsed, f"libnfs does not take {url}: {self.error()}")
        self.library.nfs_destroy_url(ctypes.c_void_p(parsed))
        self.call("mount", address.encode(), t.here.encode())

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

    def write(self, name, content, flags=os.O_CREAT | os.O_WRONLY):
        handle = ctypes.c_void_p()
        self.call("open2", name, flags, 0o644, ctypes.byref(handle))
        at = 0
        while at < len(content):
            piece = content[at:at + 256 * 1024]
            at += self.call("write", handle, ctypes.c_uint64(len(piece)), piece)
        self.call("fsync", handle)
        self.call("close", handle)

    def read(self, name):
        handle = ctypes.c_void_p()
        self.call("open", name, os.O_RDONLY, ctypes.byref(handle))
        pieces = []
        buffer = ctypes.create_string_buffer(MIB)
        while True:
            got = self.call("read", handle, ctypes.c_uint64(MIB), buffer)
            if got == 0:
                break
            pieces.append(buffer.raw[:got])
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
        buffer = ctypes.create_string_buffer(5000)
        client.call("readlink", b"/to-%d" % length, buffer, 5000)
        expect_equal(buffer.value, target, "target read")
    client.close()


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
