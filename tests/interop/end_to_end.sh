#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# end_to_end.sh: server, mount and tool on loopback, with real programs: workloads, kill -9, power loss, bytes on
# the wire.
#
#   tests/interop/end_to_end.sh [--seed N] [--no-build] [--list] [--beside] [WORD...]
#
#   --seed N     of what happens by chance (1)
#   --no-build   use what is built already; else scripts/quickstart builds the programs
#   --list       print the cases, run none
#   --beside     only the cases that otherwise run beside others
#   WORD...      only the cases with one of these words in their line
#
# NFSRDMA_BIN: where the programs are (build/release/bin; the quickstart always takes those). Needs root, /dev/fuse
# and the packages of scripts/install-deps; what cannot run says why and counts as failed. Takes eleven minutes on
# two cores. The last line is "N passed, N failed"; exit status 0 when none failed.
# shellcheck source=../../scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
cd "$root"

seed=1 build=1 list='' only_beside='' words=()
while (($#)); do
    case $1 in
        --seed) need_value "$@"; seed=$2; shift ;;
        --no-build) build= ;;
        --list) list=1 ;;
        --beside) only_beside=1 ;;
        -h | --help) show_help; exit 0 ;;
        -*) usage_error "unknown option '$1'" ;;
        *) words+=("$1") ;;
    esac
    shift
done
[[ $seed =~ ^[0-9]+$ ]] || usage_error "--seed needs a number"

if [[ -n $build ]]; then quick=; else quick=" --no-build"; fi
bin=${NFSRDMA_BIN:-build/release/bin}
by_iwarp=fabric=iwarp,proto=rdma
tests=tests/interop
cases=(
    "scripts/quickstart --check$quick"
    "$tests/wire_count_test.py"
    "$tests/wire_bytes.sh 24"
    "$tests/workloads.sh --small --wire copy"
    "$tests/fuse_basic.sh $bin iwarp shards=3,vers=3"
    "$tests/fuse_basic.sh $bin iwarp shards=3,vers=4.2"
    "$tests/fuse_acl.sh $bin iwarp"
    "$tests/fuse_delegations.sh $bin iwarp shards=2,vers=4.2"
    "$tests/fuse_trunking.sh $bin iwarp shards=2"
    "env MOUNT_OPTIONS=$by_iwarp,shards=1,vers=3 $tests/workloads.sh --small --kills 4 --seed $seed"
    "env MOUNT_OPTIONS=$by_iwarp,shards=3,vers=4.2 $tests/workloads.sh --small --kills 4 --seed $seed --uid 1000"
    "$tests/power_loss.sh --rounds 2 --seed $seed"
)
# These run beside those, in a run of their own; the first two mostly wait, for leases and times of grace to be over.
beside=(
    "$tests/fuse_locks.sh $bin iwarp shards=2,vers=3"
    "$tests/fuse_locks.sh $bin iwarp shards=2,vers=4.2"
    "$tests/fuse_basic.sh $bin tcp shards=1,vers=3"
    "$tests/fuse_close_to_open.sh $bin iwarp shards=2"
    "$tests/fuse_referral.sh $bin iwarp shards=2,vers=4.2"
    "$tests/fuse_referral.sh $bin tcp shards=1,vers=4.1"
    "$tests/fuse_migration.sh $bin iwarp shards=2,vers=4.2"
    "$tests/fuse_migration.sh $bin tcp shards=1,vers=4.0"
    "$tests/versions.sh $bin"
)
# And these behind both: they look at what runs on this machine, or at what it has left.
alone=(
    "$tests/observe.sh $bin"
    "$tests/capture.sh"
    "$tests/doctor.sh"
    "$tests/service_user.sh $bin"
    "$tests/idle_connections.sh $bin"
)
wanted() { # CASE
    local word
    ((${#words[@]})) || return 0
    for word in "${words[@]}"; do [[ $1 != *"$word"* ]] || return 0; done
    return 1
}

if [[ -n $only_beside ]]; then cases=("${beside[@]}") beside=() alone=(); fi
# count_wanted CASE...: how many are; --list prints them.
count_wanted() {
    local case
    wanted_cases=0
    for case; do
        wanted "$case" || continue
        wanted_cases=$((wanted_cases + 1))
        if [[ -n $list ]]; then echo "$case"; fi
    done
}
run_wanted() { # CASE...
    local case
    for case; do
        wanted "$case" || continue
        # shellcheck disable=SC2086  # words
        run_case 360 $case
    done
}
count_wanted "${cases[@]}" "${alone[@]}"
number=$wanted_cases
count_wanted "${beside[@]}"
number_beside=$wanted_cases
((number + number_beside)) || usage_error "no case has '${words[*]}' (--list names them)"
[[ -z $list ]] || exit 0

trap 'exit 130' INT  # else the next case would begin
run_wanted "${cases[0]}"  # which may build what the others need
log=build/ci/beside.$$.log
other=
if ((number_beside)); then
    mkdir -p build/ci
    "$tests/end_to_end.sh" --no-build --beside --seed "$seed" "${words[@]}" >"$log" 2>&1 &
    other=$!
    trap 'kill "$other" 2>/dev/null || :; rm -f "$log"' EXIT
fi
run_wanted "${cases[@]:1}"
if [[ -n $other ]]; then
    wait "$other" || :
    trap 'rm -f "$log"' EXIT
fi
run_wanted "${alone[@]}"
failed=${#failed_cases[@]}
if [[ -n $other ]]; then
    # What came to no end has failed.
    failed_beside=$(sed -n '$s/^[0-9]* passed, \([0-9]*\) failed$/\1/p' "$log")
    failed=$((failed + ${failed_beside:-number_beside}))
    # In front, where all of it is well: the last lines are for what failed.
    cat "$log"
fi
if ((${#failed_cases[@]})); then echo "--- what failed ---"; fi
end_cases || :
echo "$((number + number_beside - failed)) passed, $failed failed"
exit $((failed > 0))
