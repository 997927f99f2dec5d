#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lab_verbs_nfs.sh: nfs-rdmad on the verbs fabric, on rxe and on siw, each in a guest of its own: Linux's
# NFS/RDMA client mounts it and copies a tree in and out, then our own tool does the same over verbs.
# The server captures what Linux's client does with one file, where tcpdump sees nothing; out here tshark
# has to find all of it in the capture. Needs tshark.
#
#   tests/interop/lab_verbs_nfs.sh [rxe|siw]...
# shellcheck source=lab_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lab_common.sh"

drivers=()
for driver in "$@"; do
    [[ $driver =~ ^(rxe|siw)$ ]] || usage_error "unknown driver '$driver'"
    drivers+=("$driver")
done
((${#drivers[@]})) || drivers=(rxe siw)
for tool in tshark jq; do
    have "$tool" || cannot_run "$tool is missing (scripts/install-deps installs it)"
done
stage "$bin/nfs-rdmad" "$bin/nfs-rdma"
cp "$root/tests/interop/lab_tree.sh" "$stage/"

# shellcheck disable=SC2016  # runs in the guest
script='
. ./lab_tree.sh
rig $driver eth0
ulimit -l unlimited
mkdir -p /export /mnt/a /tmp/state
mount -t tmpfs -o size=512m,mode=1777 export /export
./nfs-rdmad --foreground -e /export:rw,no_root_squash,insecure --listen 10.0.2.15 \
    --port 20049 --tcp-port 2049 --fabric verbs --state-dir /tmp/state --control /tmp/control \
    --log-level debug >server.log 2>&1 &
server=$!
await_ready server.log $server
make_tree /tmp/tree
tree_sums /tmp/tree >want
modprobe -a rpcrdma nfsv3
timeout -k 1 40 mount -t nfs \
    -o rdma,port=20049,vers=3,nolock,mountport=2049,mountproto=tcp 10.0.2.15:/export /mnt/a
cp -a /tmp/tree /mnt/a/in
umount /mnt/a
(cd /export/in && tree_sums .) | diff -u want -
echo "kernel client, in: same"
timeout -k 1 40 mount -t nfs \
    -o rdma,port=20049,vers=3,nolock,mountport=2049,mountproto=tcp 10.0.2.15:/export /mnt/a
cp -a /mnt/a/in /tmp/out
tree_sums /tmp/out | diff -u want -
echo "kernel client, out: same"
./nfs-rdma status --server /tmp/control --json >status.log || :
grep -q "\"fabric\": *\"verbs\"" status.log
echo "status: verbs"
./nfs-rdma capture --server /tmp/control $driver.pcapng 2>capture.log &
capture=$!
for ((i = 0; i < 200; i++)); do [[ -s $driver.pcapng ]] && break; sleep 0.1; done
./nfs-rdma status --server /tmp/control --json >before.json || :
head -c 1000000 /dev/urandom >captured
cp captured /mnt/a/captured
sync -f /mnt/a
echo 3 >/proc/sys/vm/drop_caches
cmp captured /mnt/a/captured
umount /mnt/a
kill -INT $capture
wait $capture
cat capture.log
./nfs-rdma status --server /tmp/control --json >after.json || :
sums() { (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum); }
query="fabric=verbs&vers=3&mountport=2049&tcpport=2049"
timeout 60 ./nfs-rdma cp -r "nfs://10.0.2.15:20049/export/in?$query" /tmp/out2
timeout 60 ./nfs-rdma cp -r /tmp/out2 "nfs://10.0.2.15:20049/export/in2?$query"
diff <(sums /tmp/tree) <(sums /export/in2)
echo "our client, both ways: same"
kill -TERM $server
wait $server
echo "the server ended cleanly"
'
# The capture of 1000000 bytes that Linux's client has written and read, as Wireshark sees it.
check_capture() {
    local calls counted frames written read
    dissect() {
        tshark -2 -o tcp.try_heuristic_first:TRUE -o tcp.reassemble_out_of_order:TRUE -r "$stage/$1.pcapng" "${@:2}" 2>/dev/null
    }
    counted=$(jq -s 'map([.operations[].calls] | add) | .[1] - .[0]' "$stage/before.json" "$stage/after.json")
    frames=$(dissect "$1" | wc -l)
    calls=$(dissect "$1" -Y 'rpc.msgtyp == 0' -T fields -e rpc.xid | tr ',' '\n' | sort -u | wc -l)
    # DDP segments: opcode 0 is RDMA Write, 2 the response to an RDMA Read; 14 bytes of header each.
    moved() {
        dissect "$1" -Y iwarp_mpa -T fields -e iwarp_rdma.opcode -e iwarp_mpa.ulpdulength |
            awk -v wanted="$2" '{ n = split($1, op, ","); split($2, len, ",")
                for (i = 1; i <= n; i++) { sub(/^0x/, "", op[i]); if (op[i] + 0 == wanted) sum += len[i] - 14 } } END { print sum + 0 }'
    }
    written=$(moved "$1" 2)
    read=$(moved "$1" 0)
    note "capture: $frames frames, $calls calls of $counted, $written bytes by RDMA Read, $read by RDMA Write"
    if ((calls != counted)); then fail "$1: the capture has other calls than the server counted"; return 1; fi
    if ((written < 1000000 || read < 1000000)); then fail "$1: bytes are missing in the capture"; return 1; fi
    if [[ -n $(dissect "$1" -Y 'tcp.analysis.flags') ]]; then fail "$1: the capture is no whole TCP stream"; return 1; fi
    dissect "$1" -Y 'nfs.procedure_v3 == 7 && rpc.msgtyp == 0' | grep -q WRITE ||
        { fail "$1: no WRITE in the capture"; return 1; }
}
bad=0
for driver in "${drivers[@]}"; do
    step "nfs-rdmad on verbs over $driver"
    log=$stage/$driver.log
    status=0
    in_guest "${LAB_LIMIT:-150}" "driver=$driver$script" >"$log" 2>&1 || status=$?
    grep -E '^(ready|kernel|our|status|the server)' "$log" | while read -r line; do note "$line"; done
    if ((status == 0)); then check_capture "$driver" || status=$?; fi
    if ((status != 0)); then
        tail -n 20 "$log" "$stage/server.log" >&2
        fail "$driver: failed ($status)"
        bad=1
    fi
done
exit "$bad"
