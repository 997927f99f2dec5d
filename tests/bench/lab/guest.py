#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""guest.py: the part of scripts/bench-lab that runs in the guest, for one driver.

nfs-rdmad and Linux's nfsd export the same directory at the same time on two ports of one address;
Linux's client mounts one after the other. Or two clients, Linux's and ours, mount one of the servers
one after the other. /host/plan.json says what to do; what happens goes to
/host/results.jsonl, a line of JSON each, before each step with its limit, so that the runner
outside can end a guest in which a step hangs.
"""
import json
import os
import re
import shutil
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "matrix")]
# pylint: disable=wrong-import-position
import cells
import loads
import profile_guest
import sides
from case import Failed, Settings
from counters import Snapshot, calls_between, wire_calls

HOST = "/host"
MOUNT = "/mnt/a"
TROUBLE = re.compile(r"BUG:|Oops|WARNING:|general protection|blocked for more than|refcount_t")
OURS, KNFSD, OURS_V3 = "nfs-rdmad", "knfsd", "nfs-rdmad v3"
OUR_MOUNT, LINUX = "mount.nfs-rdma", "Linux's client"
MEASURED = {KNFSD: "nfsd", OURS: "nfs-rdmad", OURS_V3: "nfs-rdmad", OUR_MOUNT: OUR_MOUNT, LINUX: ""}  # its threads
CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
CELLS = {"rxe": "2-rxe-kernel", "siw": "3-siw-kernel"}  # of the interop matrix: their networks


def tell(event, **record):
    with open(f"{HOST}/results.jsonl", "a", encoding="utf-8") as out:
        out.write(json.dumps({"event": event, **record}) + "\n")


def step(what, limit):
    tell("step", what=what, limit=limit)


class Guest:
    """Both servers, and a client that mounts either; or one server, and two clients."""

    def __init__(self, plan):
        self.plan = plan
        self.network = cells.cell_by_name(CELLS[plan["driver"]]).network
        self.settings = Settings(export=plan["export"])
        version = plan["version"]
        # Version 4 knows knfsd's export as its root.
        knfsd = sides.Knfsd(*([] if version == "3" else ["/"]))
        ours = sides.OurServer("verbs", rdma_port=20050, tcp_port=3049,
                               keys=["NFSoRDMA_RPCBIND=no", *plan["keys"]])
        self.servers = {KNFSD: knfsd, OURS: ours, OURS_V3: ours}
        self.clients = {KNFSD: sides.KernelClient(version=version),
                        OURS: sides.KernelClient(version=version), OURS_V3: sides.KernelClient()}
        if plan["clients"]:
            server = self.servers[plan["clients"]]
            self.servers = {OUR_MOUNT: server, LINUX: server}
            self.clients = {OUR_MOUNT: sides.OurClient("verbs", version), LINUX: sides.KernelClient(version=version)}
        self.names = plan["names"]
        self.server = self.client = None  # what is mounted, and by whom; for mount()

    def set_up(self):
        step("set up", 180)
        shutil.copytree(f"{HOST}/bin", sides.PROGRAMS, dirs_exist_ok=True)
        os.makedirs(sides.EXPORT, exist_ok=True)
        if self.plan["fs"] == "tmpfs":
            sides.run("mount", "-t", "tmpfs", "-o", "size=1g", "export", sides.EXPORT)
        else:
            sides.run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0", "/dev/vdb", limit=120)
            sides.run("mount", "-o", "noatime", "/dev/vdb", sides.EXPORT)
        os.chmod(sides.EXPORT, 0o1777)
        if set(loads.TREES) & set(self.plan["jobs"]):
            loads.set_up_trees(f"{HOST}/source")
        sides.run("dd", "if=/dev/urandom", f"of={sides.EXPORT}/{loads.DATA}", "bs=1M",
                  f"count={loads.DATA_MB}", limit=120)
        sides.run("sync", limit=60)
        self.network.up()
        for client in self.clients.values():
            client.prepare(self.settings)
        for server in dict.fromkeys(self.servers.values()):
            server.set_up_cell(self.network)
            server.start(self.settings)

    def mount(self, name):
        step(f"mount {name}", 90)
        self.server, self.client = self.servers[name], self.clients[name]
        self.client.mount(self, MOUNT)

    def unmount(self):
        step("unmount", 60)
        self.client.unmount(MOUNT)
        self.server.check_alive()

    def abandon(self):
        """With a load that was given up, and may still have files open."""
        step("give the mount up", 60)
        self.client.abandon(MOUNT)

    # --- measuring ---

    def load(self, name, job, number=None, patience=1):
        """Runs it on what is mounted."""
        folder = loads.folder_of(name)
        if job in loads.FIO:
            return loads.fio(f"{MOUNT}/{loads.DATA}", job, self.plan["seconds"], number, patience)
        if job in loads.FILES:
            return loads.files(job, f"{MOUNT}/{folder}", number or self.plan["files"], patience)
        return loads.TREES[job](f"{MOUNT}/{folder}", patience)

    def measure(self, name, job, round_number):
        tell("step", what=f"{job} on {name}, round {round_number + 1}", server=name, job=job,
             limit=150 + self.plan["seconds"] + self.plan["files"] // 10)
        calls = wire_calls(MOUNT)
        before = Snapshot()
        done = self.load(name, job)
        used = Snapshot().since(before, MEASURED[name])
        calls = calls_between(calls, wire_calls(MOUNT))
        if round_number >= 0:
            tell("measured", server=name, job=job, round=round_number, calls=calls, **done, **used)

    def round(self, number):
        """Each job on all, another one first each time. The client forgets between phases."""
        self.fresh_folders()
        for index, job in enumerate(self.plan["jobs"]):
            if [number, job] in self.plan["done"]:
                continue
            first = (number + index) % len(self.names)
            for name in self.names[first:] + self.names[:first]:
                self.mount(name)
                self.measure(name, job, number)
                self.unmount()

    def fresh_folders(self):
        """On the server's side, for nobody's account."""
        step("clean up", 240)
        for name in self.names:
            profile_guest.arrange(self, name, "create")

    def warm_up(self):
        """The emulator translates code when it first runs; no side shall pay for the other."""
        seconds, files = self.plan["seconds"], self.plan["files"]
        self.plan["seconds"], self.plan["files"] = 1, min(files, 200)
        self.round(-1)
        self.plan["seconds"], self.plan["files"] = seconds, files

    def start_of_fio(self):
        """What fio itself costs to start and end, with one I/O on a local file: no server's."""
        step("cost of fio's start", 120)
        before = Snapshot()
        loads.fio(f"{sides.EXPORT}/{loads.DATA}", "rand-read-4k-qd1", 1, number=1)
        tell("fio", guest_cpu=Snapshot().since(before, "nfsd")["guest_cpu"])

    @staticmethod
    def price_of_crossings():
        step("cost of a system call and of a sleep", 120)
        tell("prices", **json.loads(
            sides.run(f"{sides.PROGRAMS}/crossing_cost", limit=100, env=sides.our_environment())))

    @staticmethod
    def note_clock():
        """On a busy host Linux cannot calibrate the emulated processor's counter now and then."""
        with open(CLOCK, encoding="ascii") as source:
            clock = source.read().strip()
        if clock != "tsc":
            tell("note", text=f"the guest's clock is {clock}: programs read it by a system call, "
                 "which costs nfs-rdmad more than knfsd; another run may have tsc")

    def run(self):
        self.set_up()
        self.warm_up()
        self.start_of_fio()
        for number in range(self.plan["rounds"]):
            self.round(number)
        if self.plan["profile"]:
            self.price_of_crossings()
            for job in self.plan["jobs"]:
                for name in (OURS, KNFSD):
                    profile_guest.profile(self, name, job, step, tell)
        for server in dict.fromkeys(self.servers.values()):
            server.stop()
        self.note_clock()
        trouble = TROUBLE.search(sides.run("dmesg"))
        if trouble:
            tell("note", text=f"the guest's kernel complains ({trouble.group(0)}); see dmesg")


def main():
    with open(f"{HOST}/plan.json", encoding="utf-8") as source:
        plan = json.load(source)
    try:
        Guest(plan).run()
    except Exception as error:  # pylint: disable=broad-exception-caught
        traceback.print_exc()
        said = sides.run("dmesg", check=False)
        with open(f"{HOST}/logs/dmesg", "a", encoding="utf-8") as out:
            out.write(said)
        reason = str(error) if isinstance(error, (Failed, OSError)) else repr(error)
        tell("failed", reason=f"{reason} (the kernel's last words: {said.splitlines()[-1]})")
        sys.exit(1)
    tell("end")


if __name__ == "__main__":
    main()
