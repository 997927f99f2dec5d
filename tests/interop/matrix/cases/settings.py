# SPDX-License-Identifier: Apache-2.0
"""The same short piece of work under every setting that the two sides can have."""
import os
import threading

from bench import data, expect_digest, put
from case import case, expect, expect_equal

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
    """The server's view of the one connection."""
    return t.server.connections()[0]


def with_credits(t):
    work(t)
    if t.server.ours:
        # The grant grows with use; the setting is its bound.
        granted = connection(t)["credits"]
        expect(min(8, t.settings.credits) <= granted <= t.settings.credits,
               f"{granted} credits granted, {t.settings.credits} set")


def with_inline(t):
    if t.server.ours:
        got = connection(t)["inline_send"]
        wanted = t.settings.inline if not t.client.ours else min(4 * KIB, t.settings.inline)
        expect_equal(got, wanted, "inline threshold towards the client")
    work(t)


for credit in (1, 2, 1024):
    case(f"credits-{credit}", limit=150, credits=credit)(with_credits)
for threshold in (1024, 4096, 16384):
    case(f"inline-{threshold}", limit=150, inline=threshold)(with_inline)
for transfer in (4 * KIB, 64 * KIB, 256 * KIB, MIB):
    case(f"transfer-{transfer}", limit=150, transfer=transfer)(work)
for size_ in (1500, 9000):
    case(f"mtu-{size_}", limit=150, mtu=size_)(work)


def with_crc(t):
    # A verbs device does not tell.
    if t.server.ours and t.server.fabric == "iwarp":
        expect_equal(connection(t)["crc"], t.settings.crc, "CRC in use")
    work(t)


case("crc-off", limit=150, crc=False)(with_crc)
case("crc-on", limit=150, crc=True)(with_crc)
