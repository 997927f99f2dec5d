#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lab_verbs_events.sh: a file is written and read through a FUSE mount over verbs on rxe and siw while
# the ground moves. On two interfaces with a wire between them the cable is pulled and put back, the
# server's RDMA device is deleted and comes back, the client's is deleted and does not; on a bond the
# address goes from one interface to the other and back. No byte may be lost and no call may fail: the
# client connects again, at last over the iwarp engine, and the server listens again. It also says who
# has a port that it cannot have.
#
#   tests/interop/lab_verbs_events.sh [devices|siw|address_change]...
# shellcheck source=lab_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lab_common.sh"
stage "$bin/nfs-rdmad" "$bin/nfs-rdma" "$bin/mount.nfs-rdma"
cp "$root/tests/interop/lab_tree.sh" "$stage/"

# Writes and reads 64 KiB at a time until told to stop, and looks at every byte.
cat >"$stage/busy.py" <<'EOF2'
import os, sys
path, stop = sys.argv[1:]
record = 65536
descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
count = 0
while count < 16 or not os.path.exists(stop):
    want = count.to_bytes(8, "little") * (record // 8)
    at = count % 64 * record
    assert os.pwrite(descriptor, want, at) == record
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    assert os.pread(descriptor, record, at) == want, f"round {count}: other bytes came back"
    count += 1
os.close(descriptor)
print("rounds:", count)
EOF2

# shellcheck disable=SC2016  # runs in the guest
common='
. ./lab_tree.sh
ulimit -l unlimited
modprobe fuse
mkdir -p /export /mnt/a /tmp/state
mount -t tmpfs -o size=256m,mode=1777 export /export
in_server=()
serve() {  # ADDRESS [OPTION...]
    address=$1
    "${in_server[@]}" ./nfs-rdmad --foreground -e /export:rw,no_root_squash,insecure --listen "$address" \
        --port 20049 --tcp-port 2049 --state-dir /tmp/state --control /tmp/control \
        --log-level debug "${@:2}" >server.log 2>&1 &
    server=$!
    await_ready server.log $server
}
fabric_of_mount() { ./nfs-rdma status --mount /mnt/a --json | grep -o "\"fabric\": *\"[a-z]*\""; }
start() {  # FABRIC
    rm -f stop /export/busy
    timeout -k 1 30 ./mount.nfs-rdma "$address:/export" /mnt/a \
        -o "proto=rdma,fabric=$1,vers=3,mountport=2049,timeo=50"
    fabric_of_mount | grep verbs
    timeout -k 1 150 python3 busy.py /mnt/a/busy stop >busy.log 2>&1 &
    busy=$!
    sleep 2
}
finish() {  # not in a pipe: a subshell cannot wait for what this shell started
    touch stop
    wait $busy || { cat busy.log; return 1; }
    cat busy.log
    fabric_of_mount
    timeout 20 umount /mnt/a
}
# Runs COMMAND, which takes a device down, while no call is under way. In rxe of Linux 6.1 a thread that
# sends turns for as long as the device refuses the packet; who takes a device down (ip(8), or the
# worker that hears of a lost carrier) waits for an RCU grace period, and a thread that turns in the
# kernel never grants it: the guest hangs for good. Seen once in 160 times.
at_rest() {  # COMMAND...
    pkill -STOP -f "python3 busy.py"
    sleep 0.5
    "$@"
    sleep 0.5
    pkill -CONT -f "python3 busy.py"
}
alive() { kill -0 $busy || { cat busy.log; return 1; }; }
# What the server has said once more than COUNT times.
await_said() {  # COUNT TEXT
    local i
    for ((i = 0; i < 60; ++i)); do
        if (($(grep -cF "$2" server.log) > $1)); then return 0; fi
        sleep 1
    done
    echo "the server never said: $2"
    return 1
}
end_server() {
    kill -TERM $server
    wait $server
    echo "the server ended cleanly"
}
'
# shellcheck disable=SC2016  # runs in the guest
devices='
rig wire rxe
serve 192.0.2.2
for listener in "iwarp 192.0.2.2:20049" "verbs 192.0.2.2:20049" "tcp 192.0.2.2:2049"; do
    grep "^ready" server.log | grep -qF "$listener"
done
echo "listening on verbs, iwarp engine and TCP at once"

for fabric in verbs iwarp; do
    taken=0
    ./nfs-rdmad --foreground -e /export --listen 192.0.2.2 --port 20049 --tcp-port 2050 \
        --fabric $fabric --state-dir /tmp/state2 --control /tmp/control2 >second.log 2>&1 || taken=$?
    ((taken == 1))
    grep -F "process $server (nfs-rdmad) has it" second.log
done
echo "port taken: says by whom"

start verbs
at_rest ip link set ws down
sleep 2
ip link set ws up
sleep 2
alive
echo "cable pulled and put back: goes on"
rdma link delete rxe_vs &
deleting=$!
sleep 4
alive
for ((i = 0; i < 40; ++i)); do
    if ! kill -0 $deleting 2>/dev/null; then break; fi
    sleep 1
done
((i < 40))
echo "device deleted: the server has let go of it"
rdma link add rxe_back type rxe netdev vs
await_said 0 "listening on 192.0.2.2:20049 again"
finish
rdma link
echo "device of the server deleted and made again: goes on over verbs"

start auto
timeout 60 rdma link delete rxe_vc
sleep 4
finish >last.log
cat last.log
grep -q iwarp last.log
echo "device of the client deleted: goes on over iwarp"
end_server
'
# siw has its devices in namespaces. What is on its way when one goes is lost with its TCP connection.
# shellcheck disable=SC2016  # runs in the guest
siw='
rig pair siw
in_server=(ip netns exec srv)
serve 192.0.2.2 --fabric verbs  # the engine would need the TCP port of siw
start verbs
for round in 1 2; do
    ip -n srv link set vs down
    sleep 2
    ip -n srv link set vs up
    sleep 3
    alive
done
echo "cable pulled and put back: goes on"

timeout 60 ip netns exec srv rdma link delete siw_vs
alive
echo "device deleted: the server has let go of it"
ip netns exec srv rdma link add siw_back type siw netdev vs
await_said 0 "listening on 192.0.2.2:20049 again"
finish
ip netns exec srv rdma link
echo "device of the server deleted and made again: goes on"

start auto
timeout 60 rdma link delete siw_vc
sleep 4
finish >last.log
cat last.log
grep -q iwarp last.log
echo "device of the client deleted: goes on over iwarp"
end_server
'
# The port that has the address of a bond loses its cable: the bond gives it, with another MAC, to the
# other port, and rdma_cm tells both ends that the address moved.
# shellcheck disable=SC2016  # runs in the guest
address_change='
modprobe bonding max_bonds=0
modprobe -a veth bridge
ip link add wire type bridge
ip link set wire up
ip link add bond0 type bond mode active-backup fail_over_mac active miimon 100
for port in 0 1; do
    ip link add port$port type veth peer name far$port
    ip link set far$port master wire up
    ip link set port$port master bond0
done
ip addr add 192.0.2.2/24 dev bond0
ip link set bond0 up
rig rxe bond0
serve 192.0.2.2
start verbs
for round in 1 2 3; do
    before=$(</sys/class/net/bond0/bonding/active_slave)
    heard=$(grep -cF RDMA_CM_EVENT_ADDR_CHANGE server.log) || :
    again=$(grep -cF "listening on 192.0.2.2:20049 again" server.log) || :
    at_rest ip link set far${before#port} down
    await_said "$heard" RDMA_CM_EVENT_ADDR_CHANGE
    await_said "$again" "listening on 192.0.2.2:20049 again"
    ip link set far${before#port} up
    sleep 3
    alive
done
finish
echo "address moved between the ports of a bond: goes on over verbs"
end_server
'
bad=0
run() {  # NAME SCRIPT
    local log=$stage/$1.log status=0
    in_guest "${LAB_LIMIT:-280}" "$common$2" >"$log" 2>&1 || status=$?
    while read -r line; do note "$line"; done < <(
        grep -E '^(ready|listening|port|cable|device|address|rounds|the server)' "$log")
    if ((status != 0)); then
        # Of a kernel that complains its first complaint says where; the last lines do not.
        grep -m 1 -A 60 'BUG:' "$log" >&2 || :
        tail -n 30 "$log" "$stage/server.log" >&2
        [[ -z ${KEEP_LOGS:-} ]] || cp "$log" "$stage/server.log" "$KEEP_LOGS/"
        fail "$1: failed ($status)"
        bad=1
    fi
}
(($#)) || set -- devices siw address_change
for part in "$@"; do
    case $part in
        devices)
            step "device removal, cable and ports on rxe"
            run devices "$devices"
            ;;
        siw)
            step "device removal and cable on siw"
            run siw "$siw"
            ;;
        address_change)
            step "address change on rxe"
            run address_change "$address_change"
            ;;
        *) usage_error "unknown part '$part'" ;;
    esac
done
exit "$bad"
