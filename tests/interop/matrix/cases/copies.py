# SPDX-License-Identifier: Apache-2.0
"""Copies that the server makes: copy_file_range(), and nothing of it on the wire."""
import os

import sides
from bench import data, expect_digest, opened
from case import case, expect, expect_equal
from cases.delegations import calls

GIB = 1 << 30
MIB = 1 << 20


def moved_by_ours(t):
    """Bytes of data that our client has sent or received, by RDMA or inline."""
    totals = sides.status("--mount", t.mount_point)["totals"]
    return totals["rdma_read_bytes"] + totals["rdma_write_bytes"] + totals["inline_bytes"]


def copy_by_kernel(source, target, size):
    """By one COPY: the server copies at most 64 MiB before it answers, so that a COPY of all of it goes
    on behind its reply, and CB_OFFLOAD tells the client of its end."""
    before = {name: calls(name) for name in ("READ", "WRITE", "COPY")}
    expect_equal(os.copy_file_range(source, target, size), size, "bytes copied")
    for name, wanted in (("READ", 0), ("WRITE", 0), ("COPY", 1)):
        expect_equal(calls(name) - before[name], wanted, f"calls of {name}")


def copy_by_ours(t, source, target, size):
    """By COPYs of a bounded size, each of which is done when it is answered."""
    before, left = moved_by_ours(t), size
    while left > 0:
        count = os.copy_file_range(source, target, left)
        expect(0 < count <= left, f"{count} bytes copied of {left}")
        left -= count
    expect(moved_by_ours(t) - before < MIB, "the data came here")


@case("server-copy", limit=300)
def server_copy(t):
    """A GiB, most of it holes."""
    pieces = {0: data(3 * MIB, 1), GIB // 2 + 5: data(MIB, 2), GIB - 1000: data(1000, 3)}
    with opened(t.server_path("from"), "wb") as file:
        for offset, content in pieces.items():
            file.seek(offset)
            file.write(content)
    with open(t.path("from"), "rb") as source, open(t.path("to"), "wb") as target:
        if t.client.ours:
            copy_by_ours(t, source.fileno(), target.fileno(), GIB)
        else:
            copy_by_kernel(source.fileno(), target.fileno(), GIB)
    expect_equal(os.stat(t.path("to")).st_size, GIB, "the size that the client sees")
    with opened(t.server_path("to"), "rb") as file:
        for offset, content in pieces.items():
            file.seek(offset)
            expect(file.read(len(content)) == content, f"what is at {offset}")
    # A short one is done before its reply; both forms give the same.
    with open(t.path("from"), "rb") as source, open(t.path("short"), "wb") as target:
        expect_equal(os.copy_file_range(source.fileno(), target.fileno(), 3 * MIB), 3 * MIB,
                     "bytes of the short copy")
    expect_digest(t.server_path("short"), pieces[0], "the short copy")
