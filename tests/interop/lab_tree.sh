# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lab_tree.sh: runs in the guest. make_tree DIR: files of every size at which the transport changes
# its way (inline, chunk, several operations), names and links; tree_sums DIR: one line per object,
# to be compared; await_ready LOG PID: until the server PID has said in LOG that it is ready;
# begin_capture DEVICE, end_capture: all packets of port 20049 in between, as capture.pcap.
make_tree() {
    local size
    mkdir -p "$1/deep/er/still" "$1/empty"
    # The same bytes at every run: what differs is the transport, not the data.
    python3 - "$1" 0 1 3 4 5 511 512 1023 1024 3900 4095 4096 4097 8191 65535 65536 65537 262143 \
        262144 262145 1048576 1048577 3000001 <<'END'
import random, sys
for size in map(int, sys.argv[2:]):
    with open(f"{sys.argv[1]}/size-{size}", "wb") as out:
        out.write(random.Random(size).randbytes(size))
END
    for size in $(seq 1 150); do
        echo "file $size" >"$1/deep/er/a-name-that-makes-readdir-replies-grow-quickly-$size"
    done
    ln -s ../size-4096 "$1/deep/link"
    ln "$1/size-1024" "$1/deep/er/still/hard"
    printf 'x' | dd of="$1/holes" bs=1 seek=2000000 status=none
    chmod 0640 "$1/size-512"
    chmod 0444 "$1/size-511"
    touch -d '2001-02-03 04:05:06' "$1/size-1"
}
tree_sums() {
    (cd "$1" && {
        find . -type f -print0 | sort -z | xargs -0 sha256sum
        find . -type d -printf '%p %M %U:%G\n' -o -type l -printf '%p -> %l\n' \
            -o -printf '%p %M %U:%G %s %n %Ts\n' | sort
    })
}
await_ready() {
    local i
    for ((i = 0; i < 100; ++i)); do
        if grep "^ready" "$1"; then return; fi
        kill -0 "$2" 2>/dev/null || { echo "the server ended before it was ready"; return 1; }
        sleep 0.1
    done
    echo "the server was not ready within 10 s"
    return 1
}
# Into memory and with room for all of it: /host is so slow that half of the packets were lost, and what
# tshark makes of a stream with holes looks like malformed frames and Terminates.
begin_capture() {
    tcpdump -i "$1" -s 0 -B 131072 -w /tmp/capture.pcap "tcp port 20049" 2>tcpdump.log &
    capturing=$!
    until grep -q "listening on" tcpdump.log; do sleep 0.1; done
}
end_capture() {
    local size=-1 now
    # What it has not taken yet when it is told to end is lost; it looks once a second.
    until now=$(stat -c %s /tmp/capture.pcap) && [[ $now == "$size" ]]; do
        size=$now
        sleep 3
    done
    kill "$capturing"
    wait "$capturing" 2>/dev/null || :
    cp /tmp/capture.pcap .
    grep -q "^0 packets dropped by kernel" tcpdump.log || {
        cat tcpdump.log
        echo "tcpdump dropped packets: nothing can be said of the wire"
        return 1
    }
}
