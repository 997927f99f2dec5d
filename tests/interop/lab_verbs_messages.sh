#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lab_verbs_messages.sh: what nfs-rdmad and nfs-rdma say on real verbs devices when memory may not be
# locked, and when somebody else has the port: another nfs-rdmad, Linux's own server, the iwarp engine.
# rxe and siw, each in a guest of its own.
#
#   tests/interop/lab_verbs_messages.sh [rxe|siw]...
# shellcheck source=lab_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lab_common.sh"

drivers=()
for driver in "$@"; do
    [[ $driver =~ ^(rxe|siw)$ ]] || usage_error "unknown driver '$driver'"
    drivers+=("$driver")
done
((${#drivers[@]})) || drivers=(rxe siw)
stage "$bin/nfs-rdmad" "$bin/nfs-rdma"

script=$(cat <<'GUEST'
rig $driver eth0
mkdir -p /tmp/open /export
head -c 3000000 /dev/urandom >/export/file
cp -r nfs-rdma nfs-rdmad lib /tmp/open
chmod -R a+rX /tmp/open
cd /tmp/open
export LD_LIBRARY_PATH=/tmp/open/lib
nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"

serve() {  # FABRIC PORT TCP_PORT [ADDRESS]
    exec $as ./nfs-rdmad --foreground -e /export:ro,insecure --listen ${4:-10.0.2.15} --fabric $1 \
        --port $2 --tcp-port $3 --state-dir /tmp/state-$1-$2-$3 --control /tmp/control-$1-$2-$3
}
copy() {
    exec $as ./nfs-rdma cp \
        "nfs://10.0.2.15:20049/export/file?proto=rdma&fabric=verbs&vers=3&mountport=2049&tcpport=2049" /tmp/copy
}
says() {  # LOG TEXT
    grep -qF -- "$2" $1 && return
    cat $1
    echo "$1 does not say: $2"
    exit 1
}
refused() {  # LOG TEXT COMMAND...
    local log=$1 text=$2 status=0
    shift 2
    timeout 30 bash -c '"$@"' - "$@" >$log 2>&1 || status=$?
    ((status != 0 && status != 124)) || { cat $log; echo "$log: status $status"; exit 1; }
    says $log "$text"
}
await() {  # LOG PID
    local tries
    for ((tries = 0; tries < 300; tries++)); do
        if grep -q ^ready $1; then return; fi
        kill -0 $2 || break
        sleep 0.1
    done
    cat $1
    exit 1
}
end() {
    kill $1
    wait $1 || :
}
export -f serve copy
export as

# Linux 6.1's siw does not care for CAP_IPC_LOCK: there even root is refused.
memory="and the limit is 65536; raise it with LimitMEMLOCK=infinity in the systemd unit"
if [[ $driver == siw ]]; then as=; else as=$nobody; fi
low=$as
(ulimit -l 64; serve verbs 20049 2049) >low.log 2>&1 &
server=$!
await low.log $server
as=
refused unheard.log "" copy
says low.log "$memory"
if [[ -n $low ]]; then says low.log "65536 bytes of memory may be locked, which is little for a server"; fi
end $server
serve verbs 20049 2049 >first.log 2>&1 &
server=$!
await first.log $server
as=$nobody
refused client.log "$memory" eval "ulimit -l 64; copy"
as=
(copy)
cmp /tmp/copy /export/file
echo "locked memory: said, with the remedy"

if [[ $driver == siw ]]; then
    holder="a listener inside the kernel has it, of siw or another iWARP device"
    refused iwarp.log "$holder" serve iwarp 20049 2050
else
    holder="another RDMA server has it ('rdma resource show cm_id' says which)"
fi
refused verbs.log "$holder" serve verbs 20049 2050
refused any.log "$holder" serve verbs 20049 2050 0.0.0.0
refused tcp.log "process $server (nfs-rdmad) has it: end that or choose another with --tcp-port" \
    serve verbs 20050 2049
refused nowhere.log "this host does not have that address" serve verbs 20050 2050 192.0.2.77
end $server
if [[ $driver == siw ]]; then
    serve auto 20049 2049 >auto.log 2>&1 &
    server=$!
    await auto.log $server
    says auto.log "our own iwarp engine listens there"
    end $server
fi
echo "another nfs-rdmad has the port: said"

rig nfsd
remedy="stop that (systemctl stop nfs-server) or choose another with"
refused nfsd.log "the kernel's NFS server has it ('rdma 20049' in /proc/fs/nfsd/portlist): $remedy --port" \
    serve verbs 20049 2050
refused nfsd-any.log "the kernel's NFS server has it ('rdma 20049'" serve verbs 20049 2050 0.0.0.0
refused nfsd-tcp.log "the kernel's NFS server has it ('tcp 2049' in /proc/fs/nfsd/portlist): $remedy --tcp-port" \
    serve verbs 20050 2049
if [[ $driver == siw ]]; then
    refused nfsd-iwarp.log "the kernel's NFS server has it ('rdma 20049'" serve iwarp 20049 2050
fi
echo "the kernel's NFS server has the port: said"
GUEST
)
bad=0
for driver in "${drivers[@]}"; do
    step "messages of verbs on $driver"
    log=$stage/$driver.log
    status=0
    in_guest "${LAB_LIMIT:-180}" "driver=$driver
$script" >"$log" 2>&1 || status=$?
    { grep ': said' "$log" || :; } | while read -r line; do note "$line"; done
    if ((status != 0)); then
        tail -n 30 "$log" >&2
        fail "$driver: failed ($status)"
        bad=1
    fi
done
exit "$bad"
