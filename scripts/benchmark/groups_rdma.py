# SPDX-License-Identifier: Apache-2.0
"""Groups latency and memory: ours over iWARP beside bare TCP, and what an idle server holds."""
import os
import re
import subprocess
import time

from .loads import raw_pingpong, rdma_load
from .system import ROOT, BenchError, pin, say

# Bytes of the TCP payload, one FPDU each, as tshark shows them: MPA 2, DDP and RDMAP 18, RPC over
# RDMA 28, RPC with AUTH_SYS, CRC 4.
MESSAGES = (("null", "NULL", 116, 76), ("getattr", "GETATTR", 160, 164))

# Where client and server run. None: where the kernel puts them.
PLACEMENTS = (("two cores", (0, 1)), ("one core", (0, 0)), ("free", None))

COLUMN = "nfs-rdma iwarp"
ALL_CPUS = set(range(os.cpu_count()))


def waits():
    """How the server waits, as shipped and without polling: (name, microseconds of polling after
    the last event). The client's side blocks."""
    table = (ROOT / "config/options.def").read_text()
    shipped = int(re.search(r"NFSoRDMA_SPIN, \w+, (\d+),", table).group(1))
    polling = [(f"server polls {shipped} us", shipped)] if shipped else []
    return [*polling, ("server blocks", 0)]


def latency(ctx):
    """NULL and GETATTR at depth 1 beside a bare TCP ping-pong of the same sizes, whose two sides
    wait in the same way and run on the same cores. And what an idle server uses."""
    placements = [p for p in PLACEMENTS if p[1] is None or max(p[1]) < os.cpu_count()]
    servers = [(wait, poll, ctx.start_ours(f"nfs-rdma, {wait}", settings={"NFSoRDMA_SPIN": poll},
                                           folder=ctx.folder(f"spin-{poll}")))
               for wait, poll in waits()]
    for n in ctx.rounds():
        for wait, poll, server in servers:
            for place, cpus in placements:
                pin(server.main_process(), {cpus[1]} if cpus else ALL_CPUS)
                prefix = ("taskset", "-c", cpus[0]) if cpus else ()
                for rw, name, request, reply in MESSAGES:
                    row = f"{name} depth 1, {place}, {wait}, p50 us"
                    ctx.results.add(row, "bare TCP",
                                    raw_pingpong(ctx, request, reply, (0, poll), cpus), n)
                    result = rdma_load(ctx, server, rw, 1, "1M", prefix=prefix)
                    ctx.results.add(row, COLUMN, result["latency_us"]["p50"], n)
                    ctx.results.add(row.replace("p50 us", "server us/op"), COLUMN,
                                    result["server_us"], n)
    for wait, _, _ in servers:
        for place, _ in placements:
            for _, name, _, _ in MESSAGES:
                ctx.results.goal(f"{name} over iWARP / bare TCP, {place}, {wait}",
                                 f"{name} depth 1, {place}, {wait}, p50 us", COLUMN,
                                 "<=", 1.5, others=("bare TCP",))
    idle(ctx, servers[0][2])


def idle(ctx, server):
    seconds = max(3, 2 * ctx.args.seconds)
    pin(server.main_process(), ALL_CPUS)
    with IdleConnections(ctx, server, [1]) as client:
        client.wait()
        time.sleep(1)
        ctx.results.add(idle_row("one client"), COLUMN, used(server, seconds))
    time.sleep(1)
    ctx.results.add(idle_row("no client"), COLUMN, used(server, seconds))
    for who in ("one client", "no client"):
        ctx.results.goal(idle_row(who), idle_row(who), COLUMN, "<=", 0.5)


def idle_row(who):
    return f"idle server with {who}, % of a core"


def used(server, seconds):
    before = server.group.cpu_seconds()
    time.sleep(seconds)
    return (server.group.cpu_seconds() - before) / seconds * 100


class IdleConnections:
    """The program idle_connections, step by step."""

    def __init__(self, ctx, server, counts, size=1 << 20):
        self.process = subprocess.Popen(
            [str(ctx.programs["idle_connections"]), server.rdma_url("/idle.dat"), str(size),
             *map(str, counts)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def wait(self):
        """Until it has reached the next count."""
        line = self.process.stdout.readline()
        if not line.startswith("ready"):
            raise BenchError(f"idle_connections: {self.process.stderr.read().strip()[-300:]}")
        if not line.endswith(" iwarp\n"):
            raise BenchError(f"idle_connections went over {line.split()[-1]}, not iWARP")

    def proceed(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def memory(ctx):
    """Resident memory with one idle client and per further idle connection; each has done a mount,
    a WRITE and a READ of 1 MiB. A new server in every round: memory once touched tends to stay."""
    further = ctx.args.connections
    for n in ctx.rounds():
        server = ctx.start_ours()
        ctx.results.add("resident, no client, MiB", server.column, server.resident_kib() / 1024, n)
        with IdleConnections(ctx, server, [1, 1 + further]) as client:
            client.wait()
            time.sleep(1)
            one = server.resident_kib()
            client.proceed()
            client.wait()
            time.sleep(1)
            many = server.resident_kib()
        ctx.results.add("resident, one idle client, MiB", server.column, one / 1024, n)
        ctx.results.add(f"resident, {further} further connections, MiB", server.column,
                        many / 1024, n)
        ctx.results.add("resident per further connection, KiB", server.column,
                        (many - one) / further, n)
        ctx.clean()
    say("memory: peers")
    for server in ctx.start_peers():
        ctx.results.add("resident, no client, MiB", server.column, server.resident_kib() / 1024)
    ctx.results.goal("resident with one idle client, MiB", "resident, one idle client, MiB",
                     "nfs-rdma", "<=", 64)
    ctx.results.goal(f"resident per further idle connection ({further}), KiB",
                     "resident per further connection, KiB", "nfs-rdma", "<=", 64)
