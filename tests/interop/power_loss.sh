#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# power_loss.sh [--rounds N] [--seed S]    what was acknowledged as stable survives power loss
#
# The export is a loop ext4. While a writer on the FUSE mount works (write + fsync, and, since the
# export is `sync`, mkdir, create, rename, link, symlink and unlink) and notes what was acknowledged
# in a journal outside of the export, the file system is shut down without flushing its log
# (EXT4_IOC_SHUTDOWN, NOLOGFLUSH), as on power loss, and mounted again. Everything in the journal
# must be there. Needs root and loop devices.
set -euo pipefail
rounds=5 seed=1
while (($#)); do
    case $1 in
        --rounds) rounds=$2; shift ;;
        --seed) seed=$2; shift ;;
        *) echo "usage: power_loss.sh [--rounds N] [--seed S]" >&2; exit 2 ;;
    esac
    shift
done
disk=$(mktemp -d "${TMPDIR:-/tmp}/nfs-rdma-power.XXXXXX")
# Every mount is killed: a server of version 4 would wait for each to reclaim.
export MOUNT_OPTIONS=${MOUNT_OPTIONS:-fabric=iwarp,proto=rdma,vers=3}
export EXPORT_DIR=$disk/fs EXPORT_OPTIONS=rw,no_root_squash,insecure,sync
# shellcheck source=tests/interop/mount_lib.sh
. "$(dirname "$(readlink -f "$0")")/mount_lib.sh"
extra_cleanup() {
    umount "$EXPORT_DIR" 2>/dev/null || umount -l "$EXPORT_DIR" 2>/dev/null || :
    rm -rf "$disk"
}
truncate -s 512M "$disk/image"
mkfs.ext4 -q "$disk/image"
mount -o loop "$disk/image" "$EXPORT_DIR" || fail "cannot mount a loop file system here"

RANDOM=$seed
for ((round = 1; round <= rounds; round++)); do
    start_server
    mount_it
    mkdir -p "$mnt/round$round"
    python3 "$here/tests/interop/power_loss_writer.py" "$mnt/round$round" "$work/journal$round" "$seed$round" &
    writer=$!
    sleep "$((RANDOM % 3)).$((RANDOM % 900 + 100))"
    # Power fails for processor and disk at once: the server stops, with whatever it has not sent yet,
    # and nothing reaches the disk any more. One that went on would hear from the kernel that an fsync
    # was good which the shutdown had cut: jbd2 takes a commit that was aborted for a finished one.
    python3 - "$EXPORT_DIR" "$server_pid" <<'PY'
import fcntl, os, signal, struct, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.kill(int(sys.argv[2]), signal.SIGSTOP)
fcntl.ioctl(fd, 0x8004587D, struct.pack("I", 2))  # EXT4_IOC_SHUTDOWN, NOLOGFLUSH
PY
    kill_server_hard
    kill -9 "$writer" 2>/dev/null || :
    # The writer may sit in a call on the hard mount: the mount goes, then it ends.
    pkill -9 -f "mount.nfs-rdma .*$work" || :
    umount -l "$mnt" 2>/dev/null || :
    wait "$writer" 2>/dev/null || :
    for ((i = 0; i < 100; i++)); do
        umount "$EXPORT_DIR" 2>/dev/null && break
        sleep 0.1
    done
    # A mount namespace that was made meanwhile has it mounted, too: it would be the same one again,
    # shut down as it is.
    for ((i = 0; i < 100; i++)); do
        [[ -z $(losetup -j "$disk/image") ]] && break
        sleep 0.1
    done
    ((i < 100)) || fail "somebody else has the file system mounted"
    mount -o loop "$disk/image" "$EXPORT_DIR" || fail "the file system does not come back"
    python3 "$here/tests/interop/power_loss_check.py" "$EXPORT_DIR/round$round" "$work/journal$round" ||
        fail "round $round (seed $seed): acknowledged changes are lost"
done
echo "power loss: $rounds rounds passed"
