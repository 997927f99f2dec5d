# SPDX-License-Identifier: Apache-2.0
"""The servers under comparison. Each runs in a control group of its own for the CPU accounting."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from .system import BenchError, ControlGroup, free_port, port_answers, say

START_SECONDS = 30


class Server:
    """A running server. `column` is its name in the tables."""
    ours = False

    def __init__(self, column, export):
        self.column = column
        self.export = export
        self.path = str(export)  # what a client mounts
        self.port = free_port()
        self.mountport = free_port()
        self.group = ControlGroup(column)
        self.log = tempfile.NamedTemporaryFile("w+", prefix="nfs-rdma-bench.", suffix=".log")
        self.process = None

    def launch(self, command, env=None, **kwargs):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, preexec_fn=self.group.enter,
                                        start_new_session=True,
                                        env={**os.environ, **(env or {})}, **kwargs)

    def said(self):
        return Path(self.log.name).read_text(errors="replace")

    def wait_for(self, ready, what):
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            if self.process.poll() is not None:
                raise BenchError(f"did not start: ended with status {self.process.returncode}: "
                                 f"{last_words(self.said())}")
            if time.monotonic() > deadline:
                raise BenchError(f"did not start: {what} after {START_SECONDS} s: "
                                 f"{last_words(self.said())}")
            time.sleep(0.1)

    def wait_for_ports(self, *ports):
        for port in ports:
            self.wait_for(lambda port=port: port_answers(port), f"nothing listens on port {port}")

    def url(self, version=3):
        """For libnfs."""
        return (f"nfs://127.0.0.1{self.path}?version={version}&nfsport={self.port}"
                f"&mountport={self.mountport}")

    def main_process(self):
        """The one that uses most memory: a command given by --peer may be wrapped in a shell."""
        return max(self.group.processes(), key=resident_kib)

    def resident_kib(self):
        return sum(resident_kib(p) for p in self.group.processes())

    def stop(self):
        """Ends all of it: behind a shell the process we know is not the last one to go, and the
        ports and the file system have to be free afterwards."""
        for number, seconds in ((signal.SIGTERM, 10), (signal.SIGKILL, 5)):
            for process_id in self.group.processes():
                try:
                    os.kill(process_id, number)
                except ProcessLookupError:
                    pass
            deadline = time.monotonic() + seconds
            while self.group.processes() and time.monotonic() < deadline:
                if self.process:
                    self.process.poll()  # takes the zombie away
                time.sleep(0.05)
        if self.process:
            self.process.wait()
        self.group.remove()
        self.log.close()


def last_words(text):
    """The end of a log, on one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(line[:200] for line in lines[-2:]) or "no message"


def resident_kib(process_id):
    try:
        text = Path(f"/proc/{process_id}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmRSS:\s+(\d+)", text)
    return int(found.group(1)) if found else 0


class Ours(Server):
    """nfs-rdmad with TCP and iWARP on loopback. `settings` are keys of rdma.conf(5)."""
    ours = True

    def __init__(self, programs, export, options, column="nfs-rdma", settings=None):
        super().__init__(column, export)
        self.mountport = self.port
        self.rdma_port = free_port()
        self.state = tempfile.mkdtemp(prefix="nfs-rdma-bench-state.")
        config = Path(self.state) / "rdma.conf"
        config.write_text("".join(f"{k}={v}\n" for k, v in (settings or {}).items()))
        try:
            self.launch([programs["nfs-rdmad"], "--foreground", "--config", config,
                         "-e", f"{export}:{options}", "--listen", "127.0.0.1",
                         "--port", str(self.rdma_port), "--tcp-port", str(self.port),
                         "--fabric", "iwarp", "--state-dir", self.state,
                         "--control", f"{self.state}/control.sock"])
            self.wait_for(lambda: self.said().startswith("ready"), "no line `ready`")
        except (BenchError, OSError):
            self.stop()
            raise

    def rdma_url(self, leaf=""):
        return (f"nfs://127.0.0.1:{self.rdma_port}{self.path}{leaf}?fabric=iwarp&proto=rdma&vers=3"
                f"&tcpport={self.port}&mountport={self.port}")

    def stop(self):
        super().stop()
        shutil.rmtree(self.state, ignore_errors=True)


class Ganesha(Server):
    """NFS-Ganesha with the VFS back end, NFSv3 and 4.0 over TCP alone, no Kerberos."""

    def __init__(self, export):
        super().__init__("ganesha", export)
        self.dir = tempfile.mkdtemp(prefix="nfs-rdma-bench-ganesha.")
        config = Path(self.dir) / "ganesha.conf"
        config.write_text(f"""
NFS_CORE_PARAM {{ NFS_Port = {self.port}; MNT_Port = {self.mountport}; NLM_Port = {free_port()};
  Rquota_Port = {free_port()}; Protocols = 3, 4; Enable_NLM = false; Enable_RQUOTA = false; }}
NFSv4 {{ Graceless = true; Minor_Versions = 0; RecoveryRoot = {self.dir}; }}
NFS_KRB5 {{ Active_krb5 = false; }}
EXPORT {{ Export_Id = 1; Path = {export}; Pseudo = {export}; Access_Type = RW; Squash = None;
  Protocols = 3, 4; Transports = TCP; SecType = sys; FSAL {{ Name = VFS; }} }}
LOG {{ Default_Log_Level = WARN; }}
""")
        try:
            self.launch(["ganesha.nfsd", "-F", "-L", "STDOUT", "-f", config, "-p",
                         f"{self.dir}/pid"])
            self.wait_for_ports(self.port, self.mountport)
        except (BenchError, OSError):
            self.stop()
            raise
        time.sleep(1)  # it listens before its exports are there

    def stop(self):
        super().stop()
        shutil.rmtree(self.dir, ignore_errors=True)


class Peer(Server):
    """A server started by a command of the user, see PEER_CONTRACT."""

    def __init__(self, name, command, export):
        super().__init__(name, export)
        self.dir = tempfile.mkdtemp(prefix=f"nfs-rdma-bench-{name}.")
        try:
            self.launch(command, shell=True, env={"BENCH_EXPORT": str(export),
                                                  "BENCH_PORT": str(self.port),
                                                  "BENCH_MOUNTPORT": str(self.mountport),
                                                  "BENCH_DIR": self.dir})
            self.wait_for(self.ready, "it does not listen on the ports it was given or named")
        except (BenchError, OSError):
            self.stop()
            raise
        time.sleep(1)

    def ready(self):
        for key, value in re.findall(r"^(export|port|mountport)=(\S+)$", self.said(), re.M):
            if key == "export":
                self.path = value
            elif value.isdigit():
                setattr(self, key, int(value))
        return port_answers(self.port) and port_answers(self.mountport)

    def stop(self):
        super().stop()
        shutil.rmtree(self.dir, ignore_errors=True)


PEER_CONTRACT = """\
contract of --peer NAME=COMMAND
  COMMAND is run by /bin/sh in a control group and a session of its own and has to stay in the
  foreground (the last step of a shell line best by `exec`). It is started anew for each group of
  measurements and ended by SIGTERM. Environment:
    BENCH_EXPORT     the directory to export, read and write, without squashing root
    BENCH_PORT       serve NFSv3 over TCP on 127.0.0.1 here
    BENCH_MOUNTPORT  serve MOUNT v3 over TCP here
    BENCH_DIR        an empty folder for its configuration and state, removed afterwards
  A rpcbind runs (port 111) when installed, in the benchmark's own network namespace; the machine's
  other servers are not there, so that fixed ports do no harm.
  A server that cannot be told its names prints lines of its own to standard output, at once:
    export=PATH      what clients mount, when not BENCH_EXPORT
    port=N           where NFS is, when not BENCH_PORT
    mountport=N      where MOUNT is, when not BENCH_MOUNTPORT
  It is ready when both ports accept connections, within 30 s. One that does not get ready is named
  with its last words and left out. Its CPU time is that of the whole control group.

contract of --passthrough COMMAND
  Run in the same way with BENCH_SOURCE, the directory to show, and BENCH_MOUNT, where to mount it.
  Ready when BENCH_MOUNT is a mount; ended by umount.

contract of --fuse-nfs COMMAND
  Run in the same way with BENCH_URL, the server for libnfs (nfs://...?nfsport=N&mountport=N), and
  BENCH_MOUNT: 'exec /path/fuse-nfs -n "$BENCH_URL" -m "$BENCH_MOUNT" -a'. It ends by umount.
"""


class FuseProgram:
    """A FUSE program that a command of the user's starts; it learns of its task by `told`."""

    def __init__(self, command, mount, told):
        self.mount = mount
        self.log = tempfile.NamedTemporaryFile("w+", prefix="nfs-rdma-bench.", suffix=".log")
        self.process = subprocess.Popen(command, shell=True, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, start_new_session=True,
                                        env={**os.environ, "BENCH_MOUNT": str(mount), **told})

    def said(self):
        return last_words(Path(self.log.name).read_text(errors="replace"))

    def stop(self):
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()


class Passthrough(FuseProgram):
    """libfuse's passthrough_hp, or what --passthrough names: the mark for a FUSE mount."""

    def __init__(self, command, source, mount):
        super().__init__(command, mount, {"BENCH_SOURCE": str(source)})


class FusePeer(FuseProgram):
    """What --fuse-nfs names: somebody else's FUSE mount of our server."""

    def __init__(self, command, url, mount):
        super().__init__(command, mount, {"BENCH_URL": url})


def start_peers(args, export):
    """Ganesha and those of --peer, each with a folder from export(name). Returns the running ones
    and {name: why} of the others."""
    wanted = []
    if not args.no_ganesha:
        wanted.append(("ganesha", Ganesha))
    for name, command in args.peer:
        wanted.append((name, lambda folder, n=name, c=command: Peer(n, c, folder)))
    running, missing = [], {}
    for name, start in wanted:
        if name == "ganesha" and not shutil.which("ganesha.nfsd"):
            missing[name] = "not installed (nfs-ganesha, nfs-ganesha-vfs)"
            continue
        try:
            running.append(start(export(name)))
        except (BenchError, OSError) as error:
            missing[name] = str(error)
            say(f"{name} {error}")
    return running, missing
