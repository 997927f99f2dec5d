# SPDX-License-Identifier: Apache-2.0
"""Copies that the server makes: copy_file_range() of Linux's client, and nothing of it on the wire."""
import os

from bench import data, expect_digest
from case import case, expect, expect_equal
from cases.delegations import calls

GIB = 1 << 30
MIB = 1 << 20


@case("server-copy", limit=300)
def server_copy(t):
    """A GiB, by one COPY: the server copies at most 64 MiB before it answers, so that a COPY of all of
    it went on behind its reply, and CB_OFFLOAD told the client of its end."""
    pieces = {0: data(3 * MIB, 1), GIB // 2 + 5: data(MIB, 2), GIB - 1000: data(1000, 3)}
    with open(t.server_path("from"), "wb") as file:
        for offset, content in pieces.items():
            file.seek(offset)
            file.write(content)
    before = {name: calls(name) for name in ("READ", "WRITE", "COPY")}
    with open(t.path("from"), "rb") as source, open(t.path("to"), "wb") as target:
        expect_equal(os.copy_file_range(source.fileno(), target.fileno(), GIB), GIB, "bytes copied")
    for name, wanted in (("READ", 0), ("WRITE", 0), ("COPY", 1)):
        expect_equal(calls(name) - before[name], wanted, f"calls of {name}")
    expect_equal(os.stat(t.path("to")).st_size, GIB, "the size that the client sees")
    with open(t.server_path("to"), "rb") as file:
        for offset, content in pieces.items():
            file.seek(offset)
            expect(file.read(len(content)) == content, f"what is at {offset}")
    # A short one is done before its reply; both forms give the same.
    with open(t.path("from"), "rb") as source, open(t.path("short"), "wb") as target:
        expect_equal(os.copy_file_range(source.fileno(), target.fileno(), 3 * MIB), 3 * MIB,
                     "bytes of the short copy")
    expect_digest(t.server_path("short"), pieces[0], "the short copy")
