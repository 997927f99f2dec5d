#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# idle_connections.sh: many clients that do nothing cost little, and one too many costs nobody else anything.
#
#   tests/interop/idle_connections.sh [BIN_DIR] [COUNT]
#
#   BIN_DIR   programs (default build/release/bin), idle_connections of tests/bench among them
#   COUNT     connections over iWARP to one server with the default of NFSoRDMA_MEMORY (1000), of version 3;
#             then a third of them of version 4.2, whose sessions have slots
#
# Each connection is a mount that has written and read a file. No privilege is needed. One line for each step.
# shellcheck source=../../scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
# shellcheck source=free_port.sh
. "$root/tests/interop/free_port.sh"
case ${1:-} in
    -h | --help) show_help; exit 0 ;;
esac
bin=$(cd "${1:-$root/build/release/bin}" && pwd)
[[ -x $bin/idle_connections ]] || die "$bin/idle_connections is not built (ninja idle_connections)"
count=${2:-1000}
most_kib=64  # what an idle connection may add to the server's memory; 13 and 18 were seen

work=$(mktemp -d /tmp/nfs-rdma-idle.XXXXXX)
server='' clients=''
clean_up() {
    trap - EXIT ERR
    for pid in $clients $server; do
        kill "$pid" 2>/dev/null || :
        wait "$pid" 2>/dev/null || :
    done
    rm -rf "$work"
}
trap clean_up EXIT
broken() {
    fail "$*"
    for log in server clients; do
        [[ ! -s $work/$log.log ]] || { note "--- $log.log"; tail -n 10 "$work/$log.log" >&2; }
    done
    exit 1
}

mkdir "$work/export"
port=$(free_port)
tcp_port=$(free_port $((port + 1)))
url="nfs://127.0.0.1:$port$work/export"
query="?proto=rdma&fabric=iwarp&tcpport=$tcp_port"

await() { # WORDS LOG PROCESS TENTHS: until the process says so, which must not end before
    local tries
    for ((tries = 0; tries < $4; tries++)); do
        if grep -q "$1" "$2"; then return; fi
        kill -0 "$3" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}
serve() { # KEY=VALUE...: a server with these keys
    printf '%s\n' "$@" >"$work/rdma.conf"
    : >"$work/server.log"  # the last one said ready, too
    "$bin/nfs-rdmad" --foreground --config "$work/rdma.conf" -e "$work/export:rw,insecure,no_root_squash" \
        --listen 127.0.0.1 --port "$port" --tcp-port "$tcp_port" --fabric iwarp --state-dir "$work/state" \
        --control "$work/control.sock" >"$work/server.log" 2>&1 &
    server=$!
    await '^ready' "$work/server.log" "$server" 300 || broken "nfs-rdmad did not start"
}
end_server() {
    kill "$server"
    wait "$server" || broken "nfs-rdmad ended with $?"
    server=''
}
# connect VERSION COUNT...: idle_connections; it goes from one count to the next with each line written to descriptor 5.
connect() {
    rm -f "$work/next"
    : >"$work/clients.log"
    mkfifo "$work/next"
    "$bin/idle_connections" "$url/idle.dat$query&vers=$1" 4096 "${@:2}" <"$work/next" >"$work/clients.log" 2>&1 &
    clients=$!
    exec 5>"$work/next"
}
reached() { # COUNT
    await "^ready $1 iwarp" "$work/clients.log" "$clients" 1200 || broken "there were never $1 connections"
}
end_clients() {
    exec 5>&-
    wait "$clients" || [[ ${1:-} == refused ]] || broken "idle_connections ended with $?"
    clients=''
}
memory_kib() { awk '$1 == "VmRSS:" { print $2 }' "/proc/$server/status"; }
connections() {
    "$bin/nfs-rdma" status --server "$work/control.sock" --json |
        python3 -c 'import json, sys; print(len(json.load(sys.stdin)["connections"]))'
}

# idle VERSION COUNT
idle() {
    local version=$1 most=$2 one all each
    step "$most idle connections, version $version"
    serve NFSoRDMA_SHARDS=2
    connect "$version" 1 "$most"
    reached 1
    one=$(memory_kib)
    echo >&5
    reached "$most"
    all=$(memory_kib)
    [[ $(connections) == "$most" ]] || broken "the server sees $(connections) connections, not $most"
    each=$(((all - one) / (most - 1)))
    ((each <= most_kib)) || broken "each costs $each KiB, more than $most_kib"
    "$bin/nfs-rdma" ping -c 20 "$url$query" >"$work/ping.log" || broken "it does not answer: $(<"$work/ping.log")"
    grep -q ' 0 lost' "$work/ping.log" || broken "$(<"$work/ping.log")"
    good "$one KiB, then $all KiB: $each KiB each"
    end_clients
    end_server
}
idle 3 "$count"
idle 4.2 $((count / 3))

# Of 16 MiB a quarter is for receives, for which connections are given their credits.
step "more than the memory is for"
serve NFSoRDMA_SHARDS=1 NFSoRDMA_MEMORY=16M
connect 3 100 1000
reached 100
"$bin/nfs-rdma" ping -c 100 -i 50 "$url$query" >"$work/ping.log" &
ping=$!
for ((tries = 0; tries < 100; tries++)); do
    [[ $(connections) == 101 ]] && break
    sleep 0.1
done
((tries < 100)) || broken "the one that asks all the time did not connect"
echo >&5
end_clients refused
grep -q 'the peer rejected the connection' "$work/clients.log" || broken "nobody was refused"
grep -q 'refused: no receive buffers left' "$work/server.log" || broken "the server does not say why"
wait "$ping" || broken "the one that asks all the time: $(<"$work/ping.log")"
grep -q ' 0 lost' "$work/ping.log" || broken "$(<"$work/ping.log")"
good "newcomers were refused, with a line in the log; the others went on"
"$bin/nfs-rdma" ping -c 1 "$url$query" >"$work/ping.log" || broken "no room after they had gone: $(<"$work/ping.log")"
good "and there was room again behind them"
end_server
