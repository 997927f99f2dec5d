#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Which version of NFS a mount and the tool speak with our server when none is named, with one that
# has version 3 alone, and when the path is not there.
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

clean_up() {
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
  "$bin/mount.nfs-rdma" "127.0.0.1:$export_dir" "$mnt" -f -v -o "$by,retry=0" >"$work/log" 2>&1 &
  for _ in $(seq 100); do mountpoint -q "$mnt" && break; sleep 0.1; done
  exec 9<>"$mnt/file"; flock 9
  "$bin/nfs-rdma" status --mount "$mnt" | grep "1 lock held by NLM (NFS connection)"
  if python3 -c "import fcntl; fcntl.lockf(open(\"$export_dir/file\", \"r+\"), fcntl.LOCK_EX | fcntl.LOCK_NB)"; then exit 1; fi
  exec 9>&-
  umount "$mnt"; wait
  grep "local_lock=none" "$work/log"'

echo "$failures failures"
[ $failures = 0 ]
