# SPDX-License-Identifier: Apache-2.0
"""What goes wrong between the two: server killed, client killed, link cut, in mid-transfer."""
import os
import time

from bench import data, expect_digest, put
from case import case, expect, expect_equal
from sides import wait_for
from worker import Worker

MIB = 1 << 20
PIECE = MIB // 4
# Clients of version 4.0 cannot say that they have reclaimed all: what is new waits for the whole of it.
GRACE = 120


def writing(path, content):
    """A worker that writes the file piece by piece and syncs it now and then."""
    def write(worker):
        file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
        while worker.progress < len(content):
            at = worker.progress
            worker.progress = at + os.write(file, content[at:at + PIECE])
            if worker.progress % (4 * MIB) == 0:
                os.fsync(file)  # or it might all wait in the client's cache
        os.fsync(file)
        os.close(file)
    return Worker(write)


def reading(path, content):
    def read(worker):
        with open(path, "rb", buffering=0) as source:
            while piece := source.read(PIECE):
                at = worker.progress
                expect_equal(piece == content[at:at + len(piece)], True, f"bytes from {at} are right")
                worker.progress = at + len(piece)
        expect_equal(worker.progress, len(content), "bytes read")
    return Worker(read)


@case("server-restart", limit=480)
def server_restart(t):
    content = data(32 * MIB)
    worker = writing(t.path("file"), content)
    worker.wait_until(8 * MIB)
    t.server.crash_and_restart()
    worker.finish(150)
    expect_digest(t.server_path("file"), content, "the file on the server")
    # While reading, too: what is not cached has to come from the new server.
    put(t.server_path("other"), content)
    worker = reading(t.path("other"), content)
    worker.wait_until(MIB, GRACE)
    t.server.crash_and_restart()
    worker.finish(150)
    t.remount()
    t.check_same("file", content)


@case("restart-unlinked", limit=240)
def restart_unlinked(t):
    """A removed file that is still open lives on when the server starts anew."""
    content = data(100_000)
    put(t.path("gone"), content, sync=True)

    def use(worker):
        with open(t.path("gone"), "r+b", buffering=0) as file:
            os.unlink(t.path("gone"))
            worker.progress = 1
            wait_for(lambda: worker.progress == 2, 60, "the server is back")
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # not from the cache
            expect(file.read() == content, "the removed open file reads otherwise")
            file.write(b"and more")
            os.fsync(file.fileno())
            expect_equal(os.fstat(file.fileno()).st_size, 100_008, "its size after a write")
    worker = Worker(use)
    worker.wait_until(1)
    t.server.crash_and_restart()
    worker.progress = 2
    worker.finish(150)
    # The client removes it behind the last close, and again as long as the server wants to wait for reclaims.
    wait_for(lambda: not os.listdir(t.there), GRACE, "the name that the client had for it to go")
    expect_equal(os.listdir(t.here), [], "names in the end")


@case("client-kill", limit=200)
def client_kill(t):
    put(t.path("safe"), data(MIB), sync=True)
    worker = writing(t.path("torn"), data(64 * MIB))
    worker.wait_until(8 * MIB)
    if t.client.ours:
        t.client.abandon(t.mount_point)
    else:
        # A kernel's client cannot be killed by itself: nothing that it says on its way out arrives.
        with t.link_cut("client"):
            t.client.abandon(t.mount_point)
    worker.kill()
    t.server.check_alive()
    if t.server.ours and t.client.ours:
        wait_for(lambda: not t.server.connections(), 30, "the dead client's connection is gone")
    t.mount()
    t.check_same("safe", data(MIB))
    put(t.path("torn"), data(MIB, 1))
    t.check_same("torn", data(MIB, 1))


def cut(t, side):
    content = data(32 * MIB)
    worker = writing(t.path("file"), content)
    worker.wait_until(8 * MIB)
    with t.link_cut(side):
        time.sleep(5)
    worker.finish(150)
    expect_digest(t.server_path("file"), content, "the file on the server")
    t.remount()
    t.check_same("file", content)


@case("link-cut-server", limit=240)
def link_cut_server(t):
    """The server's interface goes down: what is under way is lost."""
    cut(t, "server")


@case("link-cut-client", limit=240)
def link_cut_client(t):
    """The client's interface goes down."""
    cut(t, "client")


@case("link-cut-reading", limit=300)
def link_cut_reading(t):
    """The server's interface goes down, then the client's, while the client reads."""
    content = data(48 * MIB)
    put(t.server_path("file"), content)
    for side in ("server", "client"):
        t.remount()  # nothing of it is cached
        worker = reading(t.path("file"), content)
        worker.wait_until(MIB)
        with t.link_cut(side):
            time.sleep(5)
            expect(not worker.ended(), f"all was read before the {side}'s link was cut")
        worker.finish(120)


@case("link-cut-idle", limit=240)
def link_cut_idle(t):
    """The link goes down while nothing is under way; what is begun meanwhile goes on afterwards."""
    content = data(8 * MIB)
    put(t.path("before"), data(MIB), sync=True)
    with t.link_cut("server"):
        worker = writing(t.path("file"), content)
        time.sleep(5)
        expect(not worker.ended(), "the link was not cut")
    worker.finish(150)
    expect_digest(t.server_path("file"), content, "the file on the server")
    t.remount()
    t.check_same("file", content)
    t.check_same("before", data(MIB))
