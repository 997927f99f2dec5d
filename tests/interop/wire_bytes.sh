#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# wire_bytes.sh [MIB]     does `nfs-rdma status` say what is on the wire?
#
# Copies MIB (default 48) of files into a FUSE mount over iWARP and out of it again while dumpcap
# records the loopback interface. Three independent counts must agree: the payload that tshark sees
# in RDMA Writes and RDMA Read Responses, `status` on the server and on the mount, and the sizes of
# the files. Needs root, tshark and python3.
set -euo pipefail
# shellcheck source=tests/interop/mount_lib.sh
. "$(dirname "$(readlink -f "$0")")/mount_lib.sh"

mib=${1:-48}
for program in dumpcap tshark python3; do
    command -v "$program" >/dev/null || fail "$program is missing (scripts/install-deps installs it)"
done
dumpcap_pid=''
extra_cleanup() { [[ -z $dumpcap_pid ]] || kill "$dumpcap_pid" 2>/dev/null || :; }

step "a tree of $mib MiB"
mkdir "$work/tree"
files=12
for ((i = 0; i < files; i++)); do
    # No multiple of anything; what is left after the last whole MiB is above what travels inline.
    head -c $(((mib / files << 20) + i * 7919 + 5013)) /dev/urandom >"$work/tree/f$i"
done
size=$(find "$work/tree" -type f -printf '%s\n' | awk '{ s += $1 } END { print s }')

cat >"$work/compare.py" <<'PY'
import json, sys
work, size, malformed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
WRITE, READ_RESPONSE, TAGGED_HEADER = 0, 2, 14  # DDP tagged header, RFC 5041 section 4.3
seen = {}
for line in open(f"{work}/fpdus"):
    opcodes, lengths = (field.split(",") for field in line.rstrip("\n").split("\t"))
    if opcodes == [""]:
        continue  # MPA start-up
    if len(opcodes) != len(lengths) or any(int(o, 0) > 7 for o in opcodes):
        print(f"   tshark lost the FPDU boundaries at: {line.strip()}")
        sys.exit(3)
    for opcode, length in zip(opcodes, lengths):
        opcode = int(opcode, 0)
        seen[opcode] = seen.get(opcode, 0) + int(length, 0) - TAGGED_HEADER
write, read = seen.get(WRITE, 0), seen.get(READ_RESPONSE, 0)
server = json.load(open(f"{work}/server.json"))["totals"]  # both mounts' connections
mount = json.load(open(f"{work}/mount.json"))["connections"]
mount_write = sum(c["rdma_write_bytes"] for c in mount)
rows = [("", "RDMA Write", "RDMA Read"), ("tshark", write, read),
        ("status of the server", server["rdma_write_bytes"], server["rdma_read_bytes"]),
        ("status of the second mount", mount_write, 0), ("sizes of the files", size, size)]
for row in rows:
    print("   %-28s %14s %14s" % row)
bad = []
if write != server["rdma_write_bytes"] or read != server["rdma_read_bytes"]:
    bad.append("the server's status does not say what is on the wire")
if read != size:
    bad.append("RDMA Reads did not carry the files exactly once")
# Directory listings may come in a Reply chunk, which is an RDMA Write as well.
if not size <= mount_write <= size + 65536 or not mount_write <= write:
    bad.append("RDMA Writes did not carry the files exactly once")
if malformed:
    bad.append(f"tshark calls {malformed} frames malformed")
sys.exit("; ".join(bad) if bad else 0)
PY

# A segment that loopback sends twice (busy machine) can make tshark lose the FPDU boundaries for
# good; only then is there a second and third try.
one_run() {
    dumpcap -q -i lo -f "tcp port $port" -B 512 -w "$work/lo.pcap" >"$work/dumpcap.log" 2>&1 &
    dumpcap_pid=$!
    for ((i = 0; i < 100; i++)); do [[ -s $work/lo.pcap ]] && break; sleep 0.1; done
    [[ -s $work/lo.pcap ]] || { cat "$work/dumpcap.log" >&2; fail "dumpcap does not start"; }

    rm -rf "$export_dir/in" "$work/out"
    step "in and out over iWARP"
    mount_it
    cp -r "$work/tree" "$mnt/in" || fail "copy in"
    unmount_it  # what was cached goes with it: the copy out comes over the wire
    mount_it
    cp -r "$mnt/in" "$work/out" || fail "copy out"
    same_tree "$work/tree" "$work/out"
    "$bin/nfs-rdma" status --mount "$mnt" --json >"$work/mount.json" || fail "the mount does not use RDMA"
    "$bin/nfs-rdma" status --server "$work/control.sock" --json >"$work/server.json" || fail "status of the server"
    unmount_it
    sleep 1 # dumpcap writes what it has
    kill -INT "$dumpcap_pid"
    wait "$dumpcap_pid" || :
    dumpcap_pid=''
    if grep -oE '[0-9]+/[0-9]+ \(' "$work/dumpcap.log" | grep -qv '/0 ('; then
        cat "$work/dumpcap.log" >&2
        fail "dumpcap dropped packets; nothing can be said"
    fi

    step "what tshark counts"
    # Heuristics first: the ports are ephemeral, and some belong to other protocols. Without its NFS
    # dissector: that gives up on a READ reply whose data is in a chunk, and with the rest of such a TCP
    # segment tshark loses where the next FPDU begins.
    decode() {
        tshark --disable-protocol nfs -o tcp.try_heuristic_first:TRUE -o tcp.reassemble_out_of_order:TRUE \
            -r "$work/lo.pcap" "$@"
    }
    decode -Y iwarp_mpa -T fields -e iwarp_rdma.opcode -e iwarp_mpa.ulpdulength \
        >"$work/fpdus" 2>"$work/tshark.log" || { cat "$work/tshark.log" >&2; fail "tshark"; }
    malformed=$(decode -Y _ws.malformed 2>/dev/null | wc -l)
    python3 "$work/compare.py" "$work" "$size" "$malformed"
}
for _ in 1 2 3; do
    start_server
    status=0
    one_run || status=$?
    ((status == 3)) || break
    kill "$server_pid"
    wait "$server_pid" || :
    server_pid=''
done
((status == 0)) || fail "the counts differ"
echo "the counts agree"
