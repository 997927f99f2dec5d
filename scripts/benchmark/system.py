# SPDX-License-Identifier: Apache-2.0
"""What the benchmark needs of the machine: programs, ports, control groups, scratch disks."""
import json
import os
import random
import re
import resource
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class BenchError(RuntimeError):
    """Something could not be measured; the text is for people."""


def say(text):
    print(f"   {text}", file=sys.stderr, flush=True)


class Programs:
    """Finds our programs in the folders of --bin."""

    def __init__(self, folders):
        self.folders = [Path(f) for f in folders]

    def __getitem__(self, name):
        for folder in self.folders:
            if os.access(folder / name, os.X_OK):
                return folder / name
        places = " or ".join(str(f) for f in self.folders)
        raise BenchError(f"{name} is not in {places}: build the release preset first "
                         "(scripts/test does), or say --bin")


def run(command, timeout=600, **kwargs):
    """Runs a program to its end and returns what it printed; its complaint is the error's text."""
    words = [str(c) for c in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, check=False, **kwargs)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{Path(words[0]).name} did not end within {timeout} s") from None
    except FileNotFoundError:
        raise BenchError(f"{words[0]} is not installed") from None
    if done.returncode != 0:
        name, said = Path(words[0]).name, (done.stderr or done.stdout).strip()[-300:]
        raise BenchError(said if said.startswith(f"{name}:") else f"{name}: {said}")
    return done.stdout


def run_json(command, **kwargs):
    return json.loads(run(command, **kwargs))


def free_port():
    """Below the ports of outgoing connections (32768 on), which could take it before the server."""
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def port_answers(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def enter_namespaces():
    """Starts this program anew in a network and a mount namespace of its own; returns why not, or
    nothing once there."""
    if os.environ.get("BENCH_NAMESPACE"):
        try:
            run(["ip", "link", "set", "lo", "up"])
            run(["mount", "-t", "tmpfs", "tmpfs", "/run"])  # for the sockets of a rpcbind
        except BenchError as error:
            return str(error)
        return ""
    unshare = ["unshare", "--net", "--mount", "--propagation", "private"]
    try:
        run([*unshare, "true"])
    except BenchError as error:
        return str(error)
    os.environ["BENCH_NAMESPACE"] = "1"
    os.execvp("unshare", [*unshare, sys.executable, *sys.argv])


class Rpcbind:
    """Peers insist on one. Started when installed and none runs."""

    def __init__(self):
        self.process = None
        if shutil.which("rpcbind") and not port_answers(111):
            self.process = subprocess.Popen(["rpcbind", "-f"], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL)
            for _ in range(50):
                if port_answers(111):
                    break
                time.sleep(0.1)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()


def allow_many_files():
    """A thousand connections need some thousand descriptors on both sides."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, wanted)), hard))


class ControlGroup:
    """CPU time of a process and all its children, by cgroup v1 cpuacct or v2."""

    def __init__(self, name):
        name = re.sub(r"[^A-Za-z0-9_-]", "-", name)
        for base, usage in (("/sys/fs/cgroup/cpuacct", "cpuacct.usage"),
                            ("/sys/fs/cgroup", "cpu.stat"),
                            ("/sys/fs/cgroup/unified", "cpu.stat")):
            path = Path(base) / f"nfs-rdma-bench-{name}-{os.getpid()}-{time.monotonic_ns()}"
            try:
                path.mkdir()
            except OSError:
                continue
            if (path / usage).exists():
                self.path, self.usage = path, path / usage
                return
            path.rmdir()
        raise BenchError("no control group for the CPU accounting could be made (run as root)")

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def processes(self):
        return [int(p) for p in (self.path / "cgroup.procs").read_text().split()]

    def cpu_seconds(self):
        text = self.usage.read_text()
        if self.usage.name == "cpuacct.usage":
            return int(text) / 1e9
        return int(re.search(r"usage_usec (\d+)", text).group(1)) / 1e6

    def remove(self):
        for _ in range(50):
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.1)


def pin(process_id, cpus):
    """All threads of a process onto these CPUs."""
    for thread in os.listdir(f"/proc/{process_id}/task"):
        os.sched_setaffinity(int(thread), cpus)


def is_mounted(folder):
    return any(line.split()[1] == str(folder) for line in Path("/proc/mounts").open())


def unmount(folder):
    """Never touches what is mounted there: a mount whose server is gone would hang."""
    if is_mounted(folder) and subprocess.run(["umount", folder], capture_output=True, timeout=60,
                                             check=False).returncode != 0:
        subprocess.run(["umount", "-l", folder], check=False)


class ScratchDisk:
    """A fresh ext4 on a loop device, so that every server starts with an empty file system and a
    journal of its own: an fsync writes out what others have dirtied in the same one."""

    def __init__(self, folder, image, size_mib=2048):
        self.folder, self.image = folder, image
        with open(image, "wb") as f:
            f.truncate(size_mib << 20)
        run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", image])
        run(["mount", "-o", "loop", image, folder])
        shutil.rmtree(folder / "lost+found", ignore_errors=True)

    def remove(self):
        unmount(self.folder)
        self.image.unlink(missing_ok=True)
