# SPDX-License-Identifier: Apache-2.0
"""Read delegations with Linux's client: opens that ask nobody, and writers that are waited for."""
import os

from bench import MOUNT, get, put
from case import case, expect, expect_equal
from sides import wait_for


def calls(operation):
    """How often the client has asked for that, by /proc/self/mountstats."""
    inside = False
    with open("/proc/self/mountstats", encoding="ascii") as lines:
        for line in lines:
            words = line.split()
            if line.startswith("device "):
                inside = words[4] == MOUNT
            elif inside and words and words[0] == operation + ":":
                return int(words[1])
    raise AssertionError(f"no {operation} in mountstats")


def take(t, name, content):
    """The client holds a delegation of the file: opening it again asks nobody."""
    put(t.path(name), content, sync=True)

    def held():
        expect_equal(get(t.path(name)), content, "the content")
        before = calls("OPEN") + calls("OPEN_NOATTR")
        expect_equal(get(t.path(name)), content, "the content")
        return calls("OPEN") + calls("OPEN_NOATTR") == before
    wait_for(held, 30, "a delegation: each open still asks the server")


@case("delegations", limit=180)
def delegations(t):
    take(t, "file", b"before")
    returned = calls("DELEGRETURN")

    # A process on the server writes: it waits until the client has given back, and the client sees
    # what it wrote with its next look.
    with open(t.server_path("file"), "r+b") as local:
        local.write(b"behind")
    wait_for(lambda: calls("DELEGRETURN") > returned, 10, "the delegation to be given back")
    expect_equal(get(t.path("file")), b"behind", "after a local writer")

    # A process on the server that renames cannot be stopped, but the client is told of it.
    take(t, "named", b"one")
    returned = calls("DELEGRETURN")
    os.rename(t.server_path("named"), t.server_path("renamed"))
    wait_for(lambda: calls("DELEGRETURN") > returned, 30, "the delegation to be given back")

    # Those who change the name or attributes by the server itself do so too, here the client's own.
    take(t, "second", b"one")
    os.chmod(t.path("second"), 0o600)
    expect_equal(os.stat(t.server_path("second")).st_mode & 0o777, 0o600, "the mode")
    os.rename(t.path("second"), t.path("third"))
    expect_equal(get(t.path("third")), b"one", "after RENAME")
    os.unlink(t.path("third"))
    expect(not os.path.exists(t.server_path("third")), "the file is still there")

    # The holder writes itself.
    take(t, "own", b"one")
    put(t.path("own"), b"two", sync=True)
    with open(t.server_path("own"), "rb") as local:
        expect_equal(local.read(), b"two", "on the server")
