# SPDX-License-Identifier: Apache-2.0
"""An export with refer=: Linux's client goes on to the server that it names, and so does ours."""
import errno
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


def refer(t, name, where=f"{SECOND_EXPORT}@{SECOND_ADDRESS}"):
    """From now on `name` in the case's directory is an export that is at the second server."""
    t.client.unmount(MOUNT)
    t.server.stop()
    shutil.rmtree(f"{t.server.near}/state")  # nobody is to be waited for
    t.server.command += ["-e", f"{t.server_path(name)}:refer={where}"]
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


# Our own client goes where the referral says, port and all (RFC 8881 11.16), so that the second server needs no
# address of its own beside Linux's, which listens on all of them.
RDMA_PORT, TCP_PORT = 20090, 20091


def start_second_elsewhere(t):
    """Another nfs-rdmad at the server's address, on other ports, by the client's transport."""
    shutil.rmtree(SECOND_EXPORT, ignore_errors=True)
    os.mkdir(SECOND_EXPORT)
    by = {"tcp": "none", "iwarp": "iwarp", "verbs": "verbs"}[t.client.fabric]
    # rpcbind has the first server's ports, be it ours or Linux's.
    second = sides.OurServer(t.server.fabric if t.server.ours else by, RDMA_PORT, TCP_PORT,
                             keys=["NFSoRDMA_RPCBIND=no"])
    second.near = second.far = "/run/nfs-rdmad-second"
    second.folder = second.exported = SECOND_EXPORT
    second.set_up_cell(t.network)
    second.start(t.settings)
    return second


def refer_linux(t, name, where):
    """The same of Linux's server, whose referrals are mount points."""
    folder = t.server_path(name)
    sides.run("mount", "--bind", folder, folder)
    sides.run(*t.network.in_server, "exportfs", "-o", f"rw,no_root_squash,insecure,no_subtree_check,refer={where}",
              f"*:{os.fsdecode(folder)}")


def end_linux(t, name):
    folder = t.server_path(name)
    sides.run(*t.network.in_server, "exportfs", "-u", f"*:{os.fsdecode(folder)}")
    sides.run("umount", folder)


@case("referral-ours", limit=180)
def referral_ours(t):
    second = start_second_elsewhere(t)
    content = data(100000)
    put(f"{SECOND_EXPORT}/file", content)
    os.mkdir(t.server_path("away"))
    put(t.server_path("near"), b"here")
    port = TCP_PORT if t.client.fabric == "tcp" else RDMA_PORT
    host = f"{t.network.server_address}.{port // 256}.{port % 256}"
    if t.server.ours:
        refer(t, "away", f"{SECOND_EXPORT}@{host}")
    else:
        refer_linux(t, "away", f"{SECOND_EXPORT}@{host}")
        t.remount()

    expect_equal(sorted(os.listdir(t.there)), ["away", "near"], "the names beside the referral")
    expect_equal(os.stat(t.path("away")).st_mode & 0o777, 0o555, "the mode of the directory before anybody enters it")
    expect_equal(sides.status("--mount", MOUNT)["referrals"], [], "servers behind the mount then")
    expect_equal(get(t.path("near")), b"here", "a file beside it")
    os.mkdir(t.path("away/first"))
    expect_equal(get(t.path("away/file")), content, "a file behind it")
    (tree,) = sides.status("--mount", MOUNT)["referrals"]
    expect_equal((tree["name"], tree["source"]), ("away", f"{t.network.server_address}:{SECOND_EXPORT}"),
                 "the server behind the mount")
    expect_equal([c["fabric"] for c in tree["connections"]], [t.client.fabric], "how it is connected")
    expect_equal(tree["nfs_version"], t.client.version, "the version of NFS there")

    put(t.path("away/new"), content[:5000], sync=True)
    expect_equal(get(f"{SECOND_EXPORT}/new"), content[:5000], "the file on the second server")
    expect_equal(os.listdir(t.server_path("away")), [], "the names on the first")
    try:
        os.rename(t.path("near"), t.path("away/near"))
        expect(False, "a file was renamed from one server to the other")
    except OSError as error:
        expect_equal(error.errno, errno.EXDEV, "renaming from one server to the other")
    shutil.move(t.path("away/new"), t.path("came"))
    expect_equal(get(t.server_path("came")), content[:5000], "what was moved to the first server")

    second.crash_and_restart()
    put(t.path("away/later"), content, sync=True)
    expect_equal(get(f"{SECOND_EXPORT}/later"), content, "a file behind the second server's restart")
    t.client.unmount(MOUNT)
    expect_equal(second.status()["connections"], [], "connections of the second server in the end")
    if not t.server.ours:
        end_linux(t, "away")
    t.mount()
    second.stop()
