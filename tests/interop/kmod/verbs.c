// SPDX-License-Identifier: GPL-2.0
/*
 * The verbs of the adapters. Sends are completed at once, whether somebody receives them or not, as
 * those of datagrams are. Nothing is ever received from outside of the adapter.
 */
#include <linux/slab.h>
#include <linux/version.h>
#include <rdma/ib_addr.h>

#include "testhca.h"

struct queue {
  struct ib_cq cq; /* first, as in all structures that the RDMA core allocates */
  struct list_head completions;
  bool armed;
};

struct completion_entry {
  struct list_head at;
  struct ib_wc wc;
};

struct receive {
  struct list_head at;
  struct completion_entry* done; /* so that completing needs no memory */
  u64 id;
  int count;
  struct ib_sge sge[];
};

struct pair {
  struct ib_qp qp;
  struct list_head at; /* hca->queue_pairs */
  struct list_head receives;
  enum ib_qp_state state;
  u32 port;
};

struct address {
  struct ib_ah ah;
  u16 lid; /* 0: not of InfiniBand */
  u8 sl;
  u32 port;
};

struct domain {
  struct ib_pd pd;
};

struct opener {
  struct ib_ucontext context;
};

static struct pair* to_pair(struct ib_qp* qp) {
  return container_of(qp, struct pair, qp);
}

static struct queue* to_queue(struct ib_cq* cq) {
  return container_of(cq, struct queue, cq);
}

/* --- completions --- */

/* With the lock: whether the handler is to be called. */
static bool complete_locked(struct ib_cq* cq, struct completion_entry* entry) {
  struct queue* queue = to_queue(cq);
  bool wanted = queue->armed;

  list_add_tail(&entry->at, &queue->completions);
  queue->armed = false;
  return wanted;
}

static void tell(struct ib_cq* cq) {
  /* IPoIB polls in softirqs, which start when they are let. */
  local_bh_disable();
  cq->comp_handler(cq, cq->cq_context);
  local_bh_enable();
}

static int poll_cq(struct ib_cq* cq, int most, struct ib_wc* wc) {
  struct hca* hca = to_hca(cq->device);
  struct queue* queue = to_queue(cq);
  unsigned long flags;
  int found;

  spin_lock_irqsave(&hca->lock, flags);
  for (found = 0; found < most && !list_empty(&queue->completions); ++found) {
    struct completion_entry* entry =
        list_first_entry(&queue->completions, struct completion_entry, at);

    *wc++ = entry->wc;
    list_del(&entry->at);
    kfree(entry);
  }
  spin_unlock_irqrestore(&hca->lock, flags);
  return found;
}

static int req_notify_cq(struct ib_cq* cq, enum ib_cq_notify_flags how) {
  struct hca* hca = to_hca(cq->device);
  struct queue* queue = to_queue(cq);
  unsigned long flags;
  int missed;

  spin_lock_irqsave(&hca->lock, flags);
  queue->armed = true;
  missed = (how & IB_CQ_REPORT_MISSED_EVENTS) && !list_empty(&queue->completions);
  spin_unlock_irqrestore(&hca->lock, flags);
  return missed;
}

/* How the kernel tells that a program asks; here none may. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
typedef struct ib_udata asker;
#else
typedef struct uverbs_attr_bundle asker;
#endif

static int create_cq(struct ib_cq* cq, const struct ib_cq_init_attr* attr, asker* program) {
  if (program) return -EOPNOTSUPP;
  INIT_LIST_HEAD(&to_queue(cq)->completions);
  cq->cqe = attr->cqe;
  return 0;
}

static int destroy_cq(struct ib_cq* cq, struct ib_udata* udata) {
  struct completion_entry *entry, *next;

  list_for_each_entry_safe(entry, next, &to_queue(cq)->completions, at) kfree(entry);
  return 0;
}

/* --- queue pairs --- */

static struct pair* find_locked(struct hca* hca, u32 port, u32 number) {
  struct pair* pair;

  list_for_each_entry(pair, &hca->queue_pairs,
                      at) if (pair->qp.qp_num == number && pair->port == port) return pair;
  return NULL;
}

static int create_qp(struct ib_qp* qp, struct ib_qp_init_attr* attr, struct ib_udata* udata) {
  struct hca* hca = to_hca(qp->device);
  struct pair* pair = to_pair(qp);
  unsigned long flags;

  if (udata) return -EOPNOTSUPP;
  INIT_LIST_HEAD(&pair->receives);
  pair->state = IB_QPS_RESET;
  spin_lock_irqsave(&hca->lock, flags);
  if (attr->qp_type == IB_QPT_SMI || attr->qp_type == IB_QPT_GSI) {
    qp->qp_num = attr->qp_type == IB_QPT_GSI;
    pair->port = attr->port_num;
  } else {
    qp->qp_num = hca->next_qp++;
  }
  list_add(&pair->at, &hca->queue_pairs);
  spin_unlock_irqrestore(&hca->lock, flags);
  return 0;
}

/* Those that wait for something end, as completions with an error or without a trace. */
static void end_receives(struct hca* hca, struct pair* pair, bool tell_of_them) {
  struct receive *receive, *next;
  unsigned long flags;
  bool wanted = false;

  spin_lock_irqsave(&hca->lock, flags);
  list_for_each_entry_safe(receive, next, &pair->receives, at) {
    list_del(&receive->at);
    if (tell_of_them) {
      receive->done->wc.wr_id = receive->id;
      receive->done->wc.qp = &pair->qp;
      receive->done->wc.opcode = IB_WC_RECV;
      receive->done->wc.status = IB_WC_WR_FLUSH_ERR;
      wanted |= complete_locked(pair->qp.recv_cq, receive->done);
    } else {
      kfree(receive->done);
    }
    kfree(receive);
  }
  spin_unlock_irqrestore(&hca->lock, flags);
  if (wanted) tell(pair->qp.recv_cq);
}

static int modify_qp(struct ib_qp* qp, struct ib_qp_attr* attr, int mask, struct ib_udata* udata) {
  struct hca* hca = to_hca(qp->device);
  struct pair* pair = to_pair(qp);
  unsigned long flags;

  spin_lock_irqsave(&hca->lock, flags);
  if (mask & IB_QP_PORT) pair->port = attr->port_num;
  if (mask & IB_QP_STATE) pair->state = attr->qp_state;
  spin_unlock_irqrestore(&hca->lock, flags);
  if (mask & IB_QP_STATE && (attr->qp_state == IB_QPS_ERR || attr->qp_state == IB_QPS_RESET))
    end_receives(hca, pair, attr->qp_state == IB_QPS_ERR);
  return 0;
}

static int query_qp(struct ib_qp* qp, struct ib_qp_attr* attr, int mask,
                    struct ib_qp_init_attr* init) {
  attr->qp_state = attr->cur_qp_state = to_pair(qp)->state;
  attr->port_num = to_pair(qp)->port;
  return 0;
}

static int destroy_qp(struct ib_qp* qp, struct ib_udata* udata) {
  struct hca* hca = to_hca(qp->device);
  struct pair* pair = to_pair(qp);
  unsigned long flags;

  end_receives(hca, pair, false);
  spin_lock_irqsave(&hca->lock, flags);
  list_del(&pair->at);
  spin_unlock_irqrestore(&hca->lock, flags);
  return 0;
}

/* --- work --- */

static int post_one_receive(struct pair* pair, const struct ib_recv_wr* wr) {
  struct hca* hca = to_hca(pair->qp.device);
  struct receive* receive;
  unsigned long flags;

  receive = kzalloc(struct_size(receive, sge, wr->num_sge), GFP_ATOMIC);
  if (!receive) return -ENOMEM;
  receive->done = kzalloc(sizeof(*receive->done), GFP_ATOMIC);
  if (!receive->done) {
    kfree(receive);
    return -ENOMEM;
  }
  receive->id = wr->wr_id;
  receive->count = wr->num_sge;
  memcpy(receive->sge, wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));
  spin_lock_irqsave(&hca->lock, flags);
  list_add_tail(&receive->at, &pair->receives);
  spin_unlock_irqrestore(&hca->lock, flags);
  return 0;
}

static int post_recv(struct ib_qp* qp, const struct ib_recv_wr* wr, const struct ib_recv_wr** bad) {
  int err = 0;

  for (; wr && !err; wr = wr->next) {
    err = wr->num_sge > MOST_SGE ? -EINVAL : post_one_receive(to_pair(qp), wr);
    if (err) *bad = wr;
  }
  if (!err && to_pair(qp)->state == IB_QPS_ERR) end_receives(to_hca(qp->device), to_pair(qp), true);
  return err;
}

/* Scatters `from` behind `at` bytes of a receive; false when there is no room. */
static bool put(const struct receive* receive, size_t at, const void* from, size_t bytes) {
  int i;

  for (i = 0; i < receive->count && bytes; ++i) {
    const struct ib_sge* sge = &receive->sge[i];
    size_t part;

    if (at >= sge->length) {
      at -= sge->length;
      continue;
    }
    part = min_t(size_t, bytes, sge->length - at);
    memcpy((void*)(uintptr_t)sge->addr + at, from, part);
    from += part;
    bytes -= part;
    at = 0;
  }
  return !bytes;
}

/* The port that a datagram comes in by; 0 when there is none. */
static u32 destination(struct hca* hca, const struct pair* from, u16 lid) {
  u32 i;

  if (hca->ports[0].state == IB_PORT_DOWN) return 0;
  /* A directed route leads along the cable. */
  if (from->qp.qp_type == IB_QPT_SMI && lid == PERMISSIVE_LID) return MOST_PORTS + 1 - from->port;
  for (i = 0; i < MOST_PORTS; ++i)
    if (hca->ports[i].lid && hca->ports[i].lid == lid) return i + 1;
  return 0;
}

static struct ib_cq* deliver_locked(struct hca* hca, struct pair* from, const struct ib_ud_wr* wr) {
  static const char no_grh[GRH_BYTES];
  u16 lid = container_of(wr->ah, struct address, ah)->lid;
  struct completion_entry* done;
  struct receive* receive;
  size_t bytes = GRH_BYTES;
  struct pair* to;
  bool fits;
  int i;
  u32 port = is_roce(hca) ? 0 : destination(hca, from, lid);

  to = port ? find_locked(hca, port, wr->remote_qpn) : NULL;
  if (!to || list_empty(&to->receives)) return NULL;
  receive = list_first_entry(&to->receives, struct receive, at);
  list_del(&receive->at);
  fits = put(receive, 0, no_grh, sizeof(no_grh));
  for (i = 0; i < wr->wr.num_sge; ++i) {
    const struct ib_sge* sge = &wr->wr.sg_list[i];

    fits = fits && put(receive, bytes, (void*)(uintptr_t)sge->addr, sge->length);
    bytes += sge->length;
  }
  done = receive->done;
  done->wc.wr_id = receive->id;
  done->wc.qp = &to->qp;
  done->wc.opcode = IB_WC_RECV;
  done->wc.status = fits ? IB_WC_SUCCESS : IB_WC_LOC_LEN_ERR;
  done->wc.byte_len = bytes;
  done->wc.src_qp = from->qp.qp_num;
  done->wc.slid = lid == PERMISSIVE_LID ? PERMISSIVE_LID : hca->ports[from->port - 1].lid;
  done->wc.port_num = port;
  kfree(receive);
  return complete_locked(to->qp.recv_cq, done) ? to->qp.recv_cq : NULL;
}

static int send_one(struct pair* pair, const struct ib_send_wr* wr) {
  struct hca* hca = to_hca(pair->qp.device);
  struct ib_cq *receiver = NULL, *sender = NULL;
  struct completion_entry* done = kzalloc(sizeof(*done), GFP_ATOMIC);
  unsigned long flags;

  if (!done) return -ENOMEM;
  done->wc.wr_id = wr->wr_id;
  done->wc.qp = &pair->qp;
  done->wc.opcode = IB_WC_SEND;
  done->wc.status = pair->state == IB_QPS_ERR ? IB_WC_WR_FLUSH_ERR : IB_WC_SUCCESS;
  spin_lock_irqsave(&hca->lock, flags);
  if (pair->qp.qp_type != IB_QPT_RC && pair->port && !done->wc.status)
    receiver = deliver_locked(hca, pair, ud_wr(wr));
  if (complete_locked(pair->qp.send_cq, done)) sender = pair->qp.send_cq;
  spin_unlock_irqrestore(&hca->lock, flags);
  if (receiver) tell(receiver);
  if (sender) tell(sender);
  return 0;
}

static int post_send(struct ib_qp* qp, const struct ib_send_wr* wr, const struct ib_send_wr** bad) {
  int err = 0;

  for (; wr && !err; wr = wr->next) {
    err = send_one(to_pair(qp), wr);
    if (err) *bad = wr;
  }
  return err;
}

/* --- what the adapter is --- */

static int query_device(struct ib_device* device, struct ib_device_attr* attr,
                        struct ib_udata* udata) {
  attr->sys_image_guid = device->node_guid;
  attr->vendor_id = PCI_VENDOR_ID_REDHAT;
  attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
  attr->max_qp = 1024;
  attr->max_qp_wr = 16384;
  attr->max_send_sge = MOST_SGE;
  attr->max_recv_sge = MOST_SGE;
  attr->max_sge_rd = 1;
  attr->max_cq = 1024;
  attr->max_cqe = 65536;
  attr->max_pd = 1024;
  attr->max_ah = 65536;
  attr->max_mcast_grp = 64;
  attr->max_mcast_qp_attach = 64;
  attr->max_pkeys = 1;
  attr->max_mr_size = ~0ull;
  attr->page_size_cap = PAGE_SIZE;
  return 0;
}

static int query_port(struct ib_device* device, u32 number, struct ib_port_attr* attr) {
  struct hca* hca = to_hca(device);
  const struct port* port = &hca->ports[number - 1];

  attr->state = port->state;
  attr->phys_state = port->physical;
  attr->max_mtu = IB_MTU_4096;
  attr->active_mtu = is_roce(hca) ? iboe_get_mtu(hca->network->mtu) : IB_MTU_4096;
  attr->gid_tbl_len = is_roce(hca) ? 16 : 1;
  attr->port_cap_flags = port->capabilities;
  attr->max_msg_sz = 1u << 30;
  attr->pkey_tbl_len = 1;
  attr->lid = port->lid;
  attr->sm_lid = port->sm_lid;
  attr->sm_sl = port->sm_sl;
  attr->lmc = port->lmc;
  attr->subnet_timeout = port->subnet_timeout;
  attr->max_vl_num = 1;
  attr->active_width = IB_WIDTH_4X;
  attr->active_speed = IB_SPEED_EDR;
  attr->subnet_prefix = be64_to_cpu(port->prefix);
  return 0;
}

static int modify_port(struct ib_device* device, u32 number, int mask,
                       struct ib_port_modify* change) {
  struct hca* hca = to_hca(device);
  unsigned long flags;

  spin_lock_irqsave(&hca->lock, flags);
  hca->ports[number - 1].capabilities |= change->set_port_cap_mask;
  hca->ports[number - 1].capabilities &= ~change->clr_port_cap_mask;
  spin_unlock_irqrestore(&hca->lock, flags);
  return 0;
}

static int get_port_immutable(struct ib_device* device, u32 number,
                              struct ib_port_immutable* fixed) {
  static const u32 protocols[] = {
      [KIND_INFINIBAND] = RDMA_CORE_PORT_IBA_IB,
      [KIND_ROCE_V1] = RDMA_CORE_PORT_IBA_ROCE,
      [KIND_ROCE] = RDMA_CORE_PORT_IBA_ROCE | RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP,
  };

  fixed->core_cap_flags = protocols[to_hca(device)->kind];
  fixed->max_mad_size = IB_MGMT_MAD_SIZE;
  fixed->pkey_tbl_len = 1;
  fixed->gid_tbl_len = is_roce(to_hca(device)) ? 16 : 1;
  return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device* device, u32 number) {
  return is_roce(to_hca(device)) ? IB_LINK_LAYER_ETHERNET : IB_LINK_LAYER_INFINIBAND;
}

static int query_gid(struct ib_device* device, u32 number, int index, union ib_gid* gid) {
  const struct port* port = &to_hca(device)->ports[number - 1];

  gid->global.subnet_prefix = port->prefix;
  gid->global.interface_id = port->guid;
  return 0;
}

static int query_pkey(struct ib_device* device, u32 number, u16 index, u16* pkey) {
  *pkey = DEFAULT_PKEY;
  return 0;
}

/* The RDMA core keeps the table of RoCE's GIDs. */
static int change_gid(const struct ib_gid_attr* attr, void** context) {
  return 0;
}

/* --- the rest --- */

static int alloc_pd(struct ib_pd* pd, struct ib_udata* udata) {
  return 0;
}

static int dealloc_pd(struct ib_pd* pd, struct ib_udata* udata) {
  return 0;
}

static int create_ah(struct ib_ah* ah, struct rdma_ah_init_attr* attr, struct ib_udata* udata) {
  struct address* address = container_of(ah, struct address, ah);

  if (attr->ah_attr->type != RDMA_AH_ATTR_TYPE_IB) return 0;
  address->lid = rdma_ah_get_dlid(attr->ah_attr);
  address->sl = rdma_ah_get_sl(attr->ah_attr);
  address->port = rdma_ah_get_port_num(attr->ah_attr);
  return 0;
}

/* By this ib_mad tells whether an answer comes from where the question went. */
static int query_ah(struct ib_ah* ah, struct rdma_ah_attr* attr) {
  const struct address* address = container_of(ah, struct address, ah);

  attr->type = ah->type;
  rdma_ah_set_dlid(attr, address->lid);
  rdma_ah_set_sl(attr, address->sl);
  rdma_ah_set_port_num(attr, address->port);
  return 0;
}

static int destroy_ah(struct ib_ah* ah, u32 flags) {
  return 0;
}

static int change_mcast(struct ib_qp* qp, union ib_gid* gid, u16 lid) {
  return 0;
}

static struct ib_mr* get_dma_mr(struct ib_pd* pd, int access) {
  return kzalloc(sizeof(struct ib_mr), GFP_KERNEL) ?: ERR_PTR(-ENOMEM);
}

static struct ib_mr* reg_user_mr(struct ib_pd* pd, u64 start, u64 length, u64 address, int access,
                                 struct ib_udata* udata) {
  return ERR_PTR(-EOPNOTSUPP);
}

static int dereg_mr(struct ib_mr* mr, struct ib_udata* udata) {
  kfree(mr);
  return 0;
}

/* Gives the adapter a node in /dev/infiniband. rdma-core has no provider for it. */
static int alloc_ucontext(struct ib_ucontext* context, struct ib_udata* udata) {
  return 0;
}

static void dealloc_ucontext(struct ib_ucontext* context) {}

const struct ib_device_ops testhca_verbs = {
    .owner = THIS_MODULE,
    .driver_id = RDMA_DRIVER_UNKNOWN,
    .uverbs_abi_ver = 1,
    .add_gid = change_gid,
    .alloc_pd = alloc_pd,
    .alloc_ucontext = alloc_ucontext,
    .attach_mcast = change_mcast,
    .create_ah = create_ah,
    .create_cq = create_cq,
    .create_qp = create_qp,
    .dealloc_pd = dealloc_pd,
    .dealloc_ucontext = dealloc_ucontext,
    .del_gid = change_gid,
    .dereg_mr = dereg_mr,
    .destroy_ah = destroy_ah,
    .destroy_cq = destroy_cq,
    .destroy_qp = destroy_qp,
    .detach_mcast = change_mcast,
    .get_dma_mr = get_dma_mr,
    .get_link_layer = get_link_layer,
    .get_port_immutable = get_port_immutable,
    .modify_port = modify_port,
    .modify_qp = modify_qp,
    .poll_cq = poll_cq,
    .post_recv = post_recv,
    .post_send = post_send,
    .process_mad = testhca_process_mad,
    .query_ah = query_ah,
    .query_device = query_device,
    .query_gid = query_gid,
    .query_pkey = query_pkey,
    .query_port = query_port,
    .query_qp = query_qp,
    .reg_user_mr = reg_user_mr,
    .req_notify_cq = req_notify_cq,
    INIT_RDMA_OBJ_SIZE(ib_ah, address, ah),
    INIT_RDMA_OBJ_SIZE(ib_cq, queue, cq),
    INIT_RDMA_OBJ_SIZE(ib_pd, domain, pd),
    INIT_RDMA_OBJ_SIZE(ib_qp, pair, qp),
    INIT_RDMA_OBJ_SIZE(ib_ucontext, opener, context),
};
