# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lab_service_steps.sh: the steps of lab_service.sh; sourced in the guest, with systemd as process 1.
#
# run_quick, run_all, run_capabilities, run_chosen STEP..., run_second_boot: what a guest is there for.
# step_NAME: one step each, in a subshell with "set -e"; what they leave behind, the next ones use.
server=192.0.2.2
unit=nfs-rdma.service

quick=(installed enabled rights kernel_mount reload exports quota doctor killed load_no wrong_config fstab automount remount refused)
all=(installed enabled rights kernel_mount reload exports quota late_mount doctor killed stopped load_no wrong_config fstab automount remount
    user_mount umount_kinds mount_unit autofs low_port verbs watchdog taken_port refused)

run_quick() { set_up; run_steps "${quick[@]}"; }
run_all() { set_up; run_steps "${all[@]}"; }
run_chosen() { set_up; run_steps installed enabled "$@"; }
run_second_boot() { run_steps booted; }

# --- how steps run --------------------------------------------------------------------------------

step_limit=100  # seconds; one that hangs in a mount has to be named, and not to end with the guest
run_steps() {
    local name status started process
    for name in "$@"; do
        started=$SECONDS status=0
        (set -e; trap 'echo "line $LINENO: $BASH_COMMAND: status $?"' ERR; "step_$name") >"$name.log" 2>&1 &
        process=$!
        while kill -0 $process 2>/dev/null && ((SECONDS - started < step_limit)); do sleep 0.1; done
        if kill -0 $process 2>/dev/null; then
            { echo "not done after $step_limit s; what runs:"; ps -eo pid,stat,wchan:20,args | tail -n 25; } >>"$name.log"
            kill -KILL $process
            status=124
        fi
        wait $process || status=${status/#0/$?}
        if ((status != 0)); then
            echo "FAILED $name"
            tail -n 30 "$name.log" | sed 's/^/    /'
            echo "--- journal of $unit"
            journalctl -u "$unit" -o short-monotonic --no-pager -n 40 | sed 's/^/    /'
            echo "--- journal of mounts"
            journalctl -u 'mnt-*.mount' -u 'mnt-*.automount' -o short-monotonic --no-pager -n 20 | sed 's/^/    /'
            return 1
        fi
        echo "ok $name ($((SECONDS - started)) s): $(tail -n 1 "$name.log")"
    done
}

# until_true SECONDS COMMAND...: waits for it.
until_true() {
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < until)) || { echo "in vain: $*"; return 1; }
        sleep 0.2
    done
}
# "! COMMAND" would pass in either case under "set -e".
not() { if "$@"; then echo "it is not to be: $*"; return 1; fi; }
# refused_with TEXT COMMAND...: it fails, and says TEXT.
refused_with() {
    local text=$1 said
    shift
    if said=$("$@" 2>&1); then echo "not refused: $*: $said"; return 1; fi
    [[ $said == *"$text"* ]] || { echo "$*: said '$said', not '$text'"; return 1; }
}
listening() { ss -Hltn "sport = :$1" | grep -q .; }
active() { [[ $(systemctl is-active "$unit") == "${1:-active}" ]]; }
main_pid() { systemctl show -p MainPID --value "$unit"; }
# since MARK PATTERN: the service's journal has PATTERN behind the cursor that MARK names.
mark() { journalctl -n 0 --show-cursor --no-pager | sed -n 's/^-- cursor: //p' >"/tmp/mark.$1"; }
since() { journalctl -u "$unit" -o cat --no-pager --after-cursor "$(<"/tmp/mark.$1")" | grep -E "$2"; }
is_mounted() { grep -q " $1 ${2:-}" /proc/self/mounts; }
random_file() { head -c "$2" /dev/urandom >"$1"; }

# --- the machine ----------------------------------------------------------------------------------

set_up() {
    rig wire none
    rig siw vc
    echo "$server server.example.org server" >>/etc/hosts
    mkdir -p /export/data /export/more /mnt/{kernel,fuse,auto,user,unit}
    chmod 1777 /export/data /export/more
    chown 1000 /mnt/user
}

# As the guide of RHEL has it, in a file with the other keys of the rdma service.
write_configuration() {
    mkdir -p /etc/rdma
    cat >/etc/rdma/rdma.conf <<'END'
# Load IPoIB
IPOIB_LOAD=yes
# Load SRP (SCSI Remote Protocol initiator support) module
SRP_LOAD=yes
# Load SRPT (SCSI Remote Protocol target support) module
SRPT_LOAD=yes
# Load iSER (iSCSI over RDMA initiator support) module
ISER_LOAD=yes
# Load iSERT (iSCSI over RDMA target support) module
ISERT_LOAD=yes
# Load RDS (Reliable Datagram Service) network protocol
RDS_LOAD=no
# Load NFSoRDMA client transport module
XPRTRDMA_LOAD=yes
# Load NFSoRDMA server transport module
SVCRDMA_LOAD=no
# Load Tech Preview device driver modules
TECH_PREVIEW_LOAD=no
# Should we modify the system mtrr registers?
FIXUP_MTRR_REGS=no
# NFS over RDMA
NFSoRDMA_LOAD=yes
NFSoRDMA_PORT=2050
END
    cat >/etc/nfs-rdma.exports <<'END'
/export        192.0.2.0/24(rw,no_root_squash,insecure) \
               127.0.0.1(rw,no_root_squash,insecure)
END
}

# --- the service ----------------------------------------------------------------------------------

step_installed() {
    systemctl cat "$unit"
    systemd-analyze --man=no verify "$unit" 2>&1 | tee verify.txt
    [[ ! -s verify.txt ]]
    [[ $(systemctl is-enabled "$unit") == disabled ]]
    [[ -x /sbin/mount.nfs-rdma && -x /sbin/mount.fuse.nfs-rdma ]]
    systemd-analyze security "$unit" --no-pager | tail -n 1 | sed 's/ [^ ]*$//'
}

step_enabled() {
    write_configuration
    systemctl enable --now "$unit"
    active
    [[ $(systemctl is-enabled "$unit") == enabled ]]
    listening 2050
    listening 2049
    systemctl show -p StatusText --value "$unit" | grep '^ready.*2050'
}

step_rights() {
    local pid wanted now each
    pid=$(main_pid)
    wanted=$(systemctl show -p CapabilityBoundingSet --value "$unit" | tr ' ' '\n' | sort)
    now=$(capsh --decode="$(awk '/^CapBnd/ { print $2 }' "/proc/$pid/status")" | sed 's/.*=//' | tr ',' '\n' | sort)
    [[ $wanted == "$now" ]]
    [[ $(awk '/^CapPrm/ { print $2 }' "/proc/$pid/status") == "$(awk '/^CapBnd/ { print $2 }' "/proc/$pid/status")" ]]
    grep -E '^Max locked memory +unlimited +unlimited' "/proc/$pid/limits"
    grep -E '^NoNewPrivs:\s+1' "/proc/$pid/status"
    grep -E '^Seccomp:\s+2' "/proc/$pid/status"
    # Exports of what a sandbox may hide: the same as outside.
    for each in /usr/lib/modules /home /root /boot /sys/module; do
        [[ $(ls -A "/proc/$pid/root$each") == "$(ls -A "$each")" ]]
    done
    echo "$(wc -l <<<"$now") capabilities, memory lock unlimited, seccomp filter on"
}

step_kernel_mount() {
    modprobe -a rpcrdma nfsv4
    # The client's side of the guide, word for word.
    timeout -k 1 60 mount -t nfs -o rdma,port=2050 server:/export /mnt/kernel
    random_file /tmp/data 3000001
    cp /tmp/data /mnt/kernel/data/file
    cmp /tmp/data /export/data/file
    umount /mnt/kernel
    timeout -k 1 60 mount -t nfs -o rdma,port=2050 server:/export /mnt/kernel
    cmp /tmp/data /mnt/kernel/data/file
    # The unit's filter of system calls lets the server send from the page cache.
    nfs-rdma status --json | grep -E '"read_page_bytes": ?[1-9]' | cut -c1-120
    mkdir /mnt/kernel/data/dir
    mv /mnt/kernel/data/file /mnt/kernel/data/dir/moved
    cmp /tmp/data /export/data/dir/moved
    grep 'xprt:.rdma' /proc/self/mountstats
    grep ' /mnt/kernel nfs4 .*proto=rdma.*port=2050' /proc/self/mounts | cut -c1-120
}

connections() { ss -Htn "sport = :2050" | awk '{ print $4, $5 }' | sort; }

step_reload() {
    local before pid
    connections
    before=$(connections)
    [[ -n $before ]]
    pid=$(main_pid)
    # Something goes on meanwhile, on a file that stays open.
    exec 5>/mnt/kernel/data/open
    (for i in $(seq 100000); do echo "line $i" || exit 1; [[ ! -e /tmp/enough ]] || exit 0; done >&5; exit 1) &
    local writer=$!
    refused_with "" mount.nfs-rdma "$server:/export/more/new" /mnt/fuse -o rdma,port=2050,retry=0
    mkdir -p /export/more/new /srv/second
    echo '/srv/second *(ro,insecure)' >>/etc/nfs-rdma.exports
    mark reload
    systemctl reload "$unit"
    since reload 'exports were read again'
    active
    [[ $(main_pid) == "$pid" ]]
    mount.nfs-rdma "$server:/srv/second" /mnt/fuse -o rdma,port=2050,retry=0
    umount /mnt/fuse
    touch /tmp/enough
    wait $writer
    exec 5>&-
    tail -n 1 /export/data/open | grep '^line'
    echo again >/mnt/kernel/data/after-reload
    [[ $(cat /export/data/after-reload) == again ]]
    # A file with a mistake changes nothing.
    echo '/srv/second *(rw,insecur)' >>/etc/nfs-rdma.exports
    mark bad
    not systemctl reload "$unit"
    since bad 'nfs-rdma.exports:[0-9]+:.*insecur'
    sed -i '$d' /etc/nfs-rdma.exports
    active
    connections
    [[ $(connections | grep -c .) -ge 1 ]]
    [[ $(connections) == *"$before"* ]]
    echo "the same connection before and after: $before"
}

# exports(5) as Linux's client sees it: whose rule counts, which flavours, what is hidden.
by_kernel() { timeout -k 1 40 mount -t nfs -o "rdma,port=2050,$1" "$server:$2" /mnt/check; }
by_kernel3() { by_kernel "vers=3,nolock,mountport=2049,mountproto=tcp${2:-}" "$1"; }
step_exports() {
    mkdir -p /mnt/check /srv/{member,stranger,ranged,none,mp} /srv/top/{hidden,seen}
    modprobe -a rpcrdma nfsv3 nfsv4
    mount -t tmpfs hidden /srv/top/hidden
    mount -t tmpfs seen /srv/top/seen
    for each in member stranger ranged none top/hidden top/seen; do echo "$each" >"/srv/$each/file"; done
    chmod 0777 /srv/none  # not sticky: there Linux's client lets root write no file of nobody's
    echo '192.0.2.1 client.example.org client' >>/etc/hosts
    echo 'netgroup: files' >>/etc/nsswitch.conf
    printf '%s\n' 'storage (client.example.org,,)' 'compute (other.example.org,,)' >/etc/netgroup
    cp /etc/nfs-rdma.exports /tmp/exports.before
    cat >>/etc/nfs-rdma.exports <<'END'
/srv/member      @compute(ro,insecure) @storage(rw,no_root_squash,insecure)
/srv/stranger    @compute(rw,insecure)
/srv/ranged      192.0.2.0/255.255.255.254(rw,no_root_squash,insecure) 192.0.2.0/24(ro,insecure)
/srv/none        *(sec=none,rw,insecure)
/srv/top         192.0.2.0/24(rw,insecure)
/srv/top/hidden  192.0.2.0/24(rw,insecure)
/srv/top/seen    192.0.2.0/24(rw,insecure,nohide)
/srv/mp          192.0.2.0/24(rw,insecure,mp,no_root_squash)
END
    systemctl reload "$unit"
    # Netgroups: the one that has the client counts, and for others there is nothing.
    by_kernel vers=4.2 /srv/member
    echo written >/mnt/check/by-member
    umount /mnt/check
    [[ $(</srv/member/by-member) == written ]]
    nfs-rdma exports explain 192.0.2.1 /srv/member | grep '^[[:space:]]*\*.*@storage'
    refused_with "No such file or directory" by_kernel vers=4.2 /srv/stranger
    refused_with "access denied" by_kernel3 /srv/stranger
    # Of two networks the first.
    by_kernel3 /srv/ranged
    touch /mnt/check/written
    umount /mnt/check
    # sec=none: the client finds that out by itself, is told so where it wants another, and is nobody.
    by_kernel vers=4.2 /srv/none
    grep ' /mnt/check nfs4 .*sec=\(null\|none\)' /proc/self/mounts
    echo nobody >/mnt/check/by-nobody
    umount /mnt/check
    [[ $(stat -c %u:%g /srv/none/by-nobody) == 65534:65534 ]]
    refused_with "not permitted" by_kernel vers=4.2,sec=sys /srv/none
    # By version 3 it takes AUTH_NONE in the list for "any", and comes with AUTH_SYS.
    refused_with "access denied" by_kernel3 /srv/none
    by_kernel3 /srv/none ,sec=none
    [[ $(</mnt/check/by-nobody) == nobody ]]
    umount /mnt/check
    # Version 3: what is mounted below is hidden, unless its export says nohide. Version 4 shows all.
    by_kernel3 /srv/top
    [[ ! -e /mnt/check/hidden/file ]]
    [[ $(</mnt/check/seen/file) == top/seen ]]
    umount -R /mnt/check
    by_kernel vers=4.2 /srv/top
    [[ $(</mnt/check/hidden/file) == top/hidden ]]
    [[ $(</mnt/check/seen/file) == top/seen ]]
    umount -R /mnt/check
    # mp: served while something is mounted there.
    not by_kernel3 /srv/mp
    mount -t tmpfs mp /srv/mp
    until_true 10 by_kernel3 /srv/mp
    echo there >/mnt/check/file
    umount /mnt/check
    [[ $(</srv/mp/file) == there ]]
    cp /tmp/exports.before /etc/nfs-rdma.exports
    systemctl reload "$unit"
    echo "netgroups, networks, sec=none, nohide and mp, with Linux's client"
}

# The sandbox has mounts of its own: what is mounted later has to come there, and to go again.
step_late_mount() {
    mkdir -p /srv/late
    mount -t tmpfs late /srv/late
    echo late >/srv/late/file
    echo '/srv/late *(rw,insecure)' >>/etc/nfs-rdma.exports
    mark late
    systemctl reload "$unit"
    since late 'exports were read again'
    mount.nfs-rdma "$server:/srv/late" /mnt/fuse -o rdma,port=2050,retry=0
    [[ $(cat /mnt/fuse/file) == late ]]
    umount /mnt/fuse
    sed -i '$d' /etc/nfs-rdma.exports
    # One that no client has used is not held back by the sandbox's own mounts.
    mkdir -p /srv/unused
    mount -t tmpfs unused /srv/unused
    grep ' /srv/unused ' "/proc/$(main_pid)/mountinfo"
    umount /srv/unused
    not grep ' /srv/unused ' "/proc/$(main_pid)/mountinfo"
    # The server keeps descriptors of what it has served, also when that is exported no more.
    systemctl restart "$unit"
    umount /srv/late
    echo "a file system that was mounted after the start was served"
}

# Quotas are told, with the unit's capabilities and system calls.
step_quota() {
    # shellcheck source=lab_quota.sh
    . /host/lab_quota.sh
    make_quotas /dev/vdb /srv/quota
    echo '/srv/quota *(rw,insecure)' >>/etc/nfs-rdma.exports
    systemctl reload "$unit"
    check_quotas "$server" /srv/quota 2049 /export
    sed -i '$d' /etc/nfs-rdma.exports
    systemctl restart "$unit"
    umount /srv/quota
    echo "told to whom they belong, and to no others"
}

# finding CHECK TEXT: what the doctor says helps, where it has a problem or a warning with that text.
finding() {
    nfs-rdma doctor --json --only "$1" >/tmp/report.json || :
    python3 - "$@" <<'PY'
import json, sys
check, text = sys.argv[1:]
for finding in next(c for c in json.load(open("/tmp/report.json"))["checks"] if c["id"] == check)["findings"]:
    if finding["verdict"] in ("problem", "warning") and text in finding["seen"]:
        print("\n".join(finding["remedy"]))
        sys.exit(0)
sys.exit(f"{check}: nothing of '{text}'")
PY
}

# A unit with little memory, and what the doctor says helps, word for word.
step_doctor() {
    not finding memlock "$unit"
    mkdir -p "/run/systemd/system/$unit.d"
    printf '[Service]\nLimitMEMLOCK=64K\n' >"/run/systemd/system/$unit.d/10-little.conf"
    systemctl daemon-reload
    systemctl restart "$unit"
    grep -E '^Max locked memory +65536 ' "/proc/$(main_pid)/limits"
    finding memlock "$unit" >/tmp/remedy.sh
    cat /tmp/remedy.sh
    bash -e /tmp/remedy.sh
    grep -E '^Max locked memory +unlimited ' "/proc/$(main_pid)/limits"
    not finding memlock "$unit"
    rm -r "/run/systemd/system/$unit.d" "/etc/systemd/system/$unit.d"
    systemctl daemon-reload
    systemctl restart "$unit"
    echo "LimitMEMLOCK=64K was found, and the remedy helped"
}

step_killed() {
    local pid until
    pid=$(main_pid)
    exec 5>/mnt/kernel/data/through
    echo one >&5
    mark killed
    kill -9 "$pid"
    until_true 20 listening 2050
    echo two >&5
    exec 5>&-
    [[ $(tr '\n' ' ' </export/data/through) == 'one two ' ]]
    active
    [[ $(main_pid) != "$pid" ]]
    [[ $(systemctl show -p NRestarts --value "$unit") == 1 ]]
    echo "restarted by systemd, the client went on"
}

step_stopped() {
    mark stopped
    systemctl stop "$unit"
    active inactive
    not listening 2050
    since stopped 'stopped'
    (echo waiting >/mnt/kernel/data/late) &
    systemctl start "$unit"
    wait $!
    [[ $(cat /export/data/late) == waiting ]]
    systemctl restart "$unit"
    active
    echo "stop, start and restart; a client that wrote meanwhile waited"
}

step_load_no() {
    sed -i 's/^NFSoRDMA_LOAD=.*/NFSoRDMA_LOAD=no/' /etc/rdma/rdma.conf
    mark load
    systemctl stop "$unit"
    systemctl start "$unit"
    active inactive
    not listening 2050
    not systemctl is-failed "$unit"
    sed -i 's/^NFSoRDMA_LOAD=.*/NFSoRDMA_LOAD=yes/' /etc/rdma/rdma.conf
    since load 'NFSoRDMA_LOAD=no in /etc/rdma/rdma.conf'
}

step_wrong_config() {
    local line
    line=$(grep -n ^NFSoRDMA_PORT /etc/rdma/rdma.conf | cut -d: -f1)
    sed -i 's/^NFSoRDMA_PORT=.*/NFSoRDMA_PROT=2050/' /etc/rdma/rdma.conf
    mark wrong
    not systemctl start "$unit"
    since wrong "/etc/rdma/rdma.conf:$line:.*NFSoRDMA_PORT"
    active failed
    [[ $(systemctl show -p ExecMainStatus --value "$unit") == 3 ]]
    sed -i 's/^NFSoRDMA_PROT=.*/NFSoRDMA_PORT=2050/' /etc/rdma/rdma.conf
    systemctl stop "$unit"
    systemctl reset-failed "$unit" || :
    systemctl start "$unit"
    active
    since wrong "/etc/rdma/rdma.conf:$line:" | head -n 1
}

set_key() { sed -i "/^$1=/d" /etc/rdma/rdma.conf; if [[ -n ${2:-} ]]; then echo "$1=$2" >>/etc/rdma/rdma.conf; fi; }

step_low_port() {
    set_key NFSoRDMA_PORT 650
    systemctl restart "$unit"
    listening 650
    set_key NFSoRDMA_PORT 2050
    systemctl restart "$unit"
    listening 2050
    echo "port 650"
}

# Another service, and Linux's own server, on the port of NFS over TCP: neither its list of ports nor what others have open can be
# read in the unit.
step_taken_port() {
    systemctl stop "$unit"
    systemd-run --quiet --unit=holder python3 -c \
        'import socket, time; s = socket.create_server(("", 2049)); time.sleep(60)'
    until_true 10 listening 2049
    mark holder
    not systemctl start "$unit"
    since holder '\(python3\), the one of holder.service, has it: end that or choose another with --tcp-port'
    systemctl stop holder "$unit"
    systemctl reset-failed "$unit" || :
    rig nfsd /export/nfsd
    mark taken
    not systemctl start "$unit"
    since taken "tcp cannot listen on .*:2049: .*the kernel's NFS server (has it|runs here and has it, most likely)"
    since taken 'NFSoRDMA_TCP_PORT in rdma.conf'
    systemctl stop "$unit"
    systemctl reset-failed "$unit" || :
    set_key NFSoRDMA_TCP_PORT 2051
    mark beside
    systemctl start "$unit"
    active
    since beside 'rpcbind keeps its entries for program 100003 version 3 \(' | tee kept.txt
    [[ $(wc -l <kept.txt) == 1 ]]
    rpc.nfsd 0
    set_key NFSoRDMA_TCP_PORT
    systemctl restart "$unit"
    active
    since holder "tcp cannot listen on" | sed 's/.*bind: //' | sort -u | tr '\n' '|'
}

# With the kernel's RDMA stack on both sides: memory is locked, devices are used through /dev/infiniband.
step_verbs() {
    umount -a -t nfs,nfs4
    rdma link add siw_vs type siw netdev vs
    set_key NFSoRDMA_FABRIC verbs
    systemctl restart "$unit"
    systemctl show -p StatusText --value "$unit" | grep verbs
    timeout -k 1 60 mount -t nfs -o rdma,port=2050 server:/export /mnt/kernel
    random_file /tmp/data 3000001
    cp /tmp/data /mnt/kernel/data/by-verbs
    cmp /tmp/data /export/data/by-verbs
    umount /mnt/kernel
    set_key NFSoRDMA_FABRIC
    systemctl restart "$unit"
    rdma link del siw_vs
    echo "verbs on siw: 3000001 bytes by the unit's rights"
}

step_watchdog() {
    local pid
    pid=$(main_pid)
    [[ $(systemctl show -p WatchdogUSec --value "$unit") == 30s ]]
    kill -STOP "$pid"
    mark watchdog
    until_true 60 since watchdog 'Watchdog timeout'
    until_true 40 another_pid "$pid"
    until_true 20 active
    until_true 20 listening 2050
    kill -CONT "$pid" 2>/dev/null || :
    echo "a server that does not answer was ended and started again"
}

# --- mounts ---------------------------------------------------------------------------------------

fstab() { printf '%s\n' "$@" >>/etc/fstab; systemctl daemon-reload; }

step_fstab() {
    umount /mnt/kernel
    fstab 'server:/export/data /mnt/fuse nfs-rdma rdma,port=2050,_netdev 0 0' \
        'server:/export/data /mnt/kernel nfs rdma,port=2050,_netdev 0 0'
    mount -a
    is_mounted /mnt/fuse fuse.nfs-rdma
    is_mounted /mnt/kernel nfs4
    echo by-fuse >/mnt/fuse/shared
    [[ $(cat /mnt/kernel/shared) == by-fuse ]]
    # Again: what is mounted is left alone.
    mount -a
    [[ $(grep -c ' /mnt/fuse ' /proc/self/mounts) == 1 ]]
    findmnt -n -o SOURCE,FSTYPE /mnt/fuse
    # The unit that systemd made of the line is a network mount.
    systemctl list-dependencies --plain remote-fs.target | grep mnt-fuse.mount
    umount /mnt/fuse
    not is_mounted /mnt/fuse
    umount /mnt/kernel
    echo "mount -a mounted both kinds"
}

step_automount() {
    fstab 'server:/export/data /mnt/auto nfs-rdma rdma,port=2050,noauto,_netdev,x-systemd.automount,x-systemd.idle-timeout=5 0 0'
    systemctl start mnt-auto.automount
    is_mounted /mnt/auto autofs
    not is_mounted /mnt/auto fuse.nfs-rdma
    [[ $(cat /mnt/auto/shared) == by-fuse ]]
    is_mounted /mnt/auto fuse.nfs-rdma
    # It goes when nobody uses it, and its daemon too.
    until_true 40 not_mounted /mnt/auto
    until_true 10 no_daemon
    systemctl stop mnt-auto.automount
    echo "mounted at the first look, unmounted when idle"
}
not_mounted() { ! is_mounted "$1" fuse.nfs-rdma; }

step_remount() {
    mount /mnt/fuse
    exec 6</mnt/fuse/.
    mount -o remount,ro,noexec /mnt/fuse
    refused_with "Read-only" touch /mnt/fuse/no
    grep ' /mnt/fuse fuse.nfs-rdma ro,.*noexec' /proc/self/mounts
    mount -o remount,rw,exec /mnt/fuse
    touch /mnt/fuse/yes
    not grep ' /mnt/fuse fuse.nfs-rdma .*noexec' /proc/self/mounts
    refused_with "unmount and mount again for rsize=4096" mount -o remount,rsize=4096 /mnt/fuse
    touch /mnt/fuse/yes
    exec 6<&-
    # Its socket lies beside the server's, and outlives a restart of that.
    systemctl restart "$unit"
    until_true 20 nfs-rdma status --mount /mnt/fuse
    umount /mnt/fuse
    until_true 10 no_daemon
    # One that fstab does not know: mount(8) repeats what the kernel shows.
    mount.nfs-rdma "$server:/export/data" /mnt/user -o rdma,port=2050,retry=0,nosuid
    mount -o remount,ro /mnt/user
    grep ' /mnt/user fuse.nfs-rdma ro,nosuid' /proc/self/mounts
    umount /mnt/user
    until_true 10 no_daemon
    echo "ro and noexec while it is in use; rsize= is refused by name"
}
another_pid() { [[ $(main_pid) != "$1" ]]; }
no_daemon() { ! pgrep -f '^/?[a-z/]*mount.nfs-rdma ' >/dev/null; }

as_user() { setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/home/guest "$@"; }

step_user_mount() {
    fstab 'server:/export/data /mnt/user nfs-rdma rdma,port=2050,noauto,user 0 0'
    as_user mount /mnt/user
    is_mounted /mnt/user fuse.nfs-rdma
    as_user sh -c 'echo mine >/mnt/user/of-guest'
    [[ $(stat -c %u /export/data/of-guest) == 1000 ]]
    # His alone, as FUSE has it without user_allow_other; root, too, stays outside.
    refused_with "Permission denied" ls /mnt/user
    grep ' /mnt/user ' /proc/self/mounts | grep nosuid,nodev
    as_user umount /mnt/user
    not_mounted /mnt/user
    as_user mount /mnt/user
    as_user fusermount3 -u /mnt/user
    not_mounted /mnt/user
    # mount(8) lets the helper try any line with the user's own rights; the mount point has to be his.
    refused_with "no write access to mountpoint /mnt/fuse" as_user mount /mnt/fuse
    until_true 10 no_daemon
    echo "mounted and unmounted by uid 1000 alone, by umount and by fusermount3"
}

step_umount_kinds() {
    local pid reader
    mount /mnt/fuse
    exec 5>/mnt/fuse/lazy
    refused_with "busy" umount /mnt/fuse
    umount -l /mnt/fuse
    not_mounted /mnt/fuse
    echo written-after >&5
    exec 5>&-
    [[ $(cat /export/data/lazy) == written-after ]]
    until_true 10 no_daemon
    # A server that hangs: who waits gets an error, and nothing is left.
    mount /mnt/fuse
    random_file /export/data/big 200000
    pid=$(main_pid)
    kill -STOP "$pid"
    (cat /mnt/fuse/big >/dev/null 2>/tmp/reader) &
    reader=$!
    sleep 1
    timeout 20 umount -f /mnt/fuse || timeout 20 umount -l /mnt/fuse
    not_mounted /mnt/fuse
    not wait "$reader"
    kill -CONT "$pid"
    until_true 30 no_daemon
    echo "umount -l: open files go on to their close; umount -f with a stopped server: $(</tmp/reader)"
}

step_mount_unit() {
    cat >/etc/systemd/system/mnt-unit.mount <<'END'
[Unit]
Description=NFS over RDMA by FUSE
Wants=network-online.target
After=network-online.target
[Mount]
What=server:/export/data
Where=/mnt/unit
Type=nfs-rdma
Options=rdma,port=2050
[Install]
WantedBy=remote-fs.target
END
    systemctl daemon-reload
    systemctl enable --now mnt-unit.mount
    [[ $(systemctl is-active mnt-unit.mount) == active ]]
    # The daemon is the unit's.
    grep -q mount.nfs-rdma "/proc/$(head -n 1 /sys/fs/cgroup/system.slice/mnt-unit.mount/cgroup.procs)/cmdline"
    random_file /tmp/data 8000000
    cp /tmp/data /mnt/unit/last
    systemctl stop mnt-unit.mount
    not_mounted /mnt/unit
    cmp /tmp/data /export/data/last
    until_true 10 no_daemon
    systemctl disable -q mnt-unit.mount
    echo "started, stopped right after 8 MB: all there"
}

step_autofs() {
    mkdir -p /mnt/map /etc/auto.master.d
    echo '/mnt/map /etc/auto.rdma --timeout=4' >/etc/auto.master.d/rdma.autofs
    printf '%s\n' 'data -fstype=nfs-rdma,rdma,port=2050 server:/export/data' \
        '* -fstype=nfs-rdma,rdma,port=2050 server:/export/&' >/etc/auto.rdma
    systemctl start autofs
    is_mounted /mnt/map autofs
    [[ $(cat /mnt/map/data/shared) == by-fuse ]]
    is_mounted /mnt/map/data fuse.nfs-rdma
    ls /mnt/map/more
    is_mounted /mnt/map/more fuse.nfs-rdma
    refused_with "No such file" ls /mnt/map/nowhere
    until_true 60 not_mounted /mnt/map/data
    systemctl stop autofs
    until_true 10 no_daemon
    echo "an indirect map with a key and with *; expired when idle"
}

# --- a boot with everything enabled ---------------------------------------------------------------

before_second_boot() {
    mkdir -p /export/data /mnt/unit
    chmod 1777 /export/data
    echo before >/export/data/shared
    write_configuration
    # A mount of this machine's own server: ordered behind it by the option.
    echo '127.0.0.1:/export/data /mnt/unit nfs-rdma rdma,port=2050,_netdev,x-systemd.requires=nfs-rdma.service 0 0' \
        >>/etc/fstab
    cat >/etc/systemd/system/uses-it.service <<'END'
[Unit]
RequiresMountsFor=/mnt/unit
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/cp /mnt/unit/shared /mnt/unit/copied
[Install]
WantedBy=multi-user.target
END
    systemctl enable nfs-rdma.service uses-it.service
}

step_booted() {
    local served mounted used
    active
    is_mounted /mnt/unit fuse.nfs-rdma
    [[ $(systemctl is-active mnt-unit.mount) == active ]]
    [[ $(systemctl is-active uses-it.service) == active ]]
    [[ $(cat /export/data/copied) == before ]]
    systemctl --failed --plain --no-legend | tee failed.txt
    [[ ! -s failed.txt ]]
    served=$(systemctl show -p ActiveEnterTimestampMonotonic --value nfs-rdma.service)
    mounted=$(systemctl show -p ActiveEnterTimestampMonotonic --value mnt-unit.mount)
    used=$(systemctl show -p ActiveEnterTimestampMonotonic --value uses-it.service)
    ((served < mounted && mounted < used))
    # And the other way round when it goes down.
    systemctl stop nfs-rdma.service
    not_mounted /mnt/unit
    echo "server, mount and who uses it came in this order"
}

# --- capabilities ---------------------------------------------------------------------------------

# Each prints nothing, or what is wrong; on a fresh mount by Linux's client with the server restarted.
try_ports() { listening 2050 || echo "it does not listen"; }
try_identity() {
    as_user sh -c 'echo x >/mnt/kernel/data/by-guest' || return
    [[ $(stat -c %u /export/data/by-guest) == 1000 ]] || echo "a file of uid 1000 belongs to $(stat -c %u /export/data/by-guest)"
}
try_root_reads() { cat /mnt/kernel/more/private/file >/dev/null; }
try_root_writes() { echo more >>/mnt/kernel/more/private/file; }
try_chown() { touch /mnt/kernel/more/c && chown 1000:1000 /mnt/kernel/more/c; }
try_chmod() { chmod 0640 /mnt/kernel/more/private/file; }
try_setgid() {
    touch /export/more/s && chown 1000:777 /export/more/s && chmod 2775 /mnt/kernel/more/s || return
    [[ $(stat -c %a /export/more/s) == 2775 ]] || echo "the set-group-ID bit is gone: $(stat -c %a /export/more/s)"
}
try_mknod() { mknod /mnt/kernel/more/null c 1 3; }
# A file that is open, moved behind the server's back, and asked for by its handle after a restart.
try_moved() {
    local held
    echo moved >/export/data/here
    exec 7</mnt/kernel/data/here
    systemctl stop "$unit"
    mv /export/data/here /export/more/there
    echo 3 >/proc/sys/vm/drop_caches
    systemctl start "$unit"
    held=$(cat <&7) || echo "an open file is lost: $held"
    exec 7<&-
}
delegations() {
    nfs-rdma status --server /run/nfs-rdma/control.sock --json | tr -d ' \n' |
        sed -n 's/.*"delegations":\([0-9]*\),"delegations_recalled".*/\1/p'
}
try_delegation() {
    local i before
    before=$(delegations)
    for i in 1 2 3; do cat /mnt/kernel/data/open-to-all >/dev/null || return; done
    (($(delegations) > before)) || echo "no delegation of a file of another user"
}
try_low_port() {
    set_key NFSoRDMA_PORT 650
    systemctl restart "$unit" 2>/dev/null || echo "no start on port 650"
    set_key NFSoRDMA_PORT 2050
}

# One line for each capability of the unit: what does not work without it.
run_capabilities() {
    local all each name what problem
    set_up
    modprobe -a rpcrdma nfsv4
    run_steps installed enabled
    install -d -o 1000 -g 1000 -m 0700 /export/more/private
    install -o 1000 -m 0600 /etc/hostname /export/more/private/file
    install -o 1000 -m 0644 /etc/hostname /export/data/open-to-all
    read -ra all <<<"$(systemctl show -p CapabilityBoundingSet --value "$unit")"
    for each in nothing "${all[@]}"; do
        mkdir -p "/run/systemd/system/$unit.d"
        printf '[Service]\nCapabilityBoundingSet=~%s\n' "${each#nothing}" >"/run/systemd/system/$unit.d/less.conf"
        if [[ $each == nothing ]]; then rm "/run/systemd/system/$unit.d/less.conf"; fi
        systemctl daemon-reload
        systemctl reset-failed "$unit" || :
        what=''
        if ! systemctl restart "$unit" 2>/dev/null; then
            what="it does not start; "
        elif ! timeout -k 1 20 mount -t nfs -o rdma,port=2050,soft,timeo=50,retrans=1,actimeo=1 server:/export /mnt/kernel; then
            what="no mount; "
        else
            rm -f /export/data/by-guest /export/more/{c,s,null}
            for name in ports identity root_reads root_writes chown chmod setgid mknod delegation; do
                problem=$(try_$name 2>&1) || problem=${problem:-failed}
                if [[ -n $problem ]]; then what+="$name ($(head -n 1 <<<"$problem")); "; fi
            done
            problem=$(try_moved 2>&1) || problem=${problem:-failed}
            if [[ -n $problem ]]; then what+="moved ($(head -n 1 <<<"$problem")); "; fi
            # In order, so that the client is forgotten and the next start has no grace period.
            timeout 20 umount /mnt/kernel || umount -f /mnt/kernel || umount -l /mnt/kernel
        fi
        problem=$(try_low_port)
        if [[ -n $problem ]]; then what+="$problem; "; fi
        echo "without $each: ${what:-nothing is wrong}"
    done
}

# --- in the end -----------------------------------------------------------------------------------

# What seccomp refused, and to whom. Not counted is clone3 (435): RestrictNamespaces= answers it with
# ENOSYS, since its flags lie in memory, and libc takes clone then.
refusals() { journalctl -b --no-pager -o cat | grep -E '(type=1326|^SECCOMP) ' | grep -v ' syscall=435 '; }
refused_to() { refusals | grep -F "comm=\"$1\""; }

step_refused() {
    # Whether the log tells: a program with the same filter that wants more.
    local filter
    filter=$(grep -E '^(SystemCall|Restrict)' "/lib/systemd/system/$unit")
    printf '[Service]\nType=oneshot\nExecStart=/usr/bin/unshare -m true\n%s\n' "$filter" \
        >/run/systemd/system/wants-more.service
    systemctl daemon-reload
    not systemctl start wants-more.service
    until_true 10 refused_to unshare
    not refused_to nfs-rdmad
    echo "seccomp has refused nfs-rdmad nothing, and the log would tell"
}
