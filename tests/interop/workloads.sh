#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# workloads.sh [OPTIONS] [NAME...]    real programs on the FUSE mount over iWARP, loopback
#
# NAMEs: copy (cp -a of /usr/include and /usr/share/doc), git (clone, build, fsck), fio (verify, random
# and sequential, each with four jobs that have a quarter of one file of 1 GiB), sqlite (transactions,
# integrity check), names (exclusive creates, links, renames ..., none of which may run twice). Default: all.
#   --kills N     kill -9 the server N times at seeded random moments in each workload (which starts
#                 over until all have happened) and start it again; any error that the application sees is a failure
#   --seed S      (default 1)
#   --uid U       run the applications as this uid (default: root)
#   --small       sizes for CI: a few thousand files, a file of 64 MiB for fio, 500 transactions
#   --wire        count the bytes on the wire, of the workload and of reading what it left through another mount:
#                 payload of RDMA Writes and Read Responses as tshark sees it in a capture of loopback, status of
#                 server and mount, sizes of the files. copy and fio write each byte once: what is above the inline
#                 limit has to be in Read Responses, no more and no less; of what the others write these and inline
#                 messages have at least the files. All that is read has to be in RDMA Writes, once. Not with --kills.
#                 The captures need disk space in TMPDIR (5 GiB for fio at full size; tshark half a GiB of memory)
#                 and are removed. Three tries when one is incomplete, or when the kernel threw cached pages away.
# After each workload: unmount, mount again, compare through the mount and in the export.
set -euo pipefail
# shellcheck source=tests/interop/mount_lib.sh
. "$(dirname "$(readlink -f "$0")")/mount_lib.sh"
# shellcheck source=tests/interop/wire_lib.sh
. "$here/tests/interop/wire_lib.sh"

kills=0 seed=1 uid=0 small='' wire='' names=()
while (($#)); do
    case $1 in
        --kills) kills=$2; shift ;;
        --seed) seed=$2; shift ;;
        --uid) uid=$2; shift ;;
        --small) small=1 ;;
        --wire) wire=1 ;;
        -h | --help) sed -n '3,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
        -*) fail "unknown option $1" ;;
        *) names+=("$1") ;;
    esac
    shift
done
# Not a shim in somebody's home, which ordinary users cannot run.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
[[ -z $wire ]] || ((kills == 0)) || fail "--wire counts without kills"
[[ -z $wire ]] || wire_programs
((${#names[@]})) || names=(copy git fio sqlite names)

as_user() {
    if ((uid == 0)); then "$@"; return; fi
    HOME=$work/scratch setpriv --reuid "$uid" --regid "$uid" --clear-groups -- "$@"
}

# --- the server's killer: runs beside a workload ---------------------------------------------

RANDOM=$seed
killer() { # runs in a subshell; tells the main shell the new pid through a file
    local i
    for ((i = 0; i < kills; i++)); do
        sleep "0.$((RANDOM % 900 + 100))"
        [[ -e $work/workload-done ]] && break
        kill_server_hard
        sleep "0.$((RANDOM % 400))"
        restart_server
        echo "$server_pid" >"$work/server.pid"
        echo $((i + 1)) >"$work/kills"
    done
}

# The server must be a child of this shell to be waited for; a killed one is started by the killer
# and is adopted here by pid.
with_kills() { # command...
    rm -f "$work/workload-done"
    echo 0 >"$work/kills"
    if ((kills == 0)); then "$@"; return; fi
    killer &
    local killer_pid=$! rc=0 rounds=1
    "$@" || rc=$?
    # Until every kill has happened, the workload starts over: what it made is removed and made again.
    while ((rc == 0 && $(cat "$work/kills") < kills)) && [[ -d /proc/$killer_pid ]]; do
        find "$mnt/work" -mindepth 1 -delete || rc=$?
        rounds=$((rounds + 1))
        ((rc)) || "$@" || rc=$?
    done
    touch "$work/workload-done"
    wait "$killer_pid" || fail "the server could not be started again"
    [[ -s $work/server.pid ]] && server_pid=$(cat "$work/server.pid")
    echo "   the server was killed $(cat "$work/kills") times in $rounds rounds"
    (($(cat "$work/kills") == kills || rc)) || fail "not every kill happened"
    return $rc
}

# --- workloads --------------------------------------------------------------------------------

sources() {
    if [[ -n $small ]]; then echo /usr/include/linux; else echo /usr/include /usr/share/doc; fi
}

workload_copy() {
    local source
    for source in $(sources); do as_user cp -a "$source" "$mnt/work/" || return 1; done
}
check_copy() { # where
    local source
    for source in $(sources); do same_tree "$source" "$1/work/$(basename "$source")"; done
}

prepare_git() {
    # A repository that builds with nothing but make and cc; made here, so no network is needed.
    local repo=$work/repo n=${small:+40} i
    n=${n:-400}
    mkdir -p "$repo"
    (
        cd "$repo"
        git init -q -b main .
        for ((i = 0; i < n; i++)); do
            printf 'int f%d(int x) { return x * %d + 1; }\n' "$i" "$i" >"f$i.c"
        done
        printf 'int main(void) { return 0; }\n' >main.c
        # shellcheck disable=SC2016  # make's variables, not ours
        printf 'OBJS := $(patsubst %%.c,%%.o,$(wildcard *.c))\nprog: $(OBJS)\n\t$(CC) -o $@ $^\n' >Makefile
        git add . && git -c user.name=t -c user.email=t@t commit -q -m one
        for ((i = 0; i < n; i += 3)); do echo "/* $i */" >>"f$i.c"; done
        git -c user.name=t -c user.email=t@t commit -q -a -m two
        chown -R "$uid:$uid" .  # git serves a repository to its owner only
    )
}
workload_git() {
    as_user git -c safe.directory='*' clone -q "file://$work/repo" "$mnt/work/clone" || return 1
    as_user make -s -C "$mnt/work/clone" -j2 prog || return 1
    as_user "$mnt/work/clone/prog" || return 1
    as_user git -c safe.directory='*' -C "$mnt/work/clone" gc -q || return 1
    as_user git -c safe.directory='*' -C "$mnt/work/clone" fsck --full || return 1
}
check_git() {
    git -c safe.directory='*' -C "$1/work/clone" fsck --full || fail "git fsck in $1"
    local status
    status=$(git -c safe.directory='*' -C "$1/work/clone" status --porcelain -uno) || fail "git status in $1"
    [[ -z $status ]] || fail "git status in $1: $status"
    # A copy: in the export the server may still hold the file open for writing (ETXTBSY).
    cp "$1/work/clone/prog" "$work/prog-copy"
    "$work/prog-copy" || fail "the program built in $1 does not run"
    rm -f "$work/prog-copy"
}

workload_fio() {
    local size=${small:+16m} rw
    # A quarter: four jobs have one file of 1 GiB together. fio warns of several writers all the same.
    size=${size:-256m}
    for rw in write randwrite; do
        (cd "$work/scratch" && as_user fio --name="verify-$rw" --filename="$mnt/work/verify-$rw" --rw="$rw" --bs=64k \
            --size="$size" --offset_increment="$size" --numjobs=4 --ioengine=psync --verify=crc32c --do_verify=1 \
            --verify_fatal=1 --end_fsync=1 --group_reporting --minimal >"$work/fio.out") ||
            { tail -n 5 "$work/fio.out"; return 1; }
    done
    (cd "$work/scratch" && as_user sh -c "sha256sum $mnt/work/verify-*") >"$work/fio.sums" || return 1
}
check_fio() {
    sed "s|$mnt|$1|" "$work/fio.sums" | sha256sum --quiet -c - || fail "fio files differ in $1"
}

workload_sqlite() {
    local n=${small:+500}
    as_user sh -c "$(printf '%q ' python3 "$here/tests/interop/sqlite_load.py" "$mnt/work/db.sqlite" "${n:-10000}")"
}
check_sqlite() {
    local n=${small:+500} rows
    [[ $(sqlite3 "$1/work/db.sqlite" 'PRAGMA integrity_check;') == ok ]] || fail "integrity check in $1"
    rows=$(sqlite3 "$1/work/db.sqlite" 'SELECT count(*) FROM t;')
    [[ $rows == "${n:-10000}" ]] || fail "$rows rows in $1 instead of ${n:-10000}"
}

names_rounds() { if [[ -n $small ]]; then echo 300; else echo 3000; fi; }
workload_names() {
    as_user python3 "$here/tests/interop/names_load.py" "$mnt/work" "$(names_rounds)"
}
check_names() {
    local n i
    n=$(find "$1/work" -type f | wc -l)
    ((n == $(names_rounds))) || fail "$n files in $1 instead of $(names_rounds)"
    for ((i = 0; i < n; i += 37)); do
        [[ $(cat "$1/work/d$((i / 100))/final-$i") == "$i" ]] || fail "final-$i in $1"
    done
}

# --- the bytes on the wire --------------------------------------------------------------------

measured() { # once|some|read COMMAND...: mounts and unmounts by itself
    local rule=$1 i rc buffer=2000
    shift
    [[ -z $small ]] || buffer=256
    if [[ -z $wire ]]; then "$@"; return; fi
    for ((i = 0; i < 3; i++)); do
        wire_begin "$buffer"
        server_status >"$work/before.json"
        cp /proc/vmstat "$work/vmstat-before"
        "$@"
        cp /proc/vmstat "$work/vmstat-after"
        server_status >"$work/after.json"
        rc=0
        wire_end && wire_count "$work/tshark.json" || rc=$?
        echo "   $name, $rule:"
        ((rc)) || python3 "$here/tests/interop/wire_compare.py" "$rule" "$export_dir/work" "$work" || rc=$?
        ((rc == 3)) || break
        echo "   nothing can be said: once more"
    done
    ((rc == 0)) || fail "the counts of $name ($rule) differ, or could not be made"
}

run_workload() {
    rm -rf "$export_dir/work"
    mkdir "$export_dir/work"
    chown "$uid:$uid" "$export_dir/work"
    mount_it
    with_kills "workload_$name" || fail "$name saw an error"
    [[ -z $wire ]] || same_moment
    unmount_it
}
read_back() { # each file once, and no listings, which may come by RDMA Write, too
    local mount_options=$mount_options,nordirplus
    mount_it
    (cd "$export_dir/work" && find . -type f -print0 | xargs -0 -r sha256sum) >"$work/sums"
    (cd "$mnt/work" && sha256sum --quiet -c "$work/sums") || fail "$name: other bytes through the mount"
    same_moment
    unmount_it
}

# --- the run ----------------------------------------------------------------------------------

chmod 755 "$work"
mkdir -p "$work/scratch"
chown "$uid:$uid" "$work/scratch"
prepare_git
start_server
for name in "${names[@]}"; do
    declare -F "workload_$name" >/dev/null || fail "no workload $name"
    step "$name as uid $uid${kills:+, $kills kills}"
    case $name in copy | fio) rule=once ;; *) rule=some ;; esac
    began=$SECONDS
    measured "$rule" run_workload
    [[ -z $wire ]] || measured read read_back
    mount_it
    "check_$name" "$mnt"
    "check_$name" "$export_dir"
    "$bin/nfs-rdma" status --mount "$mnt" >"$work/status" ||
        { cat "$work/status"; fail "the mount does not use RDMA"; }
    unmount_it
    echo "   $name: same through the mount and in the export, $((SECONDS - began)) s"
done
cat "$work/status"
echo "all workloads passed"
