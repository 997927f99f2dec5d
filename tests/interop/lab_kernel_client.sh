#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lab_kernel_client.sh: Linux's own NFS/RDMA client (siw) against nfs-rdmad's user-space iWARP, in
# one guest: server in namespace srv, client in the first one, a veth pair between them. Copies a
# tree in and out over v3, compares content and attributes, sets ACLs by NFSACL, captures the wire and
# looks at it with tshark on the host. Then disk quotas by RQUOTA, with Perl's Quota module and quota(1) as
# clients, of a server without CAP_SYS_ADMIN.
#
#   tests/interop/lab_kernel_client.sh [--knfsd] [--keep DIR]
#
#   --knfsd      the kernel's own server instead of ours: proves that the case itself is right
#   --keep DIR   leave logs and the capture in DIR
# shellcheck source=lab_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lab_common.sh"

lab_options knfsd "$@"
have tshark || need_deps test
if [[ $server == ours ]]; then stage "$bin/nfs-rdmad"; else mkdir -p "$stage/lib"; fi
cp "$root"/tests/interop/{lab_tree,lab_acl}.sh "$stage/"
stage_quota_tools

step "kernel client over siw against $server"
# shellcheck disable=SC2016  # runs in the guest
script='
. ./lab_tree.sh
. ./lab_acl.sh
. ./lab_quota.sh
trap '\''dmesg | tail -n 60 >dmesg.log'\'' EXIT
mkdir -p /export /mnt/a /tmp/state
mount -t tmpfs -o size=512m,mode=1777 export /export
if [[ '$server' == ours ]]; then
    rig pair none
    rig siw vc
    make_quotas /dev/vdb /quota
    ip netns exec srv rpcbind -w
    # As the unit has it.
    ip netns exec srv setpriv --bounding-set=-sys_admin ./nfs-rdmad --foreground \
        -e /export:rw,no_root_squash,insecure -e /quota:rw,no_root_squash,insecure \
        --listen 192.0.2.2 --port 20049 --tcp-port 2049 --fabric iwarp \
        --state-dir /tmp/state --control /tmp/control --log-level debug >server.log 2>&1 &
    server=$!
    await_ready server.log $server
    (((0x$(sed -n s/^CapPrm:.//p /proc/$server/status) & 1 << 21) == 0)) # CAP_SYS_ADMIN
    mount_options=,nolock,mountport=2049,mountproto=tcp
else
    rig pair siw
    umount /export
    rig nfsd /export srv
    mount_options=,nolock,mountproto=tcp
fi
modprobe -a rpcrdma nfsv3
begin_capture vc
do_mount() {
    timeout -k 1 40 mount -t nfs -o "rdma,port=20049,vers=3$mount_options" 192.0.2.2:/export /mnt/a
}
make_tree /tmp/tree
echo "tree: $(find /tmp/tree | wc -l) objects, $(du -sk /tmp/tree | cut -f1) KiB"

do_mount
grep " /mnt/a " /proc/mounts
cp -a /tmp/tree /mnt/a/in
umount /mnt/a
tree_sums /tmp/tree >want
(cd /export/in && tree_sums .) >exported
diff -u want exported
echo "in: the export has what was copied"

do_mount
cp -a /mnt/a/in /tmp/out
tree_sums /tmp/out | diff -u want -
echo "out: the same came back"
# The reverse of creating: rename, truncate, append, remove.
mv /mnt/a/in/size-4097 /mnt/a/in/renamed
truncate -s 100 /mnt/a/in/renamed
echo more >>/mnt/a/in/renamed
[[ $(stat -c %s /export/in/renamed) == 105 ]]
rm -r /mnt/a/in
[[ ! -e /export/in ]]
echo "removed"
df /mnt/a | tail -n 1
# 400 are more than a message in line takes. Linux 6.1 as server fails those with EIO.
entries=400
[[ '$server' == ours ]] || entries=100
check_acls /export /mnt/a $entries
echo "ACLs: set and seen on both sides"
umount /mnt/a
end_capture
if [[ '$server' == ours ]]; then
    rpcinfo -p 192.0.2.2
    check_quotas 192.0.2.2 /quota 0 /export
    timeout -k 1 40 mount -t nfs -o "rdma,port=20049,vers=3$mount_options" 192.0.2.2:/quota /mnt/a
    check_quota_program /mnt/a
    umount /mnt/a
    echo "quotas: told to whom they belong"
    kill -TERM $server
    wait $server
    echo "the server ended cleanly"
fi
'
in_guest "${LAB_LIMIT:-120}" "$script" -s 256 >"$stage/guest.log" 2>&1 || failed "the guest's part failed ($?)"
grep -E '^(ready|tree|in|out|removed|ACLs|quotas|the server)' "$stage/guest.log" | while read -r line; do note "$line"; done

check_wire "$stage/capture.pcap"
keep_logs
good "kernel client against $server: ok"
