#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lab_migration.sh: a file system moves from one of the kernel's NFS servers to another while our
# FUSE mount uses it, in one guest: two knfsd, each in a network namespace of its own, that export
# the same file system, one on siw and one by TCP; our client in the first namespace, by user-space
# iWARP and by TCP. What is open is read and written on, the library goes along by name, and the
# first server is stopped. And the other way round: Linux's client goes from one of our servers to another, in a second guest.
#
#   tests/interop/lab_migration.sh [--keep DIR]
#
#   --keep DIR   leave logs in DIR
# shellcheck source=lab_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lab_common.sh"

lab_options '' "$@"
stage "$bin/nfs-rdma" "$bin/mount.nfs-rdma" "$bin/nfs-rdmad" "$bin/libnfsrdma_referrals"
cp "$root"/tests/interop/{lab_migration_guest.sh,numbered_lines.py} "$stage/"

step "a file system moves from one knfsd to another under our FUSE mount"
in_guest "${LAB_LIMIT:-240}" "bash ./lab_migration_guest.sh knfsd" >"$stage/guest.log" 2>&1 ||
    failed "the guest's part failed ($?)"
grep '^ok ' "$stage/guest.log" | while read -r line; do note "$line"; done
[[ $(grep -c '^ok ' "$stage/guest.log") == 12 ]] || failed "not all steps were run"
step "a file system moves from one of our servers to another under Linux's client"
in_guest "${LAB_LIMIT:-240}" "bash ./lab_migration_guest.sh linux" >"$stage/guest.log" 2>&1 ||
    failed "the guest's part failed ($?)"
grep '^ok ' "$stage/guest.log" | while read -r line; do note "$line"; done
[[ $(grep -c '^ok ' "$stage/guest.log") == 4 ]] || failed "not all steps were run"
keep_logs
good "migration between two of Linux's servers, and between two of ours: ok"
