#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Migration over the FUSE mount: two servers of ours have one directory, as on shared storage. The
# first sends it away to the second while files are written, locked and open, and is killed; the
# second sends it back.
#
#   fuse_migration.sh BIN_DIR [iwarp|tcp] [MOUNT_OPTIONS]     needs root and /dev/fuse
#
# The limits in seconds are far above what is promised: they tell "ends" from "hangs".
set -u

# shellcheck source=tests/interop/fuse_server.sh
. "$(dirname "$0")/fuse_server.sh"

tests=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /tmp/nfs-rdma-migration.XXXXXX)
mnt=$work/mnt
root=$work/root
export_dir=$root/moves
out=$work/out
mkdir -p "$export_dir/sub" "$root/stays" "$mnt"
echo deep >"$export_dir/sub/deep"
echo near >"$root/stays/near"
declare -A address=([1]=127.0.0.1 [2]=127.0.0.2) pid=([1]='' [2]='') rdma=([1]=$rdma_port) tcp=([1]=$tcp_port)
rdma[2]=$(free_port $((tcp_port + 1)))
tcp[2]=$(free_port $((rdma[2] + 1)))
here=rw,no_root_squash,insecure

at() {  # at N: that server as RFC 8881 11.16 has it
  if [ "$fabric" = tcp ]; then with_port "${address[$1]}" "${tcp[$1]}"
  else with_port "${address[$1]}" "${rdma[$1]}"; fi
}
exports() {  # exports N OPTIONS: of what moves, and of what stays
  printf '%s *(%s)\n%s *(%s)\n' "$export_dir" "$2" "$root/stays" "$here" >"$work/exports$1"
}
start() {  # start N: it knows no clients, so that nobody waits for a time of grace
  : >"$work/server$1.log"
  [ -d "$work/state$1" ] && find "$work/state$1" -type f ! -name handle-key -delete
  # Not in a directory of the mount, which would be busy then.
  cd / || exit 1
  "$bin/nfs-rdmad" --foreground --exports "$work/exports$1" --listen "${address[$1]}" \
    --port "${rdma[$1]}" --tcp-port "${tcp[$1]}" --state-dir "$work/state$1" \
    --control "$work/control$1.sock" >>"$work/server$1.log" 2>&1 &
  pid[$1]=$!
  cd "$OLDPWD" || exit 1
  wait_until_ready "$work/server$1.log"
}
stop() {  # stop N: kill -9
  [ -n "${pid[$1]}" ] && kill_hard "${pid[$1]}"
  pid[$1]=
}
clean_up() {
  cd /
  end_mount_here
  stop 1
  stop 2
  rm -rf "$work"
}
trap clean_up EXIT
# send_away FROM TO: the exports of both say so, TO's first
send_away() {
  exports "$2" "$here" && kill -HUP "${pid[$2]}" && within 20 exported "$2" &&
    exports "$1" "$here,refer=$export_dir@$(at "$2")" && kill -HUP "${pid[$1]}"
}
exported() {
  "$bin/nfs-rdma" exports --server "$work/control$1.sock" 2>/dev/null | grep -q "$export_dir" &&
    ! "$bin/nfs-rdma" exports --server "$work/control$1.sock" | grep -q refer=
}
opens_on() {  # opens_on N: files that clients have open there
  "$bin/nfs-rdma" clients --server "$work/control$1.sock" --json |
    python3 -c 'import json, sys; print(sum(c["opens"] for c in json.load(sys.stdin)["nfs4_clients"]))'
}
refers() { "$bin/nfs-rdma" exports --server "$work/control$1.sock" | grep -q refer=; }
is_remote() { LC_ALL=C stat -f "$mnt" 2>&1 | grep -q 'Object is remote'; }
none_open_on() { is "$(opens_on "$1")" 0; }
moved_to() {  # moved_to N: the mount has gone there
  "$bin/nfs-rdma" status --mount "$mnt" --json | python3 -c '
import json, sys
sys.exit(not any(r["source"] == sys.argv[1] for r in json.load(sys.stdin)["referrals"]))' \
    "${address[$1]}:$export_dir"
}

exports 1 "$here"
exports 2 "$here"
start 1
mkdir -p "$work/state2" && cp "$work/state1/handle-key" "$work/state2/"  # file handles of both are the same
start 2
work_log=$work/daemon.log
mount_here "" || { echo "mount failed"; cat "$work_log"; exit 1; }
version_0=
[[ ,$mount_by, == *,vers=4.0,* ]] && version_0=yes

cd "$mnt/sub" || exit 1
before=$(stat -c '%i %d' . deep "$mnt")
exec 7<deep
python3 "$tests/numbered_lines.py" "$mnt/stream" "$work/enough" &
writer=$!
{
  sleep 0.5 && send_away 1 2 && within 30 moved_to 2 && logged "has moved to ${address[2]}:$export_dir" &&
    is "$(stat -c '%i %d' . deep "$mnt")" "$before" && is "$(cat <&7)" deep &&
    echo made >made && says "$export_dir/sub/made" made && says deep deep
} >"$out" 2>&1
result $? "what is open goes on on the other server, with the numbers that it had"
[ $failures = 0 ] || exit 1  # all else would wait for a server that is gone

{
  stop 1 && sleep 0.5 && echo again >made && says "$export_dir/sub/made" again &&
    mv made renamed && ln renamed linked && rm linked && mkdir d && rmdir d &&
    says "$mnt/sub/renamed" again && [ -n "$(ls -l "$mnt")" ] && df "$mnt" >/dev/null
} >"$out" 2>&1
result $? "the first server is gone for good, and nobody misses it"

{
  touch "$work/enough" && wait $writer && [ "$(wc -c <"$export_dir/stream")" -gt 700 ] &&
    cmp "$mnt/stream" "$export_dir/stream"
} >"$out" 2>&1
result $? "a file that is written all the while"

{
  # In version 4.0 the server does not know of files that are only open.
  { [ -n "$version_0" ] || [ "$(opens_on 2)" -gt 0 ]; } && exec 7<&- &&
    within 20 none_open_on 2
} >"$out" 2>&1
result $? "what is closed is closed there"
exec 7<&-

{
  exports 1 "$here,refer=$export_dir@$(at 2)" && start 1
  rm -f "$work/enough"
  python3 - "$mnt/locked" "$work/locked" "$work/enough" >"$work/locker" 2>&1 <<'EOF' &
import errno, fcntl, os, sys, time
file, ready, go = sys.argv[1:]
f = os.open(file, os.O_RDWR | os.O_CREAT)
os.write(f, b"mine\n")
fcntl.lockf(f, fcntl.LOCK_EX)
open(ready, "w").close()
while not os.path.exists(go):
    time.sleep(0.05)
try:
    os.pwrite(f, b"lost\n", 0)
    os.fsync(f)
    print("written under a lock that is lost")
except OSError as e:
    print(errno.errorcode[e.errno])
try:
    fcntl.lockf(f, fcntl.LOCK_UN)
except OSError as e:
    print("unlock", e)
fcntl.lockf(f, fcntl.LOCK_EX)
os.pwrite(f, b"anew\n", 0)
os.fsync(f)
print("locked anew")
EOF
  locker=$!
  within 20 test -e "$work/locked" && send_away 2 1 &&
    "$bin/nfs-rdma" release --server "$work/control2.sock" "$export_dir/locked" && within 30 moved_to 1 && touch "$work/enough" &&
    wait $locker && is "$(tr '\n' ' ' <"$work/locker")" "EIO locked anew " &&
    logged "lock is lost: " && says "$export_dir/locked" anew
} >"$out" 2>&1
result $? "it moves back; a lock is lost, told, and can be had again"

{
  cd / && stop 2 && says "$mnt/sub/deep" deep && unmount_here
} >"$out" 2>&1
result $? "the mount ends"

{
  start 2
  mount_here "" "$root" && cd "$mnt/moves/sub" && before=$(stat -c '%i' . deep ..) && exec 7<deep &&
    send_away 1 2 && within 30 says "$mnt/moves/sub/deep" deep && within 30 moved_to 2 &&
    is "$(stat -c '%i' . deep ..)" "$before" && is "$(stat -c '%i' "$mnt/moves/sub")" "${before%%$'\n'*}" &&
    is "$(cat <&7)" deep && says "$mnt/stays/near" near && exec 7<&- && stop 2 && cd / &&
    says "$mnt/stays/near" near
} >"$out" 2>&1
result $? "of two file systems one moves; by its name it is the same directory"
exec 7<&-
cd /
start 2
unmount_here >"$out" 2>&1
result $? "and that mount ends, too"

# Minor version 0 has no word for it that would not be an error of something else.
if [ ! "$version_0" ]; then
  {
    exports 1 "$here" && kill -HUP "${pid[1]}" && within 20 exported 1 &&
      mount_here actimeo=600 "$root" && exec 7<"$mnt/moves/sub/deep" && send_away 1 2 && within 20 refers 1 && touch "$mnt/stays/another" &&
      within 30 moved_to 2 && logged 'has moved to another server; looking what' &&
      [ "$(opens_on 2)" -gt 0 ] && is "$(cat <&7)" deep && exec 7<&- && unmount_here
  } >"$out" 2>&1
  result $? "what is open and not used goes along as well"
  exec 7<&-
fi

{
  exports 1 "$here" && kill -HUP "${pid[1]}" && within 20 exported 1 && mount_here noreferrals &&
    exec 7<"$mnt/sub/deep" && exports 1 "$here,refer=$export_dir@$(at 2)" && kill -HUP "${pid[1]}" &&
    within 30 is_remote && logged 'cannot be followed: the mount has noreferrals' && exec 7<&- &&
    unmount_here
} >"$out" 2>&1
result $? "noreferrals: it is named, and not followed"

{
  is "$(grep -c " $mnt" /proc/mounts)" 0 && within 20 none_open_on 2
} >"$out" 2>&1
result $? "nothing is left behind"

[ $failures = 0 ] || { echo "$failures failed"; exit 1; }
