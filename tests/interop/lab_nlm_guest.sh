# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lab_nlm_guest.sh ours|knfsd: what lab_nlm.sh does in the guest.
trap 'dmesg | tail -n 60 >dmesg.log' EXIT
kind=$1
say() { echo "--- $*"; }
fail() { echo "FAILED: $*"; exit 1; }

# A host of its own: network, mounts and name. `node NAME COMMAND...` runs something there.
declare -A holder
make_node() {  # name, address
    ip netns add "$1"
    ip -n "$1" link set lo up
    ip link add "e$1" type veth peer name "v$1" netns "$1"
    ip link set "e$1" master lan up
    ip -n "$1" addr add "$2/24" dev "v$1"
    ip -n "$1" link set "v$1" up
    ip netns exec "$1" unshare -m -u bash -c "
        mount --make-rprivate /
        mount -t tmpfs run /run
        mkdir -p /run/rpcbind /run/rpc_pipefs
        mount -t tmpfs nfs /var/lib/nfs
        mkdir -p /var/lib/nfs/sm /var/lib/nfs/sm.bak /var/lib/nfs/rpc_pipefs /var/lib/nfs/nfsdcld
        touch /var/lib/nfs/etab /var/lib/nfs/rmtab
        chown -R statd /var/lib/nfs/sm /var/lib/nfs/sm.bak
        hostname $1
        touch /run/ready
        exec sleep 1000000" &
    holder[$1]=$!
    until nsenter -t "${holder[$1]}" -m test -e /run/ready 2>/dev/null; do sleep 0.1; done
    node "$1" rpcbind -w
}
# The first host is the guest itself: siw's devices are found in the first namespace alone.
make_first() {  # name, address
    first=$1
    holder[$1]=$$
    ip link add "e$1" type veth peer name "v$1"
    ip link set "e$1" master lan up
    ip addr add "$2/24" dev "v$1"
    ip link set "v$1" up
    hostname "$1"
    mkdir -p /run/rpcbind /var/lib/nfs/sm /var/lib/nfs/sm.bak
    rpcbind -w
}
node() {
    local name=$1
    shift
    if [[ $name == "$first" ]]; then
        "$@"
        return
    fi
    nsenter -t "${holder[$name]}" -m -u -n "$@"
}

modprobe -a veth bridge siw rpcrdma nfsv3 nfsv4 lockd
ip link add lan type bridge
ip link set lan up
mkdir -p /export /mnt/c1 /mnt/c2 /mnt/v4
mount -t tmpfs -o size=256m,mode=1777 export /export
make_first c1 192.0.2.11
make_node srv 192.0.2.2
make_node c2 192.0.2.12
rdma link add siw_c1 type siw netdev vc1
node c1 rpc.statd --no-notify
node c2 rpc.statd --no-notify

start_server() {
    if [[ $kind == knfsd ]]; then
        [[ -n ${threads:-} ]] || node srv rdma link add siw_srv type siw netdev vsrv
        threads=yes
        node srv rig nfsd /export
        return
    fi
    node srv env LD_LIBRARY_PATH=/host/lib /host/nfs-rdmad --foreground \
        -e /export:rw,no_root_squash,insecure --listen 192.0.2.2 --fabric iwarp \
        --state-dir /tmp/state --control /tmp/control --log-level debug >>server.log 2>&1 &
    server=$!
    for _ in $(seq 100); do
        ready=$(grep -c '^ready' server.log || :)
        ((ready > ${restarts:-0})) && return
        kill -0 "$server" || fail "the server ended"
        sleep 0.1
    done
    fail "the server is not ready"
}
start_server
say "rpcinfo"
node c1 rpcinfo -p 192.0.2.2
node c1 rpcinfo -p 192.0.2.2 | grep -q 100021 || fail "no lock manager is registered"

node c1 timeout -k 1 40 mount -t nfs -o rdma,port=20049,vers=3,mountproto=tcp 192.0.2.2:/export \
    /mnt/c1
node c2 timeout -k 1 40 mount -t nfs -o tcp,vers=3,mountproto=tcp 192.0.2.2:/export /mnt/c2
node c1 grep " /mnt/c1 " /proc/mounts
node c2 grep " /mnt/c2 " /proc/mounts
node c1 timeout -k 1 40 mount -t nfs -o tcp,vers=4.1 192.0.2.2:/export /mnt/v4 ||
    node c1 timeout -k 1 40 mount -t nfs -o tcp,vers=4.1 192.0.2.2:/ /mnt/v4
say "showmount"
node c1 showmount -a 192.0.2.2
node c1 showmount -e 192.0.2.2

# The mounts of all nodes by way of their roots.
a=/proc/${holder[c1]}/root/mnt/c1 b=/proc/${holder[c2]}/root/mnt/c2
v4=/proc/${holder[c1]}/root/mnt/v4
say "two clients of version 3, and processes of the server"
python3 nlm_locks.py "$a" "$b" /export || fail "locks of two clients of version 3"
say "version 4 and version 3"
python3 nlm_locks.py "$v4" "$b" /export 4 || fail "locks of versions 4 and 3"

# holds FILE [SECONDS]: a process that locks all of it to write, and says so.
cat >hold.py <<'P'
import fcntl, sys, time
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("held", flush=True)
time.sleep(100000)
P
cat >try.py <<'P'
import fcntl, sys
file = open(sys.argv[1], "r+b")
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("got it")
except OSError as error:
    print("denied", error.errno)
P
echo x >/export/kept
echo x >/export/lost
chmod 666 /export/kept /export/lost
python3 hold.py "$a/kept" >held.log 2>&1 &
python3 hold.py "$b/lost" >lost.log 2>&1 &
for _ in $(seq 50); do
    [[ -s held.log && -s lost.log ]] && break
    sleep 0.1
done
grep -q held held.log && grep -q held lost.log || fail "no locks to begin with: $(cat held.log lost.log)"

say "the client c2 restarts"
[[ $(python3 try.py "$a/lost") == denied* ]] || fail "c2 does not hold its lock"
node c2 sm-notify -f
for _ in $(seq 100); do
    got=$(python3 try.py "$a/lost")
    [[ $got == "got it" ]] && break
    sleep 0.2
done
echo "c1 tries: $got"
[[ $got == "got it" ]] || fail "the locks of c2 stay although it has restarted"
[[ $(python3 try.py "$b/kept") == denied* ]] || fail "the lock of c1 went with those of c2"

say "the server restarts"
if [[ $kind == ours ]]; then
    LD_LIBRARY_PATH=/host/lib ./nfs-rdma locks --server /tmp/control || :
    LD_LIBRARY_PATH=/host/lib ./nfs-rdma clients --server /tmp/control || :
    restarts=$(grep -c '^ready' server.log)
    pkill -9 -x nfs-rdmad
    wait "$server" 2>/dev/null || :
    start_server
else
    node srv rig nfsd-restart
    # What rpc.statd's companion does at the start of a machine.
    node srv sm-notify -f
fi
begun=$SECONDS
# A lock that nobody had: asked for in the grace period, it waits for its end.
echo x >/export/new
chmod 666 /export/new
timeout 200 python3 try.py "$b/new" >new.log 2>&1 &
new=$!
sleep 5
[[ -s new.log ]] && fail "a new lock in the grace period: $(cat new.log)"
wait "$new" || :
echo "a new lock after $((SECONDS - begun)) s: $(cat new.log)"
grep -q 'got it' new.log || fail "no new lock after the grace period"
# The kernel has it from whoever holds it now.
got=$(python3 try.py /export/kept)
echo "a process of the server tries what c1 held before: $got"
[[ $got == denied* ]] || fail "c1 has not reclaimed its lock"
got=$(python3 try.py "$b/kept")
[[ $got == denied* ]] || fail "c2 got what c1 held before the restart"
[[ $kind == knfsd ]] || LD_LIBRARY_PATH=/host/lib ./nfs-rdma locks --server /tmp/control
say "done"
