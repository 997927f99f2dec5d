// SPDX-License-Identifier: Apache-2.0
// ContextUse: that one VerbsDevice uses an ibv_context, which is librdmacm's: one per device and
// process, shared by all loops. When the last use of a removed device's context ends, its files are
// closed, because the kernel waits for that with the removal where the driver cannot do without
// (rxe, siw: `rdma link delete` would hang until this process ends).
//
// librdmacm itself closes a context only when it looks for devices that are gone. It does that when
// it meets a new one, which may be never, or in rdma_get_devices(3), which does nothing when the
// last device of the host went, and opens all others: those would be held in their turn, by a
// process that has no use for them and does not hear of their removal. And ibv_close_device(3) is
// for librdmacm to call, which keeps the context in its list. So here only the descriptors are
// taken from it: in their place it gets one on which every call fails, and which it closes when it
// looks.
//
// A program that uses librdmacm on the same device beside this library finds its own queues there
// refused (ENOTTY) once the device is removed and we have let go of it.
#pragma once

#include <infiniband/verbs.h>

#include "rpcrdma/verbs/command_thread.h"

namespace nfsrdma::verbs {

/// Any thread; each by its loop.
class ContextUse {
 public:
  ContextUse(ibv_context* context, CommandThread& commands);
  /// Whoever uses `context` has destroyed what it made with it.
  ~ContextUse();
  ContextUse(const ContextUse&) = delete;
  ContextUse& operator=(const ContextUse&) = delete;

  /// An id of the caller keeps the context alive beyond this use, so that this may be the one that
  /// closes its files.
  void set_alive() { alive_ = true; }
  /// The device is being removed: the last use closes the files.
  void close_with_last();

 private:
  ibv_context* context_;
  CommandThread& commands_;
  bool alive_ = false;
};

}  // namespace nfsrdma::verbs
