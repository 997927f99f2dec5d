// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/lock_notifier.h"

#include <memory>
#include <utility>

#include "server/nfs4/server_state.h"
#include "server/nfs4/wire_values.h"

namespace nfsrdma::nfs4 {

namespace {

class NotifyLock final : public Callback {
 public:
  explicit NotifyLock(LockWait wait) : wait_(std::move(wait)) {}

  xdr::nfs_cb_opnum4 operation() const override { return xdr::nfs_cb_opnum4::OP_CB_NOTIFY_LOCK; }
  ByteSpan encode(MutableByteSpan room, const CallbackTarget& target,
                  const xdr::CB_SEQUENCE4args* sequence) const override {
    xdr::CB_NOTIFY_LOCK4args args;
    args.cnla_fh.data = wait_.handle;
    args.cnla_lock_owner = {wait_.client, as_bytes(wait_.owner)};
    return encode_callback(room, target, sequence, args);
  }
  void finished(const CallbackReply*) override {}

 private:
  const LockWait wait_;
};

}  // namespace

void LockNotifier::unlocked(const FileKey& file, const ByteRange& range) {
  if (watcher_ != nullptr) watcher_->on_unlocked(file);
  if (!waits_.empty()) tell(file, range);
}

void LockNotifier::other_ended(const FileKey& file) {
  if (watcher_ != nullptr) watcher_->on_unlocked(file);
}

void LockNotifier::ask_again() {
  for (const FileKey& file : waits_.files())
    tell(file, {0, UINT64_MAX});
}

void LockNotifier::tell(const FileKey& file, const ByteRange& range) {
  std::vector<LockWait> free = waits_.take(file, [&](const LockWait& wait) {
    if (!wait.range.overlaps(range)) return false;
    const OpenStates::Asker asker{wait.client, 1};
    return !state_.opens.test_lock(asker, wait.owner, file, wait.kind, wait.range);
  });
  for (LockWait& wait : free) {
    const ClientId client = wait.client;
    state_.caller.call(client, std::make_unique<NotifyLock>(std::move(wait)));
  }
}

void LockNotifier::client_ended(ClientId client) {
  waits_.end_client(client);
  if (watcher_ != nullptr) watcher_->on_client_ended(client);
}

}  // namespace nfsrdma::nfs4
