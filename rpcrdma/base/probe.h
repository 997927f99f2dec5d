// SPDX-License-Identifier: Apache-2.0
// NFSRDMA_PROBE(name, args...): a USDT probe of provider "nfs_rdma", a no-operation in the code
// until somebody attaches to it (bpftrace, perf, systemtap). nfs-rdmad(8) has the list and their
// arguments, which are numbers.
#pragma once

#define SDT_USE_VARIADIC
#include <sys/sdt.h>

#define NFSRDMA_PROBE(name, ...) STAP_PROBEV(nfs_rdma, name, __VA_ARGS__)
