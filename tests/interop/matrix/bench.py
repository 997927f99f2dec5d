# SPDX-License-Identifier: Apache-2.0
"""What a case works with: one server, one mount of its export, and what is between them."""
import contextlib
import hashlib
import os
import random
import time

import sides
from case import expect, expect_equal

MOUNT = "/mnt/a"
SECOND_MOUNT = "/mnt/b"


class Bench:
    """self.there is a fresh directory as the client sees it, self.here the same on the server."""

    def __init__(self, cell, case):
        self.cell = cell
        self.case = case
        self.settings = case.settings
        self.network = cell.network
        self.server = cell.server
        self.client = cell.client
        self.mount_point = MOUNT
        self.here = os.path.join(cell.server.folder, case.name)
        self.there = os.path.join(MOUNT, case.name)

    def set_up(self):
        self.server.remove(self.here)
        os.mkdir(self.here)
        os.chmod(self.here, 0o1777)
        if self.settings.mtu is not None:
            self.network.set_mtu(self.settings.mtu)
        self.client.prepare(self.settings)
        self.server.start(self.settings)
        if self.cell.kind == "mount":
            self.mount()

    def tear_down(self):
        for where in (SECOND_MOUNT, MOUNT):
            if sides.mounted(where):
                self.client.unmount(where)
        self.server.check_alive()
        self.server.stop()
        expect(not sides.mounted(MOUNT), "still mounted")
        self.server.remove(self.here)

    # --- the mount ---

    def mount(self, where=MOUNT):
        self.client.mount(self, where)

    def remount(self):
        """Nothing that the client kept survives this."""
        self.client.unmount(MOUNT)
        self.client.mount(self, MOUNT)

    # --- the network ---

    @contextlib.contextmanager
    def link_cut(self, side):
        self.network.cut(side, True)
        try:
            yield
        finally:
            self.network.cut(side, False)

    # --- files ---

    def path(self, name):
        return join(self.there, name)

    def server_path(self, name):
        return join(self.here, name)

    def check_same(self, name, wanted):
        """The file has these bytes on the server, and the client reads them."""
        expect_digest(self.server_path(name), wanted, f"{name} on the server")
        expect_digest(self.path(name), wanted, f"{name} read by the client")


def join(folder, name):
    return os.path.join(os.fsencode(folder), name) if isinstance(name, bytes) \
        else os.path.join(folder, name)


# A prime number of bytes: data that lands a block too early or late is never the same.
_PERIOD = 1048573


def data(size, seed=0):
    """The same bytes at every run; cheap for large sizes under emulation."""
    block = random.Random(size * 1000003 + seed).randbytes(min(size, _PERIOD))
    return (block * (size // _PERIOD + 1))[:size]


def opened(path, mode, **how):
    """open(); QEMU does not wait for a delegation of a file of its host to come back, so this does."""
    end = time.monotonic() + 20
    while True:
        try:
            return open(path, mode, **how)  # pylint: disable=consider-using-with,unspecified-encoding
        except BlockingIOError:
            if not path.startswith("/host/") or time.monotonic() > end:
                raise
        time.sleep(0.1)


def put(path, content, sync=False, piece=1 << 20):
    with opened(path, "wb", buffering=0) as out:
        view = memoryview(content)
        while view:
            view = view[out.write(view[:piece]):]
        if sync:
            os.fsync(out.fileno())


def get(path):
    with opened(path, "rb") as source:
        return source.read()


def digest(content):
    return hashlib.sha256(content).hexdigest()


def expect_digest(path, wanted, what):
    content = get(path)
    expect_equal(len(content), len(wanted), f"size of {what}")
    if content == wanted:
        return
    first = next(i for i, (a, b) in enumerate(zip(content, wanted)) if a != b)
    raise_difference(what, first)


def raise_difference(what, offset):
    expect(False, f"{what} differs, first at byte {offset}")
