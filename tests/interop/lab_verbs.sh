#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lab_verbs.sh: the seam's contract tests on real verbs devices of a Linux kernel: rxe (RoCE) and
# siw (iWARP), each in a guest of its own.
#
#   tests/interop/lab_verbs.sh [rxe|siw]... [-- GTEST_OPTION...]
# shellcheck source=lab_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lab_common.sh"

drivers=()
while (($#)) && [[ $1 != -- ]]; do
    [[ $1 =~ ^(rxe|siw)$ ]] || usage_error "unknown driver '$1'"
    drivers+=("$1")
    shift
done
[[ ${1:-} != -- ]] || shift
((${#drivers[@]})) || drivers=(rxe siw)

stage "$bin/verbs_contract_test"
bad=0
for driver in "${drivers[@]}"; do
    step "verbs contract on $driver"
    # 10.0.2.15 is the guest's eth0; lo has no RDMA device.
    in_guest "${LAB_LIMIT:-90}" "
rig $driver eth0
rdma link
ulimit -l unlimited
NFSRDMA_VERBS_ADDR=10.0.2.15 ./verbs_contract_test --gtest_brief=1 $*" >"$stage/$driver.log" 2>&1 || {
        status=$?
        grep -vE '^\[       OK' "$stage/$driver.log" | tail -n 60 >&2
        fail "$driver: failed ($status)"
        bad=1
        continue
    }
    good "$driver: $(grep -oE '[0-9]+ tests? ran.*|PASSED.*[0-9]+ tests?' "$stage/$driver.log" | tr '\n' ' ')"
done
exit "$bad"
