# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154  # the caller sets $work and $export_dir
# Sourced by fuse_*.sh with their arguments: BIN_DIR [iwarp|tcp] [MOUNT_OPTIONS].
#
#   $bin $fabric $mount_by     programs, transport, the mount options that go with it
#   start_server               of $export_dir, with state and server.log in $work; sets server_pid
#   kill_server                kill -9, also of a stopped one
#   wait_until_ready LOG, kill_hard PID    the same for another one
# The caller sets $work and $export_dir before it starts one.

bin=${1:?usage: $(basename "$0") BIN_DIR [iwarp|tcp] [MOUNT_OPTIONS]}
fabric=${2:-iwarp}
bin=$(cd "$bin" && pwd)
[ "$(id -u)" = 0 ] || { echo "$(basename "$0") needs root"; exit 1; }
[ -c /dev/fuse ] || { echo "$(basename "$0") needs /dev/fuse"; exit 1; }
# Not a shim in somebody's home, which ordinary users cannot run.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
# shellcheck source=tests/interop/free_port.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/free_port.sh"
rdma_port=$(free_port)
tcp_port=$(free_port $((rdma_port + 1)))
# shellcheck disable=SC2034  # for the callers
mount_by=proto=rdma,fabric=iwarp,port=$rdma_port,tcpport=$tcp_port
# shellcheck disable=SC2034
if [ "$fabric" = tcp ]; then mount_by=proto=tcp,port=$tcp_port; fi
mount_by+=${3:+,$3}
# What is mounted without vers=; in so many words, since callers look for it.
[[ ,$mount_by, == *,vers=* ]] || mount_by+=,vers=4.2
server_pid=
server_options=()  # the caller may have more

start_server() {
  : >"$work/server.log"
  "$bin/nfs-rdmad" --foreground -e "$export_dir:rw,no_root_squash,insecure" --listen 127.0.0.1 \
    --port "$rdma_port" --tcp-port "$tcp_port" --state-dir "$work/state" \
    --control "$work/control.sock" "${server_options[@]}" >>"$work/server.log" 2>&1 &
  server_pid=$!
  wait_until_ready "$work/server.log"
}
wait_until_ready() {  # wait_until_ready LOG: of a server
  for _ in $(seq 100); do
    grep -q "^ready" "$1" && return
    sleep 0.1
  done
  echo "server did not start:"; cat "$1"; exit 1
}
kill_server() {
  kill_hard "$server_pid"
  server_pid=
}
kill_hard() {  # kill_hard PID: of a child that may be stopped
  kill -9 "$1"
  kill -CONT "$1" 2>/dev/null
  wait "$1" 2>/dev/null
}
