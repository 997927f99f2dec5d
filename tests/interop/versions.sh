#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Which version of NFS a mount and the tool speak with our server when none is named, with one that
# has version 3 alone, and when the path is not there. And what becomes of mounts when the server, or
# its name, is not there yet.
#
#   versions.sh BIN_DIR [iwarp|tcp]     needs root and /dev/fuse
# shellcheck disable=SC2016  # check() evaluates its commands
set -u

# Without vers= is what is tested: the options of fuse_server.sh are not used as they are.
# shellcheck source=tests/interop/fuse_server.sh
. "$(dirname "$0")/fuse_server.sh"
# shellcheck disable=SC2154
by=${mount_by%,vers=*}

work=$(mktemp -d /tmp/nfs-rdma-versions.XXXXXX)
export_dir=$work/export
mnt=$work/mnt
mkdir -p "$export_dir" "$mnt" "$work/state"
echo data >"$export_dir/file"
failures=0
syslog=

clean_up() {
  # What a test that failed has left.
  pkill -9 -f "^$bin/mount.nfs-rdma .* $mnt " 2>/dev/null
  [ -n "$syslog" ] && kill "$syslog"
  umount -l "$mnt" 2>/dev/null
  [ -n "$server_pid" ] && kill "$server_pid" 2>/dev/null && wait "$server_pid" 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT
check() {  # check NAME COMMAND...
  local name=$1
  shift
  if timeout 60 bash -euc "$*" >"$work/out" 2>&1; then
    echo "ok   $name"
  else
    echo "FAIL $name (exit $?)"
    sed 's/^/     /' "$work/out" | tail -n 15
    failures=$((failures + 1))
  fi
}
# mounts OPTIONS VERSION: as what `-v` and `status` say
mounts() {
  "$bin/mount.nfs-rdma" "127.0.0.1:$export_dir" "$mnt" -v -o "$by,retry=0${1:+,$1}" >"$work/said"
  cat "$work/said"
  "$bin/nfs-rdma" status --mount "$mnt" --json >"$work/status" || true
  [ "$(cat "$mnt/file")" = data ]
  umount "$mnt"
  grep -q "^NFS version $2 " "$work/said"
  grep -q "vers=$2," "$work/said"
  grep -q "\"nfs_version\": *\"$2\"" "$work/status"
}
refused() {  # refused OPTIONS PATH: prints why
  local code=0
  "$bin/mount.nfs-rdma" "127.0.0.1:$2" "$mnt" -o "$by,retry=0${1:+,$1}" 2>&1 || code=$?
  [ $code = 32 ]
}
export -f mounts refused
export bin by export_dir mnt work
query="fabric=iwarp&proto=rdma&tcpport=$tcp_port"
url="nfs://127.0.0.1:$rdma_port$export_dir"
# shellcheck disable=SC2154
if [ "$fabric" = tcp ]; then query=proto=tcp url="nfs://127.0.0.1:$tcp_port$export_dir"; fi
export query url

start_server
check "the newest that both have" 'mounts "" 4.2'
check "vers=4 is 4.2, 4.1 and 3 are exact" 'mounts vers=4 4.2; mounts vers=4.1 4.1; mounts vers=3 3'
check "how to speak to MOUNT means version 3, where it is does not" '
  mounts mountproto=tcp 3; mounts mountvers=3 3; mounts "mountport=${by##*port=}" 4.2'
check "a symbolic link on the way is followed by MOUNT, so by version 3" '
  mkdir "$export_dir/d"; echo data > "$export_dir/d/file"; ln -s d "$export_dir/link"
  "$bin/mount.nfs-rdma" "127.0.0.1:$export_dir/link" "$mnt" -v -o "$by,retry=0"; cat "$mnt/file"; umount "$mnt"
  refused vers=4.2 "$export_dir/link"'
check "the tool reads and writes" '
  "$bin/nfs-rdma" cat "$url/file?$query" | grep -x data; "$bin/nfs-rdma" cp /etc/passwd "$url/new?$query"
  cmp /etc/passwd "$export_dir/new"'
check "a path that is not there: MOUNT says so" '
  refused "" /no/such/path | tee "$work/why"; grep -q "^mount.nfs-rdma: /no/such/path: .*MOUNT" "$work/why"
  refused vers=4.2 /no/such/path | grep "/no/such/path"'
kill "$server_pid"; wait "$server_pid"

# A server of version 3 alone.
echo NFSoRDMA_NFS4=no >"$work/rdma.conf"
# shellcheck disable=SC2034  # fuse_server.sh uses it
server_options=(--config "$work/rdma.conf")
start_server
check "a server of version 3 alone" 'mounts "" 3'
check "is mounted as quickly as by vers=3" '
  took() { local start; start=$(date +%s%N); mounts "$1" 3 >/dev/null; echo $((($(date +%s%N) - start) / 1000000)); }
  named=$(took vers=3); unnamed=$(took ""); echo "vers=3: $named ms, none: $unnamed ms"
  [ "$unnamed" -lt $((2 * named + 1000)) ]'
check "and has no version 4" 'refused vers=4 "$export_dir" | grep "the server lacks the program"'
check "the tool goes on with version 3" '
  "$bin/nfs-rdma" cat "$url/file?$query" | grep -x data
  if "$bin/nfs-rdma" cat "$url/file?$query&vers=4.2"; then exit 1; fi'
check "locks are not local then, either" '
  "$bin/mount.nfs-rdma" "127.0.0.1:$export_dir" "$mnt" -F -v -o "$by,retry=0" >"$work/log" 2>&1 &
  for _ in $(seq 100); do mountpoint -q "$mnt" && break; sleep 0.1; done
  exec 9<>"$mnt/file"; flock 9
  "$bin/nfs-rdma" status --mount "$mnt" | grep "1 lock held by NLM (NFS connection)"
  if python3 -c "import fcntl; fcntl.lockf(open(\"$export_dir/file\", \"r+\"), fcntl.LOCK_EX | fcntl.LOCK_NB)"; then exit 1; fi
  exec 9>&-
  umount "$mnt"; wait
  grep "local_lock=none" "$work/log"'

# Commands that are killed while they wait, by a time limit for instance: nobody wants their mounts any more.
start_mount() {  # start_mount [NAME=VALUE...]: sets command, and daemon, its child
  env "$@" "$bin/mount.nfs-rdma" "127.0.0.1:$export_dir" "$mnt" -o "$by,retry=5" >"$work/out" 2>&1 </dev/null &
  command=$!
  within 10 pgrep -P "$command" && daemon=$(pgrep -P "$command")
}
mounted() { grep -q " $mnt fuse" /proc/self/mounts; }
given_up() { ends_within 30 "$daemon" && ! mounted && grep -q "was killed" "$work/out"; }

# The server is in its time of grace from here on: files are looked at, not opened.
kill_server
server_options=()
start_mount && within 10 grep "trying for" "$work/out"
kill_hard "$command"
start_server
given_up
result $? "a command that is killed while it tries mounts nothing later"
umount -l "$mnt" 2>/dev/null

mkfifo "$work/hold"
start_mount LD_PRELOAD="$bin/hold_mount.so" HOLD_MOUNT="$work/hold" && within 10 test -e "$work/hold.reached"
kill_hard "$command"
timeout 10 sh -c ": >$work/hold"
ends_within 30 "$daemon" && ! mounted
result $? "nor one that is killed while it mounts"
umount -l "$mnt" 2>/dev/null

# With bg, what reads the command's output comes to its end.
in_background() { "$bin/mount.nfs-rdma" "127.0.0.1:$export_dir" "$mnt" -o "$by,retry=5,bg" 2>&1; }
export -f in_background mounted within
kill_server
check "with bg nothing of the caller's is kept open" '
  said=$(in_background); grep "goes on in the background" <<<"$said"'
start_server
check "and it is mounted when the server is there" 'within 30 mounted; [ -f "$mnt/file" ]; umount "$mnt"'

# Host names that nobody knows yet, in a namespace with such files in /etc; its /dev/log is a file here.
mkdir "$work/dev"
python3 -c '
import socket, sys
words = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
words.bind(sys.argv[1])
while True: open(sys.argv[2], "ab").write(words.recv(4096) + b"\n")' "$work/dev/log" "$work/syslog" &
syslog=$!
for device in null zero urandom fuse; do : >"$work/dev/$device"; done
printf 'nameserver 192.0.2.53\noptions timeout:1 attempts:1\n' >"$work/resolv.conf"  # nobody's: RFC 5737
with_names() {  # with_names DATABASES COMMAND...: of hosts, as nsswitch.conf(5) has them
  echo "hosts: $1" >"$work/nsswitch.conf"
  : >"$work/hosts"
  shift
  unshare --mount --propagation private bash -euc '
    for file in hosts resolv.conf nsswitch.conf; do mount --bind "$work/$file" "/etc/$file"; done
    for device in null zero urandom fuse; do mount --bind "/dev/$device" "$work/dev/$device"; done
    mount --rbind "$work/dev" /dev
    "$@"' - "$@"
}
by_name() {  # by_name OPTIONS [PATH]
  "$bin/mount.nfs-rdma" "nfs.example:${2:-$export_dir}" "$mnt" -o "$by,retry=5${1:+,$1}" 2>&1
}
named_later() {  # named_later OPTIONS SAYS
  by_name "$1" >"$work/said" &
  local command=$!
  within 20 grep "cannot find the host 'nfs.example'.*; $2" "$work/said"
  echo 127.0.0.1 nfs.example >>"$work/hosts"
  wait $command
  within 30 mounted
  [ -f "$mnt/file" ]
  umount "$mnt"
}
fails_later() {
  by_name bg /no/such/path
  echo 127.0.0.1 nfs.example >>"$work/hosts"
  within 30 grep "/no/such/path: " "$work/syslog"
}
export -f with_names by_name named_later fails_later
check "a name server that does not answer is asked again" 'with_names "files dns" named_later "" "trying for"'
check "with bg, too" 'with_names "files dns" named_later bg "goes on"'
check "a name that nobody knows is asked for once" '
  code=0; with_names files by_name "" >"$work/why" || code=$?; [ $code = 32 ]; grep "name lookup: not found" "$work/why"'
check "with bg it is asked for again" 'with_names files named_later bg "goes on"'
check "with bg the reason for the end goes to syslog" 'with_names files fails_later'

echo "$failures failures"
[ $failures = 0 ]
