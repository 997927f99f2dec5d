# SPDX-License-Identifier: Apache-2.0
"""Where the time goes: one more run of a job under perf, and one that counts the system calls of
nfs-rdmad, the crossings between user space and kernel. Neither run is measured.

perf counts them by the kernel's tracepoints. strace does where there is no perf, and slows nfs-rdmad
down so much that it hands calls to its workers which it otherwise carries out where they came in: more
of futex, eventfd's read and write, and epoll_wait.
"""
import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess

import loads
import sides
from case import Failed, expect

FOLDER = "/host/logs"
OPERATIONS = 1000  # while they are counted
PATIENCE = 3  # with which each of them may take several times as long
# What perf counts one by one; all others are "others".
CALLS = ("futex", "epoll_wait", "read", "write", "ioctl", "newfstatat", "statx", "openat", "close",
         "open_by_handle_at", "name_to_handle_at", "fsync", "fdatasync", "preadv2", "pwrite64",
         "pwritev2", "faccessat2", "fchmod", "fchmodat", "fchownat", "utimensat", "ftruncate",
         "linkat", "unlinkat", "mkdirat", "renameat2", "getdents64", "getxattr", "setfsuid",
         "setfsgid", "fcntl", "clock_gettime", "mprotect", "madvise")
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


@contextlib.contextmanager
def watching(command, begun, what, **settings):
    """A program that watches the server while the body runs; it is told to end then, and writes down
    what it saw. begun(pid): does it watch?"""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, **settings) as watcher:
        try:
            sides.wait_for(lambda: begun(watcher.pid), 60, what)
            yield
        finally:
            watcher.send_signal(signal.SIGINT)
            try:
                watcher.wait(60)
            except subprocess.TimeoutExpired:
                watcher.kill()


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
    command = [perf, "record", "-q", "-a", "-e", "cpu-clock", "-F", "499", "-o", "/run/perf.data"]

    def records(_):
        return os.path.exists("/run/perf.data") and os.path.getsize("/run/perf.data") > 0
    with open(path, "wb") as out, watching(command, records, "perf records", stdout=out, stderr=out,
                                           env=environment):
        load()
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
    number = OPERATIONS if job in loads.FIO else min(OPERATIONS, guest.plan["files"])
    pid = guest.server.process.pid
    perf = f"{sides.PROGRAMS}/perf"

    def load():
        return guest.load(name, job, number, PATIENCE)["ops"]
    if os.path.exists(perf):
        ops, calls = count_by_perf(perf, pid, f"{FOLDER}/calls-{job}.txt", load)
    else:
        ops, calls = count_by_strace(pid, f"{FOLDER}/strace-{job}.txt", load)
    return {"ops": ops, "calls": calls}


def count_by_perf(perf, pid, path, load):
    tracing = "/sys/kernel/tracing"
    if not os.path.exists(f"{tracing}/events"):
        sides.run("mount", "-t", "tracefs", "nodev", tracing)
    events = [f"syscalls:sys_enter_{call}" for call in CALLS
              if os.path.exists(f"{tracing}/events/syscalls/sys_enter_{call}")]
    events.append("raw_syscalls:sys_enter")
    wanted = len(events) * len(os.listdir(f"/proc/{pid}/task"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (65536, 65536))
    command = [perf, "stat", "-x,", "-o", path, "-e", ",".join(events), "-p", str(pid)]
    # It has a descriptor for each event of each thread.
    with watching(command, lambda counter: len(os.listdir(f"/proc/{counter}/fd")) > wanted,
                  "perf counts", env=sides.our_environment()):
        ops = load()
    counted = {}
    with open(path, encoding="ascii", errors="replace") as lines:
        for words in (line.split(",") for line in lines):
            if len(words) > 2 and words[0].isdigit():
                counted[words[2].rpartition("sys_enter")[2].lstrip("_")] = int(words[0])
    expect(counted.get(""), f"perf counted nothing: {path}")
    everything = counted.pop("")
    counted["others"] = max(0, everything - sum(counted.values()))
    return ops, {call: number for call, number in counted.items() if number}


def count_by_strace(pid, path, load):
    with watching(["strace", "-f", "-c", "-q", "-o", path, "-p", str(pid)], lambda _: traced(pid),
                  "strace attached"):
        ops = load()
    calls = {}
    with open(path, encoding="ascii", errors="replace") as counts:
        for match in filter(None, map(COUNTS.match, counts)):
            if match.group(2) != "total":
                calls[match.group(2)] = int(match.group(1))
    return ops, calls


def traced(pid):
    """All of its threads."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as status:
            if "TracerPid:\t0\n" in status.read():
                return False
    return True
