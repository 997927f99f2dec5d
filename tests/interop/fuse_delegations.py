#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files with delegations that somebody else changes: the next open must see it.

    fuse_delegations.py A B LOCAL SEED

A and B are mounts of LOCAL. Each file is opened twice by A, so that A has a delegation of it, then
changed by B or here, then looked at by A.
"""
import os
import random
import sys
import time

FILES = 200


def write(path, text, how):
    with open(path, how, encoding="utf-8") as handle:
        handle.write(text)


def replace(path, text):
    write(path + ".new", text, "w")
    os.rename(path + ".new", path)


def same_size(path, text):
    """In place, with the times as they were before: only the change attribute tells."""
    times = os.stat(path)
    write(path, text, "r+")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


CHANGES = {
    "rewrite": lambda path, text: write(path, text, "w"),
    "in place": lambda path, text: write(path, text, "r+"),
    "old times": same_size,
    "replace": replace,
}


def hold(path, writes):
    """The second open of a kind asks for a delegation."""
    for _ in range(2):
        with open(path, "r+" if writes else "r", encoding="utf-8") as handle:
            handle.read()


def main():
    a, b, local, seed = *sys.argv[1:4], int(sys.argv[4])
    dice = random.Random(seed)
    counts = {}
    for number in range(FILES):
        name = f"file{number}"
        writes = dice.random() < 0.5
        where = dice.choice([b, local])
        how = dice.choice(sorted(CHANGES))
        mine = dice.random() < 0.5
        write(os.path.join(local, name), f"old {number:6}", "w")
        path = os.path.join(a, name)
        hold(path, writes)
        expected = f"new {number:6}"
        if writes and mine:
            # What A wrote just before must not come back.
            write(path, f"own {number:6}", "r+")
        open_before = open(path, encoding="utf-8") if dice.random() < 0.3 else None
        CHANGES[how](os.path.join(where, name), expected)
        if how == "replace" and where == local:
            # No lease of the kernel stops a local rename: the server hears of it afterwards.
            time.sleep(0.1)
        with open(path, encoding="utf-8") as handle:
            seen = handle.read()
        size = os.stat(path).st_size
        if open_before is not None:
            open_before.close()
        # The way there: a name that was replaced is looked up again within acdirmin, as ever.
        allowed = {expected}
        if how == "replace":
            allowed |= {f"old {number:6}", f"own {number:6}"}
        if seen not in allowed or size != len(expected):
            print(f"{name}: {how} by {where}, {'write' if writes else 'read'} delegation: "
                  f"'{seen}' of {size} bytes, not '{expected}'")
            return 1
        counts[how] = counts.get(how, 0) + 1
    print(f"seed {seed}: " + ", ".join(f"{count} {how}" for how, count in sorted(counts.items())))
    return 0


sys.exit(main())
