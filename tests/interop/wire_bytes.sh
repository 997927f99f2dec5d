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
# shellcheck source=tests/interop/wire_lib.sh
. "$here/tests/interop/wire_lib.sh"

mib=${1:-48}
wire_programs

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
work, size = sys.argv[1], int(sys.argv[2])
tshark = json.load(open(f"{work}/tshark.json"))
write, read = tshark["rdma_write"], tshark["rdma_read"]
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
if tshark["malformed"]:
    bad.append(f"tshark calls {tshark['malformed']} frames malformed")
sys.exit("; ".join(bad) if bad else 0)
PY

one_run() {
    rm -rf "$export_dir/in" "$work/out"
    wire_begin 256
    step "in and out over iWARP"
    mount_it
    cp -r "$work/tree" "$mnt/in" || fail "copy in"
    unmount_it  # what was cached goes with it: the copy out comes over the wire
    mount_it
    cp -r "$mnt/in" "$work/out" || fail "copy out"
    same_tree "$work/tree" "$work/out"
    same_moment
    unmount_it
    wire_end || return
    step "what tshark counts"
    wire_count "$work/tshark.json" || return
    python3 "$work/compare.py" "$work" "$size"
}
# The server's counters begin with it.
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
