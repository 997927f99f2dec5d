#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lab_knfsd.sh: our client (nfs-rdma, user-space iWARP) against the kernel's NFS/RDMA server on siw,
# in one guest: knfsd in namespace srv, our client in the first one, a veth pair between them. Copies
# a tree in and out over v3, compares, captures the wire and looks at it with tshark on the host;
# small files over v4.1 and v4.2; and every operation of the library over each version.
#
#   tests/interop/lab_knfsd.sh [--keep DIR]
#
#   --keep DIR   leave logs and the capture in DIR
# shellcheck source=lab_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lab_common.sh"

lab_options '' "$@"
have tshark || need_deps test
stage "$bin/nfs-rdma" "$bin/libnfsrdma_operations"
cp "$root/tests/interop/lab_tree.sh" "$stage/"

step "our client over iWARP against knfsd on siw"
# shellcheck disable=SC2016  # runs in the guest
script='
. ./lab_tree.sh
trap '\''dmesg | tail -n 60 >dmesg.log'\'' EXIT
rig pair siw
rig nfsd /export srv
# The tool copies content, modes and links; hard links and holes are the mount'\''s business.
make_tree /tmp/tree
rm /tmp/tree/deep/er/still/hard
url="nfs://192.0.2.2:20049/export?fabric=iwarp&vers=3"
of() { echo "${url/\/export\?//export/$1?}"; }
contents() { (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum; find . -type l -printf "%p -> %l\n" | sort; find . -type d | sort); }
begin_capture vc
echo "tree: $(find /tmp/tree | wc -l) objects, $(du -sk /tmp/tree | cut -f1) KiB"
timeout 20 ./nfs-rdma ping "$url"
timeout 60 ./nfs-rdma cp -r /tmp/tree "$(of in)"
contents /tmp/tree >want
(contents /export/in) | diff -u want -
echo "in: the export has what was copied"
timeout 60 ./nfs-rdma cp -r "$(of in)" /tmp/out
contents /tmp/out | diff -u want -
echo "out: the same came back"
timeout 20 ./nfs-rdma ls "$(of in/deep/er)" | wc -l
timeout 20 ./nfs-rdma cat "$(of in/size-3000001)" | cmp - /tmp/tree/size-3000001
echo "cat: same"
end_capture
# Small files in one COMPOUND each, new ones and over old ones; nothing stays open.
mkdir /tmp/small
for n in $(seq 200); do head -c $((n * 400)) /dev/urandom >/tmp/small/n$n; done
for version in 4.1 4.2; do
    # /export is where version 4 begins.
    export="nfs://192.0.2.2:20049/?fabric=iwarp&vers=$version"
    for n in 1 2; do timeout 60 ./nfs-rdma cp -r /tmp/small "$export"; done
    # With the smallest messages, too: every reply of more than 1024 bytes needs a chunk.
    timeout 60 ./nfs-rdma cp -r "nfs://192.0.2.2:20049/small?fabric=iwarp&vers=$version&inline=1024" /tmp/again
    contents /tmp/small >want
    (contents /export/small) | diff -u want -
    contents /tmp/again | diff -u want -
    rm -r /tmp/again
    [ "$(stat -c %a /export/small/n1)" = 644 ]
    open=$(ip netns exec srv cat /proc/fs/nfsd/clients/*/states 2>/dev/null | grep -c "type: open") || :
    [ "$open" = 0 ]
    rm -r /export/small
done
echo "small: same, nothing open"
for version in 3 4.0 4.1 4.2; do
    mkdir "/export/ops-$version"
    [ "$version" = 3 ] && where=export/ || where=
    timeout 60 ./libnfsrdma_operations \
        "nfs://192.0.2.2:20049/${where}ops-$version?fabric=iwarp&vers=$version" "$version"
    rm -r "/export/ops-$version"
done
echo "library: every operation, by 3, 4.0, 4.1 and 4.2"
# siw misses the first message of a connection now and then (wire.md 8.2): the nudge must save all.
for i in $(seq "${CONNECTS:-40}"); do
    timeout 10 ./nfs-rdma stat "$url" >/dev/null || { echo "connection $i failed"; exit 1; }
done
echo "connects: all answered"
'
in_guest "${LAB_LIMIT:-240}" "$script" >"$stage/guest.log" 2>&1 || failed "the guest's part failed ($?)"
grep -E '^(tree|in|out|cat|small|library|connects):' "$stage/guest.log" | while read -r line; do note "$line"; done

check_wire "$stage/capture.pcap"
keep_logs
good "our client against knfsd: ok"
