# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lab_doctor_hardware.sh: what lab_doctor.sh runs in the guest with adapters that are not there
# (kmod/README.md). What the doctor sees is made by the kernel's own ib_core, ib_ipoib and rdma_cm, by
# Debian's opensm, and by two NUMA nodes of QEMU's.

load() { # KINDS
    modprobe ib_core
    insmod testhca.ko kinds="$1"
    settles test -e /sys/class/infiniband/testhca0
}
unload() {
    if grep -q '^ib_ipoib ' /proc/modules; then rmmod ib_ipoib; fi
    rmmod testhca
}
# Lines of the remedy that begin with that, run with what only the user knows put in.
remedy() { # BEGINNING
    grep "^$1" /tmp/remedy | sed "s#ADDRESS/PREFIX#203.0.113.1/24#; s#DEVICE#testhca0#" >/tmp/run
    [[ -s /tmp/run ]] || { cat /tmp/remedy; echo "no '$1' in the remedy"; exit 1; }
    env -u LD_LIBRARY_PATH bash -ec "$(</tmp/run)"
}
state_is() { # STATE: of both InfiniBand ports
    local port
    for port in 1 2; do grep -q "$1" /sys/class/infiniband/testhca0/ports/$port/state || return 1; done
}
carrier_is() { [[ $(<"/sys/class/net/$1/carrier") == "$2" ]]; }

# --- an adapter that the kernel knows and rdma-core does not, as with new ones on old distributions ---
examine 0 --only numa
finding numa skipped 'no RDMA adapter on this host'
# Kernel and rdma-core would load it.
echo 'blacklist ib_uverbs' >/etc/modprobe.d/closed.conf
load none,ib
examine 1 --only devices
finding devices ok 'testhca0: testhca, InfiniBand, InfiniBand'
finding devices problem 'user space cannot reach them' 'modprobe ib_uverbs'
remedy modprobe
rm /etc/modprobe.d/closed.conf
settles test -e /dev/infiniband/uverbs0
examine 1 --only devices
finding devices problem 'testhca0: rdma-core on this host has no driver for it (testhca in the kernel)' ibverbs-providers
if finding devices problem 'user space cannot reach them' 2>/dev/null; then echo "two reasons for one fault"; exit 1; fi
told "an adapter that rdma-core does not know"

# --- INIT: no subnet manager ---
examine 1 --only ports,link-layer
for port in 1 2; do
    finding ports problem "testhca0 port $port: INIT: the link is up, and no subnet manager" opensm
    finding link-layer ok "testhca0 port $port: InfiniBand (testhca), 100 Gb/sec (4X EDR)"
done
# The package starts it, which does nothing as long as the module is not loaded.
env -u LD_LIBRARY_PATH apt-get -q -y -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root --no-install-recommends install \
    /host/debs/*.deb >apt.log 2>&1 || { tail -n 20 apt.log; exit 1; }
examine 1 --only ports
finding ports problem 'testhca0 port 1: INIT' 'modprobe ib_umad && systemctl enable --now opensm'
remedy modprobe
settles state_is ACTIVE
examine 0 --only ports
for port in 1 2; do finding ports ok "testhca0 port $port: ACTIVE"; done
sminfo -C testhca0 -P 1 | grep SMINFO_MASTER
told "InfiniBand ports without a subnet manager"

# --- IPoIB: missing, down, without an address ---
examine 1 --only link-layer,ipoib
finding ipoib skipped 'no IPoIB interface'
finding link-layer problem 'testhca0 port 1: InfiniBand' 'ip link set ib0 up && ip address add ADDRESS/PREFIX dev ib0'
cp /tmp/remedy /tmp/remedy.ib0
remedy modprobe
settles test -e /sys/class/net/ib1/mode
examine 0 --only link-layer,ipoib
finding link-layer warning 'testhca0 port 1: InfiniBand (testhca), 100 Gb/sec (4X EDR), on ib0, which is down'
finding link-layer warning 'testhca0 port 2: InfiniBand (testhca), 100 Gb/sec (4X EDR), on ib1, which is down'
finding ipoib warning 'ib0: datagram mode' 'ip link set ib0 up'
remedy ip
settles carrier_is ib0 1
examine 0 --only ipoib
finding ipoib warning 'ib0: datagram mode, MTU 2044, without an IP address' 'ip address add'
ip link set ib0 down
cp /tmp/remedy.ib0 /tmp/remedy
remedy ip
settles carrier_is ib0 1
examine 0 --only link-layer,ipoib
finding link-layer ok 'on ib0'
finding ipoib ok 'ib0: datagram mode, MTU 2044'
examine 0 --only dns,route 203.0.113.5
finding route ok '203.0.113.5 by ib0'
finding route ok 'RDMA device testhca0 is on ib0'
told "IPoIB that is missing, down, without an address"

# --- IPoIB: mode and MTU ---
ip link set ib0 mtu 1500
examine 0 --only ipoib
finding ipoib warning 'ib0: datagram mode, MTU 1500: less than the 2044' 'ip link set ib0 mtu 2044'
remedy ip
examine 0 --only ipoib
finding ipoib ok 'ib0: datagram mode, MTU 2044'
echo connected >/sys/class/net/ib0/mode
ip link set ib0 mtu 2044
examine 0 --only ipoib
finding ipoib warning 'ib0: connected mode, MTU 2044: connected mode could take 65520' 'ip link set ib0 mtu 65520'
remedy ip
examine 0 --only ipoib
finding ipoib ok 'ib0: connected mode, MTU 65520'
echo datagram >/sys/class/net/ib0/mode
told "mode and MTU of IPoIB"

# --- IPoIB: a partition that the subnet manager has not made, which is no other port's either ---
echo 0x8001 >/sys/class/net/ib1/create_child
ip link set ib1.8001 up
examine 0 --only link-layer,ipoib
finding ipoib warning 'ib1.8001: datagram mode' '/sys/class/net/ib1.8001/pkey'
finding ipoib warning 'up, and not on the fabric'
finding link-layer ok 'testhca0 port 1: InfiniBand (testhca), 100 Gb/sec (4X EDR), on ib0'
finding link-layer ok 'testhca0 port 2: InfiniBand (testhca), 100 Gb/sec (4X EDR), on ib1, ib1.8001'
echo 0x8001 >/sys/class/net/ib1/delete_child
told "a partition that the subnet manager does not know"

# --- the cable ---
systemctl stop opensm
echo 0 >/sys/module/testhca/parameters/cable
settles state_is DOWN
examine 1 --only ports
finding ports problem 'testhca0 port 1: DOWN (Polling)' 'look at the cable'
if grep 'ip link' /tmp/remedy; then echo "an interface makes no link"; exit 1; fi
echo 1 >/sys/module/testhca/parameters/cable
settles state_is INIT
settles carrier_is ib0 0
examine 1 --only ports,ipoib
finding ports problem 'testhca0 port 1: INIT' opensm
finding ipoib warning 'up, and not on the fabric' 'nfs-rdma doctor --only ports'
systemctl start opensm
settles state_is ACTIVE
settles carrier_is ib0 1
examine 0 --only ports,ipoib
told "a cable that is out"

# --- NUMA nodes ---
examine 0 --only numa
finding numa ok 'testhca0 is on NUMA node 1 (CPUs 1)'
mkdir -p /srv/export
taskset -c 0 /tmp/open/nfs-rdmad --foreground -e /srv/export:rw,insecure --listen 127.0.0.1 --fabric iwarp \
    --state-dir /tmp/state --control /tmp/control >/tmp/ready 2>/tmp/server.log &
server=$!
settles grep ^ready /tmp/ready
examine 0 --only numa
finding numa warning "nfs-rdmad (process $server) may only run on CPUs 0, none of them near testhca0" "taskset -a -c -p 1 $server"
remedy taskset >/dev/null
kill -0 $server
as="taskset -c 0"
examine 0 --only numa
as=
if finding numa warning nfs-rdmad 2>/dev/null; then echo "the daemon is still far"; exit 1; fi
finding numa warning 'this shell may only run on CPUs 0' 'numactl --cpunodebind=1 --membind=1 COMMAND'
as=$(sed -n 's/ COMMAND$//p' /tmp/remedy)
examine 0 --only numa
as=
if finding numa warning '' 2>/dev/null; then echo "still far"; exit 1; fi
kill $server
wait $server || :
told "processes far from the adapter"

# --- RoCE: version 1 alone ---
systemctl stop opensm
unload
load none,none,roce1
examine 1 --only ports,link-layer,gids
finding link-layer warning 'RoCE (testhca), 100 Gb/sec (4X EDR), on roce0, which is down'
finding gids skipped 'no active RoCE port'
finding ports problem 'testhca0 port 1: DOWN (Disabled)' 'ip link set roce0 up'
remedy ip
ip address add 198.51.100.2/24 dev roce0
routed() { grep -q '^0000:0000:0000:0000:0000:ffff:' /sys/class/infiniband/testhca0/ports/1/gids/*; }
settles routed
examine 0 --only ports,gids,numa
finding ports ok 'testhca0 port 1: ACTIVE'
finding numa ok 'testhca0 is on NUMA node 0 (CPUs 0)'
finding gids warning 'RoCE v1: RoCE v1 does not cross routers' default_roce_mode
cp /tmp/remedy /tmp/remedy.v1
cp /tmp/report.json /tmp/there.json
ip route add 192.0.2.0/24 via 198.51.100.9
examine 1 --only dns,route,gid-match 192.0.2.7
finding route ok 'RDMA device testhca0 is on roce0'
finding gid-match problem 'testhca0 port 1 has RoCE v1 only, and a router is on the way' 'use RoCE v2 at both ends'
told "RoCE version 1 alone"

# --- RoCE: the two ends differ ---
unload
load roce
ip link set roce0 up
ip address add 198.51.100.1/24 dev roce0
settles routed
examine 0 --only gids,numa
finding gids ok 'RoCE v1, '
finding numa note 'testhca0: the firmware does not say which NUMA node it is on'
modprobe rdma_cm
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
mkdir -p /sys/kernel/config/rdma_cm/testhca0
examine 0 --only dns,route,gid-match --other-end /tmp/there.json 198.51.100.2
finding gid-match warning 'connections are made with RoCE v2 here and with RoCE v1 there' default_roce_mode
# What the end with version 1 alone asks of this one.
cp /tmp/remedy.v1 /tmp/remedy
remedy 'modprobe\|^echo'
examine 0 --only gids,dns,route,gid-match --other-end /tmp/there.json 198.51.100.2
finding gid-match ok 'here has RoCE v1 and v2, testhca0 port 1 there RoCE v1'
finding gids warning 'connections are made with v1 (default_roce_mode)' "echo 'RoCE v2'"
remedy echo
examine 0 --only gids
finding gids ok 'RoCE v2'
rmdir /sys/kernel/config/rdma_cm/testhca0
unload
modprobe rdma_rxe
rdma link add rxe0 type rxe netdev eth0
examine 1 --only dns,route,gid-match --other-end /tmp/there.json 10.0.2.2
finding gid-match problem 'rxe0 port 1 here has RoCE v2, testhca0 port 1 there RoCE v1: nothing in common'
rdma link del rxe0
told "RoCE versions of both ends"

# --- modules of vendors' packages ---
updates=/lib/modules/$(uname -r)/updates/dkms
mkdir -p "$updates"
examine 0 --only modules
finding modules ok "the kernel's rpcrdma is there"
kernels_own=$(modinfo -n rpcrdma)
cp rpcrdma.ko "$updates/"
depmod
[[ $(modinfo -n rpcrdma) == "$updates/rpcrdma.ko" ]]
examine 0 --only modules
finding modules warning "an empty one of a vendor's package, $updates/rpcrdma.ko" mlnx-nfsrdma-dkms
modprobe rpcrdma
examine 0 --only modules
finding modules warning "an empty one of a vendor's package" mlnx-nfsrdma-dkms
# As the doctor says, and as users of such packages see it.
LC_ALL=C timeout 60 mount -t nfs -o rdma,port=20049,vers=4.2,retry=0 127.0.0.1:/ /mnt/a 2>/tmp/mount.err || :
grep 'an incorrect mount option was specified' /tmp/mount.err
rm "$updates/rpcrdma.ko"
depmod
modprobe sunrpc
examine 0 --only modules
finding modules warning "rpcrdma for this kernel is an empty one of a vendor's package: 'mount -o rdma'"
rmmod rpcrdma
told "an empty rpcrdma of a vendor's package"
cp "$kernels_own" "$updates/"
depmod
examine 0 --only modules
finding modules note "rpcrdma for this kernel comes from elsewhere: $updates/rpcrdma.ko" 'modinfo rpcrdma'
remedy modinfo | grep "^filename: *$updates/rpcrdma.ko"
modprobe rpcrdma
examine 0 --only modules
finding modules note "comes from elsewhere"
finding modules ok 'rpcrdma is loaded'
modprobe -r rpcrdma
rm "$updates/rpcrdma.ko"
told "an rpcrdma from elsewhere"
cp "$(modinfo -n ib_core)" "$updates/"
depmod
examine 0 --only modules
finding modules warning "a vendor's RDMA stack is installed ($updates/ib_core.ko) without an rpcrdma that fits"
rm "$updates/ib_core.ko"
depmod
insmod mlx_compat.ko
examine 0 --only modules
finding modules warning "mlx_compat is loaded (MLNX_OFED, DOCA)" '--with-nfsrdma'
rmmod mlx_compat
examine 0 --only modules
finding modules ok "the kernel's rpcrdma is there"
told "a vendor's RDMA stack without rpcrdma"

if dmesg | grep -E 'BUG:|WARNING:|Oops|general protection'; then exit 1; fi
