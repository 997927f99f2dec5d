# SPDX-License-Identifier: Apache-2.0
"""One session over several connections (session trunking, RFC 8881 2.10.5): nconnect, trunkdiscovery."""
from bench import MOUNT, data, expect_digest, put
from case import case, expect, expect_equal
from cases.faults import reading, writing
from sides import status, wait_for

MIB = 1 << 20
CONNECTIONS = 4


def trunk(t):
    """(sessions of the client, connections bound to them, connections of the server)."""
    report = t.server.status()
    client, = report["nfs4"]["client_list"]
    return client["sessions"], client["session_connections"], len(report["connections"])


def under_way(t, content):
    """Reading and writing at once, so that every connection is used."""
    workers = []
    for number in range(CONNECTIONS):
        put(t.server_path(f"in-{number}"), content)
        workers += [writing(t.path(f"out-{number}"), content), reading(t.path(f"in-{number}"), content)]
    return workers


@case("trunking", limit=300, nconnect=CONNECTIONS)
def trunking(t):
    wanted = (1, CONNECTIONS, CONNECTIONS)
    content = data(8 * MIB)
    for worker in under_way(t, content):
        worker.finish(60)
    expect_equal(trunk(t), wanted, "sessions and their connections")
    for number in range(CONNECTIONS):
        expect_digest(t.server_path(f"out-{number}"), content, f"what was written ({number})")

    # All of them break, and the new session has as many again.
    long = data(32 * MIB, 1)
    workers = [writing(t.path("long"), long)] + under_way(t, content)
    workers[0].wait_until(MIB)
    t.server.crash_and_restart()
    for worker in workers:
        worker.finish(150)
    expect_digest(t.server_path("long"), long, "what was written over the restart")
    for number in range(CONNECTIONS):
        expect_digest(t.server_path(f"out-{number}"), content, f"what was written ({number})")

    # They come back when there is more to do than one can.
    def used_again():
        for worker in under_way(t, content):
            worker.finish(60)
        return trunk(t) == wanted
    wait_for(used_again, 60, "all connections bound to the new session")


# The server's own address and one that it gets later. (The path does not matter: who is there is asked.)
FIRST, SECOND = "192.0.2.2", "192.0.2.3"
EXPORT = f"rw,no_root_squash,insecure,replicas=/export@{FIRST}:/export@{SECOND}"


def moved_by_address():
    """Bytes that the mount has moved over the connections that it has, by the server's address."""
    moved = {}
    for connection in status("--mount", MOUNT)["connections"]:
        address = connection["peer"].rsplit(":", 1)[0]
        counted = sum(connection[kind] for kind in ("rdma_write_bytes", "rdma_read_bytes", "inline_bytes"))
        moved[address] = moved.get(address, 0) + counted
    return moved


@case("trunk-discovery", limit=360, export=EXPORT, options=("trunkdiscovery", "timeo=100"))
def trunk_discovery(t):
    expect_equal(t.network.server_address, FIRST, "the server's address")
    expect_equal(list(moved_by_address()), [FIRST], "addresses while the server has one")
    t.network.add_server_address(SECOND)
    try:
        t.remount()
        expect_equal(sorted(moved_by_address()), [FIRST, SECOND], "addresses in use")
        content = data(16 * MIB)
        for worker in under_way(t, content):
            worker.finish(90)
        for number in range(CONNECTIONS):
            expect_digest(t.server_path(f"out-{number}"), content, f"what was written ({number})")
        for address, moved in moved_by_address().items():
            expect(moved > MIB, f"only {moved} bytes went by {address}")

        # It goes while data is on its way; what was sent there goes by the other one.
        long = data(48 * MIB, 1)
        workers = [writing(t.path("long"), long)] + under_way(t, content)
        workers[0].wait_until(MIB)
        t.network.remove_server_address(SECOND)
        for worker in workers:
            worker.finish(150)
        expect_digest(t.server_path("long"), long, "what was written while an address went")
        wait_for(lambda: list(moved_by_address()) == [FIRST], 60, "the address that is gone is not in use")

        t.network.add_server_address(SECOND)

        def used_again():
            put(t.path("small"), b"something")
            return sorted(moved_by_address()) == [FIRST, SECOND]
        wait_for(used_again, 90, "the address that is back is in use")
        # First the connections: when Linux's server says goodbye from an address that just went, its rxe
        # may find no route for that, and answers no connection request any more (sides.Wire.cut).
        t.client.unmount(MOUNT)
    finally:
        t.network.remove_server_address(SECOND)
