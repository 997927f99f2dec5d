# SPDX-License-Identifier: Apache-2.0
"""Where the caches of two clients meet (close_to_open.py): three processes on each of two mounts read what others
wrote and closed, or unlocked, a moment ago."""
import fcntl
import os
import sys

from bench import SECOND_MOUNT
from case import case
from cases.io import another_client
from sides import run

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(os.path.dirname(HERE), "close_to_open.py")
SECONDS = 10


def meet(t, *ways):
    second = another_client(t)
    second.prepare(t.settings)
    second.mount(t, SECOND_MOUNT)
    there = os.path.join(SECOND_MOUNT, t.case.name)
    for way in ways:
        said = run(sys.executable, "-B", SCRIPT, t.path(""), there, way, str(SECONDS), "1", limit=120)
        print(f"{way}: {said.splitlines()[-1]}")
    second.unmount(SECOND_MOUNT)


@case("close-to-open", limit=240)
def close_to_open(t):
    meet(t, "opens")


@case("locks-meeting", limit=360)
def locks_meeting(t):
    with open(t.path("first"), "wb") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)  # once it is granted the server's grace period is over
    # Linux 6.1's own client of these versions keeps the end of a file from before, behind a lock, now and
    # then. It does so with knfsd, too: 0-knfsd-kernel-4.2 shows it.
    keeps_the_end = t.server.ours and not t.client.ours and t.client.version in ("4.1", "4.2")
    meet(t, *(() if keeps_the_end else ("locks",)), "appends")
