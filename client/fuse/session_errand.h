// SPDX-License-Identifier: Apache-2.0
// SessionErrands: the SessionSource of one thread of a mount, which sends each question to the main
// thread, where the client id is kept, and waits for the answer.
//
// Threads: made and destroyed on the main thread, when the other one asks no more. make_session()
// is called on the other one. An Errand is the asker's until it is posted to the main thread, and
// the asker's again when it is posted back; a cancellation is posted as well, and the asker does
// not wait for what becomes of it. lease_moved() is passed on and not answered.
#pragma once

#include <memory>

#include "client/nfs4/session_source.h"
#include "rpcrdma/base/event_loop.h"

namespace nfsrdma {

class SessionErrands final : public nfs4::SessionSource {
 public:
  /// `source` is the main thread's. Both outlive this.
  SessionErrands(EventLoop& main, nfs4::SessionSource& source);
  ~SessionErrands() override;
  SessionErrands(const SessionErrands&) = delete;
  SessionErrands& operator=(const SessionErrands&) = delete;

  /// Of the other thread; before it asks. It lives as long as there is somebody who asks.
  void set_asker(EventLoop& loop) { asker_ = &loop; }
  Task<Result<nfs4::MadeSession>> make_session(const OpContext& op, xdr::sessionid4 before,
                                               std::string* detail) override;
  void lease_moved() override;

 private:
  struct Errand;
  struct Desk;

  EventLoop& main_;
  EventLoop* asker_ = nullptr;
  std::shared_ptr<Desk> desk_;
};

}  // namespace nfsrdma
