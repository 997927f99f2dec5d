#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lab_doctor.sh: `nfs-rdma doctor` with RDMA devices in software, and with faults made for real: no
# device, a module without a device, a link that is down, an interface without an address, device nodes
# that others may not open, no connection manager, little locked memory, Linux's own server on the port,
# another program's listener. Where the doctor gives a command, that command is run and must help. Then end
# to end over verbs, against nfs-rdmad and against Linux's server. rxe and siw, each in a guest of its own.
#
#   tests/interop/lab_doctor.sh [rxe|siw]...
# shellcheck source=lab_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lab_common.sh"

drivers=()
for driver in "$@"; do
    [[ $driver =~ ^(rxe|siw)$ ]] || usage_error "unknown driver '$driver'"
    drivers+=("$driver")
done
((${#drivers[@]})) || drivers=(rxe siw)
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

script=$(cat <<'GUEST'
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

examine 0 --only devices,ports,software,modules
finding devices note 'no RDMA device'
finding ports skipped 'no RDMA device'
finding modules ok 'needs no such module'
module=$([[ $driver == rxe ]] && echo rdma_rxe || echo siw)
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
examine 1 --only ports
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
finding memlock problem '64 KiB may be locked' 'ulimit -l unlimited'
(ulimit -l unlimited; as=$nobody; examine 0 --only memlock)
told "little locked memory"

serve() {  # FABRIC PORT TCP_PORT
    : >/tmp/ready
    /tmp/open/nfs-rdmad --foreground -e /srv/export:rw,insecure,no_root_squash --listen 10.0.2.15 --fabric $1 --port $2 \
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
    sed -i 's/"RoCE v2"/"RoCE v1"/g' /tmp/there.json
    examine 1 --only route,gid-match --other-end /tmp/there.json 10.0.2.15
    finding gid-match problem "nothing in common"
    told "RoCE addresses of both ends"
fi
end

rig nfsd >/dev/null 2>&1
echo '/srv/export *(rw)' >/etc/nfs-rdma.exports
examine 1 --only kernel-nfsd,listeners,rpcbind,configuration
finding kernel-nfsd problem 'rdma 20049' 'systemctl disable --now nfs-server'
finding listeners problem "TCP port 2049: the kernel's NFS server listens"
finding rpcbind ok 'rpcbind knows NFS by'
finding configuration ok 'in order: 1 directories'
told "Linux's own server on the port"
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
bad=0
for driver in "${drivers[@]}"; do
    step "nfs-rdma doctor with $driver"
    log=$stage/$driver.log
    status=0
    in_guest "${LAB_LIMIT:-240}" "driver=$driver
$script" >"$log" 2>&1 || status=$?
    { grep ': told' "$log" || :; } | while read -r line; do note "$line"; done
    if ((status != 0)); then
        tail -n 30 "$log" >&2
        fail "$driver: failed ($status)"
        bad=1
    fi
done
exit "$bad"
