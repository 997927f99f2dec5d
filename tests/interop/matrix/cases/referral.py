# SPDX-License-Identifier: Apache-2.0
"""An export with refer=: Linux's client goes on to the server that it names."""
import os
import shutil
import types

import sides
from bench import MOUNT, data, get, put
from case import case, expect, expect_equal

# Linux's client looks for it at port 20049 by RDMA and, where nobody answers there, at port 2049 by TCP, whatever
# the first server has.
SECOND_ADDRESS = "192.0.2.3"
SECOND_EXPORT = "/run/away"


def start_second(t):
    """Another nfs-rdmad, beside the server."""
    shutil.rmtree(SECOND_EXPORT, ignore_errors=True)
    os.mkdir(SECOND_EXPORT)
    t.network.add_server_address(SECOND_ADDRESS)
    second = sides.OurServer(t.server.fabric)
    second.near = second.far = "/run/nfs-rdmad-second"
    second.folder = second.exported = SECOND_EXPORT
    second.set_up_cell(types.SimpleNamespace(in_server=t.network.in_server,
                                             server_address=SECOND_ADDRESS))
    second.start(t.settings)
    return second


def refer(t, name):
    """From now on `name` in the case's directory is an export that is at the second server."""
    t.client.unmount(MOUNT)
    t.server.stop()
    shutil.rmtree(f"{t.server.near}/state")  # nobody is to be waited for
    t.server.command += ["-e", f"{t.server_path(name)}:refer={SECOND_EXPORT}@{SECOND_ADDRESS}"]
    t.server.restart()
    t.mount()


@case("referral", limit=180)
def referral(t):
    second = start_second(t)
    content = data(100000)
    put(f"{SECOND_EXPORT}/file", content)
    os.mkdir(t.server_path("away"))
    put(t.server_path("near"), b"here")
    refer(t, "away")

    expect_equal(sorted(os.listdir(t.there)), ["away", "near"], "the names beside the referral")
    expect_equal(get(t.path("near")), b"here", "a file beside it")
    expect_equal(get(t.path("away/file")), content, "a file behind it")
    line = sides.mounted(t.path("away")) or "nothing"
    expect(line.startswith(f"{SECOND_ADDRESS}:{SECOND_EXPORT} "), f"mounted there: {line}")
    wanted = "proto=tcp" if second.fabric == "none" else "proto=rdma"
    expect(wanted in line.replace(" ", ",").split(","), f"not mounted by {wanted}: {line}")

    put(t.path("away/new"), content[:5000], sync=True)
    expect_equal(get(f"{SECOND_EXPORT}/new"), content[:5000], "the file on the second server")
    expect_equal(os.listdir(t.server_path("away")), [], "the names on the first")

    sides.run("umount", t.path("away"), limit=45)
    second.stop()
    t.network.remove_server_address(SECOND_ADDRESS)
