# SPDX-License-Identifier: Apache-2.0
"""Twenty minutes of everything at once, after which nothing may have grown.

Linux's client in the guest and our own on the host (host_load.py) write, read, create, remove, mount
and unmount against one server; every now and then all connections are reset, and clients are killed.
Meanwhile the server is measured every ten seconds. The first third lets caches and arenas fill; then
the middle third is compared with the last. At the end the load stops, and what belongs to
connections must be gone.
"""
import contextlib
import json
import os
import random
import statistics
import time

import host
from bench import SECOND_MOUNT, MOUNT
from case import case, expect, expect_equal
from sides import wait_for
from worker import Worker

# What counts as flat: the median of the last third exceeds that of the middle third by less than
# the share or the number, whichever is more.
BOUNDS = {
    "server memory": (0.03, 2048), "server descriptors": (0.05, 16), "server threads": (0, 0),
    "STags": (0, 64), "connections": (0.5, 8), "calls in progress": (0.5, 64),
    "buffers in use": (0.5, 64 << 20), "buffer arenas": (0.03, 2 << 20),
    "cached files": (0.05, 64), "replies kept": (0.25, 512),
    "mount memory": (0.03, 2048), "mount descriptors": (0.05, 8), "mount threads": (0, 0),
    "mount STags": (0, 64),
}
# Gone when the load is: (what, at most). The shards keep their receive buffers.
AT_THE_END = (("connections", 0), ("calls in progress", 0), ("STags", 0),
              ("buffers in use", 4 << 20))


def churning(folder, seed):
    """Linux's client at work in a directory of its own."""
    def churn(worker):
        rng = random.Random(seed)
        os.makedirs(folder, exist_ok=True)
        while True:
            content = rng.randbytes(rng.randrange(1, 2 << 20))
            with open(f"{folder}/data", "wb", buffering=0) as out:
                out.write(content)
                os.fsync(out.fileno())
                os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            with open(f"{folder}/data", "rb") as source:
                expect(source.read() == content, f"{folder}/data reads otherwise")
            for number in range(30):
                with open(f"{folder}/small-{number}", "wb") as out:
                    out.write(content[:rng.randrange(1, 5000)])
            expect_equal(len(os.listdir(folder)), 31, f"names in {folder}")
            for number in range(30):
                os.rename(f"{folder}/small-{number}", f"{folder}/moved")
                os.unlink(f"{folder}/moved")
            worker.progress += 1
    return Worker(churn)


# The one that mounts is asked to end: a mount or umount that it had begun would outlive it.
ENDING = "/run/soak-ends"


def mounting(t):
    def come_and_go(worker):
        while not os.path.exists(ENDING):
            t.client.mount(t, SECOND_MOUNT)
            os.listdir(SECOND_MOUNT)
            t.client.unmount(SECOND_MOUNT)
            worker.progress += 1
    return Worker(come_and_go)


def judged(samples):
    """Rows of (what, first, middle, last, bound, flat)."""
    third = len(samples) // 3
    rows = []
    for what, (share, number) in BOUNDS.items():
        series = [sample[what] for sample in samples if what in sample]
        if len(series) < len(samples):
            rows.append((what, "", "", "", "", False))
            continue
        first, middle, last = (statistics.median(part) for part in (
            series[:third], series[third:2 * third], series[2 * third:]))
        bound = max(middle * share, number)
        rows.append((what, first, middle, last, bound, last - middle <= bound))
    return rows


def table(rows):
    lines = [f"{'':20}{'first third':>14}{'middle':>14}{'last':>14}{'may grow by':>14}"]
    for what, first, middle, last, bound, flat in rows:
        lines.append(f"{what:20}{first!s:>14}{middle!s:>14}{last!s:>14}{bound!s:>14}"
                     f"{'' if flat else '  GREW'}")
    return "\n".join(lines)


# What of the load makes a connection each time.
CONNECTS = ("runs of nfs-rdma", "runs of nfs-rdma killed", "mounts", "mounts killed", "mounts, Linux")


def day_of(done, samples):
    """How busy a day would have the same number of everything that could leak something each time."""
    events = {"a connection": sum(done.get(name, 0) for name in CONNECTS),
              "a reset": done.get("connections reset", 0),
              "a call": samples[-1]["calls"] - samples[0]["calls"]}
    return "as many as a day has with " + ", ".join(
        f"{what} every {86400 / number:.3g} s" for what, number in events.items() if number > 0)


def measured(seconds, watch=lambda: None):
    """Our clients' load, resets, samples; returns what was done and the samples."""
    host.ask("load", 1)
    samples = []
    killed = 0
    end = time.monotonic() + seconds
    next_kill = time.monotonic() + 20
    while time.monotonic() < end:
        time.sleep(10)
        if time.monotonic() > next_kill:
            killed += host.ask("kill_connections")
            next_kill += 30
        samples.append(host.ask("sample"))
        watch()
    done = host.ask("unload")
    done["connections reset"] = killed
    return done, samples


def judge(done, samples, report, long_enough):
    """After the load: writes the report down, and fails when something grew or was left."""
    rows = judged(samples)
    print(json.dumps(done, indent=1), table(rows), day_of(done, samples), sep="\n", flush=True)

    def gone():
        last = host.ask("sample")
        with open(report, "w", encoding="utf-8") as out:
            json.dump({"done": done, "rows": rows, "after": last, "samples": samples}, out)
        return all(last[what] <= most for what, most in AT_THE_END)
    wait_for(gone, 120, f"nothing left of the load ({host.ask('sample')})")
    print(f"after the load: {host.ask('sample')}", flush=True)
    expect_equal(done.pop("errors", 0), 0, "errors of our client")
    for name, number in done.items():
        expect(number > 0, f"never done: {name}")
    grown = [row[0] for row in rows if not row[-1]] if long_enough else []
    expect(not grown, f"grew: {', '.join(grown)}")


def soak(t, seconds, long_enough=True):
    t.mount()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(ENDING)
    workers = {"rounds in a directory, Linux": churning(f"{MOUNT}/guest-one", 1),
               "rounds beside it, Linux": churning(f"{MOUNT}/guest-two", 2)}
    mounts = mounting(t)
    workers["mounts, Linux"] = mounts

    def watch():
        for name, worker in workers.items():
            if worker.ended():
                worker.finish(1)
            expect(not worker.ended(), f"ended: {name}")
    done, samples = measured(seconds, watch)
    with open(ENDING, "w", encoding="ascii"):
        pass
    mounts.finish(150)
    for name, worker in workers.items():
        done[name] = worker.progress
        worker.kill()
        wait_for(worker.ended, 60, f"{name} ended")
    t.client.unmount(MOUNT)
    judge(done, samples, "/host/logs/soak.json", long_enough)


@case("soak", limit=1560, slow=True, kind="soak")
def soak_long(t):
    soak(t, 1200)


@case("soak-brief", limit=460, slow=True, kind="soak")
def soak_brief(t):
    """Too short to tell who grows: only what is left at the end counts."""
    soak(t, 180, long_enough=False)
