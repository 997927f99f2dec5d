// SPDX-License-Identifier: GPL-2.0
/*
 * An rpcrdma.ko as vendors' driver packages have it where they are installed without NFS: it takes
 * the kernel's place and gives it no transport. GPL-2.0 because it becomes part of the kernel.
 */
#include <linux/module.h>

MODULE_DESCRIPTION("rpcrdma that does nothing, for tests");
MODULE_LICENSE("GPL");
