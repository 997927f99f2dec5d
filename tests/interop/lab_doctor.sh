#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lab_doctor.sh: `nfs-rdma doctor` with RDMA devices in software, and with faults made for real. Where the
# doctor gives a command, that command is run and must help.
#
#   rxe, siw  no device, modules that are missing or have no device, links that are down, an interface
#             without an address, device nodes that others may not open, no connection manager, little
#             locked memory of this user and of a daemon, a cgroup's limit, ports that other programs and
#             the kernel have, routes that lead elsewhere or nowhere, RoCE's port behind a packet filter;
#             end to end over verbs, against nfs-rdmad and against Linux's server
#   host      no device: rpcbind, FUSE, a name service that is silent, the clocks of two machines, modules
#             of the kernel
#   system    with systemd: firewalld (Debian's package) in front of the server, in two zones; a container of
#             systemd-nspawn with little locked memory
#   hardware  adapters that are not there (kmod/README.md), under the kernel's own RDMA stack: InfiniBand
#             ports in INIT until opensm comes, and without a cable; IPoIB that is missing, down, without
#             an address, not in the fabric, of another mode or MTU; RoCE version 1 alone, and two ends
#             with different ones; NUMA nodes; an adapter that rdma-core does not know; modules of
#             vendors' packages in the kernel's place. The script is lab_doctor_hardware.sh
#
# Each in a guest of its own.
#
#   tests/interop/lab_doctor.sh [rxe|siw|host|system|hardware]...
# shellcheck source=lab_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lab_common.sh"

drivers=()
for driver in "$@"; do
    [[ $driver =~ ^(rxe|siw|host|system|hardware)$ ]] || usage_error "unknown driver '$driver'"
    drivers+=("$driver")
done
((${#drivers[@]})) || drivers=(rxe siw host system hardware)
stage "$bin/nfs-rdmad" "$bin/nfs-rdma"

cat >"$stage/finding.py" <<'PY'
# finding.py CHECK VERDICT TEXT [REMEDY]: report.json has such a finding; prints its remedy.
import json, sys
check, verdict, text = sys.argv[1:4]
remedy = sys.argv[4] if len(sys.argv) > 4 else ""
findings = [f for c in json.load(open("/tmp/report.json"))["checks"] if c["id"] == check for f in c["findings"]]
for f in findings:
    if f["verdict"] == verdict and text in f["seen"] and remedy in "\n".join(f["remedy"]):
        print("\n".join(f["remedy"]))
        sys.exit(0)
sys.exit(f"{check} has no {verdict} '{text}' '{remedy}': {json.dumps(findings, indent=1)}")
PY

prelude=$(cat <<'GUEST'
mkdir -p /tmp/open /srv/export
cp -r nfs-rdma nfs-rdmad lib /tmp/open
chmod -R a+rX /tmp/open
export LD_LIBRARY_PATH=/tmp/open/lib
tool=/tmp/open/nfs-rdma
nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
device=${driver}0

# examine EXPECTED WORDS...: the exit code must be that; $as is put in front
as=
examine() {
    local expected=$1 code=0
    shift
    $as timeout 120 $tool doctor --json "$@" >/tmp/report.json 2>/tmp/err || code=$?
    [[ $code == $expected ]] || { cat /tmp/err /tmp/report.json; echo "doctor $*: $code, expected $expected"; exit 1; }
}
finding() { python3 finding.py "$@" >/tmp/remedy; }
told() { echo "$*: told"; }
# settles COMMAND...: within 10 s
settles() {
    local tries
    for ((tries = 0; tries < 100; tries++)); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.1
    done
    echo "it never came to: $*"
    exit 1
}
# The program that has a port is to be seen before the doctor looks.
listens() { [[ -n $(ss -Hltn "sport = :$1") ]]; }
GUEST
)

of_devices=$(cat <<'GUEST'
examine 0 --only devices,ports,software,modules
finding devices note 'no RDMA device'
finding ports skipped 'no RDMA device'
finding modules ok 'needs no such module'
module=$([[ $driver == rxe ]] && echo rdma_rxe || echo siw)
# Away, as a distribution may leave it out.
file=$(modinfo -n $module)
mv "$file" /root/away
cp /lib/modules/$(uname -r)/modules.dep /root/
sed -i "\\,/$module\\.ko,d" /lib/modules/$(uname -r)/modules.dep
examine 0 --only software
finding software note "this kernel has no $module" ''
mv /root/away "$file"
cp /root/modules.dep /lib/modules/$(uname -r)/
examine 0 --only software
finding software note "$module" "modprobe $module && rdma link add $device type $driver netdev eth0"
told "a module that is missing"
modprobe $module
examine 0 --only software
finding software warning "$module is loaded, and no device was made with it" "rdma link add $device type $driver netdev eth0"
told "a module without a device"

bash -ec "$(cat /tmp/remedy)"
modprobe -a ib_uverbs rdma_ucm
for ((i = 0; i < 50; i++)); do [[ -e /dev/infiniband/rdma_cm ]] && break; sleep 0.1; done
examine 0 --only devices,ports,link-layer,gids,software,mtu
finding devices ok "$device: $driver"
finding ports ok "$device port 1: ACTIVE"
finding software ok "$device"
if [[ $driver == rxe ]]; then
    finding link-layer ok "$device port 1: RoCE (rxe), on eth0"
    finding gids ok "RoCE v2"
else
    finding link-layer ok "$device port 1: iWARP (siw), on eth0"
fi
finding mtu "$([[ $driver == rxe ]] && echo note || echo ok)" "$device port 1: RDMA packets of"
told "a device in good state"

ip link set eth0 down
examine 1 --only ports,link-layer
finding link-layer warning 'on eth0, which is down' 'ip link set eth0 up'
finding ports problem "$device port 1: DOWN" 'ip link set eth0 up'
bash -ec "$(grep '^ip ' /tmp/remedy)"
for ((i = 0; i < 100; i++)); do
    $tool doctor --only ports >/dev/null && break
    sleep 0.1
done
examine 0 --only ports
told "a link that is down"

if [[ $driver == rxe ]]; then
    address=$(ip -4 -o address show dev eth0 | awk '{ print $4 }')
    ip address flush dev eth0
    for ((i = 0; i < 100; i++)); do
        examine 0 --only gids
        finding gids warning 'no IP address' 2>/dev/null && break
        # Without a link-local address there is no GID at all: as good.
        sleep 0.1
    done
    finding gids warning 'no IP address' 'ip address add'
    ip address add "$address" dev eth0
    for ((i = 0; i < 100; i++)); do
        examine 0 --only gids
        finding gids ok 'RoCE v2' 2>/dev/null && break
        sleep 0.1
    done
    finding gids ok 'RoCE v2'
    told "an interface without an address"
fi

chmod 0600 /dev/infiniband/uverbs0
as=$nobody
examine 1 --only devices
as=
finding devices problem "$device cannot be opened"
finding devices problem "ordinary users may not open /dev/infiniband/uverbs0" 'chmod 0666 /dev/infiniband/uverbs0'
bash -ec "$(cat /tmp/remedy)"
told "device nodes that others may not open"
modprobe -r rdma_ucm
examine 1 --only devices
finding devices problem 'no connection manager' 'modprobe rdma_ucm'
bash -ec "$(cat /tmp/remedy)"
for ((i = 0; i < 50; i++)); do [[ -e /dev/infiniband/rdma_cm ]] && break; sleep 0.1; done
chmod 0666 /dev/infiniband/rdma_cm
examine 0 --only devices
told "no connection manager"

(ulimit -l 64; as=$nobody; examine 1 --only memlock)
finding memlock problem '64 KiB may be locked' 'ulimit -l $(ulimit -H -l)'
(
    # The hard limit is left, and what the doctor says takes the soft one there.
    ulimit -S -l 64
    eval "$(sed -n 1p /tmp/remedy)"
    as=$nobody
    examine 0 --only memlock
)
told "little locked memory"

mkdir -p /sys/fs/cgroup
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /sys/fs/cgroup/pods/one
for group in . pods; do echo +rdma >/sys/fs/cgroup/$group/cgroup.subtree_control; done
echo "$device hca_handle=2 hca_object=20" >/sys/fs/cgroup/pods/rdma.max
in_group() {
    (
        echo $BASHPID >/sys/fs/cgroup/pods/one/cgroup.procs
        examine 0 --only memlock
    )
}
in_group
finding memlock note "$device hca_handle=2 hca_object=20" '> /sys/fs/cgroup/pods/rdma.max'
bash -ec "$(cat /tmp/remedy)"
in_group
if finding memlock note "the cgroup limits RDMA" 2>/dev/null; then echo "the limit is still told of"; exit 1; fi
told "a limit of a cgroup"

# --- other programs on the ports ---
mkdir -p /srv/export
echo '/srv/export *(rw)' >/etc/nfs-rdma.exports
python3 -c '
import signal, socket
kept = socket.create_server(("", 20049))
signal.pause()' &
other=$!
settles listens 20049
examine 1 --only listeners
finding listeners problem "TCP port 20049: process $other (python3) listens" "kill $other"
as=$nobody
examine 0 --only listeners
as=
finding listeners note "somebody listens; only root sees who" "ss -ltnp"
bash -ec "$(grep ^kill /tmp/remedy || echo kill $other)"
wait $other || :
examine 0 --only listeners
told "another process on the port"
rping -s -p 20049 -P >/tmp/rping.log 2>&1 &
other=$!
rdma_listens() { rdma resource show cm_id | grep -q "LISTEN.*:20049"; }
settles rdma_listens
examine 1 --only listeners
finding listeners problem "RDMA port 20049: rping (process $other) listens" "kill $other"
bash -ec "$(grep ^kill /tmp/remedy)"
wait $other || :
examine 0 --only listeners
rm /etc/nfs-rdma.exports
told "another process on the RDMA port"

# --- routes ---
examine 1 --only dns,route 198.51.100.7
finding route problem 'no route to 198.51.100.7' 'ip route'
ip route add 198.51.100.0/24 via 10.0.2.2
examine 0 --only route 198.51.100.7
finding route ok '198.51.100.7 by eth0, through a gateway, from 10.0.2.15'
finding route ok "RDMA device $device is on eth0"
ip route del 198.51.100.0/24
modprobe veth
ip link add elsewhere type veth peer name far
ip address add 203.0.113.1/24 dev elsewhere
ip link set far up
ip link set elsewhere up
examine 0 --only route 203.0.113.5
finding route warning "no RDMA device belongs to elsewhere" 'ip route get 203.0.113.5'
finding route warning "$device on eth0"
ip link del elsewhere
told "routes"

address=10.0.2.15 wrap=
serve() {  # FABRIC PORT TCP_PORT
    : >/tmp/ready
    $wrap /tmp/open/nfs-rdmad --foreground -e /srv/export:rw,insecure,no_root_squash --listen $address --fabric $1 --port $2 \
        --tcp-port $3 --state-dir /tmp/state-$1 --control /tmp/control-$1 >/tmp/ready 2>/tmp/server.log &
    server=$!
    local tries
    for ((tries = 0; tries < 300; tries++)); do
        if grep -q ^ready /tmp/ready; then return; fi
        kill -0 $server || break
        sleep 0.1
    done
    cat /tmp/server.log
    exit 1
}
end() {
    kill $server
    wait $server || :
}
ends=dns,route,gid-match,reach,null-iwarp,null-verbs,null-tcp,transport,data-iwarp,data-verbs,data-tcp,skew

serve verbs 20049 2049
for version in 3 4.2; do
    examine 0 --only listeners,$ends "nfs://10.0.2.15/srv/export?vers=$version&mountport=2049"
    finding listeners ok "RDMA port 20049: nfs-rdmad"
    finding route ok "RDMA device $device is on eth0"
    finding null-verbs ok "over $device; inline 4096 out, 4096 in"
    finding transport ok "by verbs"
    finding data-verbs ok "NFS version $version: 1048576 bytes written"
    finding data-verbs ok "RDMA Read 1048576 bytes, RDMA Write 1048576 bytes"
    finding skew ok "clock is 0.0"
done
[[ -z $(ls -A /srv/export) ]]
told "end to end over verbs with nfs-rdmad"

if [[ $driver == rxe ]]; then
    examine 0 --only gids
    cp /tmp/report.json /tmp/there.json
    examine 0 --only route,gid-match --other-end /tmp/there.json 10.0.2.15
    finding gid-match ok "there RoCE v"
    # Another mode at the other end, which rxe itself cannot have.
    sed 's/"default_roce_mode":"RoCE v2"/"default_roce_mode":"RoCE v1"/' /tmp/there.json >/tmp/mode.json
    examine 0 --only route,gid-match --other-end /tmp/mode.json 10.0.2.15
    finding gid-match warning "connections are made with RoCE v2 here and with RoCE v1 there" default_roce_mode
    modprobe rdma_cm
    mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
    mkdir -p /sys/kernel/config/rdma_cm/$device
    grep -q 'RoCE v2' /sys/kernel/config/rdma_cm/$device/ports/1/default_roce_mode
    if echo 'IB/RoCE v1' 2>/dev/null >/sys/kernel/config/rdma_cm/$device/ports/1/default_roce_mode; then
        echo "rxe can RoCE v1: this case should make ports of it"
        exit 1
    fi
    examine 0 --only gids
    finding gids ok 'RoCE v2'
    rmdir /sys/kernel/config/rdma_cm/$device
    sed -i 's/"RoCE v2"/"RoCE v1"/g' /tmp/there.json
    examine 1 --only route,gid-match --other-end /tmp/there.json 10.0.2.15
    finding gid-match problem "nothing in common"
    told "RoCE addresses of both ends"
fi
end

# As root, but without the capability that lifts the limit.
wrap="setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock"
serve verbs 20049 2049
wrap=
prlimit --pid $server --memlock=65536
examine 1 --only memlock
finding memlock problem "nfs-rdmad (process $server): 64 KiB may be locked" "prlimit --pid $server --memlock=unlimited"
bash -ec "$(grep ^prlimit /tmp/remedy)"
examine 0 --only memlock
finding memlock ok "nfs-rdmad (process $server): unlimited"
end
told "a daemon with little locked memory"

if [[ $driver == rxe ]]; then
    # Over a wire: what rxe sends to its own address does not pass the filter.
    rig wire rxe
    address=192.0.2.2
    serve verbs 20050 2050
    wire="nfs://192.0.2.2:20050/srv/export?vers=4.2&tcpport=2050&mountport=2050"
    examine 0 --only firewall,$ends "$wire"
    finding null-verbs ok "over rxe_vc"
    nft -f - <<'NFT'
table inet mine {
    chain input {
        type filter hook input priority 0; policy accept;
        udp dport 4791 drop
    }
}
NFT
    examine 1 --timeout 3 --only firewall,$ends "$wire"
    finding firewall problem 'closed to others: 4791/udp (RoCE v2)' 'nft insert rule inet mine input udp dport 4791 accept'
    grep ^nft /tmp/remedy >/tmp/open-4791
    finding null-verbs warning '' '4791/udp'
    finding transport problem 'by TCP only'
    bash -ec "$(cat /tmp/open-4791)"
    examine 0 --only firewall,$ends "$wire"
    finding firewall ok '4791/udp (RoCE v2)'
    finding data-verbs ok 'RDMA Read 1048576 bytes, RDMA Write 1048576 bytes'
    nft flush ruleset
    end
    address=10.0.2.15
    told "RoCE's port behind a packet filter"
fi

rig nfsd >/dev/null 2>&1
echo '/srv/export *(rw)' >/etc/nfs-rdma.exports
examine 1 --only kernel-nfsd,listeners,rpcbind,configuration
finding kernel-nfsd problem 'rdma 20049' 'systemctl disable --now nfs-server'
finding listeners problem "TCP port 2049: the kernel's NFS server listens"
finding rpcbind ok 'rpcbind knows NFS by'
finding configuration ok 'in order: 1 directory'
told "Linux's own server on the port"
if [[ $driver == siw ]]; then
    # Its list of ports is not always there to be read; what siw has in the kernel is.
    mount -t tmpfs cover /proc/fs/nfsd
    examine 1 --only listeners
    finding listeners problem 'RDMA port 20049: a listener inside the kernel, of [rpcrdma]' 'systemctl disable --now nfs-server'
    finding listeners problem "TCP port 2049: no process that is seen from here listens" 'systemctl disable --now nfs-server'
    umount /proc/fs/nfsd
    told "a listener of siw inside the kernel"
fi
examine 0 --only $ends "nfs://10.0.2.15/export?vers=3"
finding null-verbs ok "over $device; inline 4096 out, 4096 in"
finding data-verbs ok "RDMA Read 1048576 bytes, RDMA Write 1048576 bytes"
told "end to end over verbs with Linux's server"
rpc.nfsd 0
rm /etc/nfs-rdma.exports
examine 0
told "all of this host"
GUEST
)

of_host=$(cat <<'GUEST'
# --- modules of the kernel ---
folder=/lib/modules/$(uname -r)/kernel/net/sunrpc
mv $folder/xprtrdma /root/
examine 0 --only modules
finding modules note 'has no rpcrdma' 'linux-image-amd64'
mv /root/xprtrdma $folder/
examine 0 --only modules
finding modules ok "the kernel's rpcrdma is there"
told "a kernel without rpcrdma"

# --- FUSE ---
chmod 0600 /dev/fuse
examine 0 --only fuse
finding fuse warning 'mode 0600: only root can mount' 'chmod 0666 /dev/fuse'
bash -ec "$(cat /tmp/remedy)"
examine 0 --only fuse
finding fuse ok '/dev/fuse is there for everyone'
chmod u-s /usr/bin/fusermount3
as=$nobody
examine 0 --only fuse
finding fuse warning 'is not set-user-ID root' 'chmod u+s'
bash -ec "$(cat /tmp/remedy)"
examine 0 --only fuse
as=
finding fuse ok 'lets ordinary users mount'
mv /dev/fuse /dev/away
examine 1 --only fuse
finding fuse problem '/dev/fuse is missing'
mv /dev/away /dev/fuse
told "FUSE permissions"

# --- rpcbind ---
mkdir -p /srv/export
echo '/srv/export *(rw)' >/etc/nfs-rdma.exports
pkill -x rpcbind || :
examine 0 --only rpcbind
finding rpcbind note 'rpcbind does not run' 'systemctl enable --now rpcbind'
mkdir -p /run/rpcbind
rpcbind -w
settles listens 111
examine 0 --only rpcbind
finding rpcbind ok 'rpcbind runs; no NFS server is registered'
rm /etc/nfs-rdma.exports
told "rpcbind"

# --- a name service that says nothing ---
rig pair none
ip netns exec srv nft -f - <<'NFT'
table inet mine {
    chain input {
        type filter hook input priority 0; policy accept;
        udp dport 53 drop
        tcp dport 53 drop
    }
}
NFT
echo 'nameserver 192.0.2.2' >/etc/resolv.conf
examine 1 --timeout 2 --only dns,transport server.example.org
finding dns problem "'server.example.org': the name service does not answer" /etc/resolv.conf
finding transport skipped 'no address'
examine 1 --timeout 2 --only transport server.example.org
finding transport problem 'the name service does not answer'
examine 0 --timeout 2 --only dns 192.0.2.2
finding dns note '192.0.2.2 has no name'
echo '192.0.2.2 server.example.org' >>/etc/hosts
examine 0 --timeout 2 --only dns server.example.org
finding dns ok 'server.example.org: 192.0.2.2'
finding dns ok '192.0.2.2: server.example.org'
told "a name service that is silent"

# --- the clocks of two machines: the server is on the host of this guest ---
read -r port tcp_port <server_ports
there="nfs://10.0.2.2:$port/?tcpport=$tcp_port&mountport=$tcp_port"
skewed() {  # SECONDS VERDICT TEXT
    date -s "@$(($(date +%s) + $1))" >/dev/null
    examine "$([[ $2 == problem ]] && echo 1 || echo 0)" --only skew --path "$export" "$there"
    finding skew "$2" "$3" "${4:-}"
    date -s "@$(($(date +%s) - $1))" >/dev/null
}
examine 0 --only dns,route,null-iwarp,transport,data-iwarp --path "$export" "$there"
finding data-iwarp ok 'RDMA Read 1048576 bytes, RDMA Write 1048576 bytes'
# This guest's clock starts with the host's, to the second.
skewed 0 ok "the server's clock is"
skewed 60 warning 's behind' 'systemctl enable --now chrony'
skewed -60 warning 's ahead' 'systemctl enable --now chrony'
skewed 3600 problem 'Kerberos refuses that'
told "clock skew"
GUEST
)

of_system=$(cat <<'GUEST'
export DEBIAN_FRONTEND=noninteractive PATH=$PATH:/usr/sbin:/sbin
env -u LD_LIBRARY_PATH apt-get -q -y -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root --no-install-recommends install /host/debs/*.deb >apt.log 2>&1 ||
    { tail -n 20 apt.log; exit 1; }
rig pair none
$tool --version
/tmp/open/nfs-rdmad --foreground -e /srv/export:rw,insecure,no_root_squash --listen 192.0.2.1 --state-dir /tmp/state >/tmp/ready 2>/tmp/server.log &
settles grep ^ready /tmp/ready

# --- firewalld: zone "public" of an interface that nobody has named a zone for ---
# A client, whose way is over the wire.
reaches() { ip netns exec srv nc -z -w 3 192.0.2.1 "$1"; }
reaches 20049
reaches 2049
systemctl start firewalld
settles firewall-cmd --state
if reaches 20049; then echo "firewalld lets all in"; exit 1; fi
examine 1 --only firewall
finding firewall problem 20049/tcp 'firewall-cmd --permanent'
told "firewalld: closed ports"
env -u LD_LIBRARY_PATH bash -ec "$(cat /tmp/remedy)"
reaches 20049
reaches 2049
examine 0 --only firewall
finding firewall ok ''
told "firewalld: its remedy"
env -u LD_LIBRARY_PATH firewall-cmd -q --zone=internal --change-interface=vc
if reaches 20049; then echo "zone internal lets all in"; exit 1; fi
examine 1 --only firewall
finding firewall problem 20049/tcp 'firewall-cmd --permanent --zone=internal --add-port=20049/tcp'
env -u LD_LIBRARY_PATH bash -ec "$(grep -v vc /tmp/remedy)"
env -u LD_LIBRARY_PATH firewall-cmd -q --zone=internal --change-interface=vc # what was not permanent went with the reload
reaches 20049
examine 0 --only firewall
told "firewalld: another zone"
# The service that our packages bring.
env -u LD_LIBRARY_PATH firewall-cmd -q --zone=internal --remove-port=20049/tcp
env -u LD_LIBRARY_PATH firewall-cmd -q --zone=internal --remove-port=2049/tcp
if reaches 20049; then echo "still open"; exit 1; fi
install -D -m 644 nfs-rdma.xml /etc/firewalld/services/nfs-rdma.xml
env -u LD_LIBRARY_PATH firewall-cmd -q --reload
env -u LD_LIBRARY_PATH firewall-cmd -q --zone=internal --change-interface=vc
env -u LD_LIBRARY_PATH firewall-cmd -q --permanent --zone=internal --remove-port=20049/tcp --remove-port=2049/tcp
env -u LD_LIBRARY_PATH firewall-cmd -q --permanent --zone=internal --add-service=nfs-rdma
env -u LD_LIBRARY_PATH firewall-cmd -q --reload
env -u LD_LIBRARY_PATH firewall-cmd -q --zone=internal --change-interface=vc
reaches 20049
reaches 2049
examine 0 --only firewall
told "firewalld: the service nfs-rdma"
systemctl stop firewalld

# --- a container with little locked memory, and a device ---
modprobe -a siw ib_uverbs rdma_ucm
rdma link add siw0 type siw netdev vc
settles test -e /dev/infiniband/rdma_cm
mkdir -p /container
mount --bind / /container
in_container() { # COMMAND...
    systemd-nspawn -q -D /container --register=no --keep-unit --bind=/tmp/open --bind=/dev/infiniband --bind=/tmp/out \
        "${limit[@]}" -E LD_LIBRARY_PATH=/tmp/open/lib "$@"
}
mkdir -p /tmp/out
limit=(--rlimit=MEMLOCK=65536:65536)
examine_there() {
    local expected=$1 code=0
    shift
    in_container $tool doctor --json "$@" >/tmp/report.json 2>/tmp/err || code=$?
    [[ $code == $expected ]] || { cat /tmp/err /tmp/report.json; echo "doctor $* in the container: $code, expected $expected"; exit 1; }
}
examine_there 1 --only memlock
finding memlock problem '64 KiB may be locked' 'LimitMEMLOCK=infinity'
told "a container with little locked memory"
limit=(--rlimit=MEMLOCK=infinity)
examine_there 0 --only memlock
told "a container with enough of it"
GUEST
)

# A server on this machine, which the guest has at 10.0.2.2.
server=''
end_server() {
    [[ -n $server ]] || return 0
    kill "$server" 2>/dev/null || :
    wait "$server" 2>/dev/null || :
    server=''
}
trap 'end_server; rm -rf "$stage"' EXIT
serve_here() {
    # shellcheck source=free_port.sh
    . "$root/tests/interop/free_port.sh"
    local port tcp_port tries
    port=$(free_port)
    tcp_port=$(free_port $((port + 1)))
    mkdir -p "$stage/export" "$stage/state"
    echo "$port $tcp_port" >"$stage/server_ports"
    "$bin/nfs-rdmad" --foreground -e "$stage/export:rw,insecure,no_root_squash" --listen 127.0.0.1 --port "$port" \
        --tcp-port "$tcp_port" --fabric iwarp --state-dir "$stage/state" --control "$stage/control.sock" \
        >"$stage/ready" 2>"$stage/server.log" &
    server=$!
    for ((tries = 0; tries < 200; tries++)); do
        if grep -q ^ready "$stage/ready"; then return; fi
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    cat "$stage/server.log" >&2
    die "no server"
}

bad=0
for driver in "${drivers[@]}"; do
    step "nfs-rdma doctor with $driver"
    log=$stage/$driver.log
    status=0
    script=$of_devices
    if [[ $driver == host ]]; then
        serve_here
        script=$of_host
    fi
    options=()
    if [[ $driver == system ]]; then
        script=$of_system
        options=(-S)
        guest_status "$stage/status"
        download_packages "$stage/status" "$stage/debs" no firewalld systemd-container
        cp "$root/config/files/nfs-rdma.xml" "$stage/"
    fi
    if [[ $driver == hardware ]]; then
        script=$(<"$root/tests/interop/lab_doctor_hardware.sh")
        options=(-S -N -b without_udev.sh)
        guest_status "$stage/status"
        rm -rf "$stage/debs"
        download_packages "$stage/status" "$stage/debs" no opensm numactl
        "$lab/lab" modules "$root/tests/interop/kmod" "$stage"
        # Its rules load modules and rename devices: faults that users have are those where that did not go well.
        cat >"$stage/without_udev.sh" <<'SH'
for unit in systemd-udevd.service systemd-udevd-{control,kernel}.socket; do
    ln -sf /dev/null /run/systemd/system/$unit
done
SH
    fi
    in_guest "${LAB_LIMIT:-480}" "driver=$driver export=$stage/export
$prelude
$script" "${options[@]}" >"$log" 2>&1 || status=$?
    end_server
    { grep ': told' "$log" || :; } | while read -r line; do note "$line"; done
    if ((status != 0)); then
        tail -n 30 "$log" >&2
        fail "$driver: failed ($status)"
        bad=1
    fi
done
exit "$bad"
