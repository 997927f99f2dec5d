# SPDX-License-Identifier: Apache-2.0
"""Group meta: create, stat, unlink and readdir, and how durable each server makes them."""
from .groups_data import CHIMERA
from .loads import SyncCounter, libnfs_load
from .system import BenchError, say

PHASES = ("create", "stat", "readdir", "unlink")
SYNC, ASYNC = "nfs-rdma sync", "nfs-rdma async"


def meta(ctx):
    """10,000 files through libnfs over TCP, 32 calls under way, on a fresh file system each. Ours
    runs twice: exported `sync` (a change is on disk before its answer; several share an fsync) and
    `async`. Which of the two a peer is compared with is told by its own fsync calls."""
    base = ",".join(o for o in ctx.args.export_options.split(",") if o not in ("sync", "async"))
    for column, durability in ((SYNC, "sync"), (ASYNC, "async")):
        ctx.start_ours(column, f"{base},{durability}", folder=ctx.fresh_disk(column))
    ctx.start_peers(ctx.fresh_disk)
    files = ctx.args.files
    for n in ctx.rounds():
        for phase in PHASES:
            for server in ctx.in_turn(n):
                result = ctx.attempt(server, lambda s=server, p=phase:
                                     libnfs_load(ctx, s, p, 32, files))
                if result:
                    row = f"{phase} of {files} files"
                    column = server.column
                    ctx.results.add(f"{row}, ops/s", column, result["ops_per_second"], n)
                    ctx.results.add(f"{row}, server us/op", column, result["server_us"], n)
                    ctx.results.add(f"{row}, client us/op", column, result["client_us"], n)
    say("meta: counting fsync calls")
    durable = count_syncs(ctx)
    for phase in PHASES:
        for other in (CHIMERA, "ganesha"):
            # Reading needs no disk: there both exports are the same, and `async` is shown.
            column = SYNC if durable.get(other) and phase in ("create", "unlink") else ASYNC
            ctx.results.goal(f"{phase}, {column.split()[1]} / {other}",
                             f"{phase} of {files} files, ops/s", column, ">=", 1, others=(other,))


def count_syncs(ctx):
    """{server: it makes creates and unlinks durable}, from a run of its own. Group commit makes
    less than one fsync a change, so any more than a stray one counts."""
    files = max(100, ctx.args.files // 10)
    durable = {}
    for server in list(ctx.servers):
        def work(server=server):
            for phase in ("create", "unlink"):
                counter = SyncCounter(server.main_process(), ctx.top / "syncs")
                try:
                    libnfs_load(ctx, server, phase, 32, files)
                finally:
                    counts = counter.stop()
                show_syncs(ctx, server.column, phase, files, counts, counter.how)
                durable[server.column] = durable.get(server.column, False) or (
                    max(counts.values(), default=0) > files / 100)
            return True
        try:
            ctx.attempt(server, work)
        except BenchError as error:
            # Not to be able to count is not our server's failure.
            ctx.results.note(f"{server.column}: its fsync calls could not be counted: {error}")
    return durable


def show_syncs(ctx, column, phase, files, counts, how):
    calls = sum(v for k, v in counts.items() if k in SyncCounter.CALLS)
    ctx.results.add(f"{phase} of {files} files, sync calls", column, calls)
    if "ext4_sync_file_enter" in counts:
        ctx.results.add(f"{phase} of {files} files, syncs of ext4", column,
                        counts["ext4_sync_file_enter"])
    ctx.results.note(f"Sync calls (fsync, fdatasync, syncfs, sync_file_range): counted by {how} "
                     "in a run of its own.")
