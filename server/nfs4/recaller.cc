// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/recaller.h"

#include <utility>
#include <vector>

#include "server/nfs4/server_state.h"
#include "server/nfs4/wire_values.h"

namespace nfsrdma::nfs4 {

namespace {

constexpr Duration kPause = std::chrono::seconds(1);  // before the same is asked again

}  // namespace

class Recaller::Recall final : public Callback {
 public:
  Recall(Recaller& recaller, const Delegation& delegation, const Stateid& stateid)
      : recaller_(recaller),
        number_(delegation.number),
        stateid_(stateid),
        handle_(delegation.handle),
        given_in_(delegation.given_in) {}

  xdr::nfs_cb_opnum4 operation() const override { return xdr::nfs_cb_opnum4::OP_CB_RECALL; }
  ByteSpan encode(MutableByteSpan room, const CallbackTarget& target,
                  const xdr::CB_SEQUENCE4args* sequence) const override {
    xdr::CB_RECALL4args args;
    args.stateid = to_wire(stateid_);
    args.fh.data = handle_;
    return encode_callback(room, target, sequence, args);
  }
  const ReferringCall* about() const override { return given_in_ ? &*given_in_ : nullptr; }
  void finished(const CallbackReply* reply) override {
    const auto recall = recaller_.recalls_.find(number_);
    if (recall == recaller_.recalls_.end()) return;
    recall->second.under_way = false;
    // Any other answer (the OPEN's reply may still be on its way) is asked for again.
    recall->second.understood = reply != nullptr && reply->status == xdr::nfsstat4::NFS4_OK;
  }

 private:
  Recaller& recaller_;
  const DelegationNumber number_;
  const Stateid stateid_;
  const std::vector<std::byte> handle_;
  const std::optional<ReferringCall> given_in_;
};

void Recaller::tick() {
  const TimePoint now = state_.now();
  for (auto next = recalls_.begin(); next != recalls_.end();) {
    auto& [number, progress] = *next;
    const Delegation* delegation = state_.delegations.table().find(number);
    if (delegation == nullptr || delegation->phase != Delegation::Phase::kRecalled) {
      next = recalls_.erase(next);
      continue;
    }
    if (!progress.under_way && !progress.understood && now >= progress.next) send(number, progress);
    ++next;
  }
}

void Recaller::send(DelegationNumber number, Progress& progress) {
  progress.next = state_.now() + kPause;
  const DelegationTable& table = state_.delegations.table();
  const Delegation* delegation = table.find(number);
  if (delegation == nullptr) return;
  progress.under_way = state_.caller.call(
      delegation->client,
      std::make_unique<Recall>(*this, *delegation, table.stateid_of(*delegation)));
}

}  // namespace nfsrdma::nfs4
