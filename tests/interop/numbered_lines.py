#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""numbered_lines.py FILE STOP: writes numbered lines into FILE through one descriptor until the file
STOP is there, and reads them back through it. Exits 0 when no call has failed and all is as written."""
import os
import sys
import time

path, stop = sys.argv[1:]
file = os.open(path, os.O_RDWR | os.O_CREAT)
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
sys.exit(0 if have == want and count > 0 else 1)
