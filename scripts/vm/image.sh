# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# image.sh: where the guest's image is and whether it can be used. Sourced by lab, prepare and the
# cases in tests/interop.
LAB_DIR=${LAB_DIR:-${TMPDIR:-/tmp}/nfs-rdma-vm-$UID}
export LAB_DIR

# An image in a place that anybody can write to is taken only when it is one's own.
image_is_usable() { [[ -s $LAB_DIR/stamp && -s $LAB_DIR/root.img && -O $LAB_DIR ]]; }
have_tools() {
    command -v qemu-system-x86_64 >/dev/null && command -v cpio >/dev/null && command -v setpriv >/dev/null
}
