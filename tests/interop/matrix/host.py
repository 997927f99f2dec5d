# SPDX-License-Identifier: Apache-2.0
"""A server outside of the guest, joined to it by a tap device: what its cases see of both.

The other half is host_side.py, on the host: it is asked through the shared folder.
"""
import io
import json
import os
import subprocess
import sys
import time

import host_side
from case import Failed
from sides import MODULES, OurServer, run, wait_for

SHARED = "/host/host"


def ask(what, *arguments, limit=60):
    name = f"{os.getpid()}-{time.monotonic_ns()}"
    with open(f"{SHARED}/ask-{name}.new", "w", encoding="utf-8") as out:
        json.dump({"do": what, "with": arguments}, out)
    os.rename(f"{SHARED}/ask-{name}.new", f"{SHARED}/ask-{name}")
    wait_for(lambda: os.path.exists(f"{SHARED}/answer-{name}"), limit, f"the host's answer ({what})")
    with open(f"{SHARED}/answer-{name}", encoding="utf-8") as source:
        answer = json.load(source)
    os.unlink(f"{SHARED}/answer-{name}")
    if "error" in answer:
        raise Failed(f"the host, asked to {what}: {answer['error']}")
    return answer["result"]


class Tap:
    """The guest's eth0 is the other end of the host's tap device."""
    server_address = host_side.HOST_ADDRESS
    neighbour_address = host_side.NEIGHBOUR
    in_server = ()

    @staticmethod
    def around(stage):
        """What scripts/interop runs the lab with, and the lab's options."""
        prefix = ["unshare", "--net", "--mount", "--propagation", "private", sys.executable, "-B",
                  host_side.__file__, stage]
        return prefix, ["-n", f"tap:{host_side.TAP}:{host_side.GUEST}"]

    @staticmethod
    def missing():
        """Why this network cannot be had here, or None."""
        if os.geteuid() != 0:
            return "a tap device needs root"
        for device in ("/dev/net/tun", "/dev/loop-control"):
            if not os.path.exists(device):
                return f"there is no {device}"
        tried = subprocess.run(
            ["unshare", "--net", "--mount", "ip", "tuntap", "add", "dev", host_side.TAP, "mode",
             "tap"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return f"no tap device: {tried.stderr.strip()}" if tried.returncode else None

    def up(self):
        # As in Pair.
        run("mount", "--make-rshared", "/")
        run("rig", "siw", "eth0")
        # Namespace "srv" is another host at the tap, for whoever comes by TCP (NeighbourClient).
        run("ip", "netns", "add", "srv")
        run("ip", "link", "add", "vn", "link", "eth0", "type", "macvlan", "mode", "bridge", limit=MODULES)
        run("ip", "link", "set", "vn", "netns", "srv")
        run("ip", "-n", "srv", "address", "add", self.neighbour_address, "dev", "vn")
        for device in ("lo", "vn"):
            run("ip", "-n", "srv", "link", "set", device, "up")

    def set_mtu(self, mtu):
        ask("link", "mtu", str(mtu))
        run("ip", "link", "set", "eth0", "mtu", str(mtu))

    def cut(self, side, down):
        state = "down" if down else "up"
        if side == "server":
            ask("link", state)
        else:
            run("ip", "link", "set", "eth0", state)


class HostProcess:
    """The part of subprocess.Popen that OurServer uses, for a process on the host."""

    def __init__(self, command):
        ask("launch", command)
        self.returncode = None
        self.stdout = self

    def read(self):
        with io.open(f"{SHARED}/ready", "rb") as said:
            return said.read()

    def poll(self):
        if self.returncode is None:
            self.returncode = ask("poll")
        return self.returncode

    def wait(self, limit):
        end = time.monotonic() + limit
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("nfs-rdmad", limit)
            time.sleep(0.05)

    def send_signal(self, number):
        ask("signal", number)

    def kill(self):
        self.send_signal(9)


class HostServer(OurServer):
    """nfs-rdmad, a process of the host."""
    folder = "/host/export"
    near = SHARED

    def set_up_cell(self, network):
        super().set_up_cell(network)
        stage = ask("where")
        self.far = f"{stage}/host"
        self.exported = f"{stage}/export"
        self.programs = f"{stage}/bin"

    # A file at a time through the shared folder takes minutes for thousands.
    def make_files(self, folder, names):
        ask("make_files", os.path.relpath(folder, self.folder), names)

    def remove(self, folder):
        ask("remove", os.path.relpath(folder, self.folder))

    # 9P shows the guest no ACLs.
    def posix_acl(self, path):
        return ask("posix_acl", os.path.relpath(path, self.folder))

    def set_posix_acl(self, path, *arguments):
        ask("set_posix_acl", os.path.relpath(path, self.folder), *arguments)

    def spawn(self, command):
        return HostProcess(command)

    def status(self):
        return ask("status")
