# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154  # the caller sets $work and $export_dir
# Sourced by fuse_*.sh with their arguments: BIN_DIR [iwarp|tcp] [MOUNT_OPTIONS].
#
#   $bin $fabric $mount_by     programs, transport, the mount options that go with it
#   start_server               of $export_dir, with state and server.log in $work; sets server_pid
#   kill_server                kill -9, also of a stopped one
#   wait_until_ready LOG, kill_hard PID    the same for another one
#   mount_on DIR [OPTIONS]     $export_dir, in the background; the script ends when it does not mount
#   mount_here                 $export_dir on $mnt, in the foreground: daemon, whose words are in daemon.log
#   result, within, says, is, logged, ends_within    what tests say and wait for; failures counts
# The caller sets $work and $export_dir before it starts one, and $mnt.

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
export_options=rw,no_root_squash,insecure
daemon=
failures=0

start_server() {
  : >"$work/server.log"
  "$bin/nfs-rdmad" --foreground -e "$export_dir:$export_options" --listen 127.0.0.1 \
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

mount_on() {  # mount_on DIR [OPTIONS]
  "$bin/mount.nfs-rdma" "127.0.0.1:$export_dir" "$1" -o "$mount_by,retry=0${2:+,$2}" || {
    echo "mount failed"; cat "$work/server.log"; exit 1
  }
}
mount_here() {  # mount_here [OPTIONS [PATH]]: with -v; false: it does not mount
  : >"$work/daemon.log"
  "$bin/mount.nfs-rdma" "127.0.0.1:${2:-$export_dir}" "$mnt" -F -v -o "$mount_by,retry=0${1:+,$1}" \
    >"$work/daemon.log" 2>&1 &
  daemon=$!
  for _ in $(seq 300); do
    grep -q " on $mnt " "$work/daemon.log" && return 0
    kill -0 "$daemon" 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}
unmount_here() {  # umount(8), and the daemon ends
  umount "$mnt" && ends_within 20 "$daemon" && wait "$daemon" || return
  daemon=
}
end_mount_here() {  # however it is
  [ -n "$daemon" ] && kill -9 "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null
  daemon=
  grep -q " $mnt fuse" /proc/mounts && umount -l "$mnt"
}
with_port() { echo "$1.$(($2 / 256)).$(($2 % 256))"; }  # a universal address: RFC 8881 11.16
ends_within() {  # ends_within SECONDS PID: is it gone (or a zombie) by then?
  local i
  for ((i = 0; i < $1 * 10; i++)); do
    case $(cut -d ' ' -f 3 "/proc/$2/stat" 2>/dev/null) in '' | Z) return 0 ;; esac
    sleep 0.1
  done
  return 1
}
result() {  # result STATUS NAME; what was written to $work/out, or logged, is shown when it is bad
  local log
  if [ "$1" = 0 ]; then
    echo "ok   $2"
    return
  fi
  echo "FAIL $2"
  for log in out daemon.log server.log; do
    [ -s "$work/$log" ] && tail -n 15 "$work/$log" | sed "s/^/     $log: /"
  done
  failures=$((failures + 1))
}
says() {  # says FILE TEXT
  local now
  now=$(cat "$1") || return
  [ "$now" = "$2" ] || { echo "$1: '$now', not '$2'"; false; }
}
is() { [ "$1" = "$2" ] || { echo "'$1', not '$2'"; false; }; }
logged() { grep -q "$1" "$work/daemon.log" || { echo "no '$1' in the log"; false; }; }
within() {  # within SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { "$@"; return 1; }
    sleep 0.2
  done
}
