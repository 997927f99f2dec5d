# SPDX-License-Identifier: Apache-2.0
"""The three parts of a cell: network, server, client. All of it runs in the guest of scripts/vm.

Every wait in here has a limit. Programs of ours are in /run/interop, their libraries beside them.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time

from case import Failed, expect, expect_equal

PROGRAMS = "/run/interop"
EXPORT = "/export"
RDMA_PORT = 20049
MODULES = 150  # seconds: loading the kernel's modules takes more than 30 on a busy host


def run(*command, limit=30, check=True, env=None):
    """Runs a program; returns its output. A failure carries the end of what it said."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=limit, check=False, env=env)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(command)}: not done after {limit} s") from None
    if check and done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()[-300:]
        raise Failed(f"{' '.join(command)}: status {done.returncode}: {said}")
    return done.stdout.decode(errors="replace")


def wait_for(condition, limit, what):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"after {limit} s still not: {what}")
        time.sleep(0.05)


def write(path, text):
    with open(path, "w", encoding="ascii") as out:
        out.write(str(text))


def our_environment():
    return dict(os.environ, LD_LIBRARY_PATH=f"{PROGRAMS}/lib")


GIT = f"{PROGRAMS}/git-core/git"


def git_environment():
    folder = os.path.dirname(GIT)
    return dict(our_environment(), PATH=f"{folder}:{os.environ['PATH']}", GIT_EXEC_PATH=folder, HOME="/root",
                GIT_CONFIG_NOSYSTEM="1")


def set_up_git():
    """Of the host's git, what cloning by file:// needs; once in a guest."""
    folder = os.path.dirname(GIT)
    if os.path.isdir(folder):
        return
    os.makedirs(folder)
    shutil.copy(f"{PROGRAMS}/git", GIT)
    for name in ("git-upload-pack", "git-index-pack"):
        os.symlink("git", f"{folder}/{name}")


def status(*arguments):
    """`nfs-rdma status --json`; its exit status speaks of the verdict, so only the text counts."""
    done = subprocess.run([f"{PROGRAMS}/nfs-rdma", "status", *arguments, "--json"],
                          env=our_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=20, check=False)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        raise Failed(f"status said {(done.stdout + done.stderr)[-200:]!r}") from None


def mounted(path):
    """The line of /proc/mounts, or None. Never touches the mount itself."""
    with open("/proc/mounts", encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            if line.split()[1] == path:
                return line.strip()
    return None


# --- networks -------------------------------------------------------------------------------------


class Pair:
    """A veth pair: the client's end in the first namespace, the server's in namespace "srv"."""
    server_address = "192.0.2.2"
    in_server = ("ip", "netns", "exec", "srv")
    server_links = (("ip", "-n", "srv"), "vs")
    client_links = (("ip",), "vc")

    def __init__(self, client=None, server=None):
        self.client = client
        self.server = server

    def up(self):
        # `ip netns exec` gives a server started later a copy of the client's mount. Without this it
        # would outlive the client's umount there, and with it the mount's daemon.
        run("mount", "--make-rshared", "/")
        run("rig", "pair", "none", limit=MODULES)
        if self.client or self.server:
            run("modprobe", "-a", "siw", "ib_uverbs", "rdma_ucm", limit=MODULES)
        # `rdma link add` looks the device up in its caller's namespace.
        if self.client:
            run("rdma", "link", "add", "siw_vc", "type", self.client, "netdev", "vc")
        if self.server:
            run(*self.in_server, "rdma", "link", "add", "siw_vs", "type", self.server,
                "netdev", "vs")

    @staticmethod
    def add_server_address(address):
        run("ip", "-n", "srv", "address", "add", f"{address}/24", "dev", "vs")

    @staticmethod
    def remove_server_address(address):
        run("ip", "-n", "srv", "address", "del", f"{address}/24", "dev", "vs")

    def set_mtu(self, mtu):
        for prefix, device in (self.server_links, self.client_links):
            run(*prefix, "link", "set", device, "mtu", str(mtu))

    def cut(self, side, down):
        prefix, device = self.server_links if side == "server" else self.client_links
        run(*prefix, "link", "set", device, "down" if down else "up")


class Wire:
    """Two interfaces of the first namespace, the only one that Linux's rxe knows, and a bridge
    between them: `rig wire` says how traffic of a host with itself gets there. Namespace "srv" has a
    third end of the bridge, for whoever comes by TCP (NeighbourClient)."""
    server_address = "192.0.2.2"
    in_server = ()
    # rxe's sending half may stop for good when packets come out of order, which they do on this wire
    # (README.md). Linux's client waits so long before it connects anew, otherwise for a minute.
    kernel_options = ("timeo=100",)
    neighbour_address = "192.0.2.9/24"
    second_table = "103"  # behind those of `rig wire`

    def __init__(self, driver):
        self.driver = driver

    def up(self):
        # As in Pair.
        run("mount", "--make-rshared", "/")
        run("rig", "wire", self.driver, limit=MODULES)
        run("ip", "netns", "add", "srv")
        run("ip", "link", "add", "wn", "type", "veth", "peer", "name", "vn", "netns", "srv")
        run("ip", "link", "set", "wn", "master", "wire", "up")
        run("ip", "-n", "srv", "address", "add", self.neighbour_address, "dev", "vn")
        for device in ("lo", "vn"):
            run("ip", "-n", "srv", "link", "set", device, "up")

    def add_server_address(self, address):
        """As `rig wire` has it for the first one: what goes there takes the wire, and not lo."""
        run("ip", "address", "add", f"{address}/24", "dev", "vs")
        run("ip", "route", "add", address, "dev", "vc", "src", "192.0.2.1", "table", self.second_table)
        run("ip", "rule", "add", "pref", "1", "iif", "lo", "to", address, "lookup", self.second_table)
        with open("/sys/class/net/vs/address", encoding="ascii") as there:
            run("ip", "neigh", "replace", address, "lladdr", there.read().strip(), "dev", "vc", "nud", "permanent")

    def remove_server_address(self, address):
        run("ip", "neigh", "del", address, "dev", "vc")
        run("ip", "rule", "del", "pref", "1", "to", address)
        run("ip", "route", "flush", "table", self.second_table)
        run("ip", "address", "del", f"{address}/24", "dev", "vs")

    def set_mtu(self, mtu):
        for device in ("wc", "ws", "vc", "vs"):
            run("ip", "link", "set", device, "mtu", str(mtu))

    def cut(self, side, down):
        """Pulls the cable. With the interface itself down there would be no route, either, and rxe
        never again gets a connection through after a message of the connection manager that found
        none: that ends QP 1 in rxe_qp_error(), and ib_mad's way out of it (SQE to RTS) puts only the
        sending half back into work."""
        run("ip", "link", "set", "ws" if side == "server" else "wc", "down" if down else "up")


# --- servers --------------------------------------------------------------------------------------


class Folder:
    """What a case wants of the exported directory in bulk."""

    @staticmethod
    def make_files(folder, names):
        for name in names:
            os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_WRONLY, 0o644))

    @staticmethod
    def remove(folder):
        shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    def posix_acl(path):
        """As getfacl shows it, the entries with commas between them."""
        return ",".join(run("getfacl", "-cpnE", path).split())

    @staticmethod
    def set_posix_acl(path, *arguments):
        run("setfacl", *arguments, path)


class OurServer(Folder):
    """nfs-rdmad, a child of the case. Started anew for every case."""
    ours = True
    folder = exported = EXPORT  # as the cases name it, and as the server does
    near = far = "/run/nfs-rdmad"  # the same for its own files
    programs = PROGRAMS

    def __init__(self, fabric, rdma_port=RDMA_PORT, tcp_port=2049, keys=()):
        self.fabric = fabric
        self.rdma_port = rdma_port
        self.tcp_port = tcp_port
        self.keys = keys  # more lines for its configuration file
        self.process = None
        self.network = None
        self.command = []

    def set_up_cell(self, network):
        self.network = network

    def start(self, settings):
        os.makedirs(self.near, exist_ok=True)
        # NFSv4 clients of the case before that did not say goodbye would be waited for: 90 s of grace.
        shutil.rmtree(f"{self.near}/state", ignore_errors=True)
        keys = [*self.keys, *settings.keys]
        if settings.credits is not None:
            keys.append(f"NFSoRDMA_CREDITS={settings.credits}")
        if settings.inline is not None:
            keys.append(f"NFSoRDMA_INLINE={settings.inline}")
        if settings.crc:
            keys.append("NFSoRDMA_CRC=require")
        with open(f"{self.near}/rdma.conf", "w", encoding="ascii") as config:
            config.write("".join(key + "\n" for key in keys))
        self.command = [
            *self.network.in_server, f"{self.programs}/nfs-rdmad", "--foreground",
            "--config", f"{self.far}/rdma.conf", "-e", f"{self.exported}:{settings.export}",
            "--listen", self.network.server_address, "--port", str(self.rdma_port),
            "--tcp-port", str(self.tcp_port), "--fabric", self.fabric,
            "--state-dir", f"{self.far}/state", "--control", f"{self.far}/control",
            "--log-level", "info"]
        self._launch()

    def spawn(self, command):
        # Standard output has the "ready" line; the log goes where the case's output goes.
        process = subprocess.Popen(command, env=our_environment(),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        os.set_blocking(process.stdout.fileno(), False)
        return process

    def _launch(self):
        self.process = self.spawn(self.command)
        said = b""

        def ready():
            nonlocal said
            said += self.process.stdout.read() or b""
            expect(self.process.poll() is None,
                   f"nfs-rdmad ended at its start with {self.process.returncode}")
            return b"ready" in said
        wait_for(ready, 20, "nfs-rdmad ready")
        print(said.decode(errors="replace"), end="", flush=True)

    def kill(self):
        self.process.kill()
        self.process.wait(20)

    def restart(self):
        self._launch()

    def crash_and_restart(self):
        self.kill()
        self.restart()

    @contextlib.contextmanager
    def stopped(self):
        """It takes nothing in and answers nothing meanwhile."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def connections(self):
        return self.status()["connections"]

    def status(self):
        return status("--server", f"{self.near}/control")

    def check_alive(self):
        expect(self.process.poll() is None, f"nfs-rdmad ended with {self.process.returncode}")

    def stop(self):
        if self.process is None:
            return
        self.check_alive()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            raise Failed("nfs-rdmad had not ended 15 s after SIGTERM") from None
        expect_equal(self.process.returncode, 0, "exit status of nfs-rdmad")
        self.process = None


class Knfsd(Folder):
    """Linux's own server; runs for as long as the guest."""
    ours = False
    folder = EXPORT
    rdma_port = RDMA_PORT
    tcp_port = 2049

    def __init__(self, exported=EXPORT):
        """Version 4 knows the export as "/": it is the root (fsid=0)."""
        self.network = None
        self.exported = exported

    def set_up_cell(self, network):
        self.network = network

    def start(self, settings):
        os.environ["RIG_EXPORT"] = settings.export
        # Its sysctls take no less; then it is our client that asks for less.
        if settings.credits is not None:
            run("modprobe", "-a", "rpcrdma")
            write("/proc/sys/sunrpc/svc_rdma/max_requests", max(4, settings.credits))
        if settings.inline is not None:
            run("modprobe", "-a", "rpcrdma")
            write("/proc/sys/sunrpc/svc_rdma/max_req_size", max(4096, settings.inline))
        namespace = ["srv"] if self.network.in_server else []
        run("rig", "nfsd", EXPORT, *namespace)

    def crash_and_restart(self):
        """It cannot be killed; all its threads end and its sockets close instead."""
        run("rig", "nfsd-restart", *(["srv"] if self.network.in_server else []))

    def connections(self):
        return None

    def check_alive(self):
        pass

    def stop(self):
        """Left running: the guest ends with the cell."""


# --- clients --------------------------------------------------------------------------------------


class KernelClient:
    """Linux's own client, with the NFS version "3", "4.0", "4.1" or "4.2", or with the one (None) that mount
    agrees on with the server."""
    ours = False

    def __init__(self, rdma=True, version="3"):
        self.rdma = rdma
        self.version = version

    def prepare(self, settings):
        run("modprobe", "-a", "rpcrdma", "nfsv3", "nfsv4", limit=MODULES)
        # Linux's client takes no fewer than 4 slots; below that the server's grant is what counts.
        if settings.credits is not None and settings.credits >= 4:
            write("/proc/sys/sunrpc/rdma_slot_table_entries", settings.credits)
            # Of version 4.1 and later; otherwise 64.
            write("/sys/module/nfs/parameters/max_session_slots", settings.credits)
        if settings.inline is not None:
            write("/proc/sys/sunrpc/rdma_max_inline_read", settings.inline)
            write("/proc/sys/sunrpc/rdma_max_inline_write", settings.inline)

    def mount(self, bench, where):
        options = [] if self.version is None else [f"vers={self.version}"]
        if self.rdma:
            options += ["rdma", f"port={bench.server.rdma_port}"]
        else:
            options += ["proto=tcp", f"port={bench.server.tcp_port}"]
        if self.version == "3":
            options += ["nolock", "mountproto=tcp"]
            if bench.server.ours:
                options.append(f"mountport={bench.server.tcp_port}")
        options += getattr(bench.network, "kernel_options", ())
        if bench.settings.nconnect:
            options.append(f"nconnect={bench.settings.nconnect}")
        if bench.settings.transfer:
            options += [f"rsize={bench.settings.transfer}", f"wsize={bench.settings.transfer}"]
        os.makedirs(where, exist_ok=True)
        run("mount", "-t", "nfs", "-o", ",".join(options),
            f"{bench.network.server_address}:{bench.server.exported}", where, limit=60)
        line = mounted(where) or ""
        # Without a version, mount begins at the newest that it knows and goes down from there.
        for wanted in ("proto=rdma" if self.rdma else "proto=tcp", f"vers={self.version or '4.2'}"):
            expect(wanted in line.replace(" ", ",").split(","), f"mounted without {wanted}: {line}")

    @staticmethod
    def calls_out(where):  # pylint: disable=unused-argument
        """How many calls are sent and not answered, of all mounts of RPC; as the kernel's debugger
        sees it."""
        folder = "/sys/kernel/debug/sunrpc/rpc_clnt"
        if not os.path.exists(folder):
            run("mount", "-t", "debugfs", "none", "/sys/kernel/debug")
        out = 0
        for client in os.listdir(folder):
            with open(f"{folder}/{client}/tasks", encoding="ascii", errors="replace") as tasks:
                out += sum("q:xprt_pending" in line for line in tasks)
        return out

    def unmount(self, where):
        run("umount", where, limit=45)

    def abandon(self, where):
        """The client goes away without a word, as far as that can be had."""
        run("umount", "-f", "-l", where, limit=45)


class NeighbourClient(KernelClient):
    """A second client of the same kernel, in namespace "srv" and over TCP: with a name of its own it is
    another NFSv4 client, and its locks are another's. Of version 4.2 beside one of version 3, whose
    locks need programs on the server's host that are not there for all servers."""

    def __init__(self, version):
        super().__init__(rdma=False, version="4.2" if version == "3" else version)

    def mount(self, bench, where):
        run("modprobe", "-a", "nfsv4", limit=MODULES)
        name = "/sys/fs/nfs/net/nfs_client/identifier"
        run("ip", "netns", "exec", "srv", "sh", "-c", f"echo neighbour >{name}")
        os.makedirs(where, exist_ok=True)
        exported = bench.server.exported if bench.server.ours else "/"  # as version 4 knows it
        # Not `ip netns exec`, where the mount would be seen by nobody else.
        run("nsenter", "--net=/run/netns/srv", "mount", "-t", "nfs", "-o",
            f"vers={self.version},proto=tcp,port={bench.server.tcp_port}",
            f"{bench.network.server_address}:{exported}", where, limit=60)


class OurClient:
    """mount.nfs-rdma. `fabric` may be "tcp", which is none."""
    ours = True

    def __init__(self, fabric, version="3"):
        self.fabric = fabric
        self.version = version

    def prepare(self, settings):
        if not os.path.exists("/dev/fuse"):
            run("modprobe", "fuse", limit=MODULES)

    def mount(self, bench, where):
        options = ["proto=rdma", f"fabric={self.fabric}", f"port={bench.server.rdma_port}"]
        if self.fabric == "tcp":
            options = ["proto=tcp", f"port={bench.server.tcp_port}"]
        options += ["retry=0", f"vers={self.version}"]
        if bench.settings.transfer:
            options += [f"rsize={bench.settings.transfer}", f"wsize={bench.settings.transfer}"]
        if bench.settings.credits:
            options += [f"credits={bench.settings.credits}", "shards=1"]  # all on one connection
        if bench.settings.nconnect:
            options += [f"nconnect={bench.settings.nconnect}", "shards=1"]  # and no more
        if bench.settings.inline:
            options.append(f"inline={bench.settings.inline}")
        options += bench.settings.options
        if bench.settings.crc and self.fabric == "iwarp":
            options.append("crc=require")  # verbs devices have no say; siw follows its peer's
        os.makedirs(where, exist_ok=True)
        done = subprocess.run(
            [f"{PROGRAMS}/mount.nfs-rdma",
             f"{bench.network.server_address}:{bench.server.exported}", where, "-v",
             "-o", ",".join(options)],
            env=our_environment(), stdin=subprocess.DEVNULL, timeout=60, check=False)
        expect_equal(done.returncode, 0, "exit status of mount.nfs-rdma")
        expect(mounted(where), "mount.nfs-rdma said 0, but nothing is mounted")
        for connection in status("--mount", where)["connections"]:
            expect_equal(connection["fabric"], self.fabric, "the mount's fabric")
            if bench.settings.crc is not None and self.fabric == "iwarp":
                expect_equal(connection["crc"], bench.settings.crc, "CRC in use by the mount")

    def url(self, bench, path):
        """For the library and the command: a folder or file of the case, by the cell's way."""
        port, options = RDMA_PORT, ["proto=rdma", f"fabric={self.fabric}"]
        if self.fabric == "tcp":
            port, options = bench.server.tcp_port, ["proto=tcp"]
        exported = os.path.join(bench.server.exported, bench.case.name, path)
        return f"nfs://{bench.network.server_address}:{port}{exported}?{'&'.join([*options, f'vers={self.version}'])}"

    @staticmethod
    def calls_out(where):
        """How many calls are sent and not answered, on the connection that has most of them."""
        return max((connection["calls_in_progress"]
                    for connection in status("--mount", where)["connections"]), default=0)

    def unmount(self, where):
        daemons = self.daemons(where)
        run("umount", where, limit=45)
        wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in daemons), 20,
                 "the mount's daemon ended")

    @staticmethod
    def daemons(where):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as line:
                    words = line.read().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"mount.nfs-rdma") and where.encode() in words:
                found.append(int(pid))
        return found

    def abandon(self, where):
        daemons = self.daemons(where)
        expect(daemons, "the mount has no daemon")
        for pid in daemons:
            os.kill(pid, signal.SIGKILL)
        run("umount", "-l", where)


class Libnfs:
    """libnfs: its cases load the library themselves and mount nothing."""
    ours = False

    def __init__(self, version="3"):
        self.version = version

    def prepare(self, settings):
        pass
