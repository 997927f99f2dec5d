# SPDX-License-Identifier: Apache-2.0
"""Group nfs4: NFSv4.0 over TCP by libnfs (it speaks no later version), beside NFSv3 of the same server
and NFSv4.0 of the others."""
from .groups_data import CHIMERA, fill, take_operations
from .loads import libnfs_load

# libnfs goes through the open-owner's sequence ids without waiting for replies, which have to be in
# order: OPENs go one at a time on each of several mounts. libnfs has 4 KiB for the arguments of a COMPOUND, so no larger WRITE gets out.
OPERATIONS = (("getattr", "GETATTR", 32, None), ("openclose", "OPEN and CLOSE", 16, None),
              ("randread", "READ 4 KiB", 32, None), ("randwrite", "WRITE 2 KiB", 32, 2048))
BOTH_VERSIONS = (("seqread", "seq READ 1 MiB", 8, None), ("randread", "READ 4 KiB", 32, None),
                 ("randwrite", "WRITE 2 KiB", 32, 2048))


def nfs4(ctx):
    """Operations of NFSv4.0 on every server; READ and WRITE of both versions on ours."""
    ours = ctx.start_ours()
    ctx.start_peers()
    fill(ctx)
    for n in ctx.rounds():
        for phase, name, depth, block in OPERATIONS:
            for server in ctx.in_turn(n):
                result = ctx.attempt(server, lambda s=server, p=phase, d=depth, b=block:
                                     libnfs_load(ctx, s, p, d, version=4, block=b))
                if result:
                    take_operations(ctx, n, f"4.0 {name} depth {depth}", server.column, result, depth)
        for phase, name, depth, block in BOTH_VERSIONS:
            for version in ((3, 4), (4, 3))[n % 2]:
                result = libnfs_load(ctx, ours, phase, depth, version=version, block=block)
                column = "4.0" if version == 4 else "3"
                ctx.results.add(f"{name}, depth {depth}, ops/s", column, result["ops_per_second"], n)
                ctx.results.add(f"{name}, depth {depth}, server us/op", column, result["server_us"], n)
    for _, name, depth, _ in BOTH_VERSIONS:
        ctx.results.goal(f"{name}, NFSv4.0 / NFSv3", f"{name}, depth {depth}, ops/s", "4.0", ">=", 0.95,
                         others=("3",))
    for _, name, depth, _ in OPERATIONS[:2]:
        for other, limit in ((CHIMERA, 0.8), ("ganesha", 0.35)):
            ctx.results.goal(f"server CPU per {name} of 4.0 / {other}",
                             f"4.0 {name} depth {depth}, server us/op", "nfs-rdma", "<=", limit,
                             others=(other,))
