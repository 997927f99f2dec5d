# SPDX-License-Identifier: Apache-2.0
"""Where the time goes: one more run of a job under perf, and one under strace that counts the
system calls of nfs-rdmad, the crossings between user space and kernel. Neither run is measured.
"""
import os
import re
import shutil
import signal
import subprocess

import loads
import sides
from case import Failed

FOLDER = "/host/logs"
OPERATIONS = 1000  # under strace
PATIENCE = 3  # with which each of them takes several times as long
THREAD_AND_PROGRAM = re.compile(r"^\s*([\d.]+)%\s+(?:shard-\d+|worker|nfs-rdmad)\s+(\[?\S+)\s*$")
COUNTS = re.compile(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\S+)$")


def profile(guest, name, job, step, tell):
    perf = f"{sides.PROGRAMS}/perf"
    if os.path.exists(perf):
        arrange(guest, name, job)
        guest.mount(name)
        step(f"perf of {job} on {name}", 400)
        path = f"{FOLDER}/perf-{job}-{name}.txt"
        sample(perf, path, lambda: guest.load(name, job))
        guest.unmount()
        if name == "nfs-rdmad":
            tell("in_kernel", job=job, part=part_in_kernel(path))
    if name == "nfs-rdmad":
        arrange(guest, name, job)
        guest.mount(name)
        step(f"system calls of {job}", 600)
        try:
            tell("crossings", job=job, **count_calls(guest, name, job))
        except Failed as failed:
            # What was measured counts, and the next job is counted again.
            tell("note", text=f"system calls of {job}: not counted: {failed}")
            guest.abandon()
        else:
            guest.unmount()


def arrange(guest, name, job):
    """What the job expects to find, made on the server's side."""
    folder = f"{sides.EXPORT}/{loads.folder_of(name)}"
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    if job in ("stat", "open", "unlink"):
        loads.each_file("create", folder, guest.plan["files"])


def sample(perf, path, load):
    """All processors: rxe and siw work in soft interrupts and kernel threads."""
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{sides.PROGRAMS}/lib")
    if os.path.exists("/run/perf.data"):
        os.unlink("/run/perf.data")
    with open(path, "wb") as out, subprocess.Popen(
            [perf, "record", "-q", "-a", "-e", "cpu-clock", "-F", "499", "-o", "/run/perf.data"],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment) as recorder:
        try:
            sides.wait_for(lambda: os.path.exists("/run/perf.data")
                           and os.path.getsize("/run/perf.data") > 0, 60, "perf records")
            load()
        finally:
            recorder.send_signal(signal.SIGINT)
            try:
                recorder.wait(60)
            except subprocess.TimeoutExpired:
                recorder.kill()
    for title, keys in (("by thread", "comm"), ("by thread and program", "comm,dso"),
                        ("by function", "comm,dso,symbol")):
        done = subprocess.run(
            [perf, "report", "-i", "/run/perf.data", "--stdio", "--sort", keys,
             "--percent-limit", "0.1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=environment, timeout=120, check=False)
        with open(path, "ab") as out:
            out.write(f"--- {title}\n".encode() + done.stdout)


def part_in_kernel(path):
    """Of the processor time of nfs-rdmad's threads. Much of it is work that knfsd's threads have others
    do: the doorbell of rxe and siw sends in the thread that rings it. None when there was no sample."""
    of = {True: 0.0, False: 0.0}
    with open(path, encoding="utf-8", errors="replace") as report:
        for match in filter(None, map(THREAD_AND_PROGRAM.match, report)):
            of[match.group(2).startswith("[kernel")] += float(match.group(1))
    return of[True] / (of[True] + of[False]) if of[True] + of[False] else None


def count_calls(guest, name, job):
    path = f"{FOLDER}/strace-{job}.txt"
    number = OPERATIONS if job in loads.FIO else min(OPERATIONS, guest.plan["files"])
    with subprocess.Popen(["strace", "-f", "-c", "-q", "-o", path, "-p",
                           str(guest.server.process.pid)], stdin=subprocess.DEVNULL) as tracer:
        try:
            sides.wait_for(lambda: traced(guest.server.process.pid), 60, "strace attached")
            done = guest.load(name, job, number, PATIENCE)
        finally:
            tracer.send_signal(signal.SIGINT)
            try:
                tracer.wait(30)
            except subprocess.TimeoutExpired:
                tracer.kill()
    calls = {}
    with open(path, encoding="ascii", errors="replace") as counts:
        for match in filter(None, map(COUNTS.match, counts)):
            if match.group(2) != "total":
                calls[match.group(2)] = int(match.group(1))
    return {"ops": done["ops"], "calls": calls}


def traced(pid):
    """All of its threads."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as status:
            if "TracerPid:\t0\n" in status.read():
                return False
    return True
