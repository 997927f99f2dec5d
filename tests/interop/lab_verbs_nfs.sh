#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lab_verbs_nfs.sh: nfs-rdmad on the verbs fabric, on rxe and on siw, each in a guest of its own: Linux's
# NFS/RDMA client mounts it and copies a tree in and out, then our own tool does the same over verbs.
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
umount /mnt/a
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
bad=0
for driver in "${drivers[@]}"; do
    step "nfs-rdmad on verbs over $driver"
    log=$stage/$driver.log
    status=0
    in_guest "${LAB_LIMIT:-150}" "driver=$driver$script" >"$log" 2>&1 || status=$?
    grep -E '^(ready|kernel|our|status|the server)' "$log" | while read -r line; do note "$line"; done
    if ((status != 0)); then
        tail -n 20 "$log" "$stage/server.log" >&2
        fail "$driver: failed ($status)"
        bad=1
    fi
done
exit "$bad"
