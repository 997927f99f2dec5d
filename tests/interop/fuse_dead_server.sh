#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A hard FUSE mount whose server is stopped (it neither answers nor closes) or dead: umount, SIGTERM
# of the daemon, SIGKILL of applications and `nfs-rdma status` all come to an end, and data that is
# not on the server is either written later or named.
#
#   fuse_dead_server.sh BIN_DIR [iwarp|tcp] [MOUNT_OPTIONS]     needs root and /dev/fuse
#
# The limits in seconds are far above what is promised: they tell "ends" from "hangs".
set -u

# shellcheck source=fuse_server.sh
. "$(dirname "$0")/fuse_server.sh"

work=$(mktemp -d /tmp/nfs-rdma-dead.XXXXXX)
mnt=$work/mnt
export_dir=$work/export
mkdir -p "$export_dir" "$mnt" "$work/state"

mount_it() { mount_here "$@" || { echo "mount failed:"; cat "$work/daemon.log"; exit 1; }; }
mounted() { grep -q " $mnt fuse" /proc/mounts; }
ok() { echo "ok   $1"; }
bad() {
  echo "FAIL $1"
  sed 's/^/     daemon: /' "$work/daemon.log" | tail -n 8
  failures=$((failures + 1))
}
verdict() { if [ "$2" = 0 ]; then ok "$1"; else bad "$1"; fi; }
tidy() {  # whatever is left of a case
  end_mount_here
  [ -n "$server_pid" ] && kill_server
  start_server
}
clean_up() {
  end_mount_here
  [ -n "$server_pid" ] && kill_server
  rm -rf "$work"
}
trap clean_up EXIT
# Writes without closing: close would wait for the server.
writer='
import os, sys, time
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
open(sys.argv[2], "w").close()
while not os.path.exists(sys.argv[3]): time.sleep(0.05)
os.write(f, b"x" * 5000)
open(sys.argv[2] + ".wrote", "w").close()
time.sleep(1000)'
start_writer() {  # start_writer NAME: has the file open; writes once the server has been stopped
  rm -f "$work/is_open" "$work/is_open.wrote" "$work/go"
  python3 -c "$writer" "$mnt/$1" "$work/is_open" "$work/go" &
  application=$!
  until [ -e "$work/is_open" ]; do sleep 0.05; done
}
writer_writes() {
  : >"$work/go"
  until [ -e "$work/is_open.wrote" ]; do sleep 0.05; done
}
# Reads with several threads at a time, past the cache: enough for every thread of the mount.
readers='
import mmap, os, sys, threading, time
f = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
open(sys.argv[2], "w").close()
while not os.path.exists(sys.argv[3]): time.sleep(0.05)
def read(n):
    os.preadv(f, [mmap.mmap(-1, 1 << 20)], n << 20)
for n in range(8): threading.Thread(target=read, args=(n,)).start()'
start_readers() {  # start_readers NAME: has the file open
  rm -f "$work/is_open" "$work/go"
  python3 -c "$readers" "$mnt/$1" "$work/is_open" "$work/go" 2>/dev/null &
  application=$!
  until [ -e "$work/is_open" ]; do sleep 0.05; done
}
# Is a call of theirs waiting on every thread of the mount, its memory exposed to a server that may answer?
readers_wait() {
  : >"$work/go"
  local i exposes=no
  [ "$fabric" = iwarp ] && [ "$how" = stopped ] && exposes=yes
  for i in $(seq 50); do
    "$bin/nfs-rdma" status --mount "$mnt" --json 2>/dev/null | python3 -c '
import json, sys
shards = json.load(sys.stdin)["shards"]
exposed = all(shard["exposed_regions"] for shard in shards)
sys.exit(not (all(shard["calls_outstanding"] for shard in shards) and exposed == (sys.argv[1] == "yes")))
' $exposes && return
    sleep 0.1
  done
  return 1
}

start_server
truncate -s 8M "$export_dir/large"

for how in stopped dead; do
  no_answer() { if [ "$how" = stopped ]; then kill -STOP "$server_pid"; else kill_server; fi; }

  mount_it
  echo x >"$mnt/file"
  cat "$mnt/large" >"$work/read"
  "$bin/nfs-rdma" status --mount "$mnt" --json | grep -q '"exposed_regions": *0'
  verdict "$how: nothing is exposed without a call" $?
  no_answer
  timeout 15 umount "$mnt"
  verdict "$how: umount of an idle mount" $?
  ends_within 15 "$daemon"
  verdict "$how: the daemon ends after it" $?
  tidy

  mount_it softreval,timeo=10,retrans=1,actimeo=1
  echo known >"$mnt/known"
  echo other >"$export_dir/other"
  stat "$mnt/known" >"$work/stat"
  no_answer
  sleep 1.5
  for _ in 1 2; do
    timeout 20 stat "$mnt/known" >"$work/stat2" && cmp "$work/stat" "$work/stat2"
    verdict "$how: with softreval, attributes that are known" $?
    sleep 1.5
  done
  timeout 5 cat "$mnt/other" >"$work/read" 2>&1
  [ $? = 124 ]
  verdict "$how: with softreval, what is not known is waited for" $?
  if [ "$how" = stopped ]; then kill -CONT "$server_pid"; else start_server; fi
  [ "$(timeout 30 cat "$mnt/other")" = other ] && [ "$(timeout 30 cat "$mnt/known")" = known ]
  verdict "$how: with softreval, all is as before when the server is back" $?
  umount "$mnt"
  tidy

  mount_it
  no_answer
  kill -TERM "$daemon"
  ends_within 20 "$daemon" && ! mounted
  verdict "$how: SIGTERM on an idle mount" $?
  tidy

  mount_it
  no_answer
  cat "$mnt/file_never_seen" 2>/dev/null &
  application=$!
  sleep 0.5
  kill -9 $application
  ends_within 10 $application
  verdict "$how: a waiting application can be killed" $?
  cat "$mnt/another_file" 2>/dev/null &
  application=$!
  sleep 0.5
  kill -INT "$daemon"
  ends_within 25 "$daemon" && ends_within 5 $application && ! mounted
  verdict "$how: SIGINT with an application waiting" $?
  kill -9 $application 2>/dev/null
  tidy

  mount_it
  start_readers large
  no_answer
  readers_wait
  verdict "$how: reads wait on every thread" $?
  kill -9 $application
  ends_within 10 $application
  verdict "$how: their reader can be killed" $?
  tidy

  mount_it
  start_readers large
  no_answer
  readers_wait
  kill -TERM "$daemon"
  ends_within 25 "$daemon" && ends_within 5 $application && ! mounted
  verdict "$how: SIGTERM with reads waiting on every thread" $?
  kill -9 $application 2>/dev/null
  tidy

  mount_it
  start_writer "written_$how"
  no_answer
  writer_writes
  kill -9 $application
  ends_within 10 $application
  verdict "$how: an application with unwritten data can be killed" $?
  timeout 15 umount "$mnt"
  verdict "$how: umount with unwritten data" $?
  sleep 4
  ! ends_within 0 "$daemon" && grep -q "writing back 5000 bytes" "$work/daemon.log"
  verdict "$how: the daemon keeps the data" $?
  if [ "$how" = stopped ]; then kill -CONT "$server_pid"; else start_server; fi
  ends_within 60 "$daemon" && [ "$(stat -c %s "$export_dir/written_$how")" = 5000 ]
  verdict "$how: and writes it when the server is back" $?
  tidy

  mount_it
  start_writer "lost_$how"
  no_answer
  writer_writes
  kill -TERM "$daemon"
  ends_within 60 "$daemon" && ! mounted
  verdict "$how: SIGTERM with unwritten data" $?
  grep -q "giving up 5000 bytes that are not safe on the server, of lost_$how" "$work/daemon.log"
  verdict "$how: names what was lost" $?
  kill -9 $application
  tidy

  mount_it
  start_writer "twice_$how"
  no_answer
  writer_writes
  kill -TERM "$daemon"
  until grep -q "detached\|writing back" "$work/daemon.log"; do sleep 0.1; done
  kill -TERM "$daemon"
  ends_within 4 "$daemon" && grep -q "told to stop again.*twice_$how" "$work/daemon.log"
  verdict "$how: a second SIGTERM ends at once" $?
  kill -9 $application
  tidy

  mount_it
  start_writer "forced_$how"
  no_answer
  timeout 5 umount -f "$mnt" 2>/dev/null  # busy, but cut off
  forced=$?
  timeout 5 ls "$mnt/x" >/dev/null 2>&1  # fails, and at once
  listed=$?
  [ $forced != 124 ] && [ $listed != 124 ] && [ $listed != 0 ]
  verdict "$how: umount -f cuts the mount off" $?
  ends_within 15 "$daemon"
  verdict "$how: and the daemon ends" $?
  kill -9 $application
  tidy

  mount_it
  # Into the directory while that can be asked for.
  rm -f "$work/inside"
  (
    cd "$mnt" || exit 1
    : >"$work/inside"
    until [ -e "$work/asked" ]; do sleep 0.05; done
    timeout 20 "$bin/nfs-rdma" status --mount .
  ) >"$work/status" 2>&1 &
  asker=$!
  until [ -e "$work/inside" ]; do sleep 0.05; done
  no_answer
  : >"$work/asked"
  wait $asker
  rc=$?
  rm -f "$work/asked"
  [ $rc != 124 ] && [ $rc != 1 ]
  verdict "$how: status of the mount" $?
  kill -STOP "$daemon"
  timeout 20 "$bin/nfs-rdma" status --mount "$mnt" >"$work/status" 2>&1
  [ $? = 1 ] && grep -q "no answer in 5 s" "$work/status"
  verdict "$how: status of a mount whose daemon hangs" $?
  kill -CONT "$daemon"
  tidy
done

kill -STOP "$server_pid"
timeout 20 "$bin/nfs-rdma" status --server "$work/control.sock" >"$work/status" 2>&1
[ $? = 1 ] && grep -q "no answer in 5 s" "$work/status"
verdict "status of a server that hangs" $?

# Nothing is mounted yet: a signal ends the attempts.
kill_server
"$bin/mount.nfs-rdma" "127.0.0.1:$export_dir" "$mnt" -F -o "proto=tcp,port=$tcp_port,retry=5" \
  >"$work/daemon.log" 2>&1 &
daemon=$!
until grep -q "trying for" "$work/daemon.log"; do sleep 0.1; done
kill -TERM "$daemon"
ends_within 10 "$daemon"
verdict "SIGTERM while the mount is being tried" $?

echo "$failures failures"
[ $failures = 0 ]
