#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# capture.sh: what `nfs-rdma capture` writes, through a dissector that is not ours.
#
# Our tool (iWARP, versions 3 and 4.2) and libnfs's nfs-cp (TCP) move files of 1 byte, 4 KiB and
# 1 MiB in and out, while the server captures itself and dumpcap the loopback interface. tshark must
# find every call that the server counted, dissect READ and WRITE down to NFS, and see in both
# captures the same messages; what RDMA Writes and Reads carried must be the files.
#
#   tests/interop/capture.sh
# NFSRDMA_BIN: where the programs are (build/release/bin). KEEP: a directory for the captures.
# Needs root (for dumpcap), tshark, nfs-cp and python3.
set -u -o pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
# shellcheck source=tests/interop/free_port.sh
. "$here/tests/interop/free_port.sh"
bin=${NFSRDMA_BIN:-$here/build/release/bin}
tool=$bin/nfs-rdma
work=$(mktemp -d "${TMPDIR:-/tmp}/nfs-rdma-capture.XXXXXX")
control=$work/control.sock
server_pid='' capture_pid='' dumpcap_pid='' load_pid=''

step() { printf '== %s\n' "$*"; }
fail() {
    printf 'FAILED: %s\n' "$*" >&2
    [[ -s $work/server.log ]] && tail -n 20 "$work/server.log" >&2
    exit 1
}
end_process() {
    [[ -n $1 ]] || return 0
    kill "$1" 2>/dev/null || :
    wait "$1" 2>/dev/null || :
}
cleanup() {
    local rc=$?
    trap - EXIT
    end_process "$load_pid"
    end_process "$capture_pid"
    end_process "$dumpcap_pid"
    end_process "$server_pid"
    [[ -z ${KEEP:-} ]] || cp "$work"/*.pcap* "$KEEP"/
    rm -rf "$work"
    exit $rc
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

for program in tshark dumpcap nfs-cp python3; do
    command -v "$program" >/dev/null || fail "$program is missing (scripts/install-deps installs it)"
done

start_server() {
    port=$(free_port $((30000 + RANDOM % 2000)))
    tcp_port=$(free_port $((port + 1)))
    : >"$work/ready"
    rm -rf "$work/state"
    "$bin/nfs-rdmad" --foreground -e "$work/export:rw,no_root_squash,insecure" \
        --listen 127.0.0.1 --port "$port" --tcp-port "$tcp_port" --fabric iwarp \
        --state-dir "$work/state" --control "$control" >"$work/ready" 2>>"$work/server.log" &
    server_pid=$!
    local i
    for ((i = 0; i < 200; i++)); do
        grep -q '^ready' "$work/ready" && return 0
        kill -0 "$server_pid" 2>/dev/null || fail "nfs-rdmad ended at start"
        sleep 0.05
    done
    fail "nfs-rdmad was not ready after 10 s"
}

# start_capture FILE OPTIONS...: returns once the server has begun.
start_capture() {
    local file=$1 i
    shift
    rm -f "$file"
    "$tool" capture --server "$control" "$@" "$file" 2>"$work/capture.err" &
    capture_pid=$!
    for ((i = 0; i < 200; i++)); do
        [[ -s $file ]] && return 0
        kill -0 "$capture_pid" 2>/dev/null || { cat "$work/capture.err" >&2; fail "the capture ended at start"; }
        sleep 0.05
    done
    fail "the capture does not begin"
}
wait_capture() {
    wait "$capture_pid" || { cat "$work/capture.err" >&2; fail "the capture failed"; }
    capture_pid=''
    printf '   '
    cat "$work/capture.err"
}
stop_capture() {
    kill -INT "$capture_pid"
    wait_capture
}

# Two passes, as Wireshark does them: a READ reply is put together with its data in the second. The
# ports are ephemeral, and some belong to other protocols: heuristics first.
dissect() {
    local file=$1
    shift
    tshark -2 -o tcp.try_heuristic_first:TRUE -o tcp.reassemble_out_of_order:TRUE -r "$file" "$@" \
        2>"$work/tshark.err" || { cat "$work/tshark.err" >&2; fail "tshark refuses: $*"; }
}
count() { dissect "$1" -Y "$2" | wc -l; }
expect() { [[ $2 == "$3" ]] || fail "$1: expected $3, found $2"; }
at_least() { (($2 >= $3)) || fail "$1: expected at least $3, found $2"; }
# Wireshark 4.0 forgets XDR's padding behind data that came by RDMA Write, in real captures as well: a READ
# reply of one byte is malformed to it.
malformed='iwarp_mpa.bad_length || (_ws.malformed && !(rpc.msgtyp == 1 && rpcordma.rdma_length & 3))'
no_complaints() {
    local file=$1
    expect "$file: malformed frames" "$(count "$file" "$malformed")" 0
    # libnfs picks ports below 1024 by chance, and may take one again that it has just given back: that is
    # seen in the first packet of a connection to the TCP port, and is true.
    expect "$file: what TCP would wonder about" "$(count "$file" \
        "tcp.analysis.flags && !(tcp.analysis.reused_ports && tcp.flags == 2 && tcp.dstport == $tcp_port)")" 0
    expect "$file: wrong checksums" "$(tshark -o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE -r "$file" \
        -Y 'tcp.checksum.status == 0 || ip.checksum.status == 0' 2>/dev/null | wc -l)" 0
}

sizes=(1 4096 1048576)
move_files() {
    local version size
    for version in 3 4.2; do
        for size in "${sizes[@]}"; do
            local url="nfs://127.0.0.1:$port$work/export/v$version-$size?fabric=iwarp&vers=$version&tcpport=$tcp_port&mountport=$tcp_port"
            "$tool" cp "$work/src/$size" "$url" || fail "cp of $size bytes in, version $version"
            "$tool" cp "$url" "$work/back" || fail "cp of $size bytes out, version $version"
            cmp "$work/src/$size" "$work/back" || fail "version $version: other bytes came back"
        done
    done
    for version in 3 4; do
        for size in "${sizes[@]}"; do
            # libnfs 4 gives up before it sends a WRITE of more than some bytes in version 4.
            ((version == 3 || size == 1)) || continue
            local url="nfs://127.0.0.1$work/export/tcp$version-$size?version=$version&nfsport=$tcp_port&mountport=$tcp_port"
            rm -f "$work/back"
            nfs-cp "$work/src/$size" "$url" >"$work/nfs-cp.log" 2>&1 || { cat "$work/nfs-cp.log"; fail "nfs-cp of $size bytes in, version $version"; }
            nfs-cp "$url" "$work/back" >"$work/nfs-cp.log" 2>&1 || { cat "$work/nfs-cp.log"; fail "nfs-cp of $size bytes out, version $version"; }
            cmp "$work/src/$size" "$work/back" || fail "TCP, version $version: other bytes came back"
        done
    done
}

cat >"$work/compare.py" <<'PY'
"""compare.py STATUS OURS REAL: do counters, our capture and the real one agree, as tshark sees them?

Of OURS and REAL: lines of tshark with source port, target port, opcodes, ULPDU lengths, XIDs and types
of RPC-over-RDMA messages. Exit 3: the real capture cannot be followed."""
import json, sys

WRITE, READ_REQUEST, READ_RESPONSE = 0, 1, 2
SENDS = (3, 4)
TAGGED_HEADER = 14  # DDP, RFC 5041 section 4.3


def read(path):
    """By direction of each connection: messages in order, bytes of Writes and of Read Responses, Sends."""
    flows = {}
    for line in open(path):
        source, target, opcodes, lengths, xids, types = (line.rstrip("\n").split("\t") + [""] * 6)[:6]
        if not opcodes:
            continue  # MPA's start-up
        flow = flows.setdefault((source, target), {"messages": [], WRITE: 0, READ_RESPONSE: 0, "sends": 0,
                                                   READ_REQUEST: 0})
        opcodes = [int(o, 0) for o in opcodes.split(",")]
        lengths = [int(n, 0) for n in lengths.split(",")]
        if len(opcodes) != len(lengths) or max(opcodes) > 4:
            print(f"   tshark lost the FPDU boundaries of {path} at: {line.strip()}")
            sys.exit(3)
        for opcode, length in zip(opcodes, lengths):
            if opcode in (WRITE, READ_RESPONSE):
                flow[opcode] += length - TAGGED_HEADER
            elif opcode == READ_REQUEST:
                flow[opcode] += 1
            elif opcode in SENDS:
                flow["sends"] += 1
        flow["messages"] += list(zip(xids.split(","), types.split(","))) if xids else []
    return flows


def is_subsequence(few, many):
    rest = iter(many)
    return all(message in rest for message in few)


status, ours, real = json.load(open(sys.argv[1]))["totals"], read(sys.argv[2]), read(sys.argv[3])
bad = []
if ours.keys() != real.keys():
    bad.append(f"connections differ: {sorted(ours)} and {sorted(real)}")
for key in ours.keys() & real.keys():
    for what in (WRITE, READ_RESPONSE, READ_REQUEST, "sends"):
        if ours[key][what] != real[key][what]:
            bad.append(f"{key}: {what}: {ours[key][what]} in ours, {real[key][what]} on the wire")
    if len(ours[key]["messages"]) != ours[key]["sends"]:
        bad.append(f"{key}: {ours[key]['sends']} Sends, {len(ours[key]['messages'])} of them RPC-over-RDMA")
    # Of several Sends in one TCP segment tshark dissects the first.
    if not is_subsequence(real[key]["messages"], ours[key]["messages"]):
        bad.append(f"{key}: other messages: {ours[key]['messages']} in ours, {real[key]['messages']} on the wire")
total = lambda flows, what: sum(flow[what] for flow in flows.values())
dissected = lambda flows: sum(len(flow["messages"]) for flow in flows.values())
rows = [("", "RDMA Write", "RDMA Read", "Sends", "dissected"),
        ("our capture", total(ours, WRITE), total(ours, READ_RESPONSE), total(ours, "sends"), dissected(ours)),
        ("dumpcap's", total(real, WRITE), total(real, READ_RESPONSE), total(real, "sends"), dissected(real)),
        ("status of the server", status["rdma_write_bytes"], status["rdma_read_bytes"], "", "")]
for row in rows:
    print("   %-24s %12s %12s %8s %10s" % row)
if total(ours, WRITE) != status["rdma_write_bytes"] or total(ours, READ_RESPONSE) != status["rdma_read_bytes"]:
    bad.append("the server counted other bytes")
sys.exit("; ".join(bad) if bad else 0)
PY

cat >"$work/bytes.py" <<'PY'
"""bytes.py OURS REAL PORT FILE...: is what our capture has of the connections of that port, byte for byte, what
crossed the wire? And does each file cross twice by RDMA Write and by RDMA Read? Reads the pcapng itself."""
import struct, sys

WRITE, READ_REQUEST, READ_RESPONSE, SENDS = 0, 1, 2, (3, 4)


def blocks(path):
    raw = open(path, "rb").read()
    at = 0
    while at < len(raw):
        kind, length = struct.unpack_from("<II", raw, at)
        assert struct.unpack_from("<I", raw, at + length - 4)[0] == length, "a block ends elsewhere"
        yield kind, raw[at:at + length]
        at += length


def streams(path, port):
    """What TCP carried, by direction: (source port, target port) -> bytes. dumpcap writes a packet when a core
    hands it over: two of one direction may stand in the other order."""
    segments, starts = {}, {}
    for kind, block in blocks(path):
        if kind != 6:
            continue
        kept, original = struct.unpack_from("<II", block, 20)
        assert kept == original, "a packet was cut"
        ip = block[28 + 14:28 + kept]
        tcp = ip[20:struct.unpack_from(">H", ip, 2)[0]]
        key = struct.unpack_from(">HH", tcp)
        if port not in key:
            continue
        sequence = struct.unpack_from(">I", tcp, 4)[0]
        if tcp[13] & 2 and starts.get(key) != sequence + 1:  # SYN, not a repeated one
            starts[key], segments[key] = sequence + 1, []
        data = tcp[(tcp[12] >> 4) * 4:]
        if data:
            segments[key].append(((sequence - starts[key]) & 0xffffffff, data))
    out = {}
    for key, parts in segments.items():
        out[key] = stream = bytearray()
        for at, data in sorted(parts, key=lambda part: part[0]):
            if at > len(stream):
                sys.exit(f"{path}: {key}: {at - len(stream)} bytes are missing at {len(stream)}")
            stream[at:at + len(data)] = data
    return out


def messages(stream):
    """Sends, Writes, Read Requests (what they ask for) and Read Responses in their order, each whole."""
    out = {"Sends": [], "RDMA Writes": [], "Read Requests": [], "Read Responses": []}
    if not stream:
        return out
    assert stream.startswith(b"MPA ID R")
    at = 20 + struct.unpack_from(">H", stream, 18)[0]
    open_message, started = b"", None
    while at < len(stream):
        size = struct.unpack_from(">H", stream, at)[0]
        ddp, rdmap = stream[at + 2], stream[at + 3]
        opcode, tagged = rdmap & 15, bool(ddp & 0x80)
        header = 16 if tagged else 20
        if started is None:
            started = bytes(stream[at + 4:at + header]) if tagged else bytes(stream[at + 4:at + 8])
        open_message += stream[at + header:at + 2 + size]
        at += (2 + size + 3) // 4 * 4 + 4
        if not ddp & 0x40:
            continue
        if opcode in SENDS:
            out["Sends"].append((opcode, started if opcode == 4 else b"", open_message))
        elif opcode == WRITE and open_message:
            out["RDMA Writes"].append((started, open_message))
        elif opcode == READ_REQUEST:
            out["Read Requests"].append(open_message[12:])
        elif opcode == READ_RESPONSE:
            out["Read Responses"].append(open_message)
        open_message, started = b"", None
    return out


port = int(sys.argv[3])
ours, real = ({key: messages(stream) for key, stream in streams(path, port).items()} for path in sys.argv[1:3])
if ours.keys() != real.keys():
    sys.exit(f"connections differ: {sorted(ours)} and {sorted(real)}")
for what in ("Sends", "RDMA Writes", "Read Requests", "Read Responses"):
    for key in ours:
        if ours[key][what] != real[key][what]:
            sys.exit(f"{key}: {what}: {len(ours[key][what])} in ours, {len(real[key][what])} on the wire, or other bytes")
    print(f"   {sum(len(flow[what]) for flow in ours.values())} {what}: the same bytes in the same order")
for name in sys.argv[4:]:
    data = open(name, "rb").read()
    for what, carried in (("RDMA Writes", lambda m: m[1]), ("Read Responses", lambda m: m)):
        times = sum(b"".join(map(carried, flow[what])).count(data) for flow in ours.values())
        if times != 2:
            sys.exit(f"{name} is {times} times in {what}, expected once for each version")
PY

# shellcheck disable=SC2054 # these are one field each
fields=(-T fields -e tcp.srcport -e tcp.dstport -e iwarp_rdma.opcode -e iwarp_mpa.ulpdulength
    -e rpcordma.xid -e rpcordma.msg_type)

both_captures() {
    start_server
    start_capture "$work/ours.pcapng"
    dumpcap -q -i lo -f "tcp port $port" -B 64 -w "$work/real.pcap" >"$work/dumpcap.log" 2>&1 &
    dumpcap_pid=$!
    local i
    for ((i = 0; i < 100; i++)); do [[ -s $work/real.pcap ]] && break; sleep 0.1; done
    [[ -s $work/real.pcap ]] || { cat "$work/dumpcap.log" >&2; fail "dumpcap does not start"; }
    move_files
    "$tool" status --server "$control" --json >"$work/status.json"
    stop_capture
    sleep 1 # dumpcap writes what it has
    kill -INT "$dumpcap_pid"
    wait "$dumpcap_pid" || :
    dumpcap_pid=''
    dissect "$work/ours.pcapng" -Y "iwarp_mpa && tcp.port == $port" "${fields[@]}" >"$work/ours.fields"
    # With one pass, and without NFS: that gives up on a READ reply before its data is in place, and with the
    # rest of such a segment tshark loses where the next FPDU begins.
    tshark --disable-protocol nfs -o tcp.try_heuristic_first:TRUE -o tcp.reassemble_out_of_order:TRUE \
        -r "$work/real.pcap" -Y iwarp_mpa "${fields[@]}" >"$work/real.fields" 2>"$work/tshark.err" ||
        { cat "$work/tshark.err" >&2; fail "tshark"; }
    python3 "$work/compare.py" "$work/status.json" "$work/ours.fields" "$work/real.fields"
}

mkdir -p "$work/src" "$work/export"
for size in "${sizes[@]}"; do head -c "$size" /dev/urandom >"$work/src/$size"; done

step "files in and out while the server and dumpcap capture"
for _ in 1 2 3; do
    status=0
    both_captures || status=$?
    # A segment that loopback sends twice (busy machine): once more.
    ((status == 3)) || break
    end_process "$server_pid"
    server_pid=''
done
((status == 0)) || fail "the captures differ"

step "the file"
expect "mode" "$(stat -c %a "$work/ours.pcapng")" 600
grep -q ' 0 lost' "$work/capture.err" || fail "packets were lost: $(cat "$work/capture.err")"
no_complaints "$work/ours.pcapng"
captured=$(tshark -r "$work/ours.pcapng" 2>/dev/null | wc -l)
expect "packets that the tool counted" "$(cut -d' ' -f1 "$work/capture.err")" "$captured"
python3 "$work/bytes.py" "$work/ours.pcapng" "$work/real.pcap" "$port" "$work/src/1048576" || fail "the bytes"

step "calls and replies"
calls=$(dissect "$work/ours.pcapng" -Y 'rpc.msgtyp == 0' -T fields -e rpc.xid | tr ',' '\n' | wc -l)
replies=$(dissect "$work/ours.pcapng" -Y 'rpc.msgtyp == 1' -T fields -e rpc.xid | tr ',' '\n' | wc -l)
counted=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["totals"]["calls"])' "$work/status.json")
echo "   $calls calls, $replies replies; the server counted $counted calls"
expect "calls" "$calls" "$counted"
expect "replies" "$replies" "$counted"
# Each of the three files once for every version and transport; in version 4 one of them goes with its OPEN.
at_least "READ calls of version 3" "$(count "$work/ours.pcapng" 'nfs.procedure_v3 == 6 && rpc.msgtyp == 0')" 6
at_least "READ replies of version 3" "$(count "$work/ours.pcapng" 'nfs.procedure_v3 == 6 && rpc.msgtyp == 1 && nfs.status3 == 0')" 6
at_least "WRITE calls of version 3" "$(count "$work/ours.pcapng" 'nfs.procedure_v3 == 7 && rpc.msgtyp == 0')" 6
at_least "WRITE replies of version 3" "$(count "$work/ours.pcapng" 'nfs.procedure_v3 == 7 && rpc.msgtyp == 1 && nfs.status3 == 0')" 6
for opcode in 25 38; do # READ, WRITE
    for type in 0 1; do
        at_least "version 4, operation $opcode, message type $type" \
            "$(count "$work/ours.pcapng" "nfs.opcode == $opcode && rpc.msgtyp == $type && iwarp_rdma")" 3
        at_least "version 4 on TCP, operation $opcode, message type $type" \
            "$(count "$work/ours.pcapng" "nfs.opcode == $opcode && rpc.msgtyp == $type && !iwarp_rdma")" 1
    done
done
at_least "lookups by name" "$(dissect "$work/ours.pcapng" -Y 'nfs.name contains "v3-1048576"' | wc -l)" 1
at_least "Write chunks of 1 MiB" "$(count "$work/ours.pcapng" 'rpcordma.writes_count == 1 && rpc.msgtyp == 1 && rpcordma.rdma_length == 1048576')" 2
at_least "Read chunks of 1 MiB" "$(count "$work/ours.pcapng" 'rpcordma.reads_count == 1 && rpcordma.rdma_length == 1048576')" 2

step "a capture that begins in the middle, without the data"
"$tool" bench "nfs://127.0.0.1:$port$work/export/bench?fabric=iwarp&vers=3&tcpport=$tcp_port&mountport=$tcp_port" \
    --rw read --size 4m --block 65536 --depth 4 --time 20 >"$work/bench.log" 2>&1 &
load_pid=$!
# It fills the file first, by as many packets as are captured.
for ((i = 0; i < 200; i++)); do
    [[ $(stat -c %s "$work/export/bench" 2>/dev/null) == 4194304 ]] && break
    sleep 0.05
done
start_capture "$work/late.pcapng" --snap 64 --fabric iwarp --count 3000
wait_capture
end_process "$load_pid"
load_pid=''
expect "packets" "$(tshark -r "$work/late.pcapng" 2>/dev/null | wc -l)" 3000
expect "malformed frames" "$(count "$work/late.pcapng" "$malformed")" 0
at_least "frames that are made up" "$(count "$work/late.pcapng" 'frame.comment contains "the capture began later"')" 5
at_least "READ calls" "$(count "$work/late.pcapng" 'nfs.procedure_v3 == 6 && rpc.msgtyp == 0')" 100
# Reassembled without what was cut, a reply is told by its Send alone.
at_least "READ replies" "$(tshark -r "$work/late.pcapng" -Y 'nfs.procedure_v3 == 6 && rpc.msgtyp == 1' 2>/dev/null | wc -l)" 100
at_least "Writes that were cut" "$(count "$work/late.pcapng" 'iwarp_mpa && frame.cap_len < frame.len')" 100
expect "kept of them beside headers" "$(tshark -r "$work/late.pcapng" -Y 'frame.cap_len < frame.len && frame.cap_len > 150' 2>/dev/null | wc -l)" 0

step "filters, standard output, what cannot be"
move_one() {
    "$tool" cp "$work/src/4096" "nfs://127.0.0.1:$port$work/export/one?fabric=iwarp&vers=3&tcpport=$tcp_port&mountport=$tcp_port" || fail "cp"
}
start_capture "$work/other.pcapng" --client 127.0.0.2
"$tool" capture --server "$control" "$work/second.pcapng" 2>"$work/second.err" && fail "two captures at once"
grep -q 'another capture is under way' "$work/second.err" || fail "the second capture: $(cat "$work/second.err")"
[[ ! -e $work/second.pcapng ]] || fail "a file was made of nothing"
move_one
stop_capture
expect "packets of another client" "$(tshark -r "$work/other.pcapng" 2>/dev/null | wc -l)" 0
start_capture "$work/mine.pcapng" --client 127.0.0.1 --seconds 1
move_one
wait_capture
at_least "packets of this client" "$(tshark -r "$work/mine.pcapng" 2>/dev/null | wc -l)" 10
"$tool" capture --server "$control" --count 8 - 2>/dev/null >"$work/stdout.pcapng" &
capture_pid=$!
for ((i = 0; i < 100; i++)); do [[ -s $work/stdout.pcapng ]] && break; sleep 0.05; done
move_one
wait "$capture_pid" || fail "standard output"
capture_pid=''
expect "packets on standard output" "$(tshark -r "$work/stdout.pcapng" 2>/dev/null | wc -l)" 8
"$tool" capture --server "$control" --fabric ether "$work/none" 2>"$work/second.err" && fail "--fabric ether"
grep -q "'ether' is none of" "$work/second.err" || fail "--fabric ether: $(cat "$work/second.err")"
"$tool" capture --server "$control" /nonexistent/file 2>"$work/second.err" && fail "a file that cannot be made"
grep -q '/nonexistent/file: No such file' "$work/second.err" || fail "no file: $(cat "$work/second.err")"
"$tool" capture --server "$work/nobody.sock" "$work/none" 2>"$work/second.err" && fail "a server that is not there"

step "the server ends during a capture"
start_capture "$work/cut.pcapng"
move_one
sleep 0.2
end_process "$server_pid"
server_pid=''
wait "$capture_pid" && fail "the end of the server went unnoticed"
capture_pid=''
grep -q 'the server is gone' "$work/capture.err" || fail "the end of the server: $(cat "$work/capture.err")"
no_complaints "$work/cut.pcapng"
echo "captures are what crossed"
