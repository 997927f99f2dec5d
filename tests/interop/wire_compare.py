#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wire_compare.py once|some|read FILES WORK: do tshark, status and the files' sizes agree?

For workloads.sh. WORK has the server's status before (before.json) and after (after.json), of one moment
between them that of the server and of the mount (server.json, mount.json), and what tshark counted from
before to after (tshark.json). FILES is a tree on the mount, and what happened to it:

  once   each byte was written once; by RDMA Read, what is above the inline limit
  some   it was written at least once: what programs write again or throw away is in no file
  read   every file was read once; by RDMA Write

Exit status 1 and what differs, when something does; 3 when the kernel threw pages away (vmstat-before,
vmstat-after), and more was read than there is: perhaps what had been read ahead.
"""
import json
import os
import stat
import sys

rule, tree, work = sys.argv[1:]
before, server, mount, after, tshark = (
    json.load(open(f"{work}/{name}.json")) for name in ("before", "server", "mount", "after", "tshark"))
KEYS = ("rdma_write", "rdma_read", "inline")
HEADERS = 512  # the most that stands beside the data in a call of WRITE


def evicted():
    """Did anything leave the page cache: for want of memory, or somebody wrote to drop_caches?"""
    def counters(when):
        return [line for line in open(f"{work}/vmstat-{when}") if line.startswith(("drop_pagecache", "pgsteal"))]

    return counters("before") != counters("after")


def since_start(status):
    return {key: status["totals"][f"{key}_bytes"] - before["totals"][f"{key}_bytes"] for key in KEYS}


def data(most_inline, piece):
    """Bytes of the files in calls of `piece` bytes, but those of calls that hold no more than `most_inline`."""
    return sum(size // piece * piece + (size % piece if size % piece > most_inline else 0) for size in sizes)


files = {}  # by number: the data of a file with two names goes once
for folder, _, names in os.walk(tree):
    for entry in (os.lstat(os.path.join(folder, name)) for name in names):
        if stat.S_ISREG(entry.st_mode):
            files[entry.st_ino] = entry.st_size
sizes = files.values()
total = sum(sizes)
end, middle = since_start(after), since_start(server)
mine = {key: mount["totals"][f"{key}_bytes"] for key in KEYS}
link = mount["connections"][0]
inline, piece = link["inline_send"], mount["wsize"]
large, maybe = data(inline, piece), data(inline - HEADERS, piece)

rows = [("", "RDMA Write", "Read Response", "inline"),
        ("tshark", tshark["rdma_write"], tshark["rdma_read"], ""),
        ("status of the server", *(end[key] for key in KEYS)),
        ("the same before umount", *(middle[key] for key in KEYS)),
        ("status of the mount then", *(mine[key] for key in KEYS))]
for row in rows:
    print("   %-26s %14s %14s %14s" % row)
print(f"   {len(sizes)} files have {total} bytes" + (
    "" if rule == "read" else f", {large} of them in pieces above the inline limit of {inline}, {maybe - large} near it"))
print(f"   tshark: {tshark['fpdus']} FPDUs in {tshark['connections']} connections, {tshark['layers']}, {tshark['resent']} "
      f"segments sent twice; {tshark['tshark_mib']} MiB of memory")

bad = []
for what in ("rdma_write", "rdma_read"):
    if tshark[what] != end[what]:
        bad.append(f"{what}: tshark counts {tshark[what]}, the server {end[what]}")
    if mine[what] != middle[what]:
        bad.append(f"{what}: the mount counts {mine[what]}, the server {middle[what]}")
if rule == "read":
    # Asked for by whole pages, which would not fit inline.
    if end["rdma_write"] > total and not bad and evicted():
        print(f"   RDMA Writes had {end['rdma_write'] - total} bytes more than the files; the kernel threw pages away")
        sys.exit(3)
    if end["rdma_write"] != total:
        bad.append(f"RDMA Writes had {end['rdma_write']} bytes, the files have {total}")
else:
    if end["rdma_read"] + end["inline"] < total:
        bad.append(f"Read Responses and inline messages had {end['rdma_read'] + end['inline']} bytes, less than the files")
    if rule == "once" and not large <= end["rdma_read"] <= maybe:
        bad.append(f"Read Responses had {end['rdma_read']} bytes, which is not between {large} and {maybe}")
if tshark["malformed"]:
    bad.append(f"tshark calls {tshark['malformed']} frames malformed")
sys.exit("; ".join(bad) if bad else 0)
