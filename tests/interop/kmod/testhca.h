/* SPDX-License-Identifier: GPL-2.0 */
/*
 * testhca: RDMA adapters that are not there, for tests of `nfs-rdma doctor` in the lab's guest. It
 * is GPL-2.0, other than the rest of this project, because it links with the kernel, whose RDMA
 * core gives its symbols to GPL modules only. Nothing else here links with it or is made from it.
 *
 * An adapter sits on a PCI function that QEMU provides (pci-testdev). It registers with the
 * kernel's RDMA core, so that all files in /sys are the kernel's own. Of what an adapter does,
 * there is as much as ib_core, ib_mad, ib_ipoib, rdma_cm and a subnet manager in user space ask
 * for:
 *
 *   - an InfiniBand adapter has two ports with a cable from one to the other. Management datagrams
 * and unreliable datagrams arrive, connected queue pairs stay silent;
 *   - its ports are in INIT until a subnet manager configures them (smp.c);
 *   - a RoCE adapter has one port and an Ethernet interface of its own, whose frames nobody
 * receives (network.c). What it sends by RDMA is lost, too.
 *
 * One lock for all that an adapter has. Completion handlers are called without it.
 */
#ifndef TESTHCA_H
#define TESTHCA_H

#include <linux/netdevice.h>
#include <linux/pci.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_smi.h>
#include <rdma/ib_verbs.h>

enum kind { KIND_INFINIBAND, KIND_ROCE_V1, KIND_ROCE };

enum {
  MOST_PORTS = 2,
  MOST_SGE = 32,
  LAST_QP = 0xffffff,
  DEFAULT_PKEY = 0xffff,
  PERMISSIVE_LID = 0xffff,
  GRH_BYTES = 40,
};

struct port {
  enum ib_port_state state;
  enum ib_port_phys_state physical;
  __be64 guid;
  __be64 prefix;
  u16 lid, sm_lid;
  u8 sm_sl, lmc, subnet_timeout;
  u32 capabilities; /* of PortInfo */
};

struct hca {
  struct ib_device ib; /* first: ib_alloc_device() demands it */
  enum kind kind;
  struct net_device* network; /* of RoCE */
  spinlock_t lock;
  struct list_head queue_pairs;
  u32 next_qp;
  struct port ports[MOST_PORTS];
};

static inline struct hca* to_hca(struct ib_device* device) {
  return container_of(device, struct hca, ib);
}

static inline bool is_roce(const struct hca* hca) {
  return hca->kind != KIND_INFINIBAND;
}

/* Caller holds no lock. */
void hca_event(struct hca* hca, u32 port, enum ib_event_type event);

/* verbs.c */
extern const struct ib_device_ops testhca_verbs;

/* smp.c: answers of the subnet management agent */
int testhca_process_mad(struct ib_device* device, int flags, u32 port, const struct ib_wc* wc,
                        const struct ib_grh* grh, const struct ib_mad* in, struct ib_mad* out,
                        size_t* out_bytes, u16* out_pkey_index);

/* network.c */
struct net_device* testhca_network(struct hca* hca, struct pci_dev* pci);

#endif
