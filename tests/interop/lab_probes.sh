#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lab_probes.sh: the probes (USDT) of nfs-rdmad, traced by bpftrace in a guest while Linux's client reads and
# writes over RDMA (siw): each fires, their arguments name the same calls, and the line of nfs-rdmad(8) works.
#
#   tests/interop/lab_probes.sh [--keep DIR]
#
#   --keep DIR   leave the logs in DIR
# shellcheck source=lab_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lab_common.sh"

lab_options '' "$@"
have bpftrace || need_deps test
stage "$bin/nfs-rdmad" "$bin/nfs-rdma" "$(command -v bpftrace)"
# What the manual page tells people to type.
sed -n "s/^\.Dl bpftrace -e '\(.*\)'$/\1/p" "$root/man/nfs-rdmad.8" >"$stage/line"
[[ -s $stage/line ]] || die "nfs-rdmad(8) has no example for bpftrace"

step "bpftrace at nfs-rdmad, Linux's client over siw"
# shellcheck disable=SC2016  # runs in the guest
script='
trap '\''dmesg | tail -n 60 >dmesg.log'\'' EXIT
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
rig pair none
modprobe -a siw
rdma link add siw_vc type siw netdev vc
install -D nfs-rdmad /usr/sbin/nfs-rdmad
mkdir -p /srv/data /mnt/a
mount -t tmpfs -o size=256m,mode=1777 export /srv/data
ip netns exec srv /usr/sbin/nfs-rdmad --foreground -e /srv/data:rw,no_root_squash,insecure,fsid=7 --listen 192.0.2.2 \
    --state-dir /tmp/state --control /tmp/control >ready 2>server.log &
until grep -q "^ready" ready; do sleep 0.2; done
pid=$(pgrep -x nfs-rdmad)
echo "server: $pid"
cat >probes.bt <<"END"
usdt:/usr/sbin/nfs-rdmad:nfs_rdma:call_start { printf("start %d %x %d %d %d\n", arg0, arg1, arg2, arg3, arg4); }
usdt:/usr/sbin/nfs-rdmad:nfs_rdma:run_start { printf("run %d %x %d\n", arg0, arg1, arg2); }
usdt:/usr/sbin/nfs-rdmad:nfs_rdma:run_end { printf("ran %d %x %d\n", arg0, arg1, arg2); }
usdt:/usr/sbin/nfs-rdmad:nfs_rdma:commit_end { printf("commit %d %x %d\n", arg0, arg1, arg2); }
usdt:/usr/sbin/nfs-rdmad:nfs_rdma:call_end { printf("end %d %x %d %lu\n", arg0, arg1, arg2, arg3); }
END
work() {
    rig mount 3 192.0.2.2 /srv/data /mnt/a "nolock,mountport=2049,mountproto=tcp,$1"
    head -c 300000 /dev/urandom >/mnt/a/file
    sync /mnt/a/file
    echo 3 >/proc/sys/vm/drop_caches # so that it is read from the server
    cp /mnt/a/file /mnt/a/copy
    umount /mnt/a
}
traced() { # OUTPUT ARGUMENTS...: bpftrace while work is done
    local output=$1 tracer
    shift
    ./bpftrace -B line "$@" >"$output" 2>bpftrace.log &
    tracer=$!
    for ((i = 0; i < 600; i++)); do
        if grep -q "^Attaching" "$output"; then break; fi
        kill -0 $tracer || { cat bpftrace.log; return 1; }
        sleep 0.2
    done
    sleep 5 # attached to all of them
    work "timeo=600"
    kill -INT $tracer
    wait $tracer || :
}
traced probes.log -p "$pid" probes.bt
echo "lines: $(wc -l <probes.log)"
traced line.log -p "$pid" -e "$(cat line)"
cat line.log
'
in_guest 400 "$script" -m 3072 >"$stage/guest.log" 2>&1 || failed "in the guest"
keep_logs

# Of each call: its start, run, and end; of the COMMIT and the WRITEs that are stable, the disk's answer.
awk '
    $1 == "start" && $4 == 100003 { start[$2 " " $3] = $6; calls[$6]++ }
    $1 == "run" { run[$2 " " $3]++ }
    $1 == "ran" { ran[$2 " " $3]++ }
    $1 == "commit" { commits++; if ($4 != 0) bad = bad "\nerrno " $4 }
    $1 == "end" && ($2 " " $3 in start) { ended++; if ($4 != 0) failed++; if ($5 <= 0 || $5 > 6e10) bad = bad "\ntook " $5 " ns" }
    END {
        for (call in start) {
            n++
            if (!(call in run)) bad = bad "\n" call " did not run"
            if (!(call in ran)) bad = bad "\n" call " did not end to run"
        }
        printf "%d calls, %d ended, %d READ, %d WRITE, %d COMMIT; waits for stable storage: %d\n", n, ended, calls[6], calls[7], calls[21], commits
        if (n < 10 || ended != n || !calls[6] || !calls[7] || !commits) bad = bad "\ntoo few"
        if (bad != "") { print "wrong:" bad; exit 1 }
    }' "$stage/probes.log" || failed "what the probes say does not fit together"
if ! grep -q '^@us' "$stage/line.log" || ! grep -q '^\[.*|@* *|' "$stage/line.log"; then
    failed "the line of nfs-rdmad(8) shows no histogram"
fi
good "probes: ok"
