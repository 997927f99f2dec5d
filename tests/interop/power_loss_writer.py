#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""power_loss_writer.py DIR JOURNAL SEED: changes DIR for ever; a line goes to JOURNAL (and to its
disk) after each change that the file system acknowledged as stable."""
import hashlib
import os
import random
import sys

top, journal_path, seed = sys.argv[1], sys.argv[2], sys.argv[3]
rng = random.Random(seed)
journal = os.open(journal_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def note(*words):
    os.write(journal, ("\t".join(words) + "\n").encode())


def write_file(name):
    data = rng.randbytes(rng.choice([1, 4095, 4097, 70000, 300000]))
    fd = os.open(f"{top}/{name}", os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    note("file", name, hashlib.sha256(data).hexdigest())


n = 0
names = []
while True:
    n += 1
    kind = rng.choice(["file", "file", "mkdir", "rename", "link", "symlink", "unlink", "create"])
    if kind == "file" or not names:
        write_file(f"f{n}")
        names.append(f"f{n}")
    elif kind == "mkdir":
        os.mkdir(f"{top}/d{n}")
        note("dir", f"d{n}")
    elif kind == "create":
        os.close(os.open(f"{top}/c{n}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        note("exists", f"c{n}")
    elif kind == "symlink":
        os.symlink(f"target-{n}", f"{top}/s{n}")
        note("symlink", f"s{n}", f"target-{n}")
    elif kind == "link":
        old = rng.choice(names)
        os.link(f"{top}/{old}", f"{top}/l{n}")
        note("link", old, f"l{n}")
    elif kind == "rename":
        old = names.pop(rng.randrange(len(names)))
        # Announced first: if power fails in between, either name may be there.
        note("renaming", old, f"r{n}")
        os.rename(f"{top}/{old}", f"{top}/r{n}")
        note("renamed", old, f"r{n}")
        names.append(f"r{n}")
    elif kind == "unlink":
        old = names.pop(rng.randrange(len(names)))
        note("unlinking", old)
        os.unlink(f"{top}/{old}")
        note("unlinked", old)
