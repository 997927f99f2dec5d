#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Locks of the FUSE mount: two mounts of one export, as two hosts would have them, and the kernel's
# own locks on the server, against each other; and what becomes of them when the server is killed,
# when a client is silent for longer than its lease, and when a mount ends, in order or not.
#
#   fuse_locks.sh BIN_DIR [iwarp|tcp] [MOUNT_OPTIONS]     needs root and /dev/fuse
#
# With vers=3 among the options it is NLM that is tested, which has no leases.
set -u

# shellcheck source=tests/interop/fuse_server.sh
. "$(dirname "$0")/fuse_server.sh"

work=$(mktemp -d /tmp/nfs-rdma-locks.XXXXXX)
here=$(cd "$(dirname "$0")" && pwd)
export_dir=$work/export
a=$work/a
b=$work/b
c=$work/c
mkdir -p "$export_dir" "$a" "$b" "$c" "$work/state"
holder_pid=
silent_pid=
has_leases=yes
# shellcheck disable=SC2154  # fuse_server.sh sets it
[[ ,$mount_by, == *,vers=3,* ]] && has_leases=

mount_it() {  # mount_it DIR [OPTIONS]
  # shellcheck disable=SC2154  # fuse_server.sh sets it
  STATE_DIRECTORY=$work/client "$bin/mount.nfs-rdma" "127.0.0.1:$export_dir" "$1" -o "$mount_by,retry=0${2:+,$2}" \
    8>&- 9>&- || {
    echo "mount failed"; cat "$work/server.log"; exit 1
  }
}
# The one that was started last: another may still be at its end.
daemon_of() { pgrep -n -f "mount.nfs-rdma 127.0.0.1:$export_dir $1 "; }
clean_up() {
  # shellcheck disable=SC2086  # none, one or two
  kill -9 $holder_pid $silent_pid 2>/dev/null
  pkill -CONT -f "mount.nfs-rdma 127.0.0.1:$export_dir"
  umount -l "$a" "$b" "$c" 2>/dev/null
  [ -n "$server_pid" ] && kill "$server_pid" 2>/dev/null && wait "$server_pid" 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT
locks() { timeout -k 5 300 python3 "$here/fuse_locks.py" "$1" "$a" "$b" "$export_dir" "${2:-$1}"; }
check() {  # check NAME COMMAND...
  local name=$1
  shift
  timeout -k 5 150 bash -c "$(declare -f locks); here=$here a=$a b=$b export_dir=$export_dir; $*" \
    >"$work/out" 2>&1
  result $? "$name"
}
# A process of A that has locked bytes 0 to 9 of file $1, and does as it is told by descriptor $2 (9).
start_holder() {
  mkfifo "$work/tell.$1"
  locks "$1" hold <"$work/tell.$1" >"$work/said.$1" 2>&1 &
  holder_pid=$!
  eval "exec ${2:-9}>$work/tell.$1"
  wait_for_word "$1" 1 locked
}
wait_for_word() {  # wait_for_word FILE LINE WORD
  local said
  for _ in $(seq 1200); do
    said=$(sed -n "$2p" "$work/said.$1")
    [ "$said" = "$3" ] && return 0
    [ -n "$said" ] && break
    sleep 0.1
  done
  echo "holder: line $2 is not '$3':"; cat "$work/said.$1"
  return 1
}
# Who keeps a holder's pipe open keeps it waiting.
restart_server() {
  kill_server
  start_server 8>&- 9>&-
}
end_holder() {
  exec 9>&-
  wait "$holder_pid"
  holder_pid=
}

start_server
mount_it "$c"
a=$c start_holder lost 8 || exit 1
silent_pid=$holder_pid silent_daemon=$(daemon_of "$c")
holder_pid=
kill -STOP "$silent_daemon"
mount_it "$a"
mount_it "$b"
for name in $(python3 "$here/fuse_locks.py" --list); do
  check "$name" "locks $name"
done

if [ "$has_leases" ]; then
  {
    locks lost free && kill -CONT "$silent_daemon" && echo go >&8 &&
      wait_for_word lost 2 "error EIO" && echo go >&8 && wait_for_word lost 3 written
  } >"$work/out" 2>&1
  result $? "who was silent for too long has lost its lock, and is told"
else
  {
    locks lost taken && kill -CONT "$silent_daemon" && echo go >&8 && wait_for_word lost 2 written &&
      echo go >&8 && wait_for_word lost 3 written && locks lost free
  } >"$work/out" 2>&1
  result $? "who is silent keeps its lock"
fi
exec 8>&-
wait "$silent_pid"
umount "$c"

{
  start_holder kept && restart_server && echo go >&9 && wait_for_word kept 2 written &&
    locks kept taken && [ "$(head -c 10 "$export_dir/kept")" = 0123456789 ] &&
    echo go >&9 && wait_for_word kept 3 written && locks kept free
} >"$work/out" 2>&1
result $? "a lock is kept through the server's restart"
end_holder

{
  start_holder kept_idle && restart_server && locks kept_idle taken
} >"$work/out" 2>&1
result $? "also by a client that asks for nothing meanwhile"
end_holder

{
  start_holder ended && locks ended taken && umount -l "$a" && end_holder && locks ended free &&
    mount_it "$a"
} >"$work/out" 2>&1
result $? "the end of a mount lets go of locks"

# Who waits for a lock keeps its mount busy, and must not keep the others' locks from being let go of.
{
  start_holder told && locks told taken && daemon=$(daemon_of "$a")
  python3 -c 'import fcntl, sys; fcntl.lockf(open(sys.argv[1], "r+b"), fcntl.LOCK_EX)' "$a/told" 2>/dev/null 9>&- &
  waiter=$!
  sleep 1
  kill -TERM "$daemon"
  for _ in $(seq 300); do kill -0 "$daemon" 2>/dev/null || break; sleep 0.1; done
  ! kill -0 "$daemon" 2>/dev/null && ! wait "$waiter" && locks told free
  ended=$?
  end_holder
  mountpoint -q "$a" && umount -l "$a"
  mount_it "$a" && [ "$ended" = 0 ]
} >"$work/out" 2>&1
result $? "a mount that is told to end does so, too, while somebody waits for a lock"

if [ ! "$has_leases" ]; then
  records() { find "$work/client/client-locks" -type f | wc -l; }
  {
    start_holder dead && locks dead taken && kill -9 "$(daemon_of "$a")" && umount -l "$a" &&
      locks dead taken && [ "$(records)" = 2 ] && mount_it "$a" && locks dead free &&
      [ "$(records)" = 1 ]  # of B, which lives
  } >"$work/out" 2>&1
  result $? "what a mount that died had is let go of by the next"
  exec 9>&-
  kill -9 "$holder_pid" 2>/dev/null
  wait "$holder_pid" 2>/dev/null
  holder_pid=
fi

umount "$a" "$b"
mount_it "$a" local_lock=all
mount_it "$b" local_lock=flock
if [ -n "$has_leases" ]; then
  { start_holder local && locks local taken; } >"$work/out" 2>&1
  result $? "by version 4 local_lock=all keeps no locks to this host"
else
  { start_holder local && locks local free; } >"$work/out" 2>&1
  result $? "local_lock=all keeps locks to this host"
fi
end_holder

echo "$failures failures"
[ "$failures" = 0 ]
