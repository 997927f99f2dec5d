# SPDX-License-Identifier: Apache-2.0
"""Ways of doing I/O: statfs and df, mmap, O_DIRECT, two clients, a long idle time, many mounts."""
import mmap
import os
import threading
import time

import sides
from bench import SECOND_MOUNT, data, expect_digest, get, opened, put
from case import case, expect, expect_equal

KIB = 1024
MIB = 1024 * KIB


@case("statfs")
def statfs(t):
    there, here = os.statvfs(t.there), os.statvfs(t.here)
    size = here.f_blocks * here.f_frsize
    # Linux's client counts in blocks of its wsize.
    shown = there.f_blocks * there.f_frsize
    expect(abs(shown - size) <= MIB, f"size: {shown} bytes, not {size}")
    # Blocks that are reserved for root are counted by neither side's f_bavail.
    for field in ("f_bfree", "f_bavail"):
        ours, theirs = getattr(there, field) * there.f_frsize, getattr(here, field) * here.f_frsize
        expect(abs(ours - theirs) < 16 * MIB, f"{field}: {ours} bytes, not {theirs}")
    expect_equal(there.f_files, here.f_files, "f_files")
    expect_equal(there.f_namemax, 255, "longest name")
    put(t.path("fill"), data(48 * MIB), sync=True)
    now = os.statvfs(t.here)
    grown = (here.f_bfree - now.f_bfree) * here.f_frsize
    # A removed file that somebody still had open may give its blocks back meanwhile.
    expect(grown >= 47 * MIB, f"a file of 48 MiB took {grown} bytes")
    words = sides.run("df", "-B1", "--output=size,target", t.there).split()
    expect_equal(words[-2], str(shown), "size that df shows")
    expect_equal(words[-1], t.mount_point, "mount point that df shows")


@case("mmap")
def mapped(t):
    content = data(3 * MIB + 777)
    put(t.server_path("read"), content)
    with open(t.path("read"), "rb") as file:
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
            expect(view[:] == content, "a mapped file reads otherwise")
    put(t.path("write"), bytes(2 * MIB))
    with open(t.path("write"), "r+b") as file:
        with mmap.mmap(file.fileno(), 0) as view:
            view[5:10] = b"hello"
            view[MIB - 3:MIB + 3] = b"across"
            view[-4:] = b"last"
            view.flush()
    wanted = bytearray(2 * MIB)
    wanted[5:10] = b"hello"
    wanted[MIB - 3:MIB + 3] = b"across"
    wanted[-4:] = b"last"
    t.check_same("write", bytes(wanted))
    t.remount()
    t.check_same("write", bytes(wanted))


@case("o-direct")
def direct(t):
    content = data(2 * MIB)
    # O_DIRECT wants aligned memory: an anonymous mapping is.
    with mmap.mmap(-1, 2 * MIB) as memory:
        memory[:] = content
        file = os.open(t.path("direct"), os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o644)
        try:
            for start in range(0, 2 * MIB, 512 * KIB):
                piece = memoryview(memory)[start:start + 512 * KIB]
                expect_equal(os.pwrite(file, piece, start), 512 * KIB, "bytes written")
                piece.release()
            expect_digest(t.server_path("direct"), content, "written past the cache")
            memory[:] = bytes(2 * MIB)
            whole = memoryview(memory)
            expect_equal(os.preadv(file, [whole], 0), 2 * MIB, "bytes read")
            whole.release()
            expect(memory[:] == content, "read past the cache otherwise")
            # What another changes is seen without reopening: nothing is cached.
            with opened(t.server_path("direct"), "r+b") as other:
                other.write(b"changed on the server")
            page = memoryview(memory)[:4096]
            os.preadv(file, [page], 0)
            expect_equal(bytes(page[:21]), b"changed on the server", "what the server changed")
            page.release()
        finally:
            os.close(file)


def another_client(t):
    """One that shares nothing with the first. A second mount by Linux of what it has mounted would
    share its cache and its connection."""
    if t.client.ours:
        return t.client  # another process
    if not t.server.ours:
        return sides.NeighbourClient(t.client.version)
    fabric = "verbs" if isinstance(t.network, sides.Wire) else "iwarp"
    return sides.OurClient(fabric if t.client.rdma else "tcp", t.client.version)


@case("two-clients", limit=180)
def two_clients(t):
    """Two clients, two connections; the writer's close is the reader's open."""
    second = another_client(t)
    second.prepare(t.settings)
    second.mount(t, SECOND_MOUNT)
    other = os.path.join(SECOND_MOUNT, t.case.name)
    put(t.path("one"), b"from the first")
    expect_equal(get(os.path.join(other, "one")), b"from the first", "what the first wrote")
    put(os.path.join(other, "one"), b"from the second!")
    expect_equal(get(t.path("one")), b"from the second!", "what the second wrote")

    # Both write to one file, each its own half, at the same time.
    half = 4 * MIB
    errors = []

    def write_half(path, seed, start):
        try:
            file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
            content = data(half, seed)
            for offset in range(0, half, 256 * KIB):
                os.pwrite(file, content[offset:offset + 256 * KIB], start + offset)
            os.close(file)
        except OSError as error:
            errors.append(error)
    threads = [threading.Thread(target=write_half, args=arguments) for arguments in (
        (t.path("both"), 1, 0), (os.path.join(other, "both"), 2, half))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect_equal(errors, [], "errors of the writers")
    expect_digest(t.server_path("both"), data(half, 1) + data(half, 2), "the file of both")
    connections = t.server.connections()
    if connections is not None:
        made = sum(len(sides.status("--mount", where)["connections"])
                   for where, client in ((t.mount_point, t.client), (SECOND_MOUNT, second)) if client.ours)
        if t.client.ours:
            expect_equal(len(connections), made, "connections at the server")
        else:
            # Linux may have more than one, of MOUNT.
            expect(len(connections) > made, f"{len(connections)} connections, {made} of the second client")
    second.unmount(SECOND_MOUNT)


@case("idle", limit=480, slow=True)
def idle(t):
    """Six minutes: longer than either side keeps an unused connection."""
    put(t.path("before"), data(100_000))
    with open(t.path("held"), "wb", buffering=0) as held:
        held.write(b"before")
        time.sleep(360)
        held.write(b" and after")
    t.check_same("held", b"before and after")
    t.check_same("before", data(100_000))
    put(t.path("after"), data(MIB + 1))
    t.check_same("after", data(MIB + 1))


@case("mounts-100", limit=400, slow=True)
def mounts(t):
    put(t.path("file"), data(5000))
    for _ in range(100):
        t.remount()
        expect_equal(get(t.path("file")), data(5000), "content")
