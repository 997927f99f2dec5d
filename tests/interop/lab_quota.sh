# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lab_quota.sh: runs in the guest. make_quotas DEVICE DIR: an ext4 with quotas for users, groups and
# projects, and somebody beyond his soft limit. check_quotas HOST DIR PORT OTHER: what RQUOTA says of it over
# TCP (port 0: by way of rpcbind), and of OTHER, an export without quotas. check_quota_program DIR: what
# quota(1) says, which asks over UDP, of a mount of what make_quotas made.
make_quotas() {
    mkfs.ext4 -q -b 4096 -O quota,project -E quotatype=usrquota:grpquota:prjquota "$1"
    mkdir -p "$2"
    mount -o usrquota,grpquota,prjquota "$1" "$2"
    mkdir -m 777 "$2/share"
    ./setquota -u 1234 100 2000 10 20 "$2"
    ./setquota -g 55 300 400 0 0 "$2"
    # 4 PiB of blocks do not fit into 32 bits of KiB.
    ./setquota -u 1235 1 4398046511104 0 0 "$2"
    setpriv --reuid=1234 --regid=55 --clear-groups dd if=/dev/zero of="$2/share/file" bs=1k count=150 \
        conv=fsync status=none
}

# ask PORT HOST:PATH UID GID ID KIND: blocks, soft, hard, "time" or 0, files, soft, hard, "time" or 0; or "error"
# and what it says.
ask() {
    perl -I/host/perl -MQuota -e '
        my ($port, $place, $uid, $gid, $id, $kind) = @ARGV;
        Quota::rpcpeer($port, 1, 10000);
        Quota::rpcauth($uid, $gid, "guest");
        my @is = Quota::query($place, $id, $kind);
        if (@is) {
            for my $n (3, 7) {
                my $left = $is[$n] - time;
                $is[$n] = "time" if $is[$n] && $left > 6 * 86400 && $left < 8 * 86400;
            }
            print "@is\n";
        } else {
            print "error ", Quota::strerr(), "\n";
        }' "$@"
}
# told WHAT ASK_ARGUMENTS...
told() {
    local want=$1 got
    shift
    got=$(ask "$port" "$@")
    [[ $got == "$want" ]] && return
    echo "RQUOTA $*: '$got' instead of '$want'"
    return 1
}
check_quotas() {
    local user=0 group=1 here=$1:$2 port=$3 other=$4
    told "152 100 2000 time 1 10 20 0" "$here" 1234 55 1234 $user
    told "152 100 2000 time 1 10 20 0" "$here/share" 0 0 1234 $user
    told "152 300 400 0 1 0 0 0" "$here" 1234 55 55 $group
    told "0 2048 4398046511104 0 0 0 0 0" "$here" 1235 55 1235 $user
    # root has no limits, and what mkfs made.
    [[ $(ask "$port" "$here" 0 0 0 $user) =~ ^[0-9]+\ 0\ 0\ 0\ [0-9]+\ 0\ 0\ 0$ ]]
    told "error Not privileged" "$here" 1234 55 1235 $user
    told "error Not privileged" "$here" 1234 56 55 $group
    told "error Not privileged" "$1:/" 0 0 1234 $user
    told "error Quotas not enabled, no quota for this user" "$1:$other" 1234 55 1234 $user
}
check_quota_program() {
    local said limits
    said=$(setpriv --reuid=1234 --regid=55 --clear-groups ./quota -uvwf "$1") || :
    limits='152\* +100 +2000 +[67]days +1 +10 +20'
    [[ $said =~ $limits ]] || { echo "quota -u: $said"; return 1; }
    said=$(setpriv --reuid=1234 --regid=55 --groups=55 ./quota -gvwf "$1") || :
    limits='152 +300 +400 +1 +0 +0'
    [[ $said =~ $limits ]] || { echo "quota -g: $said"; return 1; }
    said=$(./quota -uvw 1235) || :  # of all that is mounted
    limits='0 +2048 +4398046511104 +0 +0 +0'
    [[ $said =~ $limits ]] || { echo "quota of another: $said"; return 1; }
}
