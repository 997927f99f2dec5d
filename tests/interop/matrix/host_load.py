#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""host_load.py: our own client's part of the soak, beside the server on the host.

  host_load.py STAGE SERVER EXPORT SEED

Until it is killed: a FUSE mount that stays and is worked on, one that comes and goes, and runs of
`nfs-rdma`, each with a connection of its own; some of the last two are killed in the middle.
What goes wrong is printed; counts of what was done are in STAGE/host/load.json.
"""
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

STAGE, SERVER, EXPORT, SEED = sys.argv[1:5]
ENVIRONMENT = dict(os.environ, LD_LIBRARY_PATH=f"{STAGE}/bin/lib")
OPTIONS = "proto=rdma,fabric=iwarp,vers=3,port=20049,mountport=2049,retry=0"
counts = {"errors": 0}
lock = threading.Lock()


def count(what):
    with lock:
        counts[what] = counts.get(what, 0) + 1


class ConnectReset(Exception):
    """The soak reset the connection while it was being made, which no program tries again."""


def run(*command, limit=120):
    # A file: a mount's daemon would hold a pipe open.
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, check=False,
                              timeout=limit, stdout=subprocess.DEVNULL, stderr=errors)
        if done.returncode == 0:
            return
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    if "TCP connect" in said and "Connection reset by peer" in said:
        raise ConnectReset
    print(said, end="", file=sys.stderr)
    done.check_returncode()


def for_ever(function, *arguments):
    """What fails is told and counted; then it goes on."""
    while True:
        try:
            function(*arguments)
        except ConnectReset:
            count("connects reset")
        except (OSError, ValueError, subprocess.SubprocessError):
            traceback.print_exc()
            count("errors")
            time.sleep(1)


def mount(where):
    os.makedirs(where, exist_ok=True)
    run(f"{STAGE}/bin/mount.nfs-rdma", f"{SERVER}:{EXPORT}", where, "-o", OPTIONS)


def unmount(where):
    """A program that another thread just starts still has this one's files for a moment."""
    for _ in range(50):
        if subprocess.run(["umount", where], stdin=subprocess.DEVNULL, check=False,
                          stderr=subprocess.DEVNULL, timeout=60).returncode == 0:
            return
        time.sleep(0.1)
    run("umount", where)


def daemon_of(where):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as line:
                words = line.read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"mount.nfs-rdma") and where.encode() in words:
            return int(pid)
    return None


def work_on(folder, rng):
    """A file out and in again, a crowd of small ones made, listed, renamed and removed."""
    content = rng.randbytes(rng.randrange(1, 3 << 20))
    path = f"{folder}/data"
    with open(path, "wb") as out:
        out.write(content)
        os.fsync(out.fileno())
    with open(path, "rb") as source:
        if hashlib.sha256(source.read()).digest() != hashlib.sha256(content).digest():
            raise ValueError(f"{path} reads otherwise")
    names = [f"{folder}/small-{number}" for number in range(30)]
    for name in names:
        with open(name, "wb") as out:
            out.write(content[:rng.randrange(1, 5000)])
    if len(os.listdir(folder)) < len(names):
        raise ValueError(f"{folder}: names are missing")
    for name in names:
        os.rename(name, f"{name}.new")
        os.unlink(f"{name}.new")
    os.unlink(path)


def steady(where):
    rng = random.Random(f"steady {SEED}")
    folder = f"{where}/host-steady"
    os.makedirs(folder, exist_ok=True)
    while True:
        work_on(folder, rng)
        count("rounds on the mount that stays")


def come_and_go(where):
    rng = random.Random(time.time())
    mount(where)
    folder = f"{where}/host-short"
    os.makedirs(folder, exist_ok=True)
    if rng.randrange(4) == 0:
        killer = threading.Timer(rng.random(), os.kill, (daemon_of(where), signal.SIGKILL))
        killer.start()
        try:
            for _ in range(20):
                work_on(folder, rng)
        except OSError:
            pass  # killed: the mount answers with errors
        killer.join()
        run("umount", "-l", where)
        count("mounts killed")
        return
    work_on(folder, rng)
    unmount(where)
    count("mounts")


def tool(rng):
    url = f"nfs://{SERVER}{EXPORT}"
    query = "?proto=rdma&fabric=iwarp&vers=3&mountport=2049"
    program = f"{STAGE}/bin/nfs-rdma"
    local = f"{STAGE}/host/local"
    with open(local, "wb") as out:
        out.write(rng.randbytes(4 << 20))
    if rng.randrange(4) == 0:
        with subprocess.Popen([program, "cp", local, f"{url}/host-torn{query}"], env=ENVIRONMENT,
                              stdin=subprocess.DEVNULL) as copy:
            time.sleep(rng.random() / 20)
            copy.kill()
        count("runs of nfs-rdma killed")
        return
    run(program, "cp", local, f"{url}/host-tool{query}")
    run(program, "cp", f"{url}/host-tool{query}", f"{local}.back")
    with open(local, "rb") as one, open(f"{local}.back", "rb") as other:
        if one.read() != other.read():
            raise ValueError("nfs-rdma cp: other bytes came back")
    run(program, "ls", "-l", f"{url}/{query}")
    count("runs of nfs-rdma")


def main():
    mount(f"{STAGE}/host/steady")
    for function, *arguments in ((steady, f"{STAGE}/host/steady"),
                                 (come_and_go, f"{STAGE}/host/short"),
                                 (tool, random.Random(f"tool {SEED}"))):
        threading.Thread(target=for_ever, args=(function, *arguments), daemon=True).start()
    while True:
        time.sleep(1)
        with lock:
            text = json.dumps(counts)
        with open(f"{STAGE}/host/load.json.new", "w", encoding="utf-8") as out:
            out.write(text)
        os.rename(f"{STAGE}/host/load.json.new", f"{STAGE}/host/load.json")


if __name__ == "__main__":
    main()
