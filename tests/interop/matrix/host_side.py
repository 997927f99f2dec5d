#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""host_side.py: the server's side of a cell whose server runs outside of the guest.

  host_side.py STAGE COMMAND...

Started by scripts/interop inside network and mount namespaces of its own, so that all it makes
ends with it: the tap device that joins it to the guest, and STAGE/export, a fresh ext4 that the
server exports and the guest sees through its shared folder. Runs COMMAND (scripts/vm/lab, which
becomes the other end of the tap) and ends with its status.

Meanwhile the cases ask for things: a file STAGE/host/ask-NAME with JSON, answered by
STAGE/host/answer-NAME. The shared folder still works while the link is cut.
"""
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
import traceback

from sides import Folder

TAP = "nfsr0"
HOST_ADDRESS = "198.51.100.1"
GUEST = "198.51.100.2/24"
NEIGHBOUR = "198.51.100.3/24"  # another one in the guest
DISK_MIB = 2048


def run(*command):
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True, timeout=60)


def set_up(stage):
    # The lab looks there for the tap; what was mounted shows the network that we left.
    run("mount", "-t", "sysfs", "sysfs", "/sys")
    run("ip", "link", "set", "lo", "up")
    run("ip", "tuntap", "add", "dev", TAP, "mode", "tap")
    run("ip", "addr", "add", f"{HOST_ADDRESS}/24", "dev", TAP)
    run("ip", "link", "set", TAP, "up")
    os.makedirs(f"{stage}/host", exist_ok=True)
    os.makedirs(f"{stage}/export", exist_ok=True)
    image = f"{stage}/host/export.img"
    with open(image, "wb") as disk:
        disk.truncate(DISK_MIB << 20)
    run("mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=0", image)
    run("mount", "-o", "loop,noatime", image, f"{stage}/export")
    os.unlink(image)
    os.chmod(f"{stage}/export", 0o1777)


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def words_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as line:
            return line.read().split("\0")
    except OSError:
        return []


def processes_like(program):
    """Those in our mount namespace, which is nobody else's."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            ours = os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
        except OSError:
            continue
        words = words_of(pid)  # once: it may end any time
        if ours and words and words[0].endswith(program):
            found.append(pid)
    return found


def size_of(pid):
    """Resident memory of its own (KiB), descriptors, threads."""
    wanted = {"RssAnon": "memory", "Threads": "threads"}
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as lines:
        found = {wanted[name]: int(rest.split()[0]) for name, _, rest in
                 (line.partition(":") for line in lines) if name in wanted}
    found["descriptors"] = len(os.listdir(f"/proc/{pid}/fd"))
    return found


class Commands:
    """What a case may ask for: each method's result is the answer."""

    def __init__(self, stage):
        self.stage = stage
        self.server = None
        self.output = None
        self.loader = None

    def environment(self):
        return dict(os.environ, LD_LIBRARY_PATH=f"{self.stage}/bin/lib")

    def where(self):
        return self.stage

    def make_files(self, folder, names):
        Folder.make_files(f"{self.stage}/export/{folder}", names)

    def remove(self, folder):
        Folder.remove(f"{self.stage}/export/{folder}")

    def posix_acl(self, path):
        return Folder.posix_acl(f"{self.stage}/export/{path}")

    def set_posix_acl(self, path, *arguments):
        Folder.set_posix_acl(f"{self.stage}/export/{path}", *arguments)

    def launch(self, command):
        os.makedirs(f"{self.stage}/logs", exist_ok=True)
        self.output = f"{self.stage}/host/ready"
        with open(f"{self.stage}/logs/host-server.log", "ab") as log, open(self.output, "wb") as out:
            # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            self.server = subprocess.Popen(command, env=self.environment(),
                                           stdin=subprocess.DEVNULL, stdout=out, stderr=log,
                                           preexec_fn=end_with_parent)

    def ready(self):
        with open(self.output, "rb") as said:
            return b"ready" in said.read()

    def poll(self):
        return self.server.poll() if self.server else None

    def signal(self, number):
        self.server.send_signal(number)

    def status(self, *of):
        of = of or ("--server", f"{self.stage}/host/control")
        done = subprocess.run([f"{self.stage}/bin/nfs-rdma", "status", *of, "--json"],
                              env=self.environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, timeout=20, check=False)
        return json.loads(done.stdout)

    def link(self, *words):
        run("ip", "link", "set", TAP, *words)

    # --- for the soak

    def load(self, seed):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "host_load.py")
        with open(f"{self.stage}/logs/host-load.log", "ab") as log:
            # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            self.loader = subprocess.Popen(
                [sys.executable, "-B", script, self.stage, HOST_ADDRESS, f"{self.stage}/export",
                 str(seed)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=end_with_parent)

    def unload(self):
        """Ends our clients; returns what they had done."""
        self.loader.kill()
        self.loader.wait()
        # What is just being started, or becomes a daemon, is found by a later look.
        for _ in range(10):
            for pid in processes_like("/bin/mount.nfs-rdma") + processes_like("/bin/nfs-rdma"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        for where in ("steady", "short"):
            subprocess.run(["umount", "-l", f"{self.stage}/host/{where}"], stderr=subprocess.DEVNULL,
                           check=False)
        return self.done()

    def done(self):
        try:
            with open(f"{self.stage}/host/load.json", encoding="utf-8") as source:
                return json.load(source)
        except OSError:
            return {}

    def kill_connections(self):
        """All of the server's RDMA connections are reset, in whatever they are doing."""
        killed = subprocess.run(["ss", "-K", "-H", "-t", "sport", "=", ":20049"], check=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=20)
        return len(killed.stdout.splitlines())

    def sample(self):
        """What must not grow: of the server, and of the client that stays mounted."""
        status = self.status()
        memory = status["memory"]
        server = size_of(self.server.pid)
        result = {f"server {name}": value for name, value in server.items()}
        result |= {"connections": status["totals"]["connections"],
                   "calls in progress": status["totals"]["calls_in_progress"],
                   "calls": status["totals"]["calls"], "STags": memory["exposed_regions"],
                   "buffers in use": memory["in_use"], "buffer arenas": memory["arenas"],
                   "cached files": memory["cached_files"], "replies kept": status["drc"]["entries"]}
        steady = [pid for pid in processes_like("/bin/mount.nfs-rdma")
                  if f"{self.stage}/host/steady" in words_of(pid)]
        for pid in steady[:1]:
            result |= {f"mount {name}": value for name, value in size_of(pid).items()}
            # The client's memory is what peers reach; the server's STags are sinks of its own Reads.
            mount = self.status("--mount", f"{self.stage}/host/steady")
            result["mount STags"] = mount["exposed_regions"]
        return result

    def forget(self):
        """The case ended or was killed: nothing of its server stays."""
        if self.server and self.server.poll() is None:
            self.server.kill()
            self.server.wait()
        self.server = None


def answer(commands, folder, name):
    with open(f"{folder}/{name}", encoding="utf-8") as source:
        question = json.load(source)
    os.unlink(f"{folder}/{name}")
    try:
        reply = {"result": getattr(commands, question["do"])(*question["with"])}
    except Exception as error:  # pylint: disable=broad-exception-caught
        # With this process the server and the tap would end, and the guest would wait for a minute.
        traceback.print_exc()
        reply = {"error": f"{type(error).__name__}: {error}"}
    target = f"{folder}/{name.replace('ask-', 'answer-')}"
    with open(f"{target}.new", "w", encoding="utf-8") as out:
        json.dump(reply, out)
    os.rename(f"{target}.new", target)


def serve(commands, folder, guest):
    while guest.poll() is None:
        for name in os.listdir(folder):
            if name.startswith("ask-") and not name.endswith(".new"):
                answer(commands, folder, name)
        time.sleep(0.01)


def main():
    stage, command = sys.argv[1], sys.argv[2:]
    try:
        set_up(stage)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"host_side: {error}", file=sys.stderr)
        return 125
    commands = Commands(stage)
    with subprocess.Popen(command, preexec_fn=end_with_parent) as guest:
        signal.signal(signal.SIGTERM, lambda *_: guest.terminate())
        try:
            serve(commands, f"{stage}/host", guest)
        finally:
            if commands.loader:
                commands.unload()
            commands.forget()
    return guest.returncode if guest.returncode >= 0 else 128 - guest.returncode


if __name__ == "__main__":
    sys.exit(main())
