# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced after mount_lib.sh by those who count bytes on the wire.
#
#   wire_begin MIB    dumpcap records what goes over loopback on the server's port, to $work/lo.pcap; what a busy
#                     machine cannot write at once waits in a buffer of so many MiB
#   wire_end          ends that; returns 3 when the capture is not complete
#   wire_count FILE   FILE: what tshark counts in it (wire_count.py), and the capture is removed; returns 3 when it
#                     cannot be followed
#   server_status     of the server, as JSON
#   same_moment       status of server and mount at one moment, in $work/server.json and $work/mount.json
# With 3 nothing can be said, and another try is due.
# shellcheck disable=SC2154  # work, port, here, bin and mnt are mount_lib.sh's
dumpcap_pid=''
extra_cleanup() { [[ -z $dumpcap_pid ]] || kill "$dumpcap_pid" 2>/dev/null || :; }

wire_programs() {
    local program
    for program in dumpcap tshark python3; do
        command -v "$program" >/dev/null || fail "$program is missing (scripts/install-deps installs it)"
    done
}

wire_begin() {
    local i
    rm -f "$work/lo.pcap"
    nice -n -10 dumpcap -q -i lo -f "tcp port $port" -B "$1" -w "$work/lo.pcap" >"$work/dumpcap.log" 2>&1 &
    dumpcap_pid=$!
    for ((i = 0; i < 100; i++)); do [[ -s $work/lo.pcap ]] && break; sleep 0.1; done
    [[ -s $work/lo.pcap ]] || { cat "$work/dumpcap.log" >&2; fail "dumpcap does not start"; }
}

wire_end() {
    # What is in the buffer when dumpcap is told to end is lost: until it has written nothing for a second.
    local size=-1 now
    sleep 1
    while now=$(stat -c %s "$work/lo.pcap"); ((now != size)); do
        size=$now
        sleep 1
    done
    kill -INT "$dumpcap_pid"
    wait "$dumpcap_pid" || :
    dumpcap_pid=''
    # "Packets received/dropped on interface 'Loopback: lo': 123/0 (pcap:0/...)", once
    grep -q ': [0-9]*/0 (' "$work/dumpcap.log" && return 0
    echo "   dumpcap lost packets:" >&2
    cat "$work/dumpcap.log" >&2
    return 3
}

wire_count() {
    local rc=0
    python3 "$here/tests/interop/wire_count.py" "$work/lo.pcap" "$port" >"$1" || rc=$?
    rm -f "$work/lo.pcap"
    ((rc == 0 || rc == 3)) || fail "wire_count.py"
    return "$rc"
}

server_status() {
    local rc=0
    "$bin/nfs-rdma" status --server "$work/control.sock" --json || rc=$?
    # The others say which connections there are.
    ((rc != 1)) || fail "status of the server"
}

same_moment() {
    local i
    for ((i = 0; i < 50; i++)); do
        server_status >"$work/server.json"
        "$bin/nfs-rdma" status --mount "$mnt" --json >"$work/mount.json" || fail "the mount does not use RDMA"
        server_status >"$work/later.json"
        python3 -c 'import json, sys
one, other = (json.load(open(name))["totals"] for name in sys.argv[1:])
sys.exit(any(one[key] != other[key] for key in ("calls", "inline_bytes", "calls_in_progress")))' \
            "$work/server.json" "$work/later.json" && return 0
        sleep 0.2
    done
    fail "the mount does not come to rest"
}
