// SPDX-License-Identifier: GPL-2.0
/*
 * The adapters: which PCI functions become which kind, what they say of themselves, and the cable.
 *
 *   kinds=ib,roce1,roce,none
 *              of the functions in the order in which the kernel finds them: InfiniBand, RoCE
 * version 1 only, RoCE versions 1 and 2; "none" and those beyond the list are left alone cable=0
 * takes the InfiniBand cables out, 1 puts them in again (while loaded, too)
 */
#include <linux/etherdevice.h>
#include <linux/module.h>

#include "testhca.h"

enum { MOST_ADAPTERS = 8 };

static char* kinds[MOST_ADAPTERS];
static int kind_count;
module_param_array(kinds, charp, &kind_count, 0444);

static bool cable = true;
static struct hca* adapters[MOST_ADAPTERS];
static int seen; /* functions, so far */
static DEFINE_MUTEX(adapters_mutex);

void hca_event(struct hca* hca, u32 port, enum ib_event_type event) {
  struct ib_event said = {
      .device = &hca->ib,
      .element.port_num = port,
      .event = event,
  };

  ib_dispatch_event(&said);
}

static void plug(struct hca* hca, bool in) {
  unsigned long flags;
  u32 i;

  for (i = 0; i < hca->ib.phys_port_cnt; ++i) {
    struct port* port = &hca->ports[i];

    spin_lock_irqsave(&hca->lock, flags);
    port->state = in ? IB_PORT_INIT : IB_PORT_DOWN;
    port->physical = in ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_POLLING;
    spin_unlock_irqrestore(&hca->lock, flags);
  }
}

static int set_cable(const char* text, const struct kernel_param* parameter) {
  int err, i;
  u32 port;

  mutex_lock(&adapters_mutex);
  err = param_set_bool(text, parameter);
  for (i = 0; !err && i < MOST_ADAPTERS; ++i) {
    if (!adapters[i] || is_roce(adapters[i])) continue;
    plug(adapters[i], cable);
    rdma_for_each_port(&adapters[i]->ib, port) hca_event(adapters[i], port, IB_EVENT_PORT_ERR);
  }
  mutex_unlock(&adapters_mutex);
  return err;
}

static const struct kernel_param_ops cable_ops = {
    .set = set_cable,
    .get = param_get_bool,
};
module_param_cb(cable, &cable_ops, &cable, 0644);

static int kind_of(const char* name) {
  if (!strcmp(name, "ib")) return KIND_INFINIBAND;
  if (!strcmp(name, "roce1")) return KIND_ROCE_V1;
  if (!strcmp(name, "none")) return -ENODEV;
  return strcmp(name, "roce") ? -EINVAL : KIND_ROCE;
}

static void name_ports(struct hca* hca, int index) {
  int i;

  /* 02: a locally administered identifier. */
  hca->ib.node_guid = cpu_to_be64(0x0200000000000000ull + ((u64)(index + 1) << 16));
  for (i = 0; i < MOST_PORTS; ++i) {
    hca->ports[i].guid = cpu_to_be64(be64_to_cpu(hca->ib.node_guid) + i + 1);
    hca->ports[i].prefix = cpu_to_be64(0xfe80000000000000ull);
  }
  snprintf(hca->ib.node_desc, sizeof(hca->ib.node_desc), "test adapter %d", index);
}

static int probe(struct pci_dev* pci, const struct pci_device_id* id) {
  struct net_device* network = NULL;
  struct hca* hca;
  int index, kind, err;

  mutex_lock(&adapters_mutex);
  index = seen++;
  err = kind = index < kind_count ? kind_of(kinds[index]) : -ENODEV;
  if (err < 0) goto unlock;
  err = -ENOMEM;
  hca = ib_alloc_device(hca, ib);
  if (!hca) goto unlock;
  hca->kind = kind;
  spin_lock_init(&hca->lock);
  INIT_LIST_HEAD(&hca->queue_pairs);
  hca->next_qp = 2; /* behind those of management */
  name_ports(hca, index);
  hca->ib.node_type = RDMA_NODE_IB_CA;
  hca->ib.phys_port_cnt = is_roce(hca) ? 1 : MOST_PORTS;
  hca->ib.num_comp_vectors = 1;
  hca->ib.local_dma_lkey = 1;
  hca->ib.dev.parent = &pci->dev;
  ib_set_device_ops(&hca->ib, &testhca_verbs);
  plug(hca, cable);
  if (is_roce(hca)) {
    network = testhca_network(hca, pci);
    err = PTR_ERR_OR_ZERO(network);
    if (err) goto dealloc;
    hca->network = network;
    err = ib_device_set_netdev(&hca->ib, network, 1);
    if (err) goto network;
  }
  /* Memory is reached by the kernel's addresses (no DMA device), as with the software devices. */
  err = ib_register_device(&hca->ib, "testhca%d", NULL);
  if (err) goto network;
  adapters[index] = hca;
  pci_set_drvdata(pci, hca);
  mutex_unlock(&adapters_mutex);
  return 0;

network:
  if (network) {
    ib_device_set_netdev(&hca->ib, NULL, 1);
    unregister_netdev(network);
    free_netdev(network);
  }
dealloc:
  ib_dealloc_device(&hca->ib);
unlock:
  mutex_unlock(&adapters_mutex);
  return err;
}

static void remove(struct pci_dev* pci) {
  struct hca* hca = pci_get_drvdata(pci);
  struct net_device* network = hca->network;
  int i;

  mutex_lock(&adapters_mutex);
  for (i = 0; i < MOST_ADAPTERS; ++i)
    if (adapters[i] == hca) adapters[i] = NULL;
  mutex_unlock(&adapters_mutex);
  ib_unregister_device(&hca->ib);
  /* The RDMA core has let go of the interface, which still knows the adapter. */
  if (network) unregister_netdev(network);
  ib_dealloc_device(&hca->ib);
  if (network) free_netdev(network);
}

static const struct pci_device_id functions[] = {
    {PCI_DEVICE(PCI_VENDOR_ID_REDHAT, 0x0005)}, /* QEMU's pci-testdev */
    {},
};
/* No MODULE_DEVICE_TABLE: nothing loads this by itself. */

static struct pci_driver testhca_driver = {
    .name = "testhca",
    .id_table = functions,
    .probe = probe,
    .remove = remove,
};
module_pci_driver(testhca_driver);

MODULE_DESCRIPTION("RDMA adapters that are not there, for tests");
MODULE_LICENSE("GPL");
