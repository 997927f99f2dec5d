#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""agent.py: runs in the guest, one cell, the cases named in /host/plan.json.

Each case is a process of its own with a time limit; when it is up, the agent writes down where
every process stands, kills the case, and ends: a guest in which something did not end cleanly is
no place for the next case, so the runner (scripts/interop) boots another one. It does the same when
a case failed. Results are lines of JSON in /host/results.jsonl, written as they come.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import cells
import sides
from bench import Bench
from case import CASES, Failed
import cases  # noqa: F401  (fills CASES)

HOST = "/host"
KERNEL_TROUBLE = re.compile(r"BUG:|Oops|WARNING:|general protection|blocked for more than|refcount_t")
# knfsd warns once of ENOTCONN, for which NFS has no status, when the connection is lost while it encodes a READ of
# version 4. The client asks again, and nothing else comes of it.
LOST_WHILE_READING = re.compile(r"nfsd: non-standard errno: -107\n.*WARNING: .* nfserrno\+")


def tell(**record):
    with open(f"{HOST}/results.jsonl", "a", encoding="utf-8") as out:
        out.write(json.dumps(record) + "\n")


def prepare_guest(cell):
    """Programs out of the slow shared folder, a file system to export, the network."""
    shutil.copytree(f"{HOST}/bin", sides.PROGRAMS, dirs_exist_ok=True)
    if os.path.isdir(f"{HOST}/root"):  # trees of the cases; the guest's disk is thrown away
        shutil.copytree(f"{HOST}/root", "/", symlinks=True, dirs_exist_ok=True)
    sides.run("mkfs.ext4", "-q", "-O", "^has_journal", "/dev/vdb", limit=120)
    os.makedirs(sides.EXPORT, exist_ok=True)
    sides.run("mount", "-o", "noatime", "/dev/vdb", sides.EXPORT)
    os.chmod(sides.EXPORT, 0o1777)
    cell.network.up()
    cell.server.set_up_cell(cell.network)


def run_case(cell, case, log):
    """In the child: its exit status is the result; the reason goes to its pipe's end."""
    os.dup2(log, 1)
    os.dup2(log, 2)
    bench = Bench(cell, case)
    bench.set_up()
    case.run(bench)
    bench.tear_down()


def child(cell, case, log_path, reason_pipe):
    os.setsid()
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    code = 1
    try:
        run_case(cell, case, log)
        code = 0
    except Failed as failed:
        traceback.print_exc()
        os.write(reason_pipe, str(failed).encode()[:2000])
    except BaseException as error:  # pylint: disable=broad-exception-caught
        traceback.print_exc()
        place = traceback.extract_tb(error.__traceback__)[-1]
        os.write(reason_pipe, f"{type(error).__name__}: {error} "
                              f"({os.path.basename(place.filename)}:{place.lineno})".encode()[:2000])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def where_all_stand(log_path):
    """For the log: the stacks of everything that waits, what our mounts and TCP say, the kernel's last words."""
    with open(log_path, "a", encoding="utf-8") as log:
        log.write("--- where the processes stand\n")
        for pid in sorted(map(int, filter(str.isdigit, os.listdir("/proc")))):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as line:
                    words = line.read().replace(b"\0", b" ").decode(errors="replace").strip()
                if not words:
                    continue
                for thread in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{thread}/stack", encoding="ascii") as stack:
                        frames = [line.split()[1] for line in stack if len(line.split()) > 1]
                    log.write(f"{pid}/{thread} {words[:100]}\n    {' < '.join(frames[:8])}\n")
            except OSError:
                continue
        for line in pathlib.Path("/proc/mounts").read_text(encoding="ascii").splitlines():
            if " fuse.nfs-rdma " in line:
                log.write(f"--- {line.split()[1]}\n{said('nfs-rdma', 'status', '--mount', line.split()[1])}\n")
        log.write("--- connections\n" + said("ss", "-tnio") + "\n")
        log.write("--- dmesg\n" + dmesg()[-6000:])


def said(program, *arguments):
    """What a program printed within ten seconds, or why nothing."""
    path = f"{sides.PROGRAMS}/{program}"
    try:
        done = subprocess.run([path if os.path.exists(path) else program, *arguments], env=sides.our_environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=10,
                              check=False)
        return done.stdout.decode(errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)


def dmesg():
    return sides.run("dmesg", check=False)


def wait_child(pid, limit):
    """The child's exit status, or None when its time is up."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    return None


def run_one(cell, case, limit):
    log_path = f"{HOST}/logs/{case.name}.log"
    tell(event="start", case=case.name, limit=limit)
    before = len(dmesg())
    started = time.monotonic()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        child(cell, case, log_path, write_end)
    os.close(write_end)
    code = wait_child(pid, limit)
    seconds = round(time.monotonic() - started, 1)
    if code == 0:
        result, reason = "passed", ""
        trouble = KERNEL_TROUBLE.search(LOST_WHILE_READING.sub("", dmesg()[before:]))
        if trouble:
            result, reason = "failed", f"the guest's kernel complains ({trouble.group(0)})"
    elif code is None:
        result, reason = "timeout", f"not done after {limit} s"
    else:
        # Its server may hold the pipe's other end open: read what is there, never wait.
        os.set_blocking(read_end, False)
        try:
            reason = os.read(read_end, 4096).decode(errors="replace")
        except BlockingIOError:
            reason = ""
        result, reason = "failed", reason or f"the case ended with {code}"
    if result != "passed":
        where_all_stand(log_path)
    tell(event="result", case=case.name, result=result, seconds=seconds, reason=reason)
    os.close(read_end)
    return result == "passed"


def main():
    with open(f"{HOST}/plan.json", encoding="utf-8") as source:
        plan = json.load(source)
    cell = cells.cell_by_name(plan["cell"])
    os.makedirs(f"{HOST}/logs", exist_ok=True)
    try:
        prepare_guest(cell)
    except (Failed, OSError) as error:
        tell(event="broken", reason=f"the cell cannot be set up: {error}")
        return
    for name in plan["cases"]:
        case = CASES[name]
        if not run_one(cell, case, plan["limits"][name]):
            return
    tell(event="end")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    main()
