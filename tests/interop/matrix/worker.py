# SPDX-License-Identifier: Apache-2.0
"""A process that does I/O on the mount while the case disturbs it.

A thread would not do: starting any program closes the files of the mount in the new process, closing
flushes, and flushing waits for the very server or link that the program is to bring back.
"""
import mmap
import os
import signal
import struct
import traceback

from case import Failed, expect
from sides import wait_for


class Worker:
    """Runs function(worker) in a process of its own; it may set worker.progress."""

    def __init__(self, function):
        self.memory = mmap.mmap(-1, 4096)
        self.read_end, write_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                function(self)
                code = 0
            except BaseException as error:  # pylint: disable=broad-exception-caught
                traceback.print_exc()
                os.write(write_end, str(error).encode()[:1000])
            os._exit(code)
        os.close(write_end)
        self.code = None

    @property
    def progress(self):
        return struct.unpack_from("<Q", self.memory)[0]

    @progress.setter
    def progress(self, value):
        struct.pack_into("<Q", self.memory, 0, value)

    def ended(self):
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def wait_until(self, progress, limit=60):
        wait_for(lambda: self.progress >= progress or self.ended(), limit,
                 f"progress to {progress}")
        if self.ended():
            self.finish(1)
            raise Failed("the worker was done before the trouble began")

    def finish(self, limit):
        wait_for(self.ended, limit, f"the worker done (it stands at {self.progress})")
        expect(self.code == 0, f"the worker saw: {os.read(self.read_end, 1000).decode()}")

    def kill(self):
        """It may be past killing for as long as its mount is; nobody waits for it."""
        if not self.ended():
            os.kill(self.pid, signal.SIGKILL)
