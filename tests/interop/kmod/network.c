// SPDX-License-Identifier: GPL-2.0
/*
 * The Ethernet interface of a RoCE adapter: it is up or down, and what it sends is lost. The port
 * of the adapter is as the interface is.
 */
#include <linux/etherdevice.h>

#include "testhca.h"

static struct hca* adapter_of(struct net_device* network) {
  return *(struct hca**)netdev_priv(network);
}

static void turn(struct net_device* network, bool up) {
  struct hca* hca = adapter_of(network);
  unsigned long flags;

  spin_lock_irqsave(&hca->lock, flags);
  hca->ports[0].state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
  hca->ports[0].physical = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
  spin_unlock_irqrestore(&hca->lock, flags);
  if (up)
    netif_start_queue(network);
  else
    netif_stop_queue(network);
  if (ib_device_try_get(&hca->ib)) {
    hca_event(hca, 1, up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
    ib_device_put(&hca->ib);
  }
}

static int open(struct net_device* network) {
  turn(network, true);
  return 0;
}

static int stop(struct net_device* network) {
  turn(network, false);
  return 0;
}

static netdev_tx_t lose(struct sk_buff* frame, struct net_device* network) {
  dev_kfree_skb_any(frame);
  return NETDEV_TX_OK;
}

static const struct net_device_ops operations = {
    .ndo_open = open,
    .ndo_stop = stop,
    .ndo_start_xmit = lose,
    .ndo_set_mac_address = eth_mac_addr,
    .ndo_validate_addr = eth_validate_addr,
};

struct net_device* testhca_network(struct hca* hca, struct pci_dev* pci) {
  struct net_device* network =
      alloc_netdev(sizeof(struct hca*), "roce%d", NET_NAME_ENUM, ether_setup);
  int err;

  if (!network) return ERR_PTR(-ENOMEM);
  *(struct hca**)netdev_priv(network) = hca;
  network->netdev_ops = &operations;
  network->max_mtu = 9978;
  eth_hw_addr_random(network);
  SET_NETDEV_DEV(network, &pci->dev);
  hca->ports[0].state = IB_PORT_DOWN;
  hca->ports[0].physical = IB_PORT_PHYS_STATE_DISABLED;
  err = register_netdev(network);
  if (err) {
    free_netdev(network);
    return ERR_PTR(err);
  }
  return network;
}
