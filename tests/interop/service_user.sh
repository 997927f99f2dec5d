#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# service_user.sh: without any privilege. An ordinary user serves a directory as himself on high ports, and
# mounts it by FUSE as himself.
#
#   tests/interop/service_user.sh [BIN_DIR] [UID]
#
#   BIN_DIR   programs (default build/release/bin)
#   UID       the user (default 1000; need not have a name). Started by an ordinary user: he himself.
#
# Needs /dev/fuse and fusermount3; root only to become somebody else. One line for each step.
# shellcheck source=../../scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
# shellcheck source=free_port.sh
. "$root/tests/interop/free_port.sh"
case ${1:-} in
    -h | --help) show_help; exit 0 ;;
esac
bin=$(cd "${1:-$root/build/release/bin}" && pwd)
user=${2:-1000} other=1234
if ((EUID != 0)); then user=$EUID; fi
# Not a shim in somebody's home, which ordinary users cannot run.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
[[ -c /dev/fuse ]] || { warn "left out: no /dev/fuse"; exit 77; }
have fusermount3 || { warn "left out: no fusermount3"; exit 77; }

work=$(mktemp -d /tmp/nfs-rdma-user.XXXXXX)
server=''
clean_up() {
    trap - EXIT ERR
    as_user fusermount3 -uz "$work/mnt" 2>/dev/null || :
    if [[ -n $server ]]; then kill "$server" 2>/dev/null; wait "$server" 2>/dev/null; fi
    rm -rf "$work"
}
# No capability, no supplementary group, no way to gain any; fusermount3 is set-user-ID, so
# no_new_privs stays off.
his=(env -i "PATH=$PATH" "HOME=$work/home" "XDG_RUNTIME_DIR=$work/run")
if ((EUID == 0)); then
    his=(setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all "${his[@]}")
fi
as_user() { "${his[@]}" "$@"; }
broken() {
    fail "$*"
    for log in server mount said; do
        [[ ! -s $work/$log.log ]] || { note "--- $log.log"; tail -n 20 "$work/$log.log" >&2; }
    done
    exit 1
}
# refused_with TEXT COMMAND...: it fails, and says TEXT.
refused_with() {
    local text=$1
    shift
    if "$@" >"$work/said.log" 2>&1; then broken "not refused: $*"; fi
    grep -qF "$text" "$work/said.log" || broken "$*: did not say '$text'"
}
trap clean_up EXIT

mkdir -m 755 "$work/export" "$work/mnt" "$work/home" "$work/export/closed" "$work/export/theirs"
mkdir -m 700 "$work/run"
chmod 755 "$work"
install -m 644 /dev/null "$work/export/closed/of-somebody"
echo secret >"$work/export/closed/of-somebody"
chmod 600 "$work/export/closed/of-somebody"
echo readable >"$work/export/theirs/readable"
if ((EUID == 0)); then
    chown "$user:$user" "$work"/{export,mnt,home,run}
    chown -R "$other:$other" "$work/export"/{closed,theirs}
    chmod 700 "$work/export/closed"
fi

port=$(free_port)
tcp_port=$(free_port $((port + 1)))
serve() {
    "${his[@]}" "$bin/nfs-rdmad" --foreground -e "$work/export:rw,insecure" --listen 127.0.0.1 \
        --port "$port" --tcp-port "$tcp_port" --fabric iwarp >>"$work/server.log" 2>&1 &
    server=$!
    local tries
    for ((tries = 0; tries < 200; tries++)); do
        if grep -q '^ready' "$work/server.log"; then return; fi
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.05
    done
    return 1
}
mount_options=proto=rdma,fabric=iwarp,port=$port,tcpport=$tcp_port,retry=0

step "uid $user serves and mounts, with no capability"
serve || broken "nfs-rdmad did not start as uid $user"
status=/proc/$server/status
[[ $(awk '/^Uid/ { print $2 }' "$status") == "$user" ]] || broken "the server does not run as uid $user"
grep -q '^CapPrm:\s*0*$' "$status" || broken "the server has capabilities"
note "served as uid $user without capabilities: $(grep '^ready' "$work/server.log")"

# What it cannot do, it says at its start, once: with whose rights it acts.
said=$(grep -v '^ready' "$work/server.log" | grep -w "uid $user" || :)
[[ $(grep -c . <<<"$said") == 1 ]] || broken "its start does not say once that all is done as uid $user"
note "said at the start: ${said#*: }"

as_user "$bin/mount.nfs-rdma" "127.0.0.1:$work/export" "$work/mnt" -o "$mount_options" >"$work/mount.log" 2>&1 ||
    broken "mount.nfs-rdma failed"
grep " $work/mnt fuse.nfs-rdma .*user_id=$user" /proc/self/mounts >/dev/null || broken "no mount of uid $user"
as_user "$bin/nfs-rdma" status --mount "$work/mnt" >"$work/said.log" || broken "no RDMA in use"
note "mounted as uid $user by FUSE, over RDMA"

as_user sh -ec "cd $work/mnt
    mkdir dir; echo mine >dir/file; mv dir/file dir/moved; ln -s moved dir/link; chmod 0640 dir/moved
    head -c 3000000 /dev/urandom >big; sync big; cmp big $work/export/big" || broken "work in the mount failed"
[[ $(stat -c '%u %a' "$work/export/dir/moved") == "$user 640" ]] || broken "the file is not his"
note "files that he makes are his"

refused_with "Operation not permitted" as_user chown "$other" "$work/mnt/big"
if ((EUID == 0)); then
    # Somebody else's files are there only where root made them.
    refused_with "Permission denied" as_user cat "$work/mnt/closed/of-somebody"
    refused_with "Permission denied" as_user sh -c "echo x >>$work/mnt/theirs/readable"
    refused_with "Operation not permitted" as_user chmod 777 "$work/mnt/theirs/readable"
    [[ $(as_user cat "$work/mnt/theirs/readable") == readable ]] || broken "what all may read cannot be read"
    note "others' files are as closed to him as without the mount"
    refused_with "Permission denied" ls "$work/mnt"
    refused_with "Permission denied" setpriv --reuid "$other" --regid "$other" --clear-groups ls "$work/mnt"
    note "nobody else gets into his mount, root neither"
    # Whoever calls by TCP or RDMA is served with the rights of the one who serves.
    "$bin/nfs-rdma" cp /etc/hostname "nfs://127.0.0.1:$port$work/export/by-root" >"$work/said.log" 2>&1 ||
        broken "nfs-rdma cp failed"
    [[ $(stat -c %u "$work/export/by-root") == "$user" ]] || broken "a file of root appeared"
    note "a file that root sends belongs to uid $user, too"
fi

# Another start of his, with the same state: handles stay good.
kill "$server"
wait "$server" || broken "the server did not end cleanly"
: >"$work/server.log"
serve || broken "nfs-rdmad did not start again"
[[ $(as_user cat "$work/mnt/dir/moved") == mine ]] || broken "after a restart the file is lost"
note "a restart of the server leaves the mount as it was"

if ((EUID == 0)) && grep -q '^user_allow_other' /etc/fuse.conf 2>/dev/null; then
    mkdir "$work/open"
    chown "$user" "$work/open"
    as_user "$bin/mount.nfs-rdma" "127.0.0.1:$work/export" "$work/open" -o "$mount_options,allow_other,nodiratime" \
        >"$work/mount.log" 2>&1 || broken "mount.nfs-rdma with allow_other failed"
    as_somebody() { setpriv --reuid "$other" --regid "$other" --clear-groups "$@"; }
    [[ $(as_somebody cat "$work/open/theirs/readable") == readable ]] || broken "allow_other does not let others in"
    as_user fusermount3 -u "$work/open" || broken "he cannot unmount what is open to all"
    note "with allow_other others get in"
else
    refused_with "user_allow_other" as_user "$bin/mount.nfs-rdma" "127.0.0.1:$work/export" "$work/home" \
        -o "$mount_options,allow_other"
    note "allow_other needs user_allow_other in /etc/fuse.conf: said"
fi

as_user fusermount3 -u "$work/mnt" || broken "he cannot unmount"
for ((i = 0; i < 100; i++)); do
    pgrep -U "$user" -f "mount.nfs-rdma .*$work" >/dev/null || break
    sleep 0.1
done
((i < 100)) || broken "the mount's daemon is still there"
note "unmounted as uid $user"

kill "$server"
wait "$server" || broken "the server did not end cleanly"
server=''
# A port that is root's: said with what to do.
: >"$work/server.log"
if as_user "$bin/nfs-rdmad" --foreground -e "$work/export" --listen 127.0.0.1 --port 650 --tcp-port off \
    --fabric iwarp >"$work/said.log" 2>&1; then
    broken "uid $user serves on port 650"
fi
note "port 650: $(tail -n 1 "$work/said.log")"
good "without privilege: ok"
