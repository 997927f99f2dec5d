# SPDX-License-Identifier: Apache-2.0
"""What a group of measurements works with: fresh servers, folders, and where results go."""
import shutil
import subprocess

from .servers import Ours, start_peers
from .system import BenchError, ScratchDisk, say, unmount


class Context:
    def __init__(self, args, programs, results, top):
        self.args, self.programs, self.results, self.top = args, programs, results, top
        self.servers, self.disks, self.mounts = [], [], []
        self.loop_works = None

    def folder(self, name):
        path = self.top / name.replace(" ", "-")
        path.mkdir(parents=True, exist_ok=True)
        return path

    def fresh_disk(self, name):
        """A folder on a file system of its own; a plain one where no loop device can be had."""
        path = self.folder(name)
        if self.loop_works is not False:
            try:
                self.disks.append(ScratchDisk(path, path.with_suffix(".ext4")))
                self.loop_works = True
            except (BenchError, OSError) as error:
                self.loop_works = False
                self.results.note(f"No file system on a loop device ({error}): the servers of the "
                                  "group meta share that of --dir.")
        return path

    def start_ours(self, column="nfs-rdma", options=None, settings=None, folder=None):
        server = Ours(self.programs, folder or self.folder(column),
                      options or self.args.export_options, column, settings)
        self.servers.append(server)
        return server

    def start_peers(self, folder=None):
        running, missing = start_peers(self.args, folder or self.folder)
        self.servers += running
        for name, why in missing.items():
            self.results.note(f"{name} is left out: {why}")
        return running

    def attempt(self, server, work):
        """work(), or None when a peer fails: it is named and left out from then on."""
        if server in self.servers:
            try:
                return work()
            except (BenchError, subprocess.SubprocessError, OSError) as error:
                if server.ours:
                    raise
                say(f"{server.column}: {error}")
                self.results.note(f"{server.column} is left out from where it failed: {error}")
                self.servers.remove(server)
                server.stop()
        return None

    def rounds(self):
        for number in range(self.args.rounds):
            say(f"{self.results.group}: round {number + 1} of {self.args.rounds}")
            yield number

    def in_turn(self, number):
        """The running servers; another one goes first in every round."""
        if not self.servers:
            return []
        first = number % len(self.servers)
        return self.servers[first:] + self.servers[:first]

    def peer_columns(self):
        return [s.column for s in self.servers if not s.ours]

    def clean(self):
        for mount in self.mounts:
            unmount(mount)
        for server in self.servers:
            server.stop()
        for disk in self.disks:
            disk.remove()
        self.servers, self.disks, self.mounts = [], [], []
        for path in self.top.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
