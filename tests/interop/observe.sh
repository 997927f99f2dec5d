#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# observe.sh: what an administrator sees and does of a server that works: status --watch, top, clients,
# locks, trace, evict, release, reload, the log of slow requests, metrics on a port and on a socket,
# probes. The load comes from libnfs (TCP), our tool (iWARP) and the FUSE mount; each count is checked
# against what they did.
#
#   tests/interop/observe.sh [BIN_DIR]
#
#   BIN_DIR   programs (default build/release/bin)
#
# Needs nfs-ls and nfs-cp (libnfs-utils), jq and curl; root and /dev/fuse for the mount, whose part is
# left out, and that is said, where they are not there.
# shellcheck source=../../scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
# shellcheck source=free_port.sh
. "$root/tests/interop/free_port.sh"
case ${1:-} in
    -h | --help) show_help; exit 0 ;;
esac
bin=$(cd "${1:-$root/build/release/bin}" && pwd)
tool=$bin/nfs-rdma
for program in nfs-cp jq curl; do have "$program" || die "$program is missing"; done

work=$(mktemp -d "${TMPDIR:-/tmp}/nfs-rdma-observe.XXXXXX")
server='' tracer=''
clean_up() {
    trap - EXIT
    if mountpoint -q "$work/mnt" 2>/dev/null; then umount -l "$work/mnt"; fi
    if mountpoint -q "$work/fs" 2>/dev/null; then umount -l "$work/fs"; fi
    pkill -f "nfs-rdma bench .*$work" || :
    if [[ -n $tracer ]]; then kill "$tracer" 2>/dev/null; fi
    if [[ -n $server ]]; then kill -CONT "$server" 2>/dev/null; kill "$server" 2>/dev/null; wait "$server" 2>/dev/null; fi
    rm -rf "$work"
}
trap clean_up EXIT
broken() {
    fail "$*"
    tail -n 20 "$work/log" >&2
    exit 1
}
# within SECONDS COMMAND...: again until it succeeds.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.1
    done
}
has() { grep -qE -- "$1" <<<"$2" || broken "expected '$1' in: $2"; }

port=$(free_port) tcp_port=$(free_port $((port + 1))) metrics_port=$(free_port $((tcp_port + 1)))
mkdir -p "$work/export" "$work/mnt"
chmod 777 "$work/export"
echo "\"$work/export\" 127.0.0.0/8(rw,no_root_squash,insecure)" >"$work/exports"
cat >"$work/rdma.conf" <<END
NFSoRDMA_METRICS=127.0.0.1:$metrics_port
NFSoRDMA_SLOW_REQUEST=1
END
start_server() {
    : >"$work/ready"
    "$bin/nfs-rdmad" --foreground --config "$work/rdma.conf" --exports "$work/exports" \
        --listen 127.0.0.1 --port "$port" --tcp-port "$tcp_port" --fabric iwarp \
        --state-dir "$work/state" --control "$work/control.sock" >"$work/ready" 2>>"$work/log" &
    server=$!
    within 10 grep -q '^ready' "$work/ready" || broken "the server does not start"
}
stop_server() {
    kill "$server"
    wait "$server" || broken "the server ended with $?"
    server=''
}
ask() { "$tool" "$1" --server "$work/control.sock" "${@:2}"; }
# The exit status of status says what the connections use.
document() { ask status --json || :; }
operation() { # PROGRAM NAME FABRIC MEMBER
    document | jq -r --arg p "$1" --arg n "$2" --arg f "$3" --arg m "$4" \
        '[.operations[] | select(.program == $p and .name == $n and .fabric == $f) | .[$m]] | add // 0'
}
tcp_url="nfs://127.0.0.1$work/export" tcp_more="?nfsport=$tcp_port&mountport=$tcp_port&version=3"
rdma_url="nfs://127.0.0.1:$port$work/export"

step "calls are counted by operation and transport"
start_server
head -c 3000000 /dev/urandom >"$work/data"
nfs-cp "$work/data" "$tcp_url/by-libnfs$tcp_more" >/dev/null || broken "nfs-cp"
cmp "$work/data" "$work/export/by-libnfs" || broken "what libnfs wrote is not what it read"
(($(operation NFSv3 WRITE tcp calls) >= 3)) || broken "WRITEs of libnfs are not counted"
(($(operation NFSv3 WRITE iwarp calls) == 0)) || broken "WRITEs over iWARP that nobody made"
"$tool" cp "$rdma_url/by-libnfs?fabric=iwarp&vers=4.2" "$work/back" >/dev/null 2>&1 || broken "nfs-rdma cp"
cmp "$work/data" "$work/back" || broken "what the tool read is not what libnfs wrote"
(($(operation NFSv4 READ iwarp calls) >= 1)) || broken "READs in COMPOUNDs are not counted"
(($(operation NFSv4 SEQUENCE iwarp calls) >= $(operation NFSv4 READ iwarp calls))) ||
    broken "there are more READs than SEQUENCEs"
"$tool" stat "$rdma_url/not-there?fabric=iwarp&vers=3" >/dev/null 2>&1 && broken "a file that is not there"
(($(operation NFSv3 LOOKUP iwarp errors) >= 1)) || broken "the error of LOOKUP is not counted"
sums=$(document | jq '[.operations[] | . as $o | ([.latency_us[][1]] | add // 0) == $o.calls] | all')
[[ $sums == true ]] || broken "histograms do not add up to the calls"
good "counted"

step "a server that says nothing while the tool waits for it"
cat "$work/data" "$work/data" "$work/data" "$work/data" >"$work/export/large"
mkfifo "$work/pipe"
"$tool" cat "$rdma_url/large?fabric=iwarp&timeo=5&retrans=1" >"$work/pipe" 2>"$work/said" &
reader=$!
exec 5<"$work/pipe"
head -c 1000 <&5 >"$work/begin"
kill -STOP "$server"
cat <&5 >"$work/rest" &
within 20 grep -q "server 127.0.0.1 not responding, still trying" "$work/said" ||
    broken "it waits, and does not say so: $(cat "$work/said")"
kill -CONT "$server"
wait "$reader" || broken "it ended with $?: $(cat "$work/said")"
exec 5<&-
wait $!
cat "$work/begin" "$work/rest" | cmp - "$work/export/large" || broken "what it read is not what is there"
grep -q "server 127.0.0.1 OK" "$work/said" || broken "it does not say that the server is back"
reads=$(operation NFSv4 READ iwarp calls)
"$tool" bench --rw read --size 8M --time 3 "$rdma_url/large?fabric=iwarp&timeo=5&retrans=1" >/dev/null 2>"$work/said" &
reader=$!
under_way() { (($(operation NFSv4 READ iwarp calls) > reads)); }
within 20 under_way || broken "bench does not read"
kill -STOP "$server"
within 20 grep -q "server 127.0.0.1 not responding, still trying" "$work/said" ||
    broken "bench waits, and does not say so: $(cat "$work/said")"
kill -CONT "$server"
wait "$reader" || broken "bench ended with $?: $(cat "$work/said")"
good "said"

step "Prometheus"
curl -sf "http://127.0.0.1:$metrics_port/metrics" >"$work/metrics" || broken "no metrics on the port"
writes=$(operation NFSv3 WRITE tcp calls)
grep -qF "nfs_rdma_calls_total{program=\"NFSv3\",operation=\"WRITE\",fabric=\"tcp\"} $writes" \
    "$work/metrics" || broken "the metrics do not count $writes WRITEs"
written=$(awk '/^nfs_rdma_bytes_total.*iwarp.*rdma_write/ { print $2 }' "$work/metrics")
awk -v bytes="$written" 'BEGIN { exit !(bytes >= 3000000) }' ||
    broken "3000000 bytes were read over iWARP, and the metrics know of '$written' by RDMA Write"
if have promtool; then promtool check metrics <"$work/metrics" || broken "promtool does not like them"; fi
stop_server
sed -i "s#^NFSoRDMA_METRICS=.*#NFSoRDMA_METRICS=$work/metrics.sock#" "$work/rdma.conf"
start_server
curl -sf --unix-socket "$work/metrics.sock" http://localhost/metrics | grep -q '^nfs_rdma_info{' ||
    broken "no metrics on the socket"
curl -s --unix-socket "$work/metrics.sock" -o /dev/null -w '%{http_code}' http://localhost/ |
    grep -q 404 || broken "another path is not 404"
good "port and socket"

step "trace"
ask trace --json --operation write >"$work/trace" &
tracer=$!
# Only then the server takes calls down.
within 5 sh -c "ss -Hx src '$work/control.sock' | grep -q ESTAB" || broken "nobody traces"
sleep 0.3
nfs-cp "$work/data" "$tcp_url/traced$tcp_more" >/dev/null || broken "nfs-cp"
within 5 grep -q '"procedure":"WRITE"' "$work/trace" || broken "no WRITE was traced"
kill "$tracer"
wait "$tracer" 2>/dev/null || :
tracer=''
[[ $(jq -r .operations "$work/trace" | sort -u) == WRITE ]] || broken "others than WRITE were traced"
jq -se 'all(.[]; .time_us > 1.7e15 and .fabric == "tcp" and .client == "127.0.0.1" and .status == "OK" and
    .total_us >= .run_us + .wait_us + .receive_us)' "$work/trace" >/dev/null ||
    broken "the traced WRITEs: $(head -n 2 "$work/trace")"
bytes=$(jq -s 'map(.request_bytes) | add' "$work/trace")
((bytes > 3000000 && bytes < 3100000)) || broken "WRITEs of $bytes bytes were traced, of 3000000"
text=$( ("$tool" bench "$rdma_url/by-libnfs?fabric=iwarp&vers=4.2" --rw randread --time 2 >/dev/null 2>&1 &) ;
    ask trace --operation READ --count 3)
has ' NFSv4 SEQUENCE PUTFH GETATTR READ$' "$text"
ask trace --client somebody 2>"$work/error" && broken "a name was taken for an address"
has 'no numeric address' "$(cat "$work/error")"
good "$(wc -l <"$work/trace") WRITEs"

step "slow requests"
# One millisecond: what waits for the disk takes longer now and then; a READ of 4 MiB always does.
"$tool" bench "$rdma_url/by-libnfs?fabric=iwarp&vers=3" --rw read --block 1M --depth 32 --time 2 >/dev/null 2>&1 ||
    broken "nfs-rdma bench"
grep -q 'slow: NFSv3 READ of 127.0.0.1:.* over iwarp by uid .*receive .*wait .*run .*commit ' "$work/log" ||
    broken "no slow READ was logged"
(($(grep -c 'slow: ' "$work/log") < 200)) || broken "slow requests are logged without measure"
good "$(grep -c 'slow: ' "$work/log") logged"
sed -i 's/^NFSoRDMA_SLOW_REQUEST=.*/NFSoRDMA_SLOW_REQUEST=0/' "$work/rdma.conf"
has '^NFSoRDMA_SLOW_REQUEST: 1 -> 0$' "$(ask reload)"
before=$(grep -c 'slow: ' "$work/log")
"$tool" bench "$rdma_url/by-libnfs?fabric=iwarp&vers=3" --rw read --block 1M --depth 32 --time 1 >/dev/null 2>&1 ||
    broken "nfs-rdma bench"
(($(grep -c 'slow: ' "$work/log") <= before + 1)) || broken "slow requests are logged after the reload that ended it"

step "top, status --watch"
("$tool" bench "$rdma_url/by-libnfs?fabric=iwarp&vers=4.2" --rw randread --time 4 >/dev/null 2>&1 &)
within 5 sh -c "$tool clients --server $work/control.sock | grep -q '^127.0.0.1 *iwarp'" ||
    broken "the client is not listed"
text=$(ask top --interval 1 --count 2)
has '^127.0.0.1 +iwarp +[0-9]+ +[1-9][0-9]* ' "$text"
has 'NFSv4 READ +iwarp +[1-9][0-9]* ' "$text"
has 'calls [1-9][0-9]*/s +p50 [0-9]' "$text"
text=$(timeout -s INT 3 "$tool" status --server "$work/control.sock" --watch=0.5 || :)
(($(grep -c 'RDMA' <<<"$text") >= 3)) || broken "status --watch did not go on"
good "live"

step "reload"
text=$(ask reload)
has '^nothing changed$' "$text"
echo "\"$work/export\" 127.0.0.0/8(ro,no_root_squash,insecure)" >"$work/exports"
text=$(ask reload)
has "export $work/export" "$text"
has 'rw.*ro' "$text"
nfs-cp "$work/data" "$tcp_url/after-reload$tcp_more" >/dev/null 2>&1 && broken "written to what is read-only now"
echo "\"$work/export\" 127.0.0.0/8(rx)" >"$work/exports"
if ask reload >"$work/out" 2>"$work/error"; then broken "a wrong option was taken"; fi
has "exports:1:.*rx" "$(cat "$work/error")"
"$tool" ls "$rdma_url?fabric=iwarp&vers=3" >/dev/null || broken "the exports are gone after a failed reload"
echo "\"$work/export\" 127.0.0.0/8(rw,no_root_squash,insecure)" >"$work/exports"
ask reload >/dev/null || broken "reload"
good "changes and errors are told"

step "locks and evict"
if ((EUID != 0)) || [[ ! -c /dev/fuse ]]; then
    warn "the mount's part is left out: it needs root and /dev/fuse"
else
    "$bin/mount.nfs-rdma" "127.0.0.1:$work/export" "$work/mnt" -o "port=$port,fabric=iwarp,vers=4.2" ||
        broken "the mount"
    exec 9>"$work/mnt/locked"
    flock -n 9 || broken "flock on the mount"
    within 5 sh -c "$tool locks --server $work/control.sock | grep -q 'write lock .*127.0.0.1.*/locked'" ||
        broken "the lock is not listed: $(ask locks)"
    has 'open +' "$(ask locks --opens)"
    text=$(ask clients)
    has '^127.0.0.1 +iwarp +[0-9]+ +4.2 .* active' "$text"
    text=$(ask evict 127.0.0.1)
    has '127.0.0.1: [1-9][0-9]* connections? ended, state of 1 NFSv4 client dropped' "$text"
    has 'evicted by the administrator' "$(cat "$work/log")"
    # The mount comes back by itself, and knows that its lock is lost.
    within 30 sh -c "ls '$work/mnt' >/dev/null 2>&1" || broken "the mount does not come back"
    exec 9>&-
    umount "$work/mnt" || broken "umount"
fi
if ask evict 192.0.2.99 2>"$work/error"; then broken "somebody who is not there was evicted"; fi
has "no client '192.0.2.99'" "$(cat "$work/error")"
good "shown and ended"

step "release"
if ((EUID != 0)) || [[ ! -c /dev/fuse ]]; then
    warn "left out: it needs root and /dev/fuse"
else
    mkdir -p "$work/fs"
    mount -t tmpfs -o size=8m,mode=777 none "$work/fs" || broken "no tmpfs"
    ask exports add -o rw,no_root_squash,insecure "127.0.0.0/8:$work/fs" >/dev/null || broken "exports add"
    "$bin/mount.nfs-rdma" "127.0.0.1:$work/fs" "$work/mnt" -o "port=$port,fabric=iwarp,vers=4.2" ||
        broken "the mount"
    exec 9>"$work/mnt/locked"
    echo written >&9
    flock -n 9 || broken "flock on the mount"
    within 5 sh -c "$tool locks --server $work/control.sock | grep -q 'write lock .*/fs/locked'" ||
        broken "the lock is not listed: $(ask locks)"
    # Locks of clients are the kernel's for processes here, which fcntl(2) asks; flock(2) does not see them.
    may_lock() { python3 -c 'import fcntl, sys; fcntl.lockf(open(sys.argv[1], "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)' "$1"; }
    if may_lock "$work/fs/locked" 2>/dev/null; then broken "a process of this machine gets a client's lock"; fi
    text=$(ask release "$work/fs/locked")
    has '127.0.0.1 \(NFS 4.2\): 1 open, 1 lock' "$text"
    may_lock "$work/fs/locked" || broken "a process of this machine does not get the lock"
    text=$(ask release "$work/fs")
    has "Exported still: $work/fs" "$text"
    if umount "$work/fs" 2>/dev/null; then broken "it was unmounted though it is exported"; fi
    mkdir "$work/fs/directory"
    if ask release "$work/fs/directory" 2>"$work/error"; then broken "a directory was released"; fi
    has "mounted at $work/fs:" "$(cat "$work/error")"
    # The mount may have opened its file again, and uses it.
    timeout 10 sh -c "cat '$work/mnt/locked'" >/dev/null 2>&1 || :
    # Whoever lists them has them at hand until they change.
    has "$work/fs" "$(ask exports)"
    ask exports remove "127.0.0.0/8:$work/fs" >/dev/null || broken "exports remove"
    text=$(ask release "$work/fs")
    has 'The server keeps nothing of it open' "$text"
    umount "$work/fs" || broken "it cannot be unmounted: $(find "/proc/$server/fd" -lname "$work/fs*" -printf '%l ')"
    has 'was released by the administrator' "$(cat "$work/log")"
    exec 9>&- || :
    umount -l "$work/mnt" || broken "umount of the mount"
fi
good "taken from clients, and unmounted"

step "probes"
for probe in call_start run_start run_end commit_end call_end; do
    readelf -n "$bin/nfs-rdmad" | grep -A1 'Provider: nfs_rdma' | grep -q "Name: $probe" ||
        broken "probe $probe is not in the program"
done
good "five"

stop_server
good "all of it"
