# SPDX-License-Identifier: Apache-2.0
"""Delegations: opens that ask nobody, and others that are waited for. Linux's client first, then ours."""
import errno
import os

from bench import MOUNT, SECOND_MOUNT, data, expect_digest, get, opened, put
from case import case, expect, expect_equal, expect_error
from sides import NeighbourClient, status, wait_for

MIB = 1 << 20


def calls(operation, where=MOUNT):
    """How often the client has asked for that by that mount, by /proc/self/mountstats."""
    inside = False
    with open("/proc/self/mountstats", encoding="ascii") as lines:
        for line in lines:
            words = line.split()
            if line.startswith("device "):
                inside = words[4] == where
            elif inside and words and words[0] == operation + ":":
                return int(words[1])
    raise AssertionError(f"no {operation} in mountstats")


def opens(where=MOUNT):
    return calls("OPEN", where) + calls("OPEN_NOATTR", where)


def take_as_it_is(path, content, where=MOUNT, limit=30):
    """The client of that mount holds a delegation of the file: opening it again asks nobody."""
    def held():
        expect_equal(get(path), content, "the content")
        before = opens(where)
        expect_equal(get(path), content, "the content")
        return opens(where) == before
    wait_for(held, limit, f"a delegation for {where}: each open still asks the server")


def take(t, name, content):
    put(t.path(name), content, sync=True)
    take_as_it_is(t.path(name), content)


@case("delegations", limit=180)
def delegations(t):
    take(t, "file", b"before")
    returned = calls("DELEGRETURN")

    # A process on the server writes: it waits until the client has given back, and the client sees
    # what it wrote with its next look.
    with opened(t.server_path("file"), "r+b") as local:
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
    with opened(t.server_path("own"), "rb") as local:
        expect_equal(local.read(), b"two", "on the server")


@case("neighbour-delegations", limit=240)
def neighbour_delegations(t):
    """Read delegations between two clients: both have them, until one of them changes something."""
    neighbour = NeighbourClient(t.client.version)
    neighbour.mount(t, SECOND_MOUNT)
    there = os.path.join(SECOND_MOUNT, t.case.name)

    def take_to_read(name, where):
        """Of a file that was made on the server: whoever makes one himself may write to it."""
        if not os.path.exists(t.server_path(name)):
            put(t.server_path(name), b"before")
        path = t.path(name) if where == MOUNT else os.path.join(there, name)
        # A server does not give one of a file that it has had open to write a moment ago.
        take_as_it_is(path, b"before", where, 90)

    # Both hold one of the same file, and neither is asked for its own by the other's reading.
    take_to_read("file", MOUNT)
    returned = calls("DELEGRETURN")
    take_to_read("file", SECOND_MOUNT)
    expect_equal(calls("DELEGRETURN"), returned, "delegations given back for a reader")

    # The neighbour writes: the holder gives back first, and sees what was written with its next look.
    put(os.path.join(there, "file"), b"behind", sync=True)
    expect(calls("DELEGRETURN") > returned, "another client has written, and nothing was given back")
    expect_equal(get(t.path("file")), b"behind", "after the neighbour wrote")

    # The other way round.
    take_to_read("theirs", SECOND_MOUNT)
    returned = calls("DELEGRETURN", SECOND_MOUNT)
    put(t.path("theirs"), b"behind", sync=True)
    expect(calls("DELEGRETURN", SECOND_MOUNT) > returned, "the neighbour has given nothing back")
    expect_equal(get(os.path.join(there, "theirs")), b"behind", "for the neighbour")

    # Attributes and names are promised, too.
    changes = {
        "mode": lambda path: os.chmod(path, 0o600),
        "renamed": lambda path: os.rename(path, path + ".new"),
        "replaced": lambda path: os.rename(os.path.join(there, "theirs"), path),
        "removed": os.unlink,
    }
    for name, change in changes.items():
        take_to_read(name, MOUNT)
        returned = calls("DELEGRETURN")
        change(os.path.join(there, name))
        expect(calls("DELEGRETURN") > returned, f"{name}: nothing was given back")
    # What Linux's client knows of attributes and names it looks at again when it opens.
    with open(t.path("mode"), "rb") as file:
        expect_equal(os.fstat(file.fileno()).st_mode & 0o777, 0o600, "the mode")
    expect_equal(get(t.path("renamed.new")), b"before", "under the new name")
    expect_equal(get(t.path("replaced")), b"behind", "what took the name")
    expect_error(errno.ENOENT, "what was removed", open, t.path("removed"), "rb")
    neighbour.unmount(SECOND_MOUNT)


def take_to_write(t, name):
    """The client holds a write delegation of the file, which it makes: opening it to write asks nobody."""
    def held():
        put(t.path(name), b"x" * 100)
        before = opens()
        with open(t.path(name), "r+b") as file:
            file.write(b"x" * 100)
        return opens() == before
    wait_for(held, 30, "a write delegation: each open still asks the server")


@case("write-delegations", limit=240)
def write_delegations(t):
    neighbour = NeighbourClient(t.client.version)
    neighbour.mount(t, SECOND_MOUNT)
    there = os.path.join(SECOND_MOUNT, t.case.name)

    # What the holder has written and kept back, another client is told of, and the holder keeps the
    # delegation.
    take_to_write(t, "file")
    returned = calls("DELEGRETURN")
    with open(t.path("file"), "ab") as file:
        file.write(b"y" * 4000)
        file.flush()
        expect_equal(os.stat(os.path.join(there, "file")).st_size, 4100, "the size, for another client")
        expect_equal(calls("DELEGRETURN"), returned, "delegations given back for a look")
    # Linux gives back without waiting for its writes: they have to come before the end of close().
    whole = b"x" * 100 + b"y" * 4000
    expect(get(os.path.join(there, "file")) == whole, "the content for another client")
    expect(calls("DELEGRETURN") > returned, "the other client read, and nothing was given back")

    # So does a process on the server.
    take_to_write(t, "local")
    returned = calls("DELEGRETURN")
    with open(t.path("local"), "ab") as file:
        file.write(b"z" * 100)
    whole = b"x" * 100 + b"z" * 100
    expect(get(t.server_path("local")) == whole, "the content for a local process")
    # The server lets it in before the client has counted.
    wait_for(lambda: calls("DELEGRETURN") > returned, 10, "the delegation given back for a local process")
    content = data(4 * MIB)
    for number in range(5):
        put(t.path(f"large-{number}"), content)
        expect_digest(t.server_path(f"large-{number}"), content, "what was closed just now")

    # The holder changes and removes what it has.
    take_to_write(t, "own")
    os.chmod(t.path("own"), 0o600)
    os.truncate(t.path("own"), 50)
    expect_equal(os.stat(t.path("own")).st_size, 50, "the size, for the holder")
    os.unlink(t.path("own"))
    expect(not os.path.exists(t.server_path("own")), "the file is still there")
    neighbour.unmount(SECOND_MOUNT)


def ours(what):
    document = status("--mount", MOUNT)
    if what == "calls":
        return sum(connection["calls"] for connection in document["connections"])
    return document[what]


def hold(t, name, content, mode="rb"):
    """Our mount holds a delegation of a file that was made on the server."""
    put(t.server_path(name), content)

    def held():
        for _ in range(2):
            with open(t.path(name), mode) as file:
                expect_equal(file.read(), content, "the content")
        return ours("delegations_held") == 1
    # A server does not give one of a file that it has had open to write a moment ago.
    wait_for(held, 90, "a delegation for our mount")


@case("delegations-ours", limit=300)
def delegations_ours(t):
    neighbour = NeighbourClient(t.client.version)
    neighbour.mount(t, SECOND_MOUNT)
    there = os.path.join(SECOND_MOUNT, t.case.name)

    hold(t, "file", b"before")
    before = ours("calls")
    for _ in range(20):
        expect_equal(get(t.path("file")), b"before", "the content")
        os.stat(t.path("file"))
    # One SEQUENCE may have kept the lease.
    expect(ours("calls") - before <= 1, f"20 opens took {ours('calls') - before} calls")

    # Linux's client writes: it waits until our mount has given back, and ours sees it at once.
    called = ours("callbacks_done")
    put(os.path.join(there, "file"), b"behind", sync=True)
    expect_equal(get(t.path("file")), b"behind", "after another client wrote")
    expect_equal(ours("delegations_held"), 0, "delegations")
    expect(ours("callbacks_done") > called, "our mount was not asked for the delegation")

    # So does a process on the server.
    hold(t, "local", b"before")
    with opened(t.server_path("local"), "r+b") as local:
        local.write(b"behind")
    expect_equal(get(t.path("local")), b"behind", "after a process on the server wrote")

    # What our mount has not written yet, the other client reads. (Linux 6.1 gives no write delegations.)
    if t.server.ours:
        hold(t, "dirty", b"before", "r+b")
        with open(t.path("dirty"), "r+b", buffering=0) as file:
            file.write(b"behind")
            expect_equal(get(os.path.join(there, "dirty")), b"behind", "for another client, what was not written yet")
            expect_equal(ours("delegations_held"), 0, "delegations")

    # The other way round: Linux's client holds one.
    put(t.server_path("theirs"), b"before")
    take_as_it_is(os.path.join(there, "theirs"), b"before", SECOND_MOUNT, 90)
    returned = calls("DELEGRETURN", SECOND_MOUNT)
    put(t.path("theirs"), b"behind", sync=True)
    expect(calls("DELEGRETURN", SECOND_MOUNT) > returned, "our mount has written, and nothing was given back")
    expect_equal(get(os.path.join(there, "theirs")), b"behind", "for the other client, after our mount wrote")

    # The holder changes and removes what it has.
    hold(t, "own", b"before")
    os.chmod(t.path("own"), 0o600)
    expect_equal(os.stat(t.server_path("own")).st_mode & 0o777, 0o600, "the mode")
    put(t.path("own"), b"mine", sync=True)
    expect_equal(get(t.server_path("own")), b"mine", "what our mount wrote")
    os.unlink(t.path("own"))
    expect(not os.path.exists(t.server_path("own")), "the file is still there")
    wait_for(lambda: ours("delegations_held") == 0, 20, "delegations of removed files to be given back")
    neighbour.unmount(SECOND_MOUNT)
