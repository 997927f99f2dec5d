# SPDX-License-Identifier: Apache-2.0
"""Group fusemeta: names and small files through our FUSE mount, beside fuse-nfs, on one server."""
import multiprocessing
import os
import subprocess
import time

from .servers import FusePeer
from .system import BenchError, is_mounted, run, say, unmount

OURS, OURS_3, PEER = "mount 4.2", "mount 3", "fuse-nfs"
# What `untar`, `git status` and `read all` are about: some two thousand small files.
TREE = "/usr/include/linux"
WORKERS = 16


class Side:
    """One way to mount the server; mounted anew before each pass, so that nothing is known yet."""

    def __init__(self, ctx, server, column, folder):
        self.ctx, self.server, self.column = ctx, server, column
        self.mount = ctx.folder("mnt-" + folder)
        self.place = folder  # in the export
        (server.export / folder).mkdir()
        self.peer = None

    def options(self):
        version = "4.2" if self.column == OURS else "3"
        return (f"port={self.server.rdma_port},tcpport={self.server.port},"
                f"mountport={self.server.port},proto=rdma,fabric=iwarp,vers={version}")

    def up(self):
        if self.column != PEER:
            run([self.ctx.programs["mount.nfs-rdma"], f"127.0.0.1:{self.server.path}", self.mount,
                 "-o", self.options()], timeout=60)
        else:
            self.peer = FusePeer(self.ctx.args.fuse_nfs, self.server.url(), self.mount)
            deadline = time.monotonic() + 15
            while not is_mounted(self.mount):
                if time.monotonic() > deadline or self.peer.process.poll() not in (None, 0):
                    raise BenchError(f"--fuse-nfs did not mount: {self.peer.said()}")
                time.sleep(0.05)
        if self.mount not in self.ctx.mounts:
            self.ctx.mounts.append(self.mount)

    def down(self):
        unmount(self.mount)
        if self.peer:
            self.peer.stop()
            self.peer = None

    def path(self, *names):
        return os.path.join(self.mount, self.place, *names)


def seconds_of(side, work):
    side.up()
    try:
        start = time.monotonic()
        work()
        return time.monotonic() - start
    finally:
        side.down()


def names(side, count):
    return [side.path(f"file-{n:05}") for n in range(count)]


def create(paths):
    for path in paths:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))


def write_small(paths):
    for path in paths:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        os.write(file, b"x" * 1000)
        os.close(file)


def stat(paths):
    for path in paths:
        os.stat(path)


def open_close(paths):
    for path in paths:
        os.close(os.open(path, os.O_RDONLY))


def unlink(paths):
    for path in paths:
        os.unlink(path)


def at_once(work, paths):
    """By WORKERS processes, each with its part of the names."""
    workers = [multiprocessing.get_context("fork").Process(target=work, args=(paths[n::WORKERS],))
               for n in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        if worker.exitcode != 0:
            raise BenchError(f"{work.__name__} failed")


def one_round(ctx, n, side):
    add, count = ctx.results.add, ctx.args.files
    paths = names(side, count)
    for row, work in (("create", create), ("stat", stat), ("open and close", open_close),
                      ("unlink", unlink)):
        add(f"FUSE {row}, one process, files/s", side.column,
            count / seconds_of(side, lambda w=work: w(paths)), n)
    for row, work in (("create", create), ("stat", stat), ("open and close", open_close),
                      ("unlink", unlink), ("create with 1000 bytes", write_small)):
        add(f"FUSE {row}, {WORKERS} processes, files/s", side.column,
            count / seconds_of(side, lambda w=work: at_once(w, paths)), n)
    for path in paths:
        os.unlink(side.server.export / side.place / os.path.basename(path))
    archive = ctx.top / "tree.tar"
    tree = side.path("tree")
    os.mkdir(side.server.export / side.place / "tree")
    add("FUSE untar, s", side.column,
        seconds_of(side, lambda: run(["tar", "xf", archive, "-C", tree])), n)
    here = side.server.export / side.place / "tree"
    git = ["git", "-c", "safe.directory=*", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        run([*git, "-C", here, *command])
    # Once for the index, whose inode numbers and times are those of the server's own view.
    add("FUSE git status, s", side.column,
        seconds_of(side, lambda: run([*git, "-C", tree, "status", "--porcelain"])), n)
    run(["rm", "-rf", here])


def fusemeta(ctx):
    """Each side on the same server, one after the other; a pass is one thread that waits."""
    run(["tar", "cf", ctx.top / "tree.tar", "-C", TREE, "."])
    export = ctx.fresh_disk("nfs-rdma")
    server = ctx.start_ours(folder=export)
    sides = [Side(ctx, server, OURS, "ours"), Side(ctx, server, OURS_3, "ours-3")]
    if ctx.args.fuse_nfs:
        sides.append(Side(ctx, server, PEER, "fuse-nfs"))
    else:
        ctx.results.note("No --fuse-nfs COMMAND: the FUSE mount is measured with nothing beside it.")
    for n in ctx.rounds():
        for side in sides[n % len(sides):] + sides[:n % len(sides)]:
            try:
                one_round(ctx, n, side)
            except (BenchError, OSError, subprocess.SubprocessError) as error:
                if side.column != PEER:
                    raise
                say(f"{side.column}: {error}")
                ctx.results.note(f"{side.column} failed: {error}")
                sides.remove(side)
                run(["rm", "-rf", export / side.place])
    for what in ("create", "stat", "unlink"):
        for who in ("one process", f"{WORKERS} processes"):
            ctx.results.goal(f"{what}, {who}, FUSE 4.2 / fuse-nfs", f"FUSE {what}, {who}, files/s",
                             OURS, ">=", 3, others=(PEER,))
    for what in ("untar", "git status"):
        ctx.results.goal(f"{what}, FUSE 4.2 / fuse-nfs", f"FUSE {what}, s", OURS, "<=", 0.33,
                         others=(PEER,))
