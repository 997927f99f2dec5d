# SPDX-License-Identifier: Apache-2.0
"""One measurement each: a load program on a server, with the CPU time of both sides."""
import shutil
import subprocess
import threading
import time

from .system import BenchError, free_port, run, run_json


class CpuWatch:
    """Samples a control group's CPU time, to tell it for a stretch of time known only later."""
    PERIOD = 0.01

    def __init__(self, group):
        self.group, self.samples, self.done = group, [], threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        self._sample()

    def _sample(self):
        self.samples.append((time.monotonic(), self.group.cpu_seconds()))

    def _watch(self):
        self._sample()
        while not self.done.wait(self.PERIOD):
            self._sample()

    def at(self, when):
        before = max((s for s in self.samples if s[0] <= when), default=self.samples[0])
        after = min((s for s in self.samples if s[0] >= when), default=self.samples[-1])
        if after[0] <= before[0]:
            return before[1]
        part = (when - before[0]) / (after[0] - before[0])
        return before[1] + part * (after[1] - before[1])

    def between(self, start, end):
        return self.at(end) - self.at(start)


def libnfs_load(ctx, server, phase, depth, files=None, seconds=None, version=3, block=None):
    """libnfs over TCP, one connection, one thread: the same client on every server."""
    args = ctx.args
    command = [ctx.programs["libnfs_load"], server.url(version), phase, "--depth", depth,
               "--seconds", seconds or args.seconds, "--size", args.size,
               "--server-cpu", server.group.usage]
    if files:
        command += ["--files", files]
    if block:
        command += ["--block", block]
    result = run_json(command)
    if result["operations"] == 0:
        raise BenchError(f"{phase} did no operation")
    per_operation = 1e6 / result["operations"]
    result["server_us"] = result["server_cpu_seconds"] * per_operation
    result["client_us"] = result["cpu_seconds"] * per_operation
    return result


def rdma_load(ctx, server, rw, depth, block, leaf="/bench.dat", prefix=(), seconds=None):
    """Our library over iWARP, by `nfs-rdma bench`. The server's CPU time is that of the time
    measured: connecting and the COMMIT behind are left out, as in libnfs_load. The file is the
    benchmark's own, though others than `nfs-rdma bench` write to it, too."""
    args = ctx.args
    with CpuWatch(server.group) as watch:
        result = run_json([*prefix, ctx.programs["nfs-rdma"], "bench", server.rdma_url(leaf),
                           "--rw", rw, "--block", block, "--size", f"{args.size}M",
                           "--depth", depth, "--time", seconds or args.seconds, "--overwrite",
                           "--json"])
        end = time.monotonic() - result["commit_seconds"]
    if result["errors"]:
        raise BenchError(f"{rw} over iWARP had {result['errors']} errors")
    if result["fabric"] != "iwarp":
        raise BenchError(f"{rw} went over {result['fabric']}, not iWARP")
    per_operation = 1e6 / max(1, result["operations"])
    result["server_us"] = watch.between(end - result["seconds"], end) * per_operation
    result["client_us"] = result["cpu_seconds"] * per_operation
    return result


def raw_stream(ctx):
    result = run_json([ctx.programs["raw_tcp"], "stream", ctx.args.seconds, 1 << 20])
    return result["bytes_per_second"]


def raw_pingpong(ctx, request, reply, polling, cpus):
    """`polling`: microseconds of (client, server) before they block; `cpus`: theirs, or None."""
    command = [ctx.programs["raw_tcp"], "pingpong", ctx.args.seconds, request, reply, *polling]
    return run_json(command + list(cpus or ()))["latency_us"]["p50"]


def iperf3(ctx):
    """Bytes per second of `iperf3 -l 1M`, or None where it is not installed."""
    if not shutil.which("iperf3"):
        return None
    port = free_port()
    with subprocess.Popen(["iperf3", "-s", "-1", "-p", str(port)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, start_new_session=True) as server:
        time.sleep(0.3)
        try:
            result = run_json(["iperf3", "-c", "127.0.0.1", "-p", port, "-l", "1M", "-t",
                               max(1, round(ctx.args.seconds)), "-J"])
            return result["end"]["sum_received"]["bits_per_second"] / 8
        finally:
            try:
                server.wait(5)
            except subprocess.TimeoutExpired:
                server.kill()


def file_load(ctx, file, phase, **options):
    words = [w for key, value in options.items() for w in (f"--{key}", value)]
    return run_json([ctx.programs["file_load"], file, phase, "--seconds", ctx.args.seconds,
                     *words])


class SyncCounter:
    """Counts what a process asks of the disk: fsync, fdatasync, syncfs, sync_file_range calls, and
    every sync that reaches ext4 (which also sees O_SYNC writes and io_uring). By `perf stat` on the
    tracepoints, else by strace; in a run of its own, its cost is in no measurement."""
    CALLS = ("fsync", "fdatasync", "syncfs", "sync_file_range")

    def __init__(self, process_id, output):
        self.output = output
        self.how, command = self._command(process_id, output)
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)
        if self.process.poll() is not None:
            raise BenchError(f"{self.how}: {self.process.stderr.read().strip()[-200:]}")

    @classmethod
    def _command(cls, process_id, output):
        events = [f"syscalls:sys_enter_{c}" for c in cls.CALLS]
        for more in (["ext4:ext4_sync_file_enter"], []):
            try:
                run(["perf", "stat", "-e", ",".join(events + more), "true"])
            except BenchError:
                continue
            return "perf stat", ["perf", "stat", "-x", ",", "-o", str(output), "-e",
                                 ",".join(events + more), "-p", str(process_id)]
        if shutil.which("strace"):
            return "strace", ["strace", "-f", "-c", "-U", "calls,name", "-o", str(output), "-e",
                              "trace=" + ",".join(cls.CALLS), "-p", str(process_id)]
        raise BenchError("neither perf (with tracepoints) nor strace is there to count with")

    def stop(self):
        """{call: count}"""
        self.process.send_signal(2)
        self.process.wait(30)
        counts = {}
        for line in self.output.read_text().splitlines():
            fields = line.split("," if self.how == "perf stat" else None)
            if self.how == "perf stat" and len(fields) > 2 and fields[0].isdigit():
                name = fields[2].rpartition("sys_enter_")[2].rpartition(":")[2]
                counts[name] = counts.get(name, 0) + int(fields[0])
            elif self.how == "strace" and len(fields) == 2 and fields[1] in self.CALLS:
                counts[fields[1]] = int(fields[0])
        return counts
