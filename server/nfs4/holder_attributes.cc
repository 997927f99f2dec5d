// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/holder_attributes.h"

#include <utility>
#include <vector>

#include "server/nfs4/server_state.h"
#include "xdr/nfs4_attributes.h"

namespace nfsrdma::nfs4 {

using enum xdr::fattr4_number;

class HolderAttributes::Question final : public Callback {
 public:
  Question(HolderAttributes& asks, const Delegation& delegation)
      : asks_(asks), number_(delegation.number), handle_(delegation.handle) {}

  xdr::nfs_cb_opnum4 operation() const override { return xdr::nfs_cb_opnum4::OP_CB_GETATTR; }
  ByteSpan encode(MutableByteSpan room, const CallbackTarget& target,
                  const xdr::CB_SEQUENCE4args* sequence) const override {
    xdr::CB_GETATTR4args args;
    args.fh.data = handle_;
    args.attr_request = xdr::bitmap4::of({FATTR4_CHANGE, FATTR4_SIZE});
    return encode_callback(room, target, sequence, args);
  }
  void finished(const CallbackReply* reply) override { asks_.finished(number_, read(reply)); }

 private:
  static Reply read(const CallbackReply* reply) {
    if (reply == nullptr || reply->status != xdr::nfsstat4::NFS4_OK) return {};
    xdr::FileAttributes4 attributes;
    const auto decoded = xdr::decode_attributes(reply->attributes, attributes);
    if (decoded.outcome != xdr::AttributeDecoding::kOk || !attributes.attrmask.has(FATTR4_CHANGE) ||
        !attributes.attrmask.has(FATTR4_SIZE)) {
      return {};
    }
    return {true, attributes.size, attributes.change};
  }

  HolderAttributes& asks_;
  const DelegationNumber number_;
  const std::vector<std::byte> handle_;
};

void HolderAttributes::begin(DelegationNumber number, std::uint64_t change) {
  asked_[number].change = change;
}

void HolderAttributes::end(DelegationNumber number) {
  asked_.erase(number);
  answered_.notify_all();
}

bool HolderAttributes::send(const Delegation& delegation, Asked& asked) {
  asked.under_way =
      state_.caller.call(delegation.client, std::make_unique<Question>(*this, delegation));
  asked.patience = Clock::now() + kPatience;
  return asked.under_way;
}

void HolderAttributes::finished(DelegationNumber number, const Reply& reply) {
  const auto found = asked_.find(number);
  if (found == asked_.end()) return;
  Asked& asked = found->second;
  asked.under_way = false;
  ++asked.answers;
  asked.last = reply;
  if (asked.waiting == 0) asked.late = state_.now();
  answered_.notify_all();
}

HolderAttributes::Answer HolderAttributes::judge(const FileKey& file, ClientId by,
                                                 std::uint64_t given, const Reply& reply) {
  if (reply.ok) return {Answer::Kind::kKnown, reply.size, reply.change, reply.change != given};
  const bool any = state_.delegations.recall(file, by, DelegationTable::Wanted::kToRead);
  return {any ? Answer::Kind::kLater : Answer::Kind::kNone};
}

HolderAttributes::Answer HolderAttributes::ask(const FileKey& file, ClientId by, bool may_block) {
  std::unique_lock lock(state_.mutex);
  const Delegation* delegation = state_.delegations.table().writer(file);
  if (delegation == nullptr || delegation->client == by) return {};
  const DelegationNumber number = delegation->number;
  Asked& asked = asked_.at(number);
  if (asked.late) {
    const bool good = state_.now() < *std::exchange(asked.late, std::nullopt) + kLateAnswer;
    if (good) return judge(file, by, asked.change, asked.last);
  }
  if (!may_block) return {Answer::Kind::kWouldBlock};
  if (!asked.under_way && !send(*delegation, asked)) return judge(file, by, 0, {});
  if (waiting_ >= kMostWaiting) return {Answer::Kind::kLater};
  ++waiting_;
  ++asked.waiting;
  const std::uint64_t answers = asked.answers;
  const auto find = [&] { return asked_.find(number); };
  const auto ended = [&] {
    const auto found = find();
    return found == asked_.end() || found->second.answers != answers;
  };
  answered_.wait_until(lock, Clock::time_point(asked.patience), ended);
  --waiting_;
  const auto found = find();
  if (found == asked_.end()) return {};  // given back meanwhile
  --found->second.waiting;
  if (!ended()) return {Answer::Kind::kLater};
  return judge(file, by, found->second.change, found->second.last);
}

}  // namespace nfsrdma::nfs4
