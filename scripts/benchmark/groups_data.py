# SPDX-License-Identifier: Apache-2.0
"""Groups stream (1 MiB operations over iWARP) and tcp (the same libnfs client on every server)."""
from .loads import iperf3, libnfs_load, raw_stream, rdma_load

CHIMERA = "chimera"  # the name that the goals expect after --peer
LIBRARY = "library, iwarp"
DEPTH = 8


def fill(ctx):
    """Every server's file is written once, so that all of it is in the page cache."""
    for server in list(ctx.servers):
        ctx.attempt(server, lambda s=server: libnfs_load(ctx, s, "fill", DEPTH))


def stream(ctx):
    """Sequential READ and WRITE of 1 MiB, one connection, depth 8."""
    results = ctx.results
    ours = ctx.start_ours()
    ctx.start_peers()
    fill(ctx)
    for n in ctx.rounds():
        results.add("raw TCP stream, MB/s", "own sender", raw_stream(ctx) / 1e6, n)
        if (speed := iperf3(ctx)) is not None:
            results.add("raw TCP stream, MB/s", "iperf3 -l 1M", speed / 1e6, n)
        for rw in ("read", "write"):
            take_stream(ctx, n, rw, LIBRARY, rdma_load(ctx, ours, rw, DEPTH, "1M"))
            for server in ctx.in_turn(n):
                result = ctx.attempt(server,
                                     lambda s=server, p=rw: libnfs_load(ctx, s, f"seq{p}", DEPTH))
                if result:
                    take_stream(ctx, n, rw, f"{server.column}, tcp", result)
    for rw in ("read", "write"):
        name = rw.upper()
        results.goal(f"{name} of 1 MiB over iWARP / raw TCP stream", f"seq {rw} 1 MiB, MB/s",
                     LIBRARY, ">=", 0.9, "raw TCP stream, MB/s", ("own sender", "iperf3 -l 1M"))
        results.goal(f"{name} of 1 MiB over iWARP / Chimera", f"seq {rw} 1 MiB, MB/s", LIBRARY,
                     ">=", 1, others=(f"{CHIMERA}, tcp",))
        results.goal(f"server CPU per MiB, {name} over iWARP / Chimera",
                     f"seq {rw} 1 MiB, server us/MiB", LIBRARY, "<=", 0.9,
                     others=(f"{CHIMERA}, tcp",))


def take_stream(ctx, n, rw, column, result):
    row = f"seq {rw} 1 MiB"
    ctx.results.add(f"{row}, MB/s", column, result["bytes_per_second"] / 1e6, n)
    ctx.results.add(f"{row}, server us/MiB", column, result["server_us"], n)
    ctx.results.add(f"{row}, client us/MiB", column, result["client_us"], n)


OPERATIONS = (("null", "NULL"), ("getattr", "GETATTR"), ("randread", "READ 4 KiB"),
              ("randwrite", "WRITE 4 KiB"))


def tcp(ctx):
    """Small operations at depth 32 and 1."""
    ctx.start_ours()
    ctx.start_peers()
    fill(ctx)
    for n in ctx.rounds():
        for phase, name in OPERATIONS:
            for depth in (32, 1):
                for server in ctx.in_turn(n):
                    result = ctx.attempt(server, lambda s=server, p=phase, d=depth:
                                         libnfs_load(ctx, s, p, d))
                    if result:
                        take_operations(ctx, n, f"{name} depth {depth}", server.column, result,
                                        depth)
    for _, name in OPERATIONS:
        for other, limit in ((CHIMERA, 0.8), ("ganesha", 0.35)):
            ctx.results.goal(f"server CPU per {name}, depth 32 / {other}",
                             f"{name} depth 32, server us/op", "nfs-rdma", "<=", limit,
                             others=(other,))
    for _, name in OPERATIONS:
        for other in (CHIMERA, "ganesha"):
            ctx.results.goal(f"latency of {name}, depth 1 / {other}", f"{name} depth 1, p50 us",
                             "nfs-rdma", "<=", 1, others=(other,))


def take_operations(ctx, n, row, column, result, depth):
    ctx.results.add(f"{row}, ops/s", column, result["ops_per_second"], n)
    if depth == 1:
        ctx.results.add(f"{row}, p50 us", column, result["latency_us"]["p50"], n)
        ctx.results.add(f"{row}, p99 us", column, result["latency_us"]["p99"], n)
    ctx.results.add(f"{row}, server us/op", column, result["server_us"], n)
    ctx.results.add(f"{row}, client us/op", column, result["client_us"], n)
