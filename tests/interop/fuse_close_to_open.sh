#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where the caches of two FUSE mounts meet, with several processes on each, by every version: matrix/close_to_open.py
# says what is checked. And a file that was read here is appended to, which its own delegation must not hold up.
#
#   fuse_close_to_open.sh BIN_DIR [iwarp|tcp] [MOUNT_OPTIONS]     needs root and /dev/fuse
#
# SECONDS_EACH (5) and SEED (1) as environment.
set -u

# shellcheck source=tests/interop/fuse_server.sh
. "$(dirname "$0")/fuse_server.sh"

work=$(mktemp -d /tmp/nfs-rdma-close-to-open.XXXXXX)
here=$(cd "$(dirname "$0")" && pwd)
export_dir=$work/export
mkdir -p "$export_dir" "$work/a" "$work/b" "$work/state"
out=$work/out

clean_up() {
  umount -l "$work/a" "$work/b" 2>/dev/null
  [ -n "$server_pid" ] && kill "$server_pid" 2>/dev/null && wait "$server_pid" 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT
called_back() {
  "$bin/nfs-rdma" status --mount "$work/a" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["callbacks_done"])'
}

meet() {  # meet opens|locks|appends|together
  timeout 100 "$here/matrix/close_to_open.py" "$work/a" "$work/b" "$1" "${SECONDS_EACH:-5}" "${SEED:-1}" >"$out" 2>&1
}

start_server
for version in 3 4.0 4.1 4.2; do
  for dir in a b; do mount_on "$work/$dir" "vers=$version"; done
  meet opens
  result $? "who opens a file reads what was closed before, vers=$version: $(tail -n 1 "$out")"
  meet locks
  result $? "who locks a file reads what was unlocked before, vers=$version: $(tail -n 1 "$out")"
  meet together
  result $? "so do several processes that open it at once, vers=$version: $(tail -n 1 "$out")"
  rm -f "$export_dir/appended"
  meet appends
  result $? "what is appended under a lock is all there, vers=$version: $(tail -n 1 "$out")"
  if [ "$version" != 3 ]; then
    name=read-$version
    {
      echo one >"$export_dir/$name" && cat "$work/a/$name"{,,} >/dev/null && before=$(called_back) &&
        echo two >>"$work/a/$name" && says "$work/b/$name" $'one\ntwo' && is "$(called_back)" "$before"
    } >"$out" 2>&1
    result $? "who has read a file appends to it, and is not called back for that, vers=$version"
  fi
  umount "$work/a" "$work/b"
done
# With threads that do not get a processor at once when they are to tell the kernel what to forget.
for dir in a b; do LD_PRELOAD=$bin/slow_notifications.so mount_on "$work/$dir" "vers=4.2"; done
for way in opens locks together; do
  meet "$way"
  result $? "the same where the kernel hears late, $way: $(tail -n 1 "$out")"
done
umount "$work/a" "$work/b"
echo "$failures failures"
[ "$failures" = 0 ]
