// SPDX-License-Identifier: GPL-2.0
/*
 * The subnet management agent of an InfiniBand adapter: what a subnet manager (opensm, in user
 * space) asks it and tells it to be (InfiniBand Architecture Specification 1.3, volume 1,
 * chapter 14.2.5).
 */
#include "testhca.h"

enum {
  CLASS_VERSION = 1,
  CHANNEL_ADAPTER = 1,
  WIDTH_4X = 2,
  SPEED_SDR = 1,
  ONE_LANE = 1,
  POLLING = 2, /* what an unplugged port does */
  STATE_NO_CHANGE = 0,
};

static void node_info(struct hca* hca, u32 number, struct ib_node_info* info) {
  memset(info, 0, sizeof(*info));
  info->base_version = IB_MGMT_BASE_VERSION;
  info->class_version = CLASS_VERSION;
  info->node_type = CHANNEL_ADAPTER;
  info->num_ports = hca->ib.phys_port_cnt;
  info->sys_guid = hca->ib.node_guid;
  info->node_guid = hca->ib.node_guid;
  info->port_guid = hca->ports[number - 1].guid;
  info->partition_cap = cpu_to_be16(1);
  info->local_port_num = number;
}

static void port_info(struct hca* hca, u32 at, u32 number, struct ib_port_info* info) {
  const struct port* port = &hca->ports[number - 1];

  memset(info, 0, sizeof(*info));
  info->gid_prefix = port->prefix;
  info->lid = cpu_to_be16(port->lid);
  info->sm_lid = cpu_to_be16(port->sm_lid);
  info->cap_mask = cpu_to_be32(port->capabilities);
  info->local_port_num = at;
  info->link_width_enabled = WIDTH_4X;
  info->link_width_supported = WIDTH_4X;
  info->link_width_active = WIDTH_4X;
  info->linkspeed_portstate = SPEED_SDR << 4 | port->state;
  info->portphysstate_linkdown = port->physical << 4 | POLLING;
  info->mkeyprot_resv_lmc = port->lmc;
  info->linkspeedactive_enabled = SPEED_SDR << 4 | SPEED_SDR;
  info->neighbormtu_mastersmsl = IB_MTU_4096 << 4 | port->sm_sl;
  info->vlcap_inittype = ONE_LANE << 4;
  info->inittypereply_mtucap = IB_MTU_4096;
  info->operationalvl_pei_peo_fpi_fpo = ONE_LANE << 4;
  info->guid_cap = 1;
  info->clientrereg_resv_subnetto = port->subnet_timeout;
}

/* Takes what a subnet manager has decided, and tells the kernel what has changed by that. */
static void set_port(struct hca* hca, u32 number, const struct ib_port_info* info) {
  struct port* port = &hca->ports[number - 1];
  const u16 lid = be16_to_cpu(info->lid), sm_lid = be16_to_cpu(info->sm_lid);
  const u8 state = info->linkspeed_portstate & 0xf;
  bool new_lid, new_manager, new_prefix, active;
  unsigned long flags;

  spin_lock_irqsave(&hca->lock, flags);
  new_lid = port->lid != lid;
  new_manager = port->sm_lid != sm_lid;
  new_prefix = port->prefix != info->gid_prefix;
  active = state == IB_PORT_ACTIVE && port->state != IB_PORT_ACTIVE;
  port->lid = lid;
  port->sm_lid = sm_lid;
  port->prefix = info->gid_prefix;
  port->sm_sl = info->neighbormtu_mastersmsl & 0xf;
  port->lmc = info->mkeyprot_resv_lmc & 0x7;
  port->subnet_timeout = info->clientrereg_resv_subnetto & 0x1f;
  if (state != STATE_NO_CHANGE && port->state != IB_PORT_DOWN) port->state = state;
  spin_unlock_irqrestore(&hca->lock, flags);

  if (new_lid) hca_event(hca, number, IB_EVENT_LID_CHANGE);
  if (new_prefix) hca_event(hca, number, IB_EVENT_GID_CHANGE);
  if (new_manager) hca_event(hca, number, IB_EVENT_SM_CHANGE);
  if (active) hca_event(hca, number, IB_EVENT_PORT_ACTIVE);
  if (info->clientrereg_resv_subnetto & 0x80) hca_event(hca, number, IB_EVENT_CLIENT_REREGISTER);
}

/* The status of the answer. */
static u16 answer(struct hca* hca, u32 at, struct ib_smp* smp) {
  const u32 modifier = be32_to_cpu(smp->attr_mod);
  const bool set = smp->method == IB_MGMT_METHOD_SET;
  u32 number;

  switch (smp->attr_id) {
    case IB_SMP_ATTR_NODE_DESC:
      memcpy(smp->data, hca->ib.node_desc, sizeof(smp->data));
      return 0;
    case IB_SMP_ATTR_NODE_INFO:
      node_info(hca, at, (struct ib_node_info*)smp->data);
      return 0;
    case IB_SMP_ATTR_PORT_INFO:
      number = (modifier & 0xff) ?: at;
      if (number > hca->ib.phys_port_cnt) return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
      if (set) set_port(hca, number, (struct ib_port_info*)smp->data);
      port_info(hca, at, number, (struct ib_port_info*)smp->data);
      return 0;
    case IB_SMP_ATTR_PKEY_TABLE:
      memset(smp->data, 0, sizeof(smp->data));
      *(__be16*)smp->data = cpu_to_be16(DEFAULT_PKEY);
      return 0;
    case IB_SMP_ATTR_GUID_INFO:
      memset(smp->data, 0, sizeof(smp->data));
      *(__be64*)smp->data = hca->ports[at - 1].guid;
      return 0;
  }
  return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
}

int testhca_process_mad(struct ib_device* device, int flags, u32 port, const struct ib_wc* wc,
                        const struct ib_grh* grh, const struct ib_mad* in, struct ib_mad* out,
                        size_t* out_bytes, u16* out_pkey_index) {
  const u8 class = in->mad_hdr.mgmt_class, method = in->mad_hdr.method;
  struct ib_smp* smp = (struct ib_smp*)out;
  u16 status;

  if (class != IB_MGMT_CLASS_SUBN_LID_ROUTED && class != IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
    return IB_MAD_RESULT_SUCCESS;
  /* Answers, traps and what one subnet manager asks another are not for an agent. */
  if ((method != IB_MGMT_METHOD_GET && method != IB_MGMT_METHOD_SET) ||
      in->mad_hdr.attr_id == IB_SMP_ATTR_SM_INFO)
    return IB_MAD_RESULT_SUCCESS;
  memcpy(out, in, sizeof(*in));
  status = answer(to_hca(device), port, smp);
  if (class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE) status |= be16_to_cpu(IB_SMP_DIRECTION);
  smp->status = cpu_to_be16(status);
  smp->method = IB_MGMT_METHOD_GET_RESP;
  *out_bytes = sizeof(*out);
  return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
