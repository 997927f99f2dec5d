#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""power_loss_check.py DIR JOURNAL: is everything there that JOURNAL says was acknowledged?"""
import hashlib
import os
import sys

top, journal_path = sys.argv[1], sys.argv[2]
content = {}    # name -> sha256 (or None: only existence)
links = {}
dirs = set()
gone = set()
doubtful = {}   # announced, not acknowledged: name -> other name or None

for line in open(journal_path, encoding="utf-8"):
    if not line.endswith("\n"):
        break
    kind, *words = line.rstrip("\n").split("\t")
    if kind == "file":
        content[words[0]] = words[1]
    elif kind == "exists":
        content[words[0]] = None
    elif kind == "dir":
        dirs.add(words[0])
    elif kind == "symlink":
        links[words[0]] = words[1]
    elif kind == "link":
        content[words[1]] = content.get(words[0])
    elif kind == "renaming":
        doubtful = {words[0]: words[1]}
    elif kind == "renamed":
        doubtful = {}
        content[words[1]] = content.pop(words[0])
        gone.add(words[0])
    elif kind == "unlinking":
        doubtful = {words[0]: None}
    elif kind == "unlinked":
        doubtful = {}
        content.pop(words[0])
        gone.add(words[0])

problems = []
for name, digest in content.items():
    path = f"{top}/{name}"
    if name in doubtful and not os.path.lexists(path):
        if doubtful[name] is None:
            continue
        path = f"{top}/{doubtful[name]}"
    if not os.path.exists(path):
        problems.append(f"{name} is missing")
    elif digest is not None:
        with open(path, "rb") as f:
            data = f.read()
        if hashlib.sha256(data).hexdigest() != digest:
            problems.append(f"{name} has other content: {len(data)} bytes, {data.count(0)} of them 0")
problems += [f"directory {d} is missing" for d in dirs if not os.path.isdir(f"{top}/{d}")]
problems += [f"symlink {s} is wrong" for s, t in links.items()
             if not os.path.islink(f"{top}/{s}") or os.readlink(f"{top}/{s}") != t]
problems += [f"{g} came back" for g in gone if g not in content and os.path.lexists(f"{top}/{g}")]
for problem in problems[:20]:
    print(problem, file=sys.stderr)
print(f"{len(content)} files, {len(dirs)} directories, {len(links)} symlinks, "
      f"{len(gone)} removals checked")
sys.exit(1 if problems else 0)
