# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lab_migration_guest.sh knfsd|linux|serve N: what lab_migration.sh does in the guest: our FUSE mount
# with two of Linux's servers, Linux's client with two of ours; with `serve`, in the namespaces of one
# of Linux's servers.
set -Eeu
trap 'dmesg | tail -n 60 >dmesg.log' EXIT
trap 'echo "line $LINENO failed ($?): $BASH_COMMAND" >&2' ERR

network() {  # network N: namespace sN at 192.0.N.2
    local n=$1
    ip netns add "s$n"
    ip link add "c$n" type veth peer name "v$n" netns "s$n"
    ip addr add "192.0.$n.1/24" dev "c$n"
    ip -n "s$n" addr add "192.0.$n.2/24" dev "v$n"
    ip link set "c$n" up
    ip -n "s$n" link set lo up
    ip -n "s$n" link set "v$n" up
}
# server N: a knfsd in namespace sN, with files of its own in /run and /var/lib/nfs; it runs what is
# written to /tmp/to-N.
server() {
    local n=$1
    network "$n"
    if [ "$n" = 2 ]; then
        modprobe -a siw ib_uverbs rdma_ucm
        ip netns exec "s$n" rdma link add "siw_v$n" type siw netdev "v$n"
    fi
    mkfifo "/tmp/to-$n"
    ip netns exec "s$n" unshare -m bash ./lab_migration_guest.sh serve "$n" >"server$n.log" 2>&1 &
    for _ in $(seq 300); do
        [ -e "/tmp/ready-$n" ] && return
        sleep 0.1
    done
    cat "server$n.log"
    exit 1
}
serve() {
    local n=$1 line
    mount --make-rprivate /
    mount -t tmpfs own /run
    mount -t tmpfs own /var/lib/nfs
    mkdir -p /run/rpcbind /run/rpc_pipefs /var/lib/nfs/{rpc_pipefs,nfsdcld,sm,sm.bak,v4recovery}
    touch /var/lib/nfs/{etab,rmtab}
    mount -t nfsd nfsd /proc/fs/nfsd
    mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs
    rpcbind -w
    nfsdcld
    exportfs -o "$options,fsid=0" '*:/export'
    exportfs -o "$options,fsid=7" '*:/export/moves'
    rpc.mountd
    # Linux 6.1 has no second listener for RDMA in another namespace, and its error path ends in an
    # oops (__svc_rdma_free): the other server speaks TCP alone.
    if [ "$n" = 2 ]; then rpc.nfsd -V 4.2 --rdma=20049 8; else rpc.nfsd -V 4.2 8; fi
    touch "/tmp/ready-$n"
    while read -r line <"/tmp/to-$n"; do
        eval "$line"
        touch "/tmp/done-$n"
    done
}
options=rw,no_root_squash,insecure,no_subtree_check
if [ "$1" = serve ]; then
    set -x
    serve "$2"
    exit
fi

# The same file system for both servers, which see these mounts; fsid= makes handles the same.
mkdir -p /export /mnt/moving /mnt/stays
mount -t tmpfs -o size=256m,mode=1777 export /export
mkdir /export/moves /export/stays
mount -t tmpfs -o size=256m,mode=1777 moves /export/moves
echo near >/export/stays/near
mkdir /export/moves/sub
echo deep >/export/moves/sub/deep
modprobe -a veth fuse nfsd rpcrdma

tell() {  # tell N COMMAND: runs it there
    rm -f "/tmp/done-$1"
    echo "$2" >"/tmp/to-$1"
    within 30 test -e "/tmp/done-$1"
}
within() {  # within SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || { echo "not within the time: $*"; return 1; }
        sleep 0.2
    done
}
send_away() {  # send_away FROM TO
    tell "$2" "exportfs -u '*:/export/moves'; exportfs -o $options,fsid=7 '*:/export/moves'; exportfs -f"
    # In one step: between two it would be no file system at all (ESTALE).
    tell "$1" "exportfs -o $options,fsid=7,refer=/moves@192.0.$2.2 '*:/export/moves'; exportfs -f"
}
moved_to() {
    ./nfs-rdma status --mount /mnt/moving --json | grep -q "\"source\":\"192.0.$1.2:/moves\""
}
mount_it() {  # mount_it PATH VERSION
    ./mount.nfs-rdma "192.0.2.2:$1" /mnt/moving -F -v -o "vers=$2,retry=0" >>daemon.log 2>&1 &
    daemon=$!
    within 60 mountpoint -q /mnt/moving
}
unmount_it() {
    umount /mnt/moving
    wait $daemon
}

if [ "$1" = linux ]; then
    # Linux's client goes to port 2049 of the other server, and so by TCP. By version 4.0 it shows the
    # stateids that it had, is told NFS4ERR_STALE_STATEID, renews its lease, and asks the same again,
    # without an end, of Linux's own server, too.
    modprobe -a nfsv4
    declare -A pid
    exports() {  # exports N MORE_OPTIONS: of what moves
        printf '%s\n' "/export/moves *($options${2-})" "/export/stays *($options)" >"exports$1"
    }
    send_to_3() {
        exports 2 ,refer=/export/moves@192.0.3.2
        kill -HUP "${pid[2]}"
    }
    back_to_2() {
        exports 2
        kill -HUP "${pid[2]}"
        within 30 grep -q -- "refer=.* -> -" server2.log
        : >server2.log
    }
    for n in 2 3; do
        network $n
        mkdir /tmp/state$n
        if [ $n = 3 ]; then cp /tmp/state2/handle-key /tmp/state3/; fi
        exports $n
        ip netns exec s$n ./nfs-rdmad --foreground --exports exports$n --listen 192.0.$n.2 \
            --state-dir /tmp/state$n --control /tmp/control$n >server$n.log 2>&1 &
        pid[$n]=$!
        within 60 grep -q ^ready server$n.log
    done
    # shellcheck disable=SC2317  # called by within
    known_to() {  # known_to N: to that server, with a file open
        ./nfs-rdma clients --server /tmp/control"$1" --json |
            python3 -c 'import json, sys; sys.exit(not any(c["opens"] for c in json.load(sys.stdin)["nfs4_clients"]))'
    }
    # shellcheck disable=SC2317  # the same
    is_client_of() {  # is_client_of N
        ./nfs-rdma clients --server /tmp/control"$1" --json |
            python3 -c 'import json, sys; sys.exit(not json.load(sys.stdin)["nfs4_clients"])'
    }
    for version in 4.2 4.1; do
        mount -t nfs -o vers=$version,proto=tcp 192.0.2.2:/export/moves /mnt/moving
        exec 7</mnt/moving/sub/deep
        rm -f stop
        python3 numbered_lines.py /mnt/moving/lines stop &
        writer=$!
        sleep 1
        send_to_3
        within 60 known_to 3
        sleep 1
        touch stop
        wait $writer
        cmp /mnt/moving/lines /export/moves/lines
        [ "$(cat <&7)" = deep ]
        exec 7<&-
        [ "$(cat /mnt/moving/sub/deep)" = deep ]
        umount /mnt/moving
        echo "ok $version: Linux's client goes from one of our servers to the other"
        back_to_2

        # SEQ4_STATUS_LEASE_MOVED: the next call about anything else tells of it. Linux's client goes
        # there at once, and opens there what it has open when that is used.
        mount -t nfs -o vers=$version,proto=tcp 192.0.2.2:/export/stays /mnt/stays
        mount -t nfs -o vers=$version,proto=tcp 192.0.2.2:/export/moves /mnt/moving
        exec 7</mnt/moving/sub/deep
        within 60 known_to 2
        if is_client_of 3; then exit 1; fi
        send_to_3
        within 30 grep -q -- "- -> refer=" server2.log
        touch /mnt/stays/another
        within 60 is_client_of 3
        [ "$(cat <&7)" = deep ]
        exec 7<&-
        umount /mnt/moving
        umount /mnt/stays
        echo "ok $version: and so it does with what is open and not used"
        back_to_2
    done
    exit
fi

server 2
server 3
from=2 to=3
for version in 4.2 4.1 4.0; do
    rm -f stop
    mount_it / $version
    ./nfs-rdma status --mount /mnt/moving | grep '^iwarp'
    numbers=$(stat -c %i /mnt/moving/moves/sub /mnt/moving/moves/sub/deep)
    exec 7</mnt/moving/moves/sub/deep
    python3 numbered_lines.py /mnt/moving/moves/lines stop &
    writer=$!
    url="nfs://192.0.$from.2/?vers=$version"
    rm -f /tmp/go
    mkfifo /tmp/go
    exec 8<>/tmp/go
    ./libnfsrdma_referrals --moves "${url/\/\?//moves?}" sub/deep sub/deep </tmp/go >moving.log 2>&1 &
    library=$!
    within 60 grep -q ready moving.log
    send_away $from $to
    within 60 moved_to $to
    echo go >&8
    wait $library
    exec 8<&-
    [ "$(stat -c %i /mnt/moving/moves/sub /mnt/moving/moves/sub/deep)" = "$numbers" ]
    [ "$(cat <&7)" = deep ]
    exec 7<&-
    sleep 1
    touch stop
    wait $writer
    cmp /mnt/moving/moves/lines /export/moves/lines
    [ "$(cat /mnt/moving/stays/near)" = near ]
    ./nfs-rdma cp -r "$url" /tmp/copied
    cmp /tmp/copied/moves/sub/deep /export/moves/sub/deep
    cmp /tmp/copied/moves/lines /export/moves/lines
    rm -r /tmp/copied
    echo "ok $version: the library goes along by name, and the tool copies what is behind the referral"
    echo "ok $version: open files are read and written on, with the numbers that they had"
    grep "has moved to 192.0.$to.2:/moves" daemon.log | tail -n 1
    rm /mnt/moving/moves/lines
    [ ! -e /export/moves/lines ]
    unmount_it
    echo "ok $version: the mount ends"
    send_away $to $from
    sleep 1
done

# What moves is what is mounted, and the server that it has left goes.
mount_it /moves 4.2
cd /mnt/moving/sub
rm -f /tmp/stop
python3 "$OLDPWD/numbered_lines.py" /mnt/moving/lines /tmp/stop &
writer=$!
cd "$OLDPWD"
sleep 1
send_away 2 3
within 60 moved_to 3
tell 2 'rpc.nfsd 0'
[ "$(cat /mnt/moving/sub/deep)" = deep ]
mkdir /mnt/moving/made
rmdir /mnt/moving/made
sleep 1
touch /tmp/stop
wait $writer
cmp /mnt/moving/lines /export/moves/lines
echo "ok the first server has gone, and nobody misses it"
# Open, or delegated.
states() { tell 3 "cat /proc/fs/nfsd/clients/*/states >/tmp/states-3 2>&1 || :" && grep -c 'type:' /tmp/states-3; }
exec 7</mnt/moving/sub/deep
[ "$(states)" -gt 0 ]
exec 7<&-
unmount_it
echo "ok that mount ends"
[ "$(states)" = 0 ]
echo "ok nothing is left open there"
