# SPDX-License-Identifier: Apache-2.0
"""Files that our mount has open are open on the server, as its own books say, and for that long."""
import glob
import os
import re

from bench import get, put
from case import case, expect, expect_equal
from sides import run, wait_for

# The nfsd file system belongs to a network namespace, and `ip netns exec` hides mounts of others.
BOOKS = ("mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd; "
         "cat /proc/fs/nfsd/clients/*/states")


def knfsd_opens(t, name):
    """Share access ("r-", "-w", "rw") of each open of the file."""
    inode = os.stat(t.server_path(name)).st_ino
    books = run(*t.server.network.in_server, "sh", "-c", BOOKS, check=False)
    found = []
    for line in books.splitlines():
        # - 0x...: { type: open, access: rw, deny: --, superblock: "fe:00:1234", ...
        here = re.search(r"type: open, access: (..), .*superblock: \"[0-9a-f]+:[0-9a-f]+:([0-9]+)\"", line)
        if here and int(here.group(2)) == inode:
            found.append(here.group(1))
    return sorted(found)


def our_opens(t, name):
    """How many; our server does not tell of what."""
    del name
    clients = t.server.status()["nfs4"]["client_list"]
    return ["?"] * sum(one["opens"] for one in clients)


def expect_opens(t, name, wanted, when):
    def as_wanted():
        found = our_opens(t, name) if t.server.ours else knfsd_opens(t, name)
        expect(len(found) <= len(wanted) + 1, f"{when}: {found}")
        return found == (["?"] * len(wanted) if t.server.ours else wanted)
    wait_for(as_wanted, 10, f"{wanted} on the server, {when}")


@case("opens-ours", limit=400)
def opens_ours(t):
    put(t.server_path("file"), b"before")
    expect_opens(t, "file", [], "when nobody has it open")
    with open(t.path("file"), "rb"):
        expect_opens(t, "file", ["r-"], "open to read")
        with open(t.path("file"), "r+b"):
            expect_opens(t, "file", ["rw"], "open to write as well")
        expect_opens(t, "file", ["r-"], "when its writer has closed it")
    expect_opens(t, "file", [], "when it is closed")

    # Another file: whoever opens one again and again is given a delegation instead. Opened for both, never just
    # to read.
    put(t.server_path("both"), b"content")
    both = open(t.path("both"), "r+b")
    with open(t.path("both"), "rb") as reader:
        both.close()
        expect_opens(t, "both", ["r-"], "when its writer has closed it, and a reader that came later has not")
        expect_equal(reader.read(), b"content", "what the reader reads")

    with open(t.path("made"), "xb") as made:
        expect_opens(t, "made", ["-w"], "made")
        made.write(b"content")
    expect_opens(t, "made", [], "when what was made is closed")
    expect_equal(get(t.server_path("made")), b"content", "what was made")

    # Somebody on the server removes what is open here.
    put(t.server_path("removed"), b"kept for its reader")
    with open(t.path("removed"), "rb", buffering=0) as reader:
        os.unlink(t.server_path("removed"))
        expect_equal(glob.glob(t.server_path(".nfs*")), [], "silly names")
        expect_equal(reader.read(), b"kept for its reader", "a file that was removed on the server")

    # What is open survives the server, and goes when it is closed.
    with open(t.path("file"), "r+b", buffering=0) as file:
        expect_opens(t, "file", ["rw"], "open to read and write")
        t.server.crash_and_restart()
        file.write(b"behind")
        os.fsync(file.fileno())
        expect_opens(t, "file", ["rw"], "when the server was restarted")
    expect_opens(t, "file", [], "when it is closed, behind the restart")
    expect_equal(get(t.server_path("file")), b"behind", "what was written behind the restart")
