# SPDX-License-Identifier: Apache-2.0
"""The loads that both sides get, through a mount. Each has a limit.

A load is run(place) -> {"ops", "seconds"}; its time on a processor comes back as "load_cpu".
"""
import json
import os
import shutil
import signal
import subprocess
import time

import sides
from case import Failed, expect

DATA = "data"  # the file that fio reads and overwrites
DATA_MB = 192
REPOSITORY = "/run/source.git"
ARCHIVE = "/run/source.tar"

FIO = {
    "seq-read-1m": ("read", "1m", 4),
    "seq-write-1m": ("write", "1m", 4),
    "rand-read-4k-qd1": ("randread", "4k", 1),
    "rand-read-4k-qd32": ("randread", "4k", 32),
    "rand-write-4k-qd1": ("randwrite", "4k", 1),
    "rand-write-4k-qd32": ("randwrite", "4k", 32),
}
FILES = ("create", "stat", "open", "unlink")
JOBS = (*FIO, *FILES, "git-clone", "git-status", "untar")


def folder_of(name):
    """Where the files of a server are, in its export."""
    return f"bench-{name.replace(' ', '-')}"


def wait(pid, limit, what):
    """The child's processor time. One that cannot be killed is left to the guest's end."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status, used = os.wait4(pid, os.WNOHANG)
        if done:
            expect(status == 0, f"{what}: ended with {os.waitstatus_to_exitcode(status)}")
            return used.ru_utime + used.ru_stime
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    raise Failed(f"{what}: not done after {limit} s")


def run_command(command, limit, what, environment=None):
    """(standard output, seconds, processor time)"""
    with open("/run/load.out", "w+b") as out, open("/run/load.err", "w+b") as errors:
        started = time.monotonic()
        # pylint: disable=consider-using-with
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                                 env=environment)
        try:
            used = wait(child.pid, limit, what)
        except Failed as failed:
            errors.seek(0)
            raise Failed(f"{failed}: {errors.read()[-300:].decode(errors='replace')}") from None
        seconds = time.monotonic() - started
        child.returncode = 0  # reaped by wait()
        out.seek(0)
        return out.read(), seconds, used


def fio_command(path, job, seconds, number=None):
    kind, block, depth = FIO[job]
    command = ["fio", f"--name={job}", f"--filename={path}", f"--rw={kind}", f"--bs={block}",
               f"--iodepth={depth}", "--ioengine=libaio", "--direct=1", f"--size={DATA_MB}m",
               "--thread", "--norandommap", "--invalidate=0", "--output-format=json"]
    if number:
        return command + [f"--number_ios={number}"]
    return command + ["--time_based", f"--runtime={seconds}"]


def fio(path, job, seconds, number=None, patience=1):
    """`patience`: times the usual limit, where something slows the server down."""
    output, _, used = run_command(fio_command(path, job, seconds, number),
                                  (seconds + 90) * patience, job)
    try:
        document = json.loads(output[output.index(b"{"):])
    except ValueError:
        raise Failed(f"{job}: fio said {output[-200:]!r}") from None
    run = document["jobs"][0]
    expect(run["error"] == 0, f"{job}: fio saw error {run['error']}")
    part = run["read" if "read" in FIO[job][0] else "write"]
    expect(part["total_ios"] > 0, f"{job}: nothing done")
    return {"ops": part["total_ios"], "seconds": part["runtime"] / 1000, "load_cpu": used}


def each_file(phase, folder, count):
    for number in range(count):
        path = f"{folder}/file-{number}"
        if phase == "create":
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        elif phase == "stat":
            os.stat(path)
        elif phase == "open":
            os.close(os.open(path, os.O_RDONLY))
        else:
            os.unlink(path)


def files(phase, folder, count, patience=1):
    """In a process of its own, so that it can be given up."""
    limit = (90 + count // 20) * patience
    before = time.monotonic()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            each_file(phase, folder, count)
            code = 0
        except OSError as error:
            print(f"{phase}: {error}", flush=True)
        os._exit(code)
    used = wait(pid, limit, phase)
    return {"ops": count, "seconds": time.monotonic() - before, "load_cpu": used}


def git_clone(folder, patience=1):
    command = [sides.GIT, "clone", "-q", "--no-hardlinks", "--template=",
               f"file://{REPOSITORY}", f"{folder}/clone"]
    _, seconds, used = run_command(command, 150 * patience, "git clone", sides.git_environment())
    return {"ops": 1, "seconds": seconds, "load_cpu": used}


def git_status(folder, patience=1):
    """Of what git_clone() has left there."""
    output, seconds, used = run_command([sides.GIT, "-C", f"{folder}/clone", "status", "--porcelain"], 150 * patience,
                                        "git status", sides.git_environment())
    expect(output == b"", f"git status: {output[:200]!r}")
    return {"ops": 1, "seconds": seconds, "load_cpu": used}


def untar(folder, patience=1):
    os.mkdir(f"{folder}/untar")
    _, seconds, used = run_command(["tar", "-xf", ARCHIVE, "-C", f"{folder}/untar"], 150 * patience, "untar")
    return {"ops": 1, "seconds": seconds, "load_cpu": used}


TREES = {"git-clone": git_clone, "git-status": git_status, "untar": untar}


def set_up_trees(source):
    shutil.copytree(f"{source}.git", REPOSITORY)
    shutil.copy(f"{source}.tar", ARCHIVE)
    sides.set_up_git()
