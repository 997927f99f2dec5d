# SPDX-License-Identifier: Apache-2.0
"""Group fuse: our mount over iWARP beside libfuse's passthrough_hp on a plain folder."""
import time

from .loads import file_load
from .servers import Passthrough
from .system import BenchError, is_mounted, run, say

FILE = "fuse.dat"
MOUNT, PASSTHROUGH = "mount.nfs-rdma", "passthrough_hp"
READERS = 32
# Each pass frees and takes again the mount's cached pages. A virtual machine that gives free memory
# back to its host (page reporting) takes it at a third of the speed, once much of it was freed: with
# files of 1 GiB the same side reached 500 and 2,700 MB/s in turn, whatever it was.
MOST_MIB = 256


def make_file(path, size_mib):
    with open(path, "wb") as f:
        for _ in range(size_mib):
            f.write(b"f" * (1 << 20))


def size_of(ctx):
    return min(ctx.args.size, MOST_MIB)


def mount_ours(ctx, server):
    folder = ctx.folder("mnt-ours")
    ctx.mounts.append(folder)
    options = (f"port={server.rdma_port},tcpport={server.port},mountport={server.port},"
               "proto=rdma,fabric=iwarp,vers=3")  # as in all figures so far
    run([ctx.programs["mount.nfs-rdma"], f"127.0.0.1:{server.path}", folder, "-o", options],
        timeout=60)
    return folder


def mount_passthrough(ctx, source):
    """(mount point, Passthrough), or None with a note."""
    if not ctx.args.passthrough:
        ctx.results.note("No --passthrough COMMAND: the FUSE mount is measured with nothing beside "
                         "it.")
        return None
    folder = ctx.folder("mnt-passthrough")
    passthrough = Passthrough(ctx.args.passthrough, source, folder)
    deadline = time.monotonic() + 15
    while not is_mounted(folder):
        if time.monotonic() > deadline or passthrough.process.poll() not in (None, 0):
            ctx.results.note(f"--passthrough did not mount: {passthrough.said()}")
            passthrough.process.terminate()
            passthrough.stop()
            return None
        time.sleep(0.1)
    ctx.mounts.append(folder)
    return folder, passthrough


def fuse(ctx):
    """The mount's cached pages are dropped before each pass, the backing file is read before it."""
    source = ctx.folder("passthrough-source")
    export = ctx.folder("nfs-rdma")
    for folder in (source, export):
        make_file(folder / FILE, size_of(ctx))
    server = ctx.start_ours(folder=export)
    sides = [(MOUNT, mount_ours(ctx, server) / FILE, export / FILE)]
    passthrough = mount_passthrough(ctx, source)
    if passthrough:
        sides.append((PASSTHROUGH, passthrough[0] / FILE, source / FILE))
    try:
        measure(ctx, sides)
    finally:
        ctx.clean()
        if passthrough:
            passthrough[1].stop()
    for name, row, limit in (("sequential READ", "FUSE seq read 1 MiB, MB/s", 0.8),
                             ("sequential WRITE", "FUSE seq write 1 MiB, MB/s", 0.8),
                             ("4 KiB random READ, 32 readers",
                              "FUSE rand read 4 KiB, 32 readers, ops/s", 0.5)):
        ctx.results.goal(f"{name}, FUSE / passthrough_hp", row, MOUNT, ">=", limit,
                         others=(PASSTHROUGH,))


def measure(ctx, sides):
    for n in ctx.rounds():
        for phase in ("seqread", "seqwrite", "randread"):
            for column, file, backing in sides[::-1] if n % 2 else list(sides):
                file_load(ctx, backing, "warm", size=size_of(ctx))
                try:
                    take(ctx, n, phase, column,
                         file_load(ctx, file, phase, size=size_of(ctx), readers=READERS))
                except BenchError as error:
                    if column == MOUNT:
                        raise
                    say(f"{column}: {error}")
                    ctx.results.note(f"{column} failed: {error}")
                    sides.remove((column, file, backing))


def take(ctx, n, phase, column, result):
    add = ctx.results.add
    if phase == "randread":
        add("FUSE rand read 4 KiB, 32 readers, ops/s", column, result["ops_per_second"], n)
    elif phase == "seqread":
        add("FUSE seq read 1 MiB, MB/s", column, result["bytes_per_second"] / 1e6, n)
    else:
        add("FUSE seq write 1 MiB, MB/s", column, result["bytes_per_second"] / 1e6, n)
        seconds = result["seconds"] + result["fsync_seconds"]
        add("FUSE seq write 1 MiB with the fsync behind, MB/s", column,
            result["operations"] * (1 << 20) / 1e6 / seconds, n)
    if result["cached_before"] > 0.01:
        ctx.results.note(f"{column}: {result['cached_before']:.0%} of the file stayed in the cache "
                         f"of the mount before {phase}.")
