#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# doctor.sh: `nfs-rdma doctor` against nfs-rdmad on loopback, and against faults that can be made for
# real on one machine: a wrong port, a server that is gone, silent, read-only or speaks TCP alone, a
# port that somebody else has, little locked memory, a configuration that does not parse, and packet
# filters in a network namespace (needs root, nft and iptables; what lacks is left out and said, and
# with CI=true a failure).
#
#   tests/interop/doctor.sh
# NFSRDMA_BIN: where the programs are (build/release/bin).
set -u -o pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
# shellcheck source=tests/interop/free_port.sh
. "$here/tests/interop/free_port.sh"
bin=${NFSRDMA_BIN:-$here/build/release/bin}
work=$(mktemp -d "${TMPDIR:-/tmp}/nfs-rdma-doctor.XXXXXX")
tool=$bin/nfs-rdma
server_pid=''
helper_pids=()
namespace=''

step() { printf '== %s\n' "$*"; }
fail() {
    printf 'FAILED: %s\n' "$*" >&2
    [[ -s $work/report ]] && cat "$work/report" >&2
    [[ -s $work/server.log ]] && tail -n 20 "$work/server.log" >&2
    exit 1
}
left_out=()
leave_out() {
    if [[ ${CI:-} == true ]]; then fail "cannot be tested: $*"; fi
    step "left out: $*"
    left_out+=("$*")
}
stop_server() {
    [[ -n $server_pid ]] || return 0
    kill "$server_pid" 2>/dev/null || :
    wait "$server_pid" 2>/dev/null || :
    server_pid=''
}
cleanup() {
    local rc=$? pid
    trap - EXIT
    stop_server
    for pid in ${helper_pids[@]+"${helper_pids[@]}"}; do kill "$pid" 2>/dev/null || :; done
    [[ -z $namespace ]] || ip netns delete "$namespace" 2>/dev/null || :
    chattr -a "$work/export" 2>/dev/null || :
    rm -rf "$work"
    exit $rc
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# start_server OPTIONS...: with further options of nfs-rdmad; $enter is put in front.
enter=()
start_server() {
    : >"$work/ready"
    # Of its own, so that none waits for the clients of the one before.
    rm -rf "$work/state"
    mkdir "$work/state"
    ${enter[@]+"${enter[@]}"} "$bin/nfs-rdmad" --foreground --state-dir "$work/state" \
        --control "$work/control.sock" "$@" >"$work/ready" 2>>"$work/server.log" &
    server_pid=$!
    local i
    for ((i = 0; i < 200; i++)); do
        grep -q '^ready' "$work/ready" && return 0
        kill -0 "$server_pid" 2>/dev/null || fail "nfs-rdmad ended at start"
        sleep 0.05
    done
    fail "nfs-rdmad was not ready after 10 s"
}

# examine EXPECTED OPTIONS...: runs the doctor; its exit code must be EXPECTED. The report is kept, and
# as JSON for `finding`.
examine() {
    local expected=$1 code=0
    shift
    ${enter[@]+"${enter[@]}"} timeout 120 "$tool" doctor --json "$@" >"$work/report.json" 2>"$work/err" || code=$?
    ${enter[@]+"${enter[@]}"} timeout 120 "$tool" doctor "$@" >"$work/report" 2>&1 || :
    [[ $code == "$expected" ]] || fail "doctor $*: exit code $code, expected $expected; $(cat "$work/err")"
}
# finding CHECK VERDICT TEXT [REMEDY]: CHECK has a finding of VERDICT with TEXT in it, and REMEDY in what
# it says to do.
finding() {
    python3 - "$work/report.json" "$@" <<'PY' || fail "the report lacks: $*"
import json, sys
document, check, verdict, text = json.load(open(sys.argv[1])), *sys.argv[2:5]
remedy = sys.argv[5] if len(sys.argv) > 5 else ""
findings = [f for c in document["checks"] if c["id"] == check for f in c["findings"]]
if not any(f["verdict"] == verdict and text in f["seen"] and remedy in "\n".join(f["remedy"]) for f in findings):
    sys.exit(f"{check} has {json.dumps(findings, indent=1)}")
PY
}
# verdict CHECK VERDICT: the whole check came out so.
verdict() {
    python3 -c '
import json, sys
got = [c["verdict"] for c in json.load(open(sys.argv[1]))["checks"] if c["id"] == sys.argv[2]]
sys.exit(0 if got == [sys.argv[3]] else f"{sys.argv[2]}: {got}")' "$work/report.json" "$@" || fail "verdict: $*"
}
of_server=dns,route,gid-match,reach,null-iwarp,null-verbs,null-tcp,transport,data-iwarp,data-verbs,data-tcp,skew

this_host() {
    step "this host"
    "$tool" doctor --json >"$work/report.json"
    (($? < 2)) || fail "doctor failed"
    python3 -c '
import json, sys
document = json.load(open(sys.argv[1]))
assert document["version"] == 1 and document["server"] is None, document
listed = [line.split()[0] for line in open(sys.argv[2]) if line.split()[1] == "host"]
assert [c["id"] for c in document["checks"]] == listed, listed
assert all(c["findings"] for c in document["checks"]), document
' "$work/report.json" <("$tool" doctor --list) || fail "the document"
    "$tool" doctor >"$work/report" || :
    grep -q ' checks: .* ok, ' "$work/report" || fail "no last line"
}

good_server() {
    step "a good server"
    examine 0 --only "$of_server" "$url$work/export?$ports"
    local kind
    for kind in iwarp tcp; do
        verdict "null-$kind" ok
        verdict "data-$kind" ok
    done
    finding reach ok "TCP port $port (iWARP): open"
    finding null-iwarp ok 'inline 4096 out, 4096 in'
    finding data-iwarp ok 'RDMA Read 1048576 bytes, RDMA Write 1048576 bytes'
    finding data-tcp ok 'RDMA Read 0 bytes, RDMA Write 0 bytes'
    finding transport ok 'RDMA works, by iwarp'
    finding skew ok "the server's clock is 0.0"
    [[ -z $(ls -A "$work/export") ]] || fail "something was left in the export: $(ls -A "$work/export")"
    local version
    for version in 3 4.0 4.1 4.2; do
        examine 0 --only "$of_server" "$url$work/export?$ports&vers=$version"
        finding data-iwarp ok "NFS version $version:"
    done
    examine 0 --only "$of_server" --path "$work/export/" "$url?$ports"
    verdict data-iwarp ok
    step "without a directory it says what was left out"
    examine 0 --only "$of_server" "127.0.0.1:$port"
    finding data-iwarp skipped 'no exported directory' "nfs-rdma doctor --path /EXPORT 127.0.0.1:$port "
    grep -q '^Left out, and how to have it:' "$work/report" || fail "the text does not say it"
    step "as an ordinary user"
    examine 0 --only "$of_server" "$url$work/export?$ports&uid=65534&gid=65534"
    finding data-iwarp note 'READ and WRITE were not tried' 'root_squash'
    if ((EUID == 0)) && chattr +a "$work/export" 2>"$work/err"; then
        step "a directory that nothing can be removed from"
        examine 0 --only "$of_server" "$url$work/export?$ports"
        finding data-iwarp warning 'could not be removed' "remove it: 127.0.0.1:$work/export/.nfs-rdma-doctor."
        finding data-tcp warning 'could not be removed'
        examine 1 --strict --only "$of_server" "$url$work/export?$ports"
        chattr -a "$work/export"
        rm "$work/export"/.nfs-rdma-doctor.*
    else
        # Not every file system has it: no matter of what is installed.
        left_out+=("a directory that nothing can be removed from (chattr +a: $(head -n 1 "$work/err" 2>/dev/null))")
    fi
    step "a directory that is not exported"
    examine 1 --only "$of_server" "$url/nowhere?$ports"
    verdict data-iwarp problem
}

read_only_server() {
    step "a server that exports read-only"
    start_server -e "$work/export:ro,insecure" --listen 127.0.0.1 --port "$port" --tcp-port "$tcp_port" --fabric iwarp
    examine 0 --only "$of_server" "$url$work/export?$ports"
    finding data-iwarp note 'READ and WRITE were not tried'
    stop_server
}

tcp_only_server() {
    step "a server that speaks TCP alone"
    start_server -e "$work/export:rw,no_root_squash,insecure" --listen 127.0.0.1 --port "$port" \
        --tcp-port "$tcp_port" --fabric none
    examine 1 --only "$of_server" "$url$work/export?$ports"
    finding reach warning 'refused: the host is there'
    finding transport problem 'by TCP only' 'NFSoRDMA_FABRIC=auto'
    verdict null-iwarp warning
    verdict data-iwarp skipped
    verdict data-tcp ok
    grep -q '^Problems, and what helps:' "$work/report" || fail "the text has no problems"
    step "and that is fine for who asked for TCP"
    examine 0 --only "$of_server" "$url$work/export?proto=tcp&tcpport=$tcp_port&mountport=$tcp_port"
    finding transport ok 'TCP, as asked for'
    stop_server
}

no_server() {
    step "a wrong port, a server that is gone"
    examine 1 --only "$of_server" "127.0.0.1:$port"
    finding reach warning "TCP port $port (iWARP): refused" 'HOST:PORT'
    finding transport problem 'no NFS server answers at 127.0.0.1'
    step "which each check that talks to it sees alone"
    local check
    for check in reach null-iwarp null-verbs null-tcp transport data-iwarp data-verbs data-tcp skew; do
        examine 1 --only "$check" "nfs://127.0.0.1:$port?$ports"
        verdict "$check" problem
    done
}

silent_server() {
    step "something that takes connections and never answers"
    : >"$work/silent"
    python3 -c '
import socket, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
kept = []
while True:
    kept.append(s.accept())' "$port" >"$work/silent" &
    helper_pids+=($!)
    until grep -q ready "$work/silent"; do kill -0 $! || fail "no listener"; sleep 0.05; done
    SECONDS=0
    examine 1 --timeout 1 --only "$of_server" "127.0.0.1:$port"
    ((SECONDS < 60)) || fail "it took $SECONDS s"
    finding reach ok "TCP port $port (iWARP): open"
    verdict null-iwarp warning
    verdict transport problem
    step "which holds the port of a server that runs with another one"
    local other
    other=$(free_port $((tcp_port + 1)))
    start_server -e "$work/export:rw,insecure" --listen 127.0.0.1 --port "$other" --tcp-port "$tcp_port" --fabric iwarp
    examine 0 --only listeners
    finding listeners ok "TCP port $other: nfs-rdmad (process $server_pid)"
    stop_server
    kill "${helper_pids[-1]}"
    wait "${helper_pids[-1]}" 2>/dev/null
}

locked_memory() {
    step "little locked memory"
    (
        ulimit -l 64
        exec setpriv --reuid 65534 --regid 65534 --clear-groups "$tool" doctor --json --only memlock
    ) >"$work/report.json"
    # Without an RDMA device on this machine it is but a note.
    local gravity=note
    [[ -n $(ls /sys/class/infiniband 2>/dev/null) ]] && gravity=problem
    finding memlock "$gravity" ': 64 KiB'
}

# What comes in by lo meets the filter, too; the addresses are there for the doctor to look at.
make_namespace() {
    if ((EUID != 0)) || ! ip netns add "nfsrdma-doctor-$$" 2>"$work/err"; then
        leave_out "packet filters: a network namespace takes root ($(head -n 1 "$work/err" 2>/dev/null))"
        return 1
    fi
    namespace=nfsrdma-doctor-$$
    ip -n "$namespace" link set lo up
    ip -n "$namespace" link add eth0 type veth peer name eth1
    ip -n "$namespace" address add 192.0.2.1/24 dev eth0
    ip -n "$namespace" address add 2001:db8::1/64 dev eth0 nodad
    ip -n "$namespace" link set eth0 up
}

# Without a device of RoCE its port is nobody's business.
no_roce() {
    [[ -z $(ls /sys/class/infiniband 2>/dev/null) ]] || return 0
    ! grep -q 4791 "$work/report.json" || fail "4791/udp is told of, and there is no RDMA device"
}

filtered_by_nft() {
    if ! command -v nft >/dev/null; then
        leave_out "nft is not installed"
        return
    fi
    step "nft drops what comes in"
    "${enter[@]}" nft -f - <<'NFT'
table inet mine {
    set good { type inet_service; elements = { 22, 2049 }; }
    chain input {
        type filter hook input priority 0; policy drop;
        ct state vmap { established : accept, related : accept, invalid : drop }
        ct status dnat accept
        iifname "eth9" accept
        tcp dport @good accept
    }
}
NFT
    examine 1 --timeout 2 --only "firewall,$of_server" "nfs://127.0.0.1$work/export"
    finding firewall ok 'open to others: 2049/tcp (NFS over TCP)'
    finding firewall problem 'closed to others: 20049/tcp (NFS over iWARP), 111/tcp (rpcbind)' \
        'nft insert rule inet mine input tcp dport 20049 accept'
    no_roce
    finding reach warning 'TCP port 20049 (iWARP): no answer at all: a firewall drops it'
    finding transport problem 'by TCP only'
    step "and what the doctor says helps"
    "${enter[@]}" nft insert rule inet mine input tcp dport 20049 accept
    examine 0 --timeout 2 --only "firewall,$of_server" "nfs://127.0.0.1$work/export"
    finding firewall ok '20049/tcp (NFS over iWARP)'
    finding firewall note 'closed to others: 111/tcp (rpcbind)' 'tcp dport 111 accept'
    verdict transport ok
    verdict data-iwarp ok
    "${enter[@]}" nft insert rule inet mine input tcp dport 111 accept
    examine 0 --only firewall
    finding firewall ok '111/tcp (rpcbind)'
    step "one family, one interface"
    "${enter[@]}" nft insert rule inet mine input meta nfproto ipv6 tcp dport 20049 drop
    examine 1 --only firewall
    finding firewall problem 'closed to others by IPv6: 20049/tcp'
    ip -n "$namespace" address del 2001:db8::1/64 dev eth0
    examine 0 --only firewall
    finding firewall ok '20049/tcp (NFS over iWARP)'
    "${enter[@]}" nft insert rule inet mine input iifname eth1 tcp dport 20049 drop
    examine 0 --only firewall
    finding firewall ok '20049/tcp (NFS over iWARP)'
    "${enter[@]}" nft insert rule inet mine input iifname eth0 tcp dport 20049 drop
    examine 1 --only firewall
    finding firewall problem 'closed to others: 20049/tcp'
    ip -n "$namespace" address add 2001:db8::1/64 dev eth0 nodad
    "${enter[@]}" nft flush ruleset
}

filtered_by_iptables() {
    if ! command -v iptables >/dev/null || ! "${enter[@]}" iptables -S >/dev/null 2>"$work/err"; then
        leave_out "iptables does not work here ($(head -n 1 "$work/err" 2>/dev/null))"
        return
    fi
    step "iptables rejects what comes in"
    local tables
    for tables in iptables ip6tables; do
        "${enter[@]}" "$tables" -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
        "${enter[@]}" "$tables" -A INPUT -p tcp --dport 20049 -m comment --comment 'not for all' -j REJECT
        "${enter[@]}" "$tables" -A INPUT -p tcp --dport 111 -j REJECT
    done
    examine 1 --timeout 2 --only "firewall,$of_server" "nfs://127.0.0.1$work/export"
    finding firewall ok 'open to others: 2049/tcp'
    finding firewall problem 'closed to others: 20049/tcp (NFS over iWARP), 111/tcp (rpcbind)' \
        'iptables -I INPUT -p tcp --dport 20049 -j ACCEPT'
    no_roce
    finding reach warning 'TCP port 20049 (iWARP): refused'
    step "and what the doctor says helps, family by family"
    "${enter[@]}" ip6tables -I INPUT -p tcp --dport 20049 -j ACCEPT
    examine 1 --only firewall
    finding firewall problem 'closed to others by IPv4: 20049/tcp' 'iptables -I INPUT -p tcp --dport 20049 -j ACCEPT'
    "${enter[@]}" iptables -I INPUT -p tcp --dport 20049 -j ACCEPT
    examine 0 --timeout 2 --only "firewall,$of_server" "nfs://127.0.0.1$work/export"
    finding firewall ok '20049/tcp (NFS over iWARP)'
    finding firewall note 'closed to others: 111/tcp (rpcbind)'
    verdict data-iwarp ok
}

filtered() {
    make_namespace || return 0
    enter=(ip netns exec "$namespace")
    step "a server for this host alone needs no open port"
    start_server -e "$work/export:rw,no_root_squash,insecure" --listen 127.0.0.1 --port 20049 --tcp-port 2049 --fabric iwarp
    examine 0 --only firewall
    finding firewall ok 'for this host alone'
    stop_server
    start_server -e "$work/export:rw,no_root_squash,insecure" --port 20049 --tcp-port 2049 --fabric iwarp
    step "no filter"
    examine 0 --only "firewall,listeners,$of_server" "nfs://127.0.0.1$work/export"
    finding listeners ok 'TCP port 20049: nfs-rdmad'
    verdict transport ok
    if command -v nft >/dev/null; then finding firewall ok 'no packet filter'; fi
    filtered_by_nft
    filtered_by_iptables
    stop_server
    enter=()
}

wrong_usage() {
    step "wrong command lines"
    "$tool" doctor --nonsense >/dev/null 2>&1
    [[ $? == 2 ]] || fail "--nonsense"
    "$tool" doctor --only nonsense 2>"$work/err"
    [[ $? == 2 && $(cat "$work/err") == *"'nonsense' is no check"* ]] || fail "--only nonsense"
    local check
    for check in dns transport skew; do
        "$tool" doctor --only "$check" >/dev/null 2>"$work/err"
        [[ $? == 2 && $(cat "$work/err") == *"--only $check: that check needs a SERVER"* ]] || fail "--only $check"
    done
    echo '{' >"$work/there.json"
    "$tool" doctor --other-end "$work/there.json" 127.0.0.1 2>"$work/err"
    [[ $? == 2 && $(cat "$work/err") == *"it is no JSON"* ]] || fail "--other-end: $(cat "$work/err")"
    "$tool" doctor --only clock >/dev/full 2>"$work/err"
    [[ $? == 1 && $(cat "$work/err") == *"cannot be written"* ]] || fail "a full device: $(cat "$work/err")"
    "$tool" doctor 'nfs://h/x?rsiz=1' 2>"$work/err"
    [[ $? == 2 && $(cat "$work/err") == *rsiz* ]] || fail "bad URL"
}

mkdir -p "$work/export"
port=$(free_port)
tcp_port=$(free_port $((port + 1)))
url=nfs://127.0.0.1:$port
ports="tcpport=$tcp_port&mountport=$tcp_port"
wrong_usage
this_host
start_server -e "$work/export:rw,no_root_squash,insecure" --listen 127.0.0.1 --port "$port" --tcp-port "$tcp_port" --fabric iwarp
good_server
stop_server
read_only_server
tcp_only_server
no_server
silent_server
locked_memory
filtered
if ((${#left_out[@]})); then
    printf 'well, but for what was left out: %s\n' "${left_out[*]}"
else
    echo 'all well'
fi
