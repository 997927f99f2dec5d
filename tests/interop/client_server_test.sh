#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# client_server_test.sh: the tool and the library against nfs-rdmad on loopback, over iWARP and TCP:
# trees in and out with checksums, every operation of the library, small files in every version, what
# is copied onto itself, status and its exit codes, and a server that is killed and started again in the middle of a copy.
#
#   tests/interop/client_server_test.sh [iwarp|tcp]...      (both)
# NFSRDMA_BIN: where the programs are (build/release/bin).
set -u -o pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
# shellcheck source=tests/interop/free_port.sh
. "$here/tests/interop/free_port.sh"
bin=${NFSRDMA_BIN:-$here/build/release/bin}
work=$(mktemp -d "${TMPDIR:-/tmp}/nfs-rdma-client.XXXXXX")
server_pid=''
tool=$bin/nfs-rdma

step() { printf '== %s\n' "$*"; }
fail() {
    printf 'FAILED: %s\n' "$*" >&2
    [[ -s $work/server.log ]] && tail -n 20 "$work/server.log" >&2
    exit 1
}
cleanup() {
    local rc=$?
    trap - EXIT
    if [[ -n $server_pid ]]; then
        kill "$server_pid" 2>/dev/null || :
        wait "$server_pid" 2>/dev/null || :
    fi
    rm -rf "$work"
    exit $rc
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

start_server() {
    : >"$work/ready"
    "$bin/nfs-rdmad" --foreground -e "$work/export:rw,no_root_squash,insecure" \
        --listen 127.0.0.1 --port "$port" --tcp-port "$tcp_port" --fabric iwarp \
        --state-dir "$work/state" --control "$work/control.sock" \
        >"$work/ready" 2>>"$work/server.log" &
    server_pid=$!
    local i
    for ((i = 0; i < 200; i++)); do
        grep -q '^ready' "$work/ready" && return 0
        kill -0 "$server_pid" 2>/dev/null || fail "nfs-rdmad ended at start"
        sleep 0.05
    done
    fail "nfs-rdmad was not ready after 10 s"
}
kill_server_hard() {
    kill -9 "$server_pid"
    wait "$server_pid" 2>/dev/null || :
    server_pid=''
}

same_trees() { diff -r --no-dereference "$1" "$2" >"$work/diff" 2>&1 || fail "$3: $(head -n 3 "$work/diff")"; }
listing() { (cd "$1" && find . -printf '%y %m %s %T@ %p %l\n' | sed 's/^d \([0-7]*\) [0-9]*/d \1/' | sort); }

make_source() {
    mkdir -p "$work/src/deep/er/est" "$work/src/empty" "$work/src/with space"
    for n in 0 1 3 4 511 4095 4096 4097 65536 1048575 1048576 1048577; do
        head -c "$n" /dev/urandom >"$work/src/size-$n"
    done
    head -c 30000001 /dev/urandom >"$work/src/large"
    for n in $(seq 300); do echo "file $n" >"$work/src/deep/n$n"; done
    ln -s ../size-4096 "$work/src/deep/link"
    ln -s nowhere "$work/src/dangling"
    echo x >"$work/src/with space/n%me?"
    chmod 600 "$work/src/size-1"
    chmod 2750 "$work/src/deep/er"
    touch -d '2001-02-03 04:05:06.789' "$work/src/size-3" "$work/src/deep/er/est"
}

copy_both_ways() {
    local way=$1 url=$2 query=$3
    step "$way: copy a tree in and out"
    "$tool" cp -r -p "$work/src" "$url/$way$query" || fail "$way: cp in"
    same_trees "$work/src" "$work/export/$way" "$way: the export differs from the source"
    "$tool" cp -r -p "$url/$way$query" "$work/out-$way" || fail "$way: cp out"
    same_trees "$work/src" "$work/out-$way" "$way: the copy differs from the source"
    [[ $(listing "$work/src") == "$(listing "$work/out-$way")" ]] || fail "$way: modes or times differ"
    [[ $(listing "$work/src") == "$(listing "$work/export/$way")" ]] ||
        fail "$way: modes or times in the export differ"
    "$tool" cat "$url/$way/large$query" | cmp - "$work/src/large" || fail "$way: cat"
    "$tool" ls -l "$url/$way/deep$query" >"$work/ls" || fail "$way: ls"
    [[ $(wc -l <"$work/ls") == 302 ]] || fail "$way: ls shows $(wc -l <"$work/ls") of 302 names"
    [[ $("$tool" stat --json "$url/$way/size-4097$query") == *'"size":4097'* ]] || fail "$way: stat"
}

library_operations() {
    local way=$1 url=$2 query=$3 version where
    for version in 3 4.0 4.1 4.2; do
        step "$way: every operation of the library, version $version"
        where=ops-$way-$version
        mkdir -p "$work/export/$where"
        "$bin/libnfsrdma_operations" "$url/$where$query&vers=$version" "$version" ||
            fail "$way, $version: libnfsrdma_operations"
        "$bin/libnfsrdma_c" "$url/$where$query&vers=$version" "$version" || fail "$way, $version: libnfsrdma_c"
    done
    [[ $(server_says nfs4 opens) == 0 && $(server_says nfs4 locks) == 0 ]] ||
        fail "$way: something is open or locked"
}

# server_says GROUP KEY: a number of its status
server_says() {
    "$tool" status --server "$work/control.sock" --json >"$work/status.json"
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]][sys.argv[3]])' \
        "$work/status.json" "$@"
}

# Small files are made with their data in one request from NFSv4.1 on: new ones and old ones.
small_files() {
    local way=$1 url=$2 query=$3 version before calls
    for version in 3 4.0 4.1 4.2; do
        step "$way: small files, version $version"
        rm -rf "$work/small" "$work/export/small"
        mkdir "$work/small"
        for n in $(seq 200); do head -c $((n * 400)) /dev/urandom >"$work/small/n$n"; done
        chmod 640 "$work/small/n7"
        before=$(server_says totals calls)
        "$tool" cp -r "$work/small" "$url$query&vers=$version" || fail "$way: cp of small files"
        calls=$(($(server_says totals calls) - before))
        same_trees "$work/small" "$work/export/small" "$way: small files differ"
        [[ $(stat -c %a "$work/export/small/n7") == 640 ]] || fail "$way: the mode of a small file"
        # LOOKUP of the directory and the one COMPOUND, but for those of more than 64 KiB.
        case $version in 4.1 | 4.2) ((calls < 700)) || fail "$way: $calls calls for 200 small files" ;; esac
        for n in $(seq 1 3 200); do head -c $((n * 123 + 1)) /dev/urandom >"$work/small/n$n"; done
        : >"$work/small/n5"
        chmod 600 "$work/export/small/n9"
        echo old >"$work/export/behind"
        ln -s ../behind "$work/export/small/through"
        echo through >"$work/small/through"
        "$tool" cp -r "$work/small" "$url$query&vers=$version" 2>"$work/err" &&
            fail "$way: a link in the target was not noticed"
        grep -q "/small/through: .*a symbolic link is in the way" "$work/err" || fail "$way: $(cat "$work/err")"
        [[ -L $work/export/small/through && $(<"$work/export/behind") == old ]] ||
            fail "$way: a link in the target was followed"
        # What the user names himself is another matter.
        "$tool" cp "$work/small/through" "$url/small$query&vers=$version" || fail "$way: cp to a link"
        [[ -L $work/export/small/through && $(<"$work/export/behind") == through ]] ||
            fail "$way: a link was not followed"
        rm "$work/export/small/through" "$work/small/through"
        same_trees "$work/small" "$work/export/small" "$way: small files differ the second time"
        [[ $(stat -c %a "$work/export/small/n9") == 600 ]] || fail "$way: cp changed the mode of what was there"
        mkdir "$work/export/small/dir" "$work/export/small/dir/n1"
        "$tool" cp "$work/small/n1" "$url/small/dir$query&vers=$version" 2>"$work/err" &&
            fail "$way: a file has replaced a directory"
        grep -q 'Is a directory' "$work/err" || fail "$way: $(cat "$work/err")"
    done
    [[ $(server_says nfs4 opens) == 0 ]] || fail "$way: something is open"
}

# is_refused TEXT COMMAND...: it fails, and says so.
is_refused() {
    "${@:2}" >/dev/null 2>"$work/err" && fail "'${*:2}' did not fail"
    grep -qF -e "$1" "$work/err" || fail "'${*:2}' does not say '$1': $(cat "$work/err")"
}

# What is copied onto itself is not cut before it is read, whatever the server is called.
onto_itself() {
    local way=$1 url=$2 query=$3 version of
    for version in 3 4.0 4.1 4.2; do
        step "$way: copies onto themselves, version $version"
        of="$query&vers=$version"
        rm -rf "$work/export/self" "$work/self"
        mkdir -p "$work/export/self/dir/sub"
        head -c 3000000 /dev/urandom >"$work/export/self/big"
        echo small >"$work/export/self/small"
        ln "$work/export/self/big" "$work/export/self/hard"
        ln -s big "$work/export/self/link"
        cp -a "$work/export/self" "$work/self"
        for name in big hard link; do
            is_refused "are the same file" "$tool" cp "$url/self/big$of" "$url/self/$name$of"
        done
        is_refused "are the same file" "$tool" cp "$url/self/small$of" "$url/self/small$of"
        is_refused "are the same file" "$tool" cp "$url/self/big$of" "${url/127.0.0.1/localhost}/self/hard$of"
        is_refused "are the same file" "$tool" cp -r "$url/self/dir$of" "$url/self$of"
        is_refused "into itself" "$tool" cp -r "$url/self/dir$of" "$url/self/dir/sub$of"
        is_refused "into itself" "$tool" cp -r "$url/self/dir$of" "$url/self/dir/new$of"
        # Nobody can see that these are the same; they are still there behind it.
        "$tool" cp "$work/export/self/big" "$url/self/big$of" || fail "$way: cp to a server of this machine"
        "$tool" cp "$url/self/big$of" "$work/export/self/big" || fail "$way: cp from a server of this machine"
        same_trees "$work/self" "$work/export/self" "$way: a copy onto itself has changed something"
    done
}

odd_names_and_modes() {
    local way=$1 url=$2 query=$3 version of
    for version in 3 4.2; do
        step "$way: names with spaces, and what cannot be looked at, version $version"
        of="$query&vers=$version"
        rm -rf "$work/export/odd" "$work/odd"
        mkdir -p "$work/export/odd/a dir" "$work/export/odd/locked" "$work/odd"
        echo x >"$work/export/odd/a dir/100%"
        echo x >"$work/export/odd/locked/file"
        chmod 744 "$work/export/odd/locked"
        "$tool" cp "$url/odd/a%20dir/100%25$of" "$work/odd" || fail "$way: cp of a file"
        "$tool" cp -r "$url/odd/a%20dir$of" "$work/odd" || fail "$way: cp of a directory"
        [[ -f $work/odd/100% && -f "$work/odd/a dir/100%" ]] || fail "$way: the names are $(ls "$work/odd")"
        is_refused "/odd/locked/file: Permission denied" "$tool" ls "$url/odd/locked$of&uid=1000&gid=1000"
        is_refused "/odd/locked/file: Permission denied" \
            "$tool" cp -r "$url/odd/locked$of&uid=1000&gid=1000" "$work/odd"
        # Of root, and set-user-id; the copy is somebody else's.
        echo x >"$work/odd/suid"
        chmod 4755 "$work/odd/suid"
        chmod 777 "$work/export/odd"
        "$tool" cp -p "$work/odd/suid" "$url/odd$of&uid=1000&gid=1000" || fail "$way: cp -p"
        [[ $(stat -c '%u %a' "$work/export/odd/suid") == "1000 755" ]] ||
            fail "$way: set-user-id for another owner: $(stat -c '%u %a' "$work/export/odd/suid")"
    done
}

# Made with their data while the server comes and goes.
kill_while_making() {
    local way=$1 url=$2 query=$3 rounds=2 round i hit=0 made=0
    step "$way: the server is killed and started again $rounds times while small files are made"
    rm -rf "$work/many" "$work/export/many"
    mkdir "$work/many"
    for i in $(seq 6000); do printf '%d %0*d\n' "$i" $((i % 5000)) 0 >"$work/many/n$i"; done
    "$tool" cp --no-progress -r "$work/many" "$url$query" &
    local copying=$!
    for ((round = 0; round < rounds; round++)); do
        # Each time some more are there: a server that is killed again before its client has come
        # back waits for it for a whole grace period.
        for ((i = 0; i < 600; i++)); do
            (($(find "$work/export/many" 2>/dev/null | wc -l) > made + 300)) && break
            kill -0 "$copying" 2>/dev/null || break
            sleep 0.05
        done
        kill -0 "$copying" 2>/dev/null && hit=$((hit + 1))
        kill_server_hard
        made=$(find "$work/export/many" | wc -l)
        start_server
    done
    wait "$copying" || fail "$way: cp saw an error"
    same_trees "$work/many" "$work/export/many" "$way: the copies differ"
    ((hit > 0)) || fail "$way: the copy was over before the server was killed: make more files"
    rm -rf "$work/export/many"
}

kill_while_copying() {
    local way=$1 url=$2 query=$3 rounds=4
    step "$way: the server is killed and started again $rounds times during a copy"
    head -c 400000000 /dev/zero | openssl enc -aes-128-ctr -pass pass:seed -nosalt -md sha256 \
        >"$work/huge" 2>/dev/null
    "$tool" cp --no-progress "$work/huge" "$url/huge$query" &
    local copying=$! i hit=0
    # Who has not been there yet is told when there is no server; this is about who has.
    for ((i = 0; i < 600; i++)); do
        if [[ -e $work/export/huge ]] || ! kill -0 "$copying" 2>/dev/null; then break; fi
        sleep 0.05
    done
    for ((i = 0; i < rounds; i++)); do
        sleep "0.$((RANDOM % 4 + 1))"
        kill -0 "$copying" 2>/dev/null && hit=$((hit + 1))
        kill_server_hard
        start_server
    done
    wait "$copying" || fail "$way: cp saw an error"
    cmp "$work/huge" "$work/export/huge" || fail "$way: the copy differs"
    ((hit > 0)) || fail "$way: the copy was over before the server was killed: make it larger"
    rm -f "$work/export/huge"
}

wrong_usage() {
    step "wrong command lines"
    "$tool" ls --nonsense x >/dev/null 2>"$work/err"
    [[ $? == 2 && $(wc -l <"$work/err") == 1 ]] || fail "ls --nonsense: $(cat "$work/err")"
    "$tool" bench "nfs://h/x?rsiz=1" 2>"$work/err"
    [[ $? == 2 && $(cat "$work/err") == *rsiz* ]] || fail "bad URL: $(cat "$work/err")"
    "$tool" status --server "$work/none.sock" 2>/dev/null
    [[ $? == 1 ]] || fail "status without a server"
    "$tool" nonsense 2>/dev/null
    [[ $? == 2 ]] || fail "unknown command"
}

check_status() {
    local way=$1 url=$2 query=$3 expected=$4 code=0
    step "$way: status"
    "$tool" ping -c 2000 -i 1 "$url$query" >"$work/ping" &
    local pinging=$!
    sleep 0.5
    "$tool" status --server "$work/control.sock" --json >"$work/status.json" || code=$?
    wait "$pinging" || fail "$way: ping"
    [[ $code == "$expected" ]] || fail "$way: status exits $code, expected $expected"
    python3 -c '
import json, sys
for c in json.load(open(sys.argv[1]))["connections"]:
    for key in ("fabric", "peer", "inline_send", "inline_recv", "credits", "rdma_write_bytes",
                "rdma_read_bytes", "inline_bytes", "fallback_reason"):
        c[key]' "$work/status.json" || fail "$way: the status document lacks a key"
}

benchmarks() {
    local way=$1 url=$2 query=$3 load
    step "$way: bench"
    for load in read write randread randwrite null getattr meta; do
        "$tool" bench "$url/bench.dat$query" --rw "$load" --size 16M --time 0.3 --depth 4 \
            --connections 2 --json >"$work/bench.json" || fail "$way: bench --rw $load"
        python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
assert r["errors"] == 0 and r["ops_per_second"] > 0 and r["cpu_seconds"] > 0, r
assert 0 < r["latency_us"]["p50"] <= r["latency_us"]["p99"] <= r["latency_us"]["p999"], r
' "$work/bench.json" || fail "$way: bench --rw $load: result"
    done
    step "$way: bench with a file that it has not made"
    head -c 3000000 /dev/urandom >"$work/mine"
    cp "$work/mine" "$work/export/mine"
    for load in read randread getattr meta; do
        "$tool" bench "$url/mine$query" --rw "$load" --size 16M --time 0.1 >"$work/bench.txt" ||
            fail "$way: bench --rw $load of a file"
        [[ $load != *read ]] || grep -q '^  size .*2.9 MiB.* instead of 16.0 MiB' "$work/bench.txt" ||
            fail "$way: bench --rw $load does not say how little it reads"
    done
    for load in write randwrite; do
        is_refused --overwrite "$tool" bench "$url/mine$query" --rw "$load" --size 1M --time 0.1
    done
    cmp "$work/mine" "$work/export/mine" || fail "$way: bench has written to a file that it has not made"
    "$tool" bench "$url/mine$query" --rw write --size 1M --time 0.1 --overwrite >"$work/bench.txt" ||
        fail "$way: bench --overwrite"
    cmp -s "$work/mine" "$work/export/mine" && fail "$way: bench --overwrite has written nothing"
    # Of its own it makes more.
    "$tool" bench "$url/bench.dat$query" --size 20M --time 0.1 >"$work/bench.txt" || fail "$way: bench --size 20M"
    [[ $(stat -c %s "$work/export/bench.dat") == 20971520 ]] || fail "$way: bench has not made its file longer"
}

ways=("$@")
((${#ways[@]})) || ways=(iwarp tcp)
mkdir -p "$work/export" "$work/state"
port=$(free_port)
tcp_port=$(free_port $((port + 1)))
url="nfs://127.0.0.1:$port$work/export"
make_source
start_server
wrong_usage
# way_by WAY: $query and $expected for it
way_by() {
    case $1 in
        iwarp) query="?proto=rdma&fabric=iwarp&tcpport=$tcp_port&mountport=$tcp_port" expected=0 ;;
        tcp) query="?proto=tcp&tcpport=$tcp_port" expected=3 ;;
        *) fail "unknown way '$1': expected iwarp or tcp" ;;
    esac
}
# Clients of version 4.0 cannot say that they are gone: a server that is killed behind them waits for them
# for a whole grace period. So the killing comes first.
for way in "${ways[@]}"; do
    way_by "$way"
    copy_both_ways "$way" "$url" "$query"
    kill_while_copying "$way" "$url" "$query"
    kill_while_making "$way" "$url" "$query"
done
for way in "${ways[@]}"; do
    way_by "$way"
    library_operations "$way" "$url" "$query"
    small_files "$way" "$url" "$query"
    onto_itself "$way" "$url" "$query"
    odd_names_and_modes "$way" "$url" "$query"
    check_status "$way" "$url" "$query" "$expected"
    benchmarks "$way" "$url" "$query"
done
kill "$server_pid"
wait "$server_pid" || fail "nfs-rdmad ended with $?"
server_pid=''
echo 'all well'
