# SPDX-License-Identifier: Apache-2.0
"""The same short piece of work under every setting that the two sides can have."""
import mmap
import os
import threading
import time

import sides
from bench import data, expect_digest, put
from case import case, expect, expect_equal
from worker import Worker

KIB = 1024
MIB = 1024 * KIB


def work(t):
    sizes = (1, 4095, 4097, 65537, MIB + 1, 4 * MIB)
    for size in sizes:
        put(t.path(f"out-{size}"), data(size))
        put(t.server_path(f"in-{size}"), data(size, 1))
    names = [f"name-{number:03}-" + "x" * 40 for number in range(200)]
    for name in names:
        put(t.server_path(name), b"")
    t.remount()
    errors = []

    # More at once than there are credits for.
    def read_all(seed):
        try:
            for size in sizes[seed % 2:]:
                expect_digest(t.path(f"in-{size}"), data(size, 1), f"in-{size}")
                expect_digest(t.path(f"out-{size}"), data(size), f"out-{size}")
        except Exception as error:  # pylint: disable=broad-exception-caught
            errors.append(error)
    threads = [threading.Thread(target=read_all, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    listed = sorted(name for name in os.listdir(t.there) if name.startswith("name-"))
    expect_equal(listed, names, "names")
    for size in sizes:
        expect_digest(t.server_path(f"out-{size}"), data(size), f"out-{size} on the server")


def connection(t):
    """The server's view of the one connection. The client may be making it anew just now: rxe loses some."""
    sides.wait_for(t.server.connections, 15, "a connection")
    return t.server.connections()[0]


STOP = 2


def reading_at_once(path, count):
    """A worker with `count` READs under way all the time, until its progress is STOP."""
    def read(worker):
        begun = []
        errors = []

        def one():
            try:
                file = os.open(path, os.O_RDONLY | os.O_DIRECT)
                with mmap.mmap(-1, 4 * KIB) as memory:
                    begun.append(1)
                    while worker.progress != STOP:
                        os.preadv(file, [memory], 0)
                os.close(file)
            except OSError as error:
                errors.append(error)
        threads = [threading.Thread(target=one) for _ in range(count)]
        for thread in threads:
            thread.start()
        while len(begun) + len(errors) < count:
            time.sleep(0.01)
        worker.progress = 1
        for thread in threads:
            thread.join()
        expect_equal(errors, [], "errors of the readers")
    return Worker(read)


def most_calls_out(t, wanted):
    """Asks until there are `wanted`, for 10 s at most."""
    end = time.monotonic() + 10
    most = 0
    while most < wanted and time.monotonic() < end:
        most = max(most, t.client.calls_out(t.mount_point))
        time.sleep(0.1)
    return most


def with_credits(t):
    """As many calls at once as there are credits for, and no more."""
    work(t)
    credits = t.settings.credits
    many = min(credits, 300)
    # A session of NFSv4.1 has so many slots, and each call needs one.
    if t.client.version in ("4.1", "4.2"):
        many = min(many, 48)
    put(t.server_path("page"), data(4 * KIB))
    worker = reading_at_once(t.path("page"), many + 8)
    worker.wait_until(1)
    if t.server.ours:
        # The grant grows with use.
        sides.wait_for(lambda: connection(t)["credits"] >= many, 30, f"{many} credits granted")
        with t.server.stopped():
            out = most_calls_out(t, many)
            time.sleep(0.5)
            out = max(out, t.client.calls_out(t.mount_point))
        expect(many <= out <= credits, f"{out} calls sent with {credits} credits and {many} readers")
        granted = connection(t)["credits"]
        expect(min(many, credits) <= granted <= credits, f"{granted} credits granted, {credits} set")
    elif t.client.ours and credits < many + 8:
        expect(most_calls_out(t, credits + 1) <= credits, f"more than {credits} calls sent")
    if t.client.ours:
        known = sides.status("--mount", t.mount_point)["connections"][0]["credits"]
        expect_equal(known, granted if t.server.ours else credits, "credits that the mount has")
    worker.progress = STOP
    worker.finish(60)


def with_inline(t):
    if t.server.ours:
        expect_equal(connection(t)["inline_send"], t.settings.inline,
                     "inline threshold towards the client")
    if t.client.ours:
        for way in ("inline_send", "inline_recv"):
            got = sides.status("--mount", t.mount_point)["connections"][0][way]
            expect_equal(got, t.settings.inline, f"{way} of the mount")
    work(t)


for credit in (1, 2, 1024):
    case(f"credits-{credit}", limit=150, credits=credit)(with_credits)
for threshold in (1024, 4096, 16384):
    case(f"inline-{threshold}", limit=150, inline=threshold)(with_inline)
for transfer in (4 * KIB, 64 * KIB, 256 * KIB, MIB):
    case(f"transfer-{transfer}", limit=150, transfer=transfer)(work)
for size_ in (1500, 9000):
    case(f"mtu-{size_}", limit=150, mtu=size_)(work)
# The server polls, its verbs completion queues too, before it sleeps: with events that come close, as
# work() has them, and without.
case("spin", limit=150, keys=("NFSoRDMA_SPIN=200",))(work)


def with_crc(t):
    # A verbs device does not tell.
    if t.server.ours and t.server.fabric == "iwarp":
        expect_equal(connection(t)["crc"], t.settings.crc, "CRC in use")
    work(t)


case("crc-off", limit=150, crc=False)(with_crc)
case("crc-on", limit=150, crc=True)(with_crc)
