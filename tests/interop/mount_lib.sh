# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the end-to-end scripts: one nfs-rdmad on loopback and one FUSE mount of it.
#
#   start_server           exports $export; sets server_pid, port, tcp_port
#   restart_server         starts it again on the same ports with the same state
#   mount_it / unmount_it  $mnt
#   fail TEXT              ends the script
# Everything lives below $work and is cleaned up when the script ends, however it ends.

[[ $(id -u) == 0 ]] || { echo "$(basename "$0") needs root" >&2; exit 1; }
[[ -c /dev/fuse ]] || { echo "$(basename "$0") needs /dev/fuse" >&2; exit 1; }
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
# shellcheck source=tests/interop/free_port.sh
. "$here/tests/interop/free_port.sh"
bin=${NFSRDMA_BIN:-$here/build/release/bin}
work=$(mktemp -d "${TMPDIR:-/tmp}/nfs-rdma-test.XXXXXX")
export_dir=${EXPORT_DIR:-$work/export}
mnt=$work/mnt
export_options=${EXPORT_OPTIONS:-rw,no_root_squash,insecure}
mount_options=${MOUNT_OPTIONS:-fabric=iwarp,proto=rdma}
server_pid='' port='' tcp_port=''
mkdir -p "$export_dir" "$mnt"

step() { printf '== %s\n' "$*"; }
fail() {
    printf 'FAILED: %s\n' "$*" >&2
    [[ -s $work/server.log ]] && { echo '--- server log (end):' >&2; tail -n 25 "$work/server.log" >&2; }
    exit 1
}

cleanup() {
    local rc=$?
    trap - EXIT
    # Never stat the mount: with a dead server a hard mount waits, and so would this script.
    if mounted; then timeout 20 umount "$mnt" 2>/dev/null || umount -f -l "$mnt" || :; fi
    # A mount daemon that outlives its mount is an error worth seeing, but must not stay behind.
    pkill -TERM -f "mount.nfs-rdma .*$work" 2>/dev/null && sleep 1
    pkill -KILL -f "mount.nfs-rdma .*$work" 2>/dev/null || :
    if [[ -n $server_pid ]]; then
        kill "$server_pid" 2>/dev/null || :
        wait "$server_pid" 2>/dev/null || :
    fi
    if declare -F extra_cleanup >/dev/null; then extra_cleanup; fi
    rm -rf "$work"
    exit $rc
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

mounted() { grep -q " $mnt " /proc/self/mountinfo; }

listening() { ss -Hltn "sport = :$1" | grep -q .; }

launch_server() {
    : >"$work/ready"
    "$bin/nfs-rdmad" --foreground -e "$export_dir:$export_options" --listen 127.0.0.1 \
        --port "$port" --tcp-port "$tcp_port" --fabric iwarp --state-dir "$work/state" \
        --control "$work/control.sock" >"$work/ready" 2>>"$work/server.log" &
    server_pid=$!
    local i
    for ((i = 0; i < 200; i++)); do
        grep -q '^ready' "$work/ready" && return 0
        kill -0 "$server_pid" 2>/dev/null || fail "nfs-rdmad ended at start"
        sleep 0.05
    done
    fail "nfs-rdmad was not ready after 10 s"
}

start_server() {
    port=$(free_port)
    tcp_port=$(free_port $((port + 1)))
    launch_server
}

restart_server() { launch_server; }

kill_server_hard() {
    kill -9 "$server_pid"
    wait "$server_pid" 2>/dev/null || :
    # From a subshell there was no child to wait for; and a thread that is inside fsync keeps the
    # whole process, its listeners included, until that returns.
    local i
    for ((i = 0; i < 600; i++)); do
        listening "$port" || listening "$tcp_port" || break
        sleep 0.05
    done
    server_pid=''
}

mount_it() {
    "$bin/mount.nfs-rdma" "127.0.0.1:$export_dir" "$mnt" \
        -o "$mount_options,port=$port,tcpport=$tcp_port,mountport=$tcp_port" ||
        fail "mount.nfs-rdma said $?"
    mounted || fail "mount.nfs-rdma returned 0, but $mnt is no mount point"
}

unmount_it() { umount "$mnt" || fail "umount $mnt"; }

tree_sum() { # one checksum over names, types, modes, sizes, link targets and contents
    (
        cd "$1" || exit 1
        find . -printf '%P %y %m %s %l\n' | awk '$2 == "d" { $4 = "" } { print }' | LC_ALL=C sort
        find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum
    ) | sha256sum
}

same_tree() { # expected actual
    [[ $(tree_sum "$1") == "$(tree_sum "$2")" ]] || {
        diff -r "$1" "$2" | head -n 5 >&2
        fail "$2 is not the same as $1"
    }
}
