#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Trunk discovery over the FUSE mount: a server of ours on two addresses that names both, and a third one
# where another server is. A file goes in and out over both; the server comes back on one address alone,
# with the other one again, and is never taken for its neighbour.
#
#   fuse_trunking.sh BIN_DIR [iwarp|tcp] [MOUNT_OPTIONS]     needs root and /dev/fuse
#
# The limits in seconds are far above what is promised: they tell "ends" from "hangs".
set -u

# shellcheck source=tests/interop/fuse_server.sh
. "$(dirname "$0")/fuse_server.sh"

work=$(mktemp -d /tmp/nfs-rdma-trunking.XXXXXX)
mnt=$work/mnt
export_dir=$work/export
mkdir -p "$export_dir" "$mnt" "$work/state" "$work/state2"
second=127.0.0.2 other=127.0.0.3
other_pid=''

port_here=$rdma_port
if [ "$fabric" = tcp ]; then port_here=$tcp_port; fi
places=$export_dir@no.such.host.invalid
for address in 127.0.0.1 $second $other; do
  places+=:$export_dir@$(with_port "$address" "$port_here")
done
export_options+=,replicas=$places

start_on() {  # start_on [ADDRESS]: on 127.0.0.1, and there
  server_options=(${1:+--listen "$1"})
  start_server
}
start_other() {  # the same path, handles of its own
  : >"$work/other.log"
  "$bin/nfs-rdmad" --foreground -e "$export_dir:rw,no_root_squash,insecure" --listen "$other" --port "$rdma_port" \
    --tcp-port "$tcp_port" --state-dir "$work/state2" --control "$work/other.sock" >>"$work/other.log" 2>&1 &
  other_pid=$!
  wait_until_ready "$work/other.log"
}
clean_up() {
  end_mount_here
  [ -n "$server_pid" ] && kill_server
  [ -n "$other_pid" ] && kill_hard "$other_pid"
  rm -rf "$work"
}
trap clean_up EXIT
# by ADDRESS EXPRESSION: is it true of the mount's connections to ADDRESS (c), those of all (a)?
by() {
  "$bin/nfs-rdma" status --mount "$mnt" --json | python3 -c '
import json, sys
a = json.load(sys.stdin)["connections"]
c = [one for one in a if one["peer"].rsplit(":", 1)[0] == sys.argv[1]]
moved = lambda one: one["rdma_write_bytes"] + one["rdma_read_bytes"] + one["inline_bytes"]
sys.exit(0 if eval(sys.argv[2]) else f"{sys.argv[2]} is not so of {a}")' "$1" "$2"
}
copy_and_compare() {  # NAME
  cp "$work/big" "$mnt/$1" && sync -f "$mnt/$1" && cmp "$work/big" "$export_dir/$1" &&
    dd if="$mnt/$1" bs=1M iflag=direct status=none | cmp - "$work/big"
}
head -c 33554432 /dev/urandom >"$work/big"

start_on "$second"
start_other
mount_here trunkdiscovery
result $? "mount with trunkdiscovery"
by "$second" 'len(c) == 2 and all(one["fabric"] == a[0]["fabric"] for one in c)'
result $? "the second address is in use, by the same transport"
"$bin/nfs-rdma" status --mount "$mnt" | grep -q '^NFS version 4.2, 4 connections to 2 addresses, ' &&
  grep -q ' connections=4$' "$work/daemon.log"
result $? "status and -v count its connections"
"$bin/nfs-rdma" ping -c 5 "$mnt" | grep -q ' 5 answers, 0 lost'
result $? "ping finds the server of the mount"
by "$other" 'not c' && logged "$other: another server"
result $? "another server at the third one is not, and that is said"
logged "no.such.host.invalid: "
result $? "nor is a host that does not exist"
copy_and_compare one
result $? "a file in and out"
by "$second" 'min(sum(map(moved, c)), sum(map(moved, a)) - sum(map(moved, c))) > 1 << 20'
result $? "over both addresses"

# All connections break, and one address does not come back.
cp "$work/big" "$mnt/two" &
copy=$!
kill_server
start_on
wait $copy && cmp "$mnt/two" "$work/big" && copy_and_compare three
result $? "files over a restart of the server, which then has one address"
by "$second" 'not c and len(a) >= 1'
result $? "which alone is in use"
kill_server
start_on "$second"
used_again() { dd if="$work/big" of="$mnt/four" bs=1M count=8 conv=notrunc,fsync status=none && by "$second" 'c'; }
within 90 used_again
result $? "the second one is used again once it is back"
copy_and_compare five
result $? "and carries files"
unmount_here
result $? "umount"

# The neighbour takes the second address over: what had gone by that must not go there.
mount_here trunkdiscovery && by "$second" 'c'
result $? "mount once more"
kill_server
start_on
kill_hard "$other_pid"
other=$second
start_other
for name in six seven eight; do copy_and_compare $name || break; done
result $? "files while another server is at the second address"
seen_through() { copy_and_compare nine && logged "trunking: $second.*another server"; }
within 90 seen_through && by "$second" 'not c'
result $? "which is not used"
unmount_here
kill_hard "$other_pid"
other_pid=
kill_server
start_on "$second"

mount_here trunkdiscovery,max_connect=1 && by "$second" 'not c' && logged "no more are wanted"
result $? "max_connect bounds it"
unmount_here
mount_here max_connect=4 && by "$second" 'not c' && logged 'max_connect: without trunkdiscovery'
result $? "max_connect alone is noticed"
unmount_here

if [ $failures = 0 ]; then echo "trunks are what they say"; fi
[ $failures = 0 ]
