#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""names_load.py DIR N: calls that must not be run twice, N rounds of them in DIR.

Every name is new, so no call may fail: when the server is killed and the call sent again, the client
has to tell its own success from somebody else's. What is left in DIR: N files "final-I" of which each
holds its number, in a directory per hundred.
"""
import os
import sys

where, rounds = sys.argv[1], int(sys.argv[2])
for i in range(rounds):
    folder = os.path.join(where, f"d{i // 100}")
    if i % 100 == 0:
        os.mkdir(folder, 0o755)
    def name(kind):
        return os.path.join(folder, f"{kind}-{i}")
    # O_EXCL is CREATE EXCLUSIVE: a lock made this way must be right.
    fd = os.open(name("lock"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o640)
    os.write(fd, str(i).encode())
    os.close(fd)
    try:
        os.close(os.open(name("lock"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o640))
        sys.exit(f"{name('lock')} could be made twice")
    except FileExistsError:
        pass
    os.link(name("lock"), name("link"))
    os.rename(name("lock"), name("final"))
    os.unlink(name("link"))
    os.symlink(f"final-{i}", name("symlink"))
    if os.readlink(name("symlink")) != f"final-{i}":
        sys.exit(f"{name('symlink')} has another text")
    os.unlink(name("symlink"))
    os.mkdir(name("dir"))
    os.rmdir(name("dir"))
    st = os.stat(name("final"))
    if st.st_nlink != 1 or st.st_mode & 0o777 != 0o640:
        sys.exit(f"{name('final')}: {st}")
