#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Referrals over the FUSE mount and the tool: a server of ours that refers to a second one, on
# another address and another port. A tree goes in and out through it, the second server is killed,
# comes back, stops answering, or was never there; a file system moves away under open files.
#
#   fuse_referral.sh BIN_DIR [iwarp|tcp] [MOUNT_OPTIONS]     needs root and /dev/fuse
#
# The limits in seconds are far above what is promised: they tell "ends" from "hangs".
set -u

# shellcheck source=tests/interop/fuse_server.sh
. "$(dirname "$0")/fuse_server.sh"

work=$(mktemp -d /tmp/nfs-rdma-referral.XXXXXX)
here=$(cd "$(dirname "$0")" && pwd)
mnt=$work/mnt
export_dir=$work/export
second_dir=$work/second
out=$work/out
mkdir -p "$export_dir/away" "$export_dir/either" "$export_dir/nobody" "$export_dir/circle" "$export_dir/moves" \
  "$second_dir/sub" "$mnt" "$work/state" "$work/state2"
echo near >"$export_dir/near"
echo staying >"$export_dir/moves/file"
echo far >"$second_dir/far"
echo deep >"$second_dir/sub/deep"
second_pid=''

second_address=127.0.0.2
second_rdma=$(free_port $((tcp_port + 1)))
second_tcp=$(free_port $((second_rdma + 1)))
silent_port=$(free_port $((second_tcp + 1)))
if [ "$fabric" = tcp ]; then
  second=$(with_port $second_address "$second_tcp")
  first=$(with_port 127.0.0.1 "$tcp_port")
else
  second=$(with_port $second_address "$second_rdma")
  first=$(with_port 127.0.0.1 "$rdma_port")
fi
referrals=(-e "$export_dir/away:refer=$second_dir@$second"
  -e "$export_dir/either:refer=$work/missing@$second:$second_dir/sub@$second"
  -e "$export_dir/nobody:refer=/srv/x@$(with_port $second_address "$silent_port")"
  -e "$export_dir/circle:refer=$export_dir/circle@$first")
# A file system of its own to clients, until it moves.
server_options=("${referrals[@]}" -e "$export_dir/moves:rw,no_root_squash,insecure")

start_second() {
  : >"$work/second.log"
  "$bin/nfs-rdmad" --foreground -e "$second_dir:rw,no_root_squash,insecure" \
    --listen $second_address --port "$second_rdma" --tcp-port "$second_tcp" \
    --state-dir "$work/state2" --control "$work/control2.sock" >>"$work/second.log" 2>&1 &
  second_pid=$!
  wait_until_ready "$work/second.log"
}
kill_second() {
  kill_hard "$second_pid"
  second_pid=
}
anew() { unmount_here && mount_here "$@"; }
clean_up() {
  end_mount_here
  [ -n "$server_pid" ] && kill_server
  [ -n "$second_pid" ] && kill_second
  rm -rf "$work"
}
trap clean_up EXIT
fails_with() {  # fails_with TEXT COMMAND...: within 60 s, with that message
  local text=$1 message
  shift
  if message=$(LC_ALL=C timeout 60 "$@" 2>&1); then echo "$* worked"; return 1; fi
  [[ $message == *"$text"* ]] || { echo "$*: '$message', not '$text'"; false; }
}
# trees EXPRESSION: of the status document, with the referrals as r.
trees() {
  "$bin/nfs-rdma" status --mount "$mnt" --json | python3 -c '
import json, sys
r = json.load(sys.stdin)["referrals"]
print(eval(sys.argv[1]))' "$1"
}

start_server
start_second
mount_here || { echo "mount failed"; cat "$work/daemon.log"; exit 1; }

{
  is "$(stat -c '%A' "$mnt/away")" dr-xr-xr-x &&
    is "$(find "$mnt" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | tr '\n' ' ')" \
      "away circle either moves near nobody " && ls -l "$mnt" && is "$(trees 'len(r)')" 0
} >"$out" 2>&1
result $? "a referral is shown, and nobody is asked for it"

{ mkdir "$mnt/away/first" && [ -d "$second_dir/first" ] && is "$(trees 'len(r)')" 1; } >"$out" 2>&1
result $? "mkdir may be what follows it first"

{
  says "$mnt/away/far" far && says "$mnt/away/sub/deep" deep && says "$mnt/near" near &&
    is "$(trees 'r[0]["name"], r[0]["source"]')" "('away', '$second_address:$second_dir')" &&
    is "$(trees 'r[0]["connections"][0]["fabric"]')" "$fabric"
} >"$out" 2>&1
result $? "files behind it, by the same transport"

{
  cp -r "$here" "$mnt/away/tree" && diff -r "$here" "$second_dir/tree" &&
    tar -C "$mnt/away" -cf "$work/tree.tar" tree && mkdir "$work/back" &&
    tar -C "$work/back" -xf "$work/tree.tar" && diff -r "$here" "$work/back/tree" &&
    rm -rf "$mnt/away/tree" && [ ! -e "$second_dir/tree" ] && [ -z "$(ls -A "$export_dir/away")" ]
} >"$out" 2>&1
result $? "a tree goes in and comes out"

{
  # ext4 and tmpfs number new files alike: the numbers must differ all the same.
  is "$(find "$mnt/moves" "$mnt/away" -printf '%i\n' | sort | uniq -d)" "" &&
    fails_with 'Invalid cross-device link' ln "$mnt/near" "$mnt/away/link" &&
    mv "$mnt/away/far" "$mnt/moved" && says "$export_dir/moved" far &&
    mv "$mnt/moved" "$mnt/away/far" && says "$second_dir/far" far &&
    [ ! -e "$export_dir/moved" ]
} >"$out" 2>&1
result $? "nothing is taken for the other server's"

{
  flock "$mnt/away/far" true && (
    flock 9 && "$bin/nfs-rdma" locks --server "$work/control2.sock" >"$work/locks"
    cat "$work/locks" && grep -q "$second_dir/" "$work/locks"  # in 4.0 as "#INODE (deleted)", as it was made
  ) 9<>"$mnt/away/far"
} >"$out" 2>&1
result $? "locks are the second server's"

{
  python3 -c '
import os, sys, time
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
while not os.path.exists(sys.argv[2]):
    os.write(f, b"line\n")
    time.sleep(0.01)
os.close(f)' "$mnt/away/stream" "$work/enough" &
  writer=$!
  sleep 0.5
  kill_second
  sleep 0.5
  start_second && says "$mnt/away/sub/deep" deep
  touch "$work/enough"
  wait $writer && is "$(sort -u "$mnt/away/stream")" line &&
    cmp "$mnt/away/stream" "$second_dir/stream"
} >"$out" 2>&1
result $? "the second server is killed and comes back"

{
  start=$SECONDS
  fails_with 'Connection refused' ls "$mnt/nobody" && [ $((SECONDS - start)) -lt 45 ] &&
    logged "referral nobody to $second_address port $silent_port:/srv/x cannot be followed" &&
    is "$(stat -c '%A' "$mnt/nobody")" dr-xr-xr-x && says "$mnt/near" near
} >"$out" 2>&1
result $? "a server that is not there is named"

{
  fails_with 'Too many levels' ls "$mnt/circle" && logged "referral circle to .*circle" &&
    says "$mnt/near" near
} >"$out" 2>&1
result $? "a circle is named"

{
  anew noreferrals && is "$(stat -c '%A' "$mnt/away")" dr-xr-xr-x &&
    fails_with 'Object is remote' ls "$mnt/away" && logged noreferrals
} >"$out" 2>&1
result $? "noreferrals"

{
  anew actimeo=1 && echo one >>"$mnt/moves/file" && exec 7<"$mnt/moves/file" &&
    server_options=("${referrals[@]}" -e "$export_dir/moves:refer=$second_dir/sub@$second") &&
    kill_server &&
    start_server 7<&- && within 60 says "$mnt/moves/deep" deep &&
    fails_with 'Object is remote' python3 -c "
import os, time
while True:
    os.fstat(7)
    time.sleep(0.5)" &&
    logged 'has moved to .*NFS4ERR_MOVED'
} >"$out" 2>&1
result $? "one that moves to other handles: what is open is EREMOTE and named, new names are followed"
exec 7<&-

{
  kill -STOP "$second_pid" && anew ""
  ls "$mnt/away" &
  asking=$!
  sleep 1
  kill -9 $asking && ends_within 10 $asking && says "$mnt/near" near && start=$SECONDS &&
    unmount_here && [ $((SECONDS - start)) -lt 20 ]
} >"$out" 2>&1
result $? "a server that says nothing: whoever waits can be killed, and umount does not wait"
kill -CONT "$second_pid"
[ -n "$daemon" ] && kill -9 "$daemon" 2>/dev/null
grep -q " $mnt fuse" /proc/mounts && umount -l "$mnt"

{
  mount_here "" "$export_dir/away/sub" && says "$mnt/deep" deep && unmount_here &&
    ! mount_here noreferrals "$export_dir/away/sub" && grep -q noreferrals "$work/daemon.log" &&
    ! mount_here "" "$export_dir/nobody/x" && grep -q "$silent_port:/srv/x" "$work/daemon.log"
} >"$out" 2>&1
result $? "a mount of a path that crosses one"
daemon=

url() { echo "nfs://127.0.0.1:$rdma_port$export_dir$1?tcpport=$tcp_port&vers=4.2&$by"; }
by=fabric=iwarp
[ "$fabric" = tcp ] && by=proto=tcp
tool() { timeout 60 "$bin/nfs-rdma" "$@"; }
{
  is "$(tool cat "$(url /away/sub/deep)")" deep &&
    is "$(tool ls "$(url /away/sub)")" deep && tool ls -l "$(url "")" &&
    tool ls -l "$(url "")" | grep -q "^dr-xr-xr-x .* away -> $second_address port .* (referral)" &&
    tool stat "$(url /away)" | grep -q "(referral)" &&
    tool stat -L "$(url /away)" | grep -q directory &&
    tool cp -r "$(url /away/sub)" "$work/copied" && says "$work/copied/deep" deep &&
    tool cp "$work/copied/deep" "$(url /away/made)" && says "$second_dir/made" deep &&
    fails_with "$silent_port:/srv/x" "$bin/nfs-rdma" ls "$(url /nobody/x)" &&
    fails_with circle "$bin/nfs-rdma" cat "$(url /circle/x)"
} >"$out" 2>&1
result $? "the tool follows by the path of a URL"

{
  tool cp -rp "$(url "")" "$work/all" 2>"$work/said" || : # two of them lead nowhere
  cat "$work/said"
  says "$work/all/away/sub/deep" deep && says "$work/all/near" near &&
    says "$work/all/either/deep" deep &&
    is "$(stat -c %Y "$work/all/away")" "$(stat -c %Y "$second_dir")" &&
    grep -q "/nobody is a referral that cannot be followed: .*$silent_port" "$work/said" &&
    grep -q "/circle: Too many levels" "$work/said"
} >"$out" 2>&1
result $? "the tool copies what is behind one, and names those that lead nowhere"

{
  tool cp -r "$(url "")" "$(url /away/into)" 2>"$work/said" || : # the same two
  cat "$work/said"
  find "$second_dir/into" | sort
  says "$second_dir/into/away/sub/deep" deep && [ ! -e "$second_dir/into/away/into" ] &&
    fails_with "into itself" "$bin/nfs-rdma" cp -r "$(url /away/into/away)" "$(url /away/into/away/again)" &&
    [ ! -e "$second_dir/into/away/again" ] && rm -r "$second_dir/into"
} >"$out" 2>&1
result $? "what is copied into itself by way of one comes to an end, and is refused where that can be seen"

timeout 120 "$bin/libnfsrdma_referrals" "$(url "")" away near far >"$out" 2>&1
result $? "a mount of the library follows them, for each of its threads"

# goes_along HOW URL BEFORE AFTER EXPORT: the library, while the server exports "leaves" differently.
goes_along() {
  : >"$work/moving"
  timeout 120 "$bin/libnfsrdma_referrals" "${@:1:4}" <"$work/go" >"$work/moving" 2>&1 &
  local moving=$! went
  within 20 grep -q ready "$work/moving" && kill_server &&
    server_options=("${staying[@]}" -e "$export_dir/leaves:$5") && start_server && echo go >&8 &&
    wait "$moving"
  went=$?
  cat "$work/moving"
  return $went
}
mkdir "$export_dir/leaves"
echo staying >"$export_dir/leaves/file"
mkfifo "$work/go"
exec 8<>"$work/go"
staying=("${server_options[@]}")
{
  kill_server && server_options+=(-e "$export_dir/leaves:rw,insecure") && start_server &&
    goes_along --moves "$(url /leaves)" file deep "refer=$second_dir/sub@$second"
} >"$out" 2>&1
result $? "a mount of the library goes along with its directory"
goes_along --leads "$(url "")" leaves/deep leaves/far "refer=$second_dir@$second" >"$out" 2>&1
result $? "and with a referral that leads elsewhere, with what is open where it led before"
exec 8<&-

{
  is "$(grep -c " $mnt" /proc/mounts)" 0 && is "$(pgrep -f "mount.nfs-rdma 127.0.0.1:$export_dir")" ""
  is "$("$bin/nfs-rdma" clients --server "$work/control2.sock" --json |
    python3 -c 'import json, sys; print(sum(c["opens"] for c in json.load(sys.stdin)["nfs4_clients"]))')" 0
} >"$out" 2>&1
result $? "nothing is left behind"

[ $failures = 0 ] || { echo "$failures failed"; exit 1; }
