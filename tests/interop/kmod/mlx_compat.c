// SPDX-License-Identifier: GPL-2.0
/*
 * Has the name of the module that a vendor's RDMA stack is known by while it is loaded. GPL-2.0
 * because it becomes part of the kernel.
 */
#include <linux/module.h>

MODULE_DESCRIPTION("a name, for tests");
MODULE_LICENSE("GPL");
