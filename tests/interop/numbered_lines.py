#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""numbered_lines.py FILE STOP: writes numbered lines into FILE, which is emptied first, through one
descriptor until the file STOP is there, and reads them back through it. Exits 0 when no call has failed
and all is as written; says what is not."""
import os
import sys
import time

path, stop = sys.argv[1:]
file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
count = 0
while not os.path.exists(stop):
    os.pwrite(file, b"%06d\n" % count, 7 * count)
    if count % 10 == 0:
        os.fsync(file)
    count += 1
    time.sleep(0.005)
os.fsync(file)
want = b"".join(b"%06d\n" % i for i in range(count))
have = os.pread(file, len(want) + 1, 0)
os.close(file)
if have != want:
    at = next((i for i, (a, b) in enumerate(zip(have, want)) if a != b), min(len(have), len(want)))
    print(f"{path}: {len(have)} bytes, not {len(want)}; at {at} {have[at:at + 14]!r}, not {want[at:at + 14]!r}",
          file=sys.stderr)
sys.exit(0 if have == want and count > 0 else 1)
