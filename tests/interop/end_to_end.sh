#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# end_to_end.sh: server, mount and tool on loopback, with real programs: workloads, kill -9, power loss, bytes on
# the wire.
#
#   tests/interop/end_to_end.sh [--seed N] [--no-build] [--list] [WORD...]
#
#   --seed N     of what happens by chance (1)
#   --no-build   use what is built already; else scripts/quickstart builds the programs
#   --list       print the cases, run none
#   WORD...      only the cases with one of these words in their line
#
# NFSRDMA_BIN: where the programs are (build/release/bin; the quickstart always takes those). Needs root, /dev/fuse
# and the packages of scripts/install-deps; what cannot run says why and counts as failed. Takes fifteen minutes on
# two cores; the cases that mostly wait run beside the others. The last line is "N passed, N failed"; exit status 0
# when none failed.
# shellcheck source=../../scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
cd "$root"

seed=1 build=1 list='' words=()
while (($#)); do
    case $1 in
        --seed) need_value "$@"; seed=$2; shift ;;
        --no-build) build= ;;
        --list) list=1 ;;
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
    "$tests/fuse_basic.sh $bin tcp shards=1,vers=3"
    "$tests/fuse_basic.sh $bin iwarp shards=3,vers=4.2"
    "$tests/fuse_acl.sh $bin iwarp"
    "$tests/versions.sh $bin"
    "$tests/fuse_delegations.sh $bin iwarp shards=2,vers=4.2"
    "$tests/fuse_close_to_open.sh $bin iwarp shards=2"
    "$tests/fuse_referral.sh $bin iwarp shards=2,vers=4.2"
    "$tests/fuse_referral.sh $bin tcp shards=1,vers=4.1"
    "$tests/fuse_migration.sh $bin iwarp shards=2,vers=4.2"
    "$tests/fuse_migration.sh $bin tcp shards=1,vers=4.0"
    "$tests/fuse_trunking.sh $bin iwarp shards=2"
    "env MOUNT_OPTIONS=$by_iwarp,shards=1,vers=3 $tests/workloads.sh --small --kills 4 --seed $seed"
    "env MOUNT_OPTIONS=$by_iwarp,shards=3,vers=4.2 $tests/workloads.sh --small --kills 4 --seed $seed --uid 1000"
    "$tests/power_loss.sh --rounds 2 --seed $seed"
    "$tests/observe.sh $bin"
    "$tests/capture.sh"
    "$tests/doctor.sh"
    "$tests/service_user.sh $bin"
    "$tests/idle_connections.sh $bin"
)
# These wait for most of their time, for leases and times of grace to be over: they run beside the others.
waiting=(
    "$tests/fuse_locks.sh $bin iwarp shards=2,vers=3"
    "$tests/fuse_locks.sh $bin iwarp shards=2,vers=4.2"
)
wanted() { # CASE
    local word
    ((${#words[@]})) || return 0
    for word in "${words[@]}"; do [[ $1 != *"$word"* ]] || return 0; done
    return 1
}

trap 'exit 130' INT  # else the next case would begin
number=0
for case in "${cases[@]}" "${waiting[@]}"; do
    wanted "$case" || continue
    number=$((number + 1))
    if [[ -n $list ]]; then echo "$case"; fi
done
((number)) || usage_error "no case has '${words[*]}' (--list names them)"
[[ -z $list ]] || exit 0

# run_wanted CASE...: and what failed of them.
run_wanted() {
    local case
    for case; do
        wanted "$case" || continue
        # shellcheck disable=SC2086  # words
        run_case 360 $case
    done
}
run_wanted "${cases[0]}"  # which may build what the others need
beside=$(mktemp -d /tmp/nfs-rdma-end-to-end.XXXXXX)
trap 'rm -rf "$beside"' EXIT
(
    trap - EXIT
    # shellcheck disable=SC2030  # its own, which the lines below hand over
    failed_cases=()
    run_wanted "${waiting[@]}"
    for ((i = 1; i <= ${#failed_cases[@]}; ++i)); do
        mv "$root/build/ci/case.$BASHPID.failed.$i" "$beside/failed.$i"
        echo "${failed_cases[i - 1]}"
    done >"$beside/failed"
) >"$beside/log" 2>&1 &
others=$!
run_wanted "${cases[@]:1}"
wait "$others" || :
cat "$beside/log"
if [[ ! -e $beside/failed ]]; then
    # shellcheck disable=SC2031
    failed_cases+=("what runs beside the others came to no end")
    cp "$beside/log" "$root/build/ci/case.$BASHPID.failed.${#failed_cases[@]}"
    : >"$beside/failed"
fi
i=0
while IFS= read -r line; do
    failed_cases+=("$line")
    i=$((i + 1))
    mv "$beside/failed.$i" "$root/build/ci/case.$BASHPID.failed.${#failed_cases[@]}"
done <"$beside/failed"
if ((${#failed_cases[@]})); then echo "--- what failed ---"; fi
end_cases || :
echo "$((number - ${#failed_cases[@]})) passed, ${#failed_cases[@]} failed"
exit $((${#failed_cases[@]} > 0))
