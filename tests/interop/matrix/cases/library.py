# SPDX-License-Identifier: Apache-2.0
"""The library without a mount: every operation of its C++ and C interfaces, and the nfs-rdma command."""
import json
import os

import sides
from bench import data, expect_digest, put
from case import case, expect, expect_equal

MIB = 1 << 20


def run_ours(program, *words):
    return sides.run(f"{sides.PROGRAMS}/{program}", *words, limit=120, env=sides.our_environment())


@case("library", limit=300, programs=("libnfsrdma_operations", "libnfsrdma_c"))
def library(t):
    for program in ("libnfsrdma_operations", "libnfsrdma_c"):
        os.mkdir(t.server_path(program))
        run_ours(program, t.client.url(t, program), t.client.version)


@case("command", limit=200)
def command(t):
    source = "/tmp/command"
    os.makedirs(f"{source}/deep/empty", exist_ok=True)
    content = {name: data(size) for name, size in (
        ("none", 0), ("one", 1), ("page", 4097), ("deep/large", 9 * MIB + 1))}
    for name, what in content.items():
        put(f"{source}/{name}", what)
    os.symlink("page", t.server_path("link"))
    run_ours("nfs-rdma", "cp", "-r", source, t.client.url(t, "copy"))
    run_ours("nfs-rdma", "cp", "-r", t.client.url(t, "copy"), "/tmp/back")
    for name, what in content.items():
        expect_digest(t.server_path(f"copy/{name}"), what, f"{name} on the server")
        expect_digest(f"/tmp/back/{name}", what, f"{name} copied back")
    expect(os.path.isdir("/tmp/back/deep/empty"), "the empty folder was not copied back")
    expect_equal(sorted(run_ours("nfs-rdma", "ls", t.client.url(t, "")).split()), ["copy", "link"], "ls")
    shown = json.loads(run_ours("nfs-rdma", "stat", "--json", t.client.url(t, "copy/page")))
    expect_equal(shown["size"], 4097, "the size that stat shows")
    run_ours("nfs-rdma", "ping", "-c", "3", t.client.url(t, ""))
    for load in ("write", "read", "randread", "getattr"):
        measured = json.loads(run_ours("nfs-rdma", "bench", t.client.url(t, "load"), "--rw", load, "--size", "8M",
                                       "--time", "2", "--json"))
        expect_equal(measured["errors"], 0, f"errors of bench --rw {load}")
        expect(measured["ops_per_second"] > 0, f"bench --rw {load} has done nothing")
