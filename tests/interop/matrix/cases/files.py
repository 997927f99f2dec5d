# SPDX-License-Identifier: Apache-2.0
"""Files: content of every size, appending, truncating, holes, renaming and removing open ones."""
import os

import sides
from bench import SECOND_MOUNT, data, digest, expect_digest, get, opened, put
from case import case, expect, expect_equal

KIB = 1024
MIB = 1024 * KIB
SIZES = (1, 4095, 4096, 4 * KIB + 1, MIB - 1, MIB, MIB + 1)


@case("mount")
def mount(t):
    expect(os.path.isdir(t.there), "the export's directory is not there")
    t.remount()
    expect_equal(os.listdir(t.there), [], "names in an empty directory")


@case("versions", limit=180)
def versions(t):
    """Linux's client with every version, and with the one that it agrees on when none is asked for:
    the mounts see each other's files."""
    for version in (None, "4.2", "4.1", "4.0", "3"):
        client = sides.KernelClient(rdma=t.client.rdma, version=version)
        client.mount(t, SECOND_MOUNT)
        name = f"by-{version}"
        there = os.path.join(SECOND_MOUNT, t.case.name)
        put(os.path.join(there, name), data(70_000))
        expect_equal(get(os.path.join(there, name)), data(70_000), "content just written")
        expect(name in os.listdir(there), f"{name} is not listed")
        client.unmount(SECOND_MOUNT)
        t.check_same(name, data(70_000))


@case("sizes", limit=120)
def sizes(t):
    for size in SIZES:
        put(t.path(f"out-{size}"), data(size), piece=64 * KIB if size % 2 else MIB)
        put(t.server_path(f"in-{size}"), data(size, 1))
    for size in SIZES:
        expect_digest(t.server_path(f"out-{size}"), data(size), f"out-{size} on the server")
        expect_digest(t.path(f"in-{size}"), data(size, 1), f"in-{size} at the client")
    # Not from the client's cache either.
    t.remount()
    for size in SIZES:
        expect_digest(t.path(f"out-{size}"), data(size), f"out-{size} read back")


@case("big-file", limit=180)
def big_file(t):
    content = data(64 * MIB)
    put(t.path("big"), content, sync=True)
    expect_equal(digest(get(t.server_path("big"))), digest(content), "checksum on the server")
    t.remount()
    expect_equal(digest(get(t.path("big"))), digest(content), "checksum read back")


@case("append")
def append(t):
    pieces = [data(size, 2) for size in (1, 100, 4095, 4097, 70000, 3)]
    for piece in pieces:
        with open(t.path("log"), "ab", buffering=0) as out:
            out.write(piece)
    t.check_same("log", b"".join(pieces))
    # The server's own process appends in between; the client's next open sees the new end.
    with opened(t.server_path("log"), "ab") as out:
        out.write(b"from the server")
    with open(t.path("log"), "ab", buffering=0) as out:
        out.write(b"from the client")
    t.check_same("log", b"".join(pieces) + b"from the server" + b"from the client")


@case("truncate")
def truncate(t):
    content = data(100_000)
    put(t.path("file"), content)
    for size in (70_001, 4096, 4095, 1):
        os.truncate(t.path("file"), size)
        t.check_same("file", content[:size])
    os.truncate(t.path("file"), 50_000)
    t.check_same("file", content[:1] + bytes(49_999))
    with open(t.path("file"), "r+b", buffering=0) as file:
        file.write(content)
        file.truncate(30_000)
        file.seek(0)
        expect_equal(file.read(), content[:30_000], "what an open file reads after truncation")
        # Removed bytes do not come back when the file grows again.
        file.truncate(60_000)
    t.check_same("file", content[:30_000] + bytes(30_000))
    with open(t.path("file"), "wb"):
        pass
    t.check_same("file", b"")


@case("holes")
def holes(t):
    with open(t.path("holes"), "wb", buffering=0) as out:
        for offset, text in ((3_000_000, b"middle"), (9_000_000, b"end"), (0, b"start")):
            out.seek(offset)
            out.write(text)
    wanted = bytearray(9_000_003)
    wanted[0:5] = b"start"
    wanted[3_000_000:3_000_006] = b"middle"
    wanted[9_000_000:] = b"end"
    t.check_same("holes", bytes(wanted))
    blocks = os.stat(t.server_path("holes")).st_blocks
    expect(blocks * 512 < 1_000_000, f"the holes were filled on the server ({blocks} blocks)")
    t.remount()
    expect(os.stat(t.path("holes")).st_blocks * 512 < 1_000_000, "the client sees no holes")
    # Beyond 4 GiB, where 32-bit offsets would wrap.
    with open(t.path("far"), "wb", buffering=0) as out:
        out.seek(5 * 1024 * MIB)
        out.write(b"far away")
    expect_equal(os.stat(t.server_path("far")).st_size, 5 * 1024 * MIB + 8, "size of a far file")
    with open(t.path("far"), "rb") as source:
        source.seek(5 * 1024 * MIB - 4)
        expect_equal(source.read(), bytes(4) + b"far away", "end of a far file")


@case("open-renamed")
def open_renamed(t):
    """A file that is renamed over, or removed, lives on for who has it open."""
    put(t.path("old"), b"old content")
    put(t.path("new"), b"new content")
    with open(t.path("old"), "r+b", buffering=0) as file:
        os.rename(t.path("new"), t.path("old"))
        expect_equal(get(t.path("old")), b"new content", "content of the new file")
        expect_equal(file.read(), b"old content", "content of the replaced open file")
        file.write(b", and more")
        file.seek(0)
        expect_equal(file.read(), b"old content, and more", "replaced file after a write")
        os.fsync(file.fileno())
    put(t.path("gone"), b"still here")
    with open(t.path("gone"), "r+b", buffering=0) as file:
        os.unlink(t.path("gone"))
        expect(not os.path.exists(t.path("gone")), "a removed name is still there")
        expect_equal(file.read(), b"still here", "content of the removed open file")
        expect_equal(os.fstat(file.fileno()).st_size, 10, "size of the removed open file")
    with open(t.path("moved"), "wb", buffering=0) as file:
        file.write(b"one")
        os.rename(t.path("moved"), t.path("elsewhere"))
        file.write(b" two")
    t.check_same("elsewhere", b"one two")
    t.remount()
    expect_equal(sorted(os.listdir(t.here)), ["elsewhere", "old"], "names left on the server")
    expect_equal(get(t.path("old")), b"new content", "content in the end")
