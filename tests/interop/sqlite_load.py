#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sqlite_load.py DATABASE N: N transactions of one insert and one update each, fully durable."""
import sqlite3
import sys

path, count = sys.argv[1], int(sys.argv[2])
db = sqlite3.connect(path, isolation_level=None)
db.execute("PRAGMA synchronous = FULL")
db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
for i in range(count):
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO t VALUES (?, ?)", (i, "x" * (i % 200)))
    db.execute("UPDATE t SET v = v || 'y' WHERE id = ?", (i // 2,))
    db.execute("COMMIT")
(result,) = db.execute("PRAGMA integrity_check").fetchone()
db.close()
sys.exit(0 if result == "ok" else f"integrity check: {result}")
