// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/session_errand.h"

#include "client/occasion.h"

namespace nfsrdma {

struct SessionErrands::Errand : ListNode<Errand> {
  OpContext op;
  CancelToken token;  // of the main thread
  xdr::sessionid4 before{};
  // Until the main thread has done it:
  Result<nfs4::MadeSession> made = Error{Errc::kSystem, EINTR, "interrupted"};
  std::string detail;
  Occasion done;  // of the asker's thread
};

/// What the main thread has of this.
struct SessionErrands::Desk {
  explicit Desk(nfs4::SessionSource& its_source) : source(its_source) {}

  Task<void> carry_out(std::shared_ptr<Errand> errand, EventLoop* asker) {
    errand->op.cancel = &errand->token;
    under_way.push_back(*errand);
    errand->made = co_await source.make_session(errand->op, errand->before, &errand->detail);
    errand->unlink();
    // Nobody is there any more who could be told.
    if (closed) co_return;
    asker->post([errand] { errand->done.come(); });
  }

  nfs4::SessionSource& source;
  TaskGroup tasks;
  IntrusiveList<Errand> under_way;
  bool closed = false;
};

SessionErrands::SessionErrands(EventLoop& main, nfs4::SessionSource& source)
    : main_(main), desk_(std::make_shared<Desk>(source)) {}

SessionErrands::~SessionErrands() {
  desk_->closed = true;
  while (Errand* errand = desk_->under_way.front())
    errand->token.cancel();  // ends it, here and now
}

Task<Result<nfs4::MadeSession>> SessionErrands::make_session(const OpContext& op,
                                                             xdr::sessionid4 before,
                                                             std::string* detail) {
  auto errand = std::make_shared<Errand>();
  errand->op.identity = op.identity;
  errand->before = before;
  main_.post([desk = std::weak_ptr(desk_), errand, asker = asker_] {
    const std::shared_ptr<Desk> there = desk.lock();
    if (there != nullptr) there->tasks.spawn(there->carry_out(errand, asker));
  });
  const bool came = co_await errand->done.wait(op.cancel);
  if (!came) {
    main_.post([errand] { errand->token.cancel(); });
    co_return Error{Errc::kSystem, EINTR, "interrupted"};
  }
  *detail = errand->detail;
  co_return std::move(errand->made);
}

void SessionErrands::lease_moved() {
  main_.post([desk = std::weak_ptr(desk_)] {
    const std::shared_ptr<Desk> there = desk.lock();
    if (there != nullptr && !there->closed) there->source.lease_moved();
  });
}

}  // namespace nfsrdma
