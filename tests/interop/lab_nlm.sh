#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lab_nlm.sh: locks of NFSv3 by Linux's own clients in one guest: the server in namespace srv, one
# host that mounts over RDMA and one in namespace c2 over TCP, each with its own rpcbind, status
# monitor and name. Locks in the manner of the Connectathon tests, with locks of NFSv4 and of the server's own
# processes in between; a restart of the server with its locks reclaimed; a restart of a client.
#
#   tests/interop/lab_nlm.sh [--knfsd] [--keep DIR]
#
#   --knfsd      the kernel's own server instead of ours: proves that the cases themselves are right
#   --keep DIR   leave logs and the capture in DIR
# shellcheck source=lab_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lab_common.sh"

lab_options knfsd "$@"
stage "$bin/nfs-rdmad" "$bin/nfs-rdma"
cp "$root/tests/interop/nlm_locks.py" "$root/tests/interop/lab_nlm_guest.sh" "$stage/"

step "locks of NFSv3 by the kernel's clients against $server"
in_guest 600 ". ./lab_nlm_guest.sh $server" >"$stage/guest.log" 2>&1 ||
    failed "locks of NFSv3 against $server failed"
grep -v '^rig:' "$stage/guest.log"
keep_logs
good "locks of NFSv3 by the kernel's clients against $server"
