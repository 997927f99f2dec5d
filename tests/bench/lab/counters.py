# SPDX-License-Identifier: Apache-2.0
"""Where the guest's processor time goes: threads by kind, and the whole guest; and which calls
Linux's client made.

Threads are counted in nanoseconds by the scheduler (/proc/PID/task/TID/schedstat). The whole guest
is what its processors did not idle: that has interrupts and soft interrupts in it, too, which no
thread is charged for, and in which rxe and siw do much of their work.
"""
import os
import time

TICKS = os.sysconf("SC_CLK_TCK")
PROCESSORS = os.cpu_count()
KERNEL_THREAD = 0x00200000  # PF_KTHREAD
# Kernel threads by what their names begin with; all others are "kernel, other".
KERNEL_KINDS = ("nfsd", "kworker", "ksoftirqd", "siw_tx", "rxe", "jbd2")


def _read(path):
    with open(path, encoding="ascii", errors="replace") as source:
        return source.read()


def thread_times(pid):
    """(nanoseconds on a processor, times it went to sleep) of a process's threads together."""
    total = sleeps = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            total += int(_read(f"/proc/{pid}/task/{thread}/schedstat").split()[0])
            for line in _read(f"/proc/{pid}/task/{thread}/status").splitlines():
                if line.startswith("voluntary_ctxt_switches"):
                    sleeps += int(line.split()[1])
        except OSError:
            continue  # it has just ended
    return total, sleeps


def processes():
    """(pid, name, is it a kernel thread) of all there are."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = _read(f"/proc/{pid}/stat")
        except OSError:
            continue
        name = text[text.index("(") + 1:text.rindex(")")]
        flags = int(text[text.rindex(")") + 2:].split()[6])
        yield int(pid), name, bool(flags & KERNEL_THREAD)


def kind_of(name, kernel):
    if not kernel:
        return name if name in ("nfs-rdmad", "mount.nfs-rdma") else "programs, other"
    return next((kind for kind in KERNEL_KINDS if name.startswith(kind)), "kernel, other")


class Snapshot:
    def __init__(self):
        self.when = time.monotonic()
        words = _read("/proc/stat").split()
        self.idle = (int(words[4]) + int(words[5])) / TICKS  # idle and iowait
        self.kinds = {}
        self.sleeps = {}
        for pid, name, kernel in processes():
            if pid == os.getpid():
                continue
            kind = kind_of(name, kernel)
            try:
                nanoseconds, sleeps = thread_times(pid)
            except OSError:
                continue
            self.kinds[kind] = self.kinds.get(kind, 0) + nanoseconds
            self.sleeps[kind] = self.sleeps.get(kind, 0) + sleeps

    def since(self, before, server):
        """What happened in between; `server` is the kind of the threads of what is measured."""
        seconds = self.when - before.when
        kinds = {kind: max(0, total - before.kinds.get(kind, 0)) / 1e9
                 for kind, total in self.kinds.items()}
        return {"elapsed": seconds, "server_cpu": kinds.get(server, 0.0),
                "guest_cpu": max(0.0, seconds * PROCESSORS - (self.idle - before.idle)),
                "sleeps": self.sleeps.get(server, 0) - before.sleeps.get(server, 0),
                "kinds": {kind: round(value, 4) for kind, value in kinds.items() if value > 0}}


def wire_calls(mount):
    """{procedure: (calls, milliseconds until their replies, together)} of an NFS mount so far."""
    calls = {}
    ours = counts = False
    for line in _read("/proc/self/mountstats").splitlines():
        words = line.split()
        if line.startswith("device "):
            ours, counts = words[4] == mount, False
        elif ours and line.strip() == "per-op statistics":
            counts = True
        elif counts and len(words) > 7 and words[1] != "0":
            calls[words[0].rstrip(":")] = (int(words[1]), int(words[7]))
    return calls


def calls_between(before, after):
    """The same of what came in between."""
    zero = (0, 0)
    return {name: (count - before.get(name, zero)[0], time_taken - before.get(name, zero)[1])
            for name, (count, time_taken) in after.items()
            if count != before.get(name, zero)[0]}
