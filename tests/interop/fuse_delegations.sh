#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Delegations of the FUSE mount: what it does without asking, and that nobody sees old data for it.
# Two mounts of one export, as two hosts would have them, and processes of the server's own machine;
# then a server that is killed, and a mount that does not answer a recall.
#
#   fuse_delegations.sh BIN_DIR [iwarp|tcp] [MOUNT_OPTIONS]     needs root and /dev/fuse
set -u

# shellcheck source=tests/interop/fuse_server.sh
. "$(dirname "$0")/fuse_server.sh"

work=$(mktemp -d /tmp/nfs-rdma-delegations.XXXXXX)
here=$(cd "$(dirname "$0")" && pwd)
export_dir=$work/export
a=$work/a
b=$work/b
mkdir -p "$export_dir" "$a" "$b" "$work/state"
out=$work/out

daemon_of() { pgrep -f "mount.nfs-rdma 127.0.0.1:$export_dir $1 "; }
clean_up() {
  pkill -CONT -f "mount.nfs-rdma 127.0.0.1:$export_dir"
  umount -l "$a" "$b" 2>/dev/null
  [ -n "$server_pid" ] && kill "$server_pid" 2>/dev/null && wait "$server_pid" 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT
# status WORD: of mount A: calls, delegations_held or callbacks_done.
status() {
  "$bin/nfs-rdma" status --mount "$a" --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
d["calls"] = sum(c["calls"] for c in d["connections"])
print(d[sys.argv[1]])' "$1"
}
held() { [ "$(status delegations_held)" = "$1" ] || { echo "delegations: $(status delegations_held), not $1"; false; }; }
# The second open for reading, or writing, asks for a delegation.
read_twice() { cat "$1" "$1" >/dev/null; }
write_twice() { : >>"$1" && : >>"$1"; }

start_server
mount_on "$a"
mount_on "$b"

{
  echo one >"$export_dir/read" && read_twice "$a/read" && held 1 && before=$(status calls) &&
    for _ in $(seq 50); do
      if ! says "$a/read" one || ! stat "$a/read" >/dev/null; then break; fi
    done
  asked=$(($(status calls) - before))
  # A SEQUENCE may have kept the lease meanwhile.
  [ "$asked" -le 1 ] || { echo "50 opens and stats took $asked calls"; false; }
} >"$out" 2>&1
result $? "open, read, stat and close ask nobody"

{
  echo two >>"$export_dir/read" && says "$a/read" $'one\ntwo' && held 0 &&
    [ "$(status callbacks_done)" -ge 1 ]
} >"$out" 2>&1
result $? "a process on the server is seen at once"

{
  echo one >"$a/write" && write_twice "$a/write" && held 1 && echo two >>"$a/write" &&
    [ "$(stat -c %s "$b/write")" = 8 ] && held 1 && says "$b/write" $'one\ntwo' && held 0 &&
    echo three >>"$b/write" && says "$a/write" $'one\ntwo\nthree'
} >"$out" 2>&1
result $? "another host sees the size by asking, and the data behind a recall"

{
  write_twice "$a/write2" && write_twice "$a/write2" && held 1 &&
    python3 - "$a/write2" "$export_dir/write2" <<'EOF'
import mmap, os, sys
mounted, local = sys.argv[1:]
fd = os.open(mounted, os.O_RDWR)
os.write(fd, b"x" * 300000)
assert len(open(local, "rb").read()) == 300000, "a local reader does not see what was written"
os.close(fd)
EOF
} >"$out" 2>&1
result $? "a local reader sees what is being written"

timeout -k 5 200 python3 "$here/fuse_delegations.py" "$a" "$b" "$export_dir" "${SEED:-7}" >"$out" 2>&1
result $? "whoever changes a file, and however: the next open sees it ($(tail -n 1 "$out"))"

{
  for i in 1 2 3; do echo old >"$export_dir/down$i" && read_twice "$a/down$i"; done
  [ "$(status delegations_held)" -ge 3 ] && kill_server &&
    for i in 1 2 3; do echo new >"$export_dir/down$i"; done
  start_server && within 20 held 0 &&
    for i in 1 2 3; do says "$a/down$i" new || break; done
} >"$out" 2>&1
result $? "nothing is believed any more when the server has restarted"

{
  # By version 4.0 the time of grace has passed, so that others are given as well.
  others=$(status delegations_held)
  echo one >"$export_dir/silent" && read_twice "$a/silent" && held $((others + 1)) &&
    silent=$(daemon_of "$a") && kill -STOP "$silent" && started=$SECONDS &&
    timeout 100 sh -c "echo two >>'$export_dir/silent'" && took=$((SECONDS - started)) &&
    kill -CONT "$silent" && within 10 says "$a/silent" $'one\ntwo' && within 20 held "$others" &&
    echo "the process waited $took s"
} >"$out" 2>&1
result $? "who does not answer a recall loses it"

{
  # Written while nobody takes it, so that the mount has to hold it all, in pieces that do not touch: many small
  # blocks. By one process, since each that closes the file would wait for the server.
  writer=$(daemon_of "$a") && timeout 100 python3 - "$a/large" "$server_pid" "$writer" <<'EOF'
import os, re, signal, sys, time
name, server, mount = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def megabytes():
    return int(re.search(r"VmRSS:\s*(\d+)", open(f"/proc/{mount}/status").read())[1]) // 1024
before = megabytes()
large = os.open(name, os.O_CREAT | os.O_WRONLY)
os.kill(server, signal.SIGSTOP)
try:
    for number in range(40000):
        os.pwrite(large, bytes(4096), number * 7919 % 40000 * 8192)
    much = megabytes()
finally:
    os.kill(server, signal.SIGCONT)
os.close(large)
end = time.monotonic() + 40
while megabytes() >= before + 50 and time.monotonic() < end:
    time.sleep(0.2)
after = megabytes()
print(f"{before} MB, {much} MB, {after} MB")
sys.exit(not (much >= before + 150 and after < before + 50))
EOF
} >"$out" 2>&1
result $? "what a burst of writing took of memory goes back ($(tail -n 1 "$out"))"

{
  for i in 1 2 3; do read_twice "$a/down$i"; done
  umount "$a" && ! "$bin/nfs-rdma" status --server "$work/control.sock" | grep -E '[1-9][0-9]* delegation'
} >"$out" 2>&1
result $? "all are given back when the mount ends"

echo "$failures failures"
[ "$failures" = 0 ]
