# SPDX-License-Identifier: Apache-2.0
"""The cells of the interop matrix: who serves, who mounts, over what.

A cell is a few words of description and three small objects (sides.py). What a cell cannot do in
principle is in EXCEPTIONS with its reason, and in every result table: nothing is left out silently.
"""
import dataclasses
import fnmatch

import host
import sides


@dataclasses.dataclass(frozen=True)
class Cell:
    name: str
    what: str
    network: object
    server: object
    client: object
    programs: tuple = ()  # of ours, that the guest needs
    kind: str = "mount"
    control: bool = False  # no program of ours in it: checks the cases, runs when named


SERVER = ("nfs-rdmad", "nfs-rdma")
BOTH = ("nfs-rdmad", "mount.nfs-rdma", "nfs-rdma")

CELLS = [
    Cell("0-knfsd-kernel-siw", "knfsd on siw <- Linux client on siw",
         sides.Pair(client="siw", server="siw"), sides.Knfsd(), sides.KernelClient(), control=True),
    Cell("0-knfsd-kernel-rxe", "knfsd on rxe <- Linux client on rxe",
         sides.Wire("rxe"), sides.Knfsd(), sides.KernelClient(), control=True),
    *(Cell(f"0-knfsd-kernel-{version}", f"knfsd on siw <- Linux client on siw, NFS version {version}",
           sides.Pair(client="siw", server="siw"), sides.Knfsd(exported="/"),
           sides.KernelClient(version=version), control=True) for version in ("4.0", "4.2")),
    Cell("1-iwarp-kernel", "nfs-rdmad, iwarp engine <- Linux client on siw",
         sides.Pair(client="siw"), sides.OurServer("iwarp"), sides.KernelClient(), BOTH),
    Cell("1-iwarp-kernel-4.0", "nfs-rdmad, iwarp engine <- Linux client on siw, NFS version 4.0",
         sides.Pair(client="siw"), sides.OurServer("iwarp"), sides.KernelClient(version="4.0"),
         BOTH),
    Cell("1-iwarp-kernel-4.1", "nfs-rdmad, iwarp engine <- Linux client on siw, NFS version 4.1",
         sides.Pair(client="siw"), sides.OurServer("iwarp"), sides.KernelClient(version="4.1"),
         BOTH),
    Cell("1-iwarp-kernel-4.2", "nfs-rdmad, iwarp engine <- Linux client on siw, NFS version 4.2",
         sides.Pair(client="siw"), sides.OurServer("iwarp"), sides.KernelClient(version="4.2"),
         BOTH),
    Cell("1-iwarp-kernel-tap", "nfs-rdmad on the host, iwarp engine <- Linux client on siw, by a tap",
         host.Tap(), host.HostServer("iwarp"), sides.KernelClient(), BOTH),
    *(Cell(f"1-iwarp-kernel-tap-{version}", "nfs-rdmad on the host, iwarp engine <- Linux client on siw, by a tap, "
           f"NFS version {version}", host.Tap(), host.HostServer("iwarp"), sides.KernelClient(version=version), BOTH)
      for version in ("4.0", "4.1", "4.2")),
    Cell("2-rxe-kernel", "nfs-rdmad, verbs on rxe <- Linux client on rxe",
         sides.Wire("rxe"), sides.OurServer("verbs"), sides.KernelClient(), BOTH),
    Cell("2-rxe-kernel-4.0", "nfs-rdmad, verbs on rxe <- Linux client on rxe, NFS version 4.0",
         sides.Wire("rxe"), sides.OurServer("verbs"), sides.KernelClient(version="4.0"), BOTH),
    Cell("2-rxe-kernel-4.1", "nfs-rdmad, verbs on rxe <- Linux client on rxe, NFS version 4.1",
         sides.Wire("rxe"), sides.OurServer("verbs"), sides.KernelClient(version="4.1"), BOTH),
    Cell("2-rxe-kernel-4.2", "nfs-rdmad, verbs on rxe <- Linux client on rxe, NFS version 4.2",
         sides.Wire("rxe"), sides.OurServer("verbs"), sides.KernelClient(version="4.2"), BOTH),
    Cell("3-siw-kernel", "nfs-rdmad, verbs on siw <- Linux client on siw",
         sides.Pair(client="siw", server="siw"), sides.OurServer("verbs"), sides.KernelClient(),
         BOTH),
    Cell("3-siw-kernel-4.0", "nfs-rdmad, verbs on siw <- Linux client on siw, NFS version 4.0",
         sides.Pair(client="siw", server="siw"), sides.OurServer("verbs"),
         sides.KernelClient(version="4.0"), BOTH),
    Cell("3-siw-kernel-4.1", "nfs-rdmad, verbs on siw <- Linux client on siw, NFS version 4.1",
         sides.Pair(client="siw", server="siw"), sides.OurServer("verbs"),
         sides.KernelClient(version="4.1"), BOTH),
    Cell("3-siw-kernel-4.2", "nfs-rdmad, verbs on siw <- Linux client on siw, NFS version 4.2",
         sides.Pair(client="siw", server="siw"), sides.OurServer("verbs"),
         sides.KernelClient(version="4.2"), BOTH),
    Cell("4-knfsd-iwarp", "knfsd on siw <- our mount, iwarp engine",
         sides.Pair(server="siw"), sides.Knfsd(), sides.OurClient("iwarp"), BOTH),
    Cell("4-knfsd-iwarp-4.0", "knfsd on siw <- our mount, iwarp engine, NFS version 4.0",
         sides.Pair(server="siw"), sides.Knfsd(exported="/"), sides.OurClient("iwarp", "4.0"),
         BOTH),
    Cell("4-knfsd-iwarp-4.1", "knfsd on siw <- our mount, iwarp engine, NFS version 4.1",
         sides.Pair(server="siw"), sides.Knfsd(exported="/"), sides.OurClient("iwarp", "4.1"),
         BOTH),
    Cell("4-knfsd-iwarp-4.2", "knfsd on siw <- our mount, iwarp engine, NFS version 4.2",
         sides.Pair(server="siw"), sides.Knfsd(exported="/"), sides.OurClient("iwarp", "4.2"),
         BOTH),
    Cell("5-knfsd-rxe", "knfsd on rxe <- our mount, verbs",
         sides.Wire("rxe"), sides.Knfsd(), sides.OurClient("verbs"), BOTH),
    *(Cell(f"5-knfsd-rxe-{version}", f"knfsd on rxe <- our mount, verbs, NFS version {version}",
           sides.Wire("rxe"), sides.Knfsd(exported="/"), sides.OurClient("verbs", version), BOTH)
      for version in ("4.0", "4.1")),
    Cell("5-knfsd-rxe-4.2", "knfsd on rxe <- our mount, verbs, NFS version 4.2",
         sides.Wire("rxe"), sides.Knfsd(exported="/"), sides.OurClient("verbs", "4.2"), BOTH),
    *(Cell(f"6-{devices}{'' if version == '3' else f'-{version}'}",
           f"nfs-rdmad, {server} <- our mount, {client}, NFS version {version}", network(),
           sides.OurServer(server.split()[0]), sides.OurClient(client.split()[0], version), BOTH)
      for devices, server, client, network in (
          ("rxe-rxe", "verbs on rxe", "verbs on rxe", lambda: sides.Wire("rxe")),
          ("siw-siw", "verbs on siw", "verbs on siw",
           lambda: sides.Pair(client="siw", server="siw")),
          ("siw-iwarp", "verbs on siw", "iwarp engine", lambda: sides.Pair(server="siw")),
          ("iwarp-siw", "iwarp engine", "verbs on siw", lambda: sides.Pair(client="siw")))
      for version in ("3", "4.0", "4.1", "4.2")),
    Cell("8-soak-tap", "nfs-rdmad on the host, iwarp engine <- Linux client on siw, by a tap, and our "
         "client on the host", host.Tap(), host.HostServer("iwarp"), sides.KernelClient(), BOTH,
         kind="soak"),
    Cell("7-tcp-kernel", "nfs-rdmad on TCP <- Linux client over TCP",
         sides.Pair(), sides.OurServer("none"), sides.KernelClient(rdma=False), BOTH),
    Cell("7-tcp-kernel-4.0", "nfs-rdmad on TCP <- Linux client over TCP, NFS version 4.0",
         sides.Pair(), sides.OurServer("none"), sides.KernelClient(rdma=False, version="4.0"), BOTH),
    Cell("7-tcp-kernel-4.1", "nfs-rdmad on TCP <- Linux client over TCP, NFS version 4.1",
         sides.Pair(), sides.OurServer("none"), sides.KernelClient(rdma=False, version="4.1"), BOTH),
    Cell("7-tcp-kernel-4.2", "nfs-rdmad on TCP <- Linux client over TCP, NFS version 4.2",
         sides.Pair(), sides.OurServer("none"), sides.KernelClient(rdma=False, version="4.2"), BOTH),
    Cell("7-knfsd-ours", "knfsd on TCP <- our mount over TCP",
         sides.Pair(), sides.Knfsd(), sides.OurClient("tcp"), BOTH),
    *(Cell(f"7-knfsd-ours-{version}", f"knfsd on TCP <- our mount over TCP, NFS version {version}",
           sides.Pair(), sides.Knfsd(exported="/"), sides.OurClient("tcp", version), BOTH)
      for version in ("4.0", "4.1", "4.2")),
    *(Cell(f"7-tcp-ours-{version}", f"nfs-rdmad on TCP <- our mount over TCP, NFS version {version}",
           sides.Pair(), sides.OurServer("none"), sides.OurClient("tcp", version), BOTH)
      for version in ("3", "4.0", "4.1", "4.2")),
    Cell("7-tcp-libnfs", "nfs-rdmad on TCP <- libnfs",
         sides.Pair(), sides.OurServer("none"), sides.Libnfs(), SERVER, kind="libnfs"),
    Cell("7-tcp-libnfs-4.0", "nfs-rdmad on TCP <- libnfs, NFS version 4.0",
         sides.Pair(), sides.OurServer("none"), sides.Libnfs("4"), SERVER, kind="libnfs"),
]

# (cells, cases, why not): the first line that fits counts; with None the case has its place.
EXCEPTIONS = [
    ("*-tap-4.*", "locks-local", "QEMU's 9P takes no locks of the host's files"),
    ("*-tap-4.2", "reflink", "the case mounts an XFS below the export, which a guest cannot at its host"),
    ("*-knfsd-*", "spin", "NFSoRDMA_SPIN is a key of nfs-rdmad"),
    ("7-*", "credits-*", "credits belong to RPC-over-RDMA"),
    ("7-*", "inline-*", "inline thresholds belong to RPC-over-RDMA"),
    ("7-*", "crc-*", "CRC belongs to iWARP"),
    ("*rxe*", "crc-*", "RoCE always has its ICRC; there is nothing to negotiate"),
    ("*rxe*", "link-cut-[sc]*", "Linux 6.1's rxe ends an RDMA Read without its data when packets were "
     "lost: a NAK acknowledges Reads before it, too (check_ack() in rxe_comp.c), and check_psn() then "
     "takes their last response for all. Seen: knfsd wrote 16 KiB, one of its Read work requests, "
     "from an older call. link-cut-idle runs"),
    ("3-siw-kernel*", "crc-on", "Linux's siw never asks for CRC and has no parameter for it"),
    ("0-*siw", "crc-on", "Linux's siw never asks for CRC and has no parameter for it"),
    ("6-siw-siw*", "crc-on", "Linux's siw never asks for CRC and has no parameter for it"),
    ("7-tcp-libnfs-4.0", "libnfs-*restart*", "by version 4 libnfs 4.0 does not connect again: "
     "rpc_set_autoreconnect() is called in nfs_v3.c alone"),
    ("[456]-*", "versions", "the case is about what Linux's client agrees on"),
    ("7-*-ours*", "versions", "the case is about what Linux's client agrees on"),
    ("0-knfsd-*", "credits-[12]", "knfsd's sysctl max_requests takes no fewer than 4, Linux's client neither"),
    ("[456]-*-4.[012]", "delegations-ours", None),
    ("7-*-ours-4.[012]", "delegations-ours", None),
    ("*", "delegations-ours", "the case is about our client of version 4"),
    ("[456]-*-4.[12]", "opens-ours", None),
    ("7-*-ours-4.[12]", "opens-ours", None),
    ("*", "opens-ours", "the case is about our client of version 4.1 and later"),
    *(("*-kernel*", case, "the case is about our client") for case in ("locks-dead", "library", "command")),
    ("*-4.[012]", "locks-dead", "version 4 has leases for that"),
    ("*-kernel*-4.*", "locks*", None),
    ("[456]-*-4.[012]", "locks*", None),
    ("7-*-ours-4.[012]", "locks*", None),
    ("[456]-*", "locks*", None),
    ("7-*-ours*", "locks*", None),
    ("[1-9]-*-kernel*-4.*", "reclaim", None),
    ("*", "reclaim", "open files and locks are reclaimed in version 4; the case asks our server what it has"),
    ("7-tcp-kernel-4.*", "release", None),
    ("*", "release", "version 4 tells clients what was revoked; the case asks our server to do it, and exports and "
     "mounts beside the cell's own"),
    ("7-tcp-kernel-4.[12]", "trunking", None),
    ("7-tcp-ours-4.[12]", "trunking", None),
    ("6-*-4.[12]", "trunking", None),
    ("*", "trunking", "Linux's client binds several connections to a session over TCP alone (over RDMA "
     "nconnect=4 gave one), and the case asks our server, version 4.1 or 4.2, for them"),
    ("[457]-knfsd-*-4.[12]", "trunk-discovery", None),
    ("*", "trunk-discovery", "the case is about our client of version 4.1 and later and Linux's server; "
     "tests/interop/fuse_trunking.sh has ours"),
    ("*-kernel*-4.*", "acl", None),
    ("[123]-*-kernel*-4.0", "*delegations", "over RDMA Linux's client of version 4.0 names netid rdma "
     "for callbacks that it takes over TCP alone, so that no server calls it"),
    ("*-kernel*-4.*", "*delegations", None),
    ("*-4.2", "server-copy", None),
    ("*", "server-copy", "COPY came with version 4.2"),
    ("*-4.2", "space", None),
    ("*", "space", "ALLOCATE, DEALLOCATE and SEEK came with version 4.2"),
    ("*-4.2", "xattrs", None),
    ("*", "xattrs", "extended attributes came with version 4.2"),
    ("*-kernel*-4.2", "reflink", None),
    ("*", "reflink", "CLONE came with version 4.2, and FUSE passes no FICLONE on: clone-ours is about our client"),
    ("[456]-*-4.2", "clone-ours", None),
    ("7-*-ours-4.2", "clone-ours", None),
    ("*", "clone-ours", "the case is about our client of version 4.2"),
    ("*-kernel*-4.*", "referral", None),
    *((cells, case, why) for cells in ("[456]-*-4.*", "7-*-ours-4.*") for case, why in (
        ("referral", "the case is about Linux's client; referral-ours is about ours"),
        ("referral-ours", None),
        ("*delegations", "the case is about Linux's client; delegations-ours is about ours"),
        ("acl", "the case is about Linux's client; tests/interop/fuse_acl.sh is about ours"))),
    ("*", "referral-ours", "the case is about our client of version 4"),
    ("*", "referral", "version 3 has no referrals"),
    ("*", "*delegations", "version 3 has no delegations"),
    ("*", "acl", "the case is about ACLs of version 4; nfsacl is about those of version 3"),
    ("*-4.[012]", "nfsacl", "NFSACL goes with version 3"),
    ("*", "locks*", "Linux's clients of version 3 lock in lab_nlm.sh, with rpcbind and status monitors on "
     "both sides; here they mount with nolock"),
]


def cell_by_name(name):
    return next(cell for cell in CELLS if cell.name == name)


def why_not(cell, case):
    """Why this case has no place in this cell, or None when it has."""
    for cells, cases, reason in EXCEPTIONS:
        if fnmatch.fnmatchcase(cell.name, cells) and fnmatch.fnmatchcase(case.name, cases):
            return reason
    return None


def belongs(cell, case):
    return cell.kind == case.kind
