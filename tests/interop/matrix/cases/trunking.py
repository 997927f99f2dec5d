# SPDX-License-Identifier: Apache-2.0
"""One session over several connections (session trunking, RFC 8881 2.10.5): nconnect."""
from bench import data, expect_digest, put
from case import case, expect_equal
from cases.faults import reading, writing
from sides import wait_for

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

    def used_again():
        put(t.path("small"), b"something")
        return trunk(t) == wanted
    wait_for(used_again, 60, "all connections bound to the new session")
