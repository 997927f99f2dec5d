// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/offload_callbacks.h"

#include <memory>
#include <vector>

#include "server/nfs4/server_state.h"
#include "server/nfs4/status.h"
#include "server/nfs4/wire_values.h"

namespace nfsrdma::nfs4 {

namespace {

using xdr::nfsstat4;

constexpr Duration kPause = std::chrono::seconds(1);  // before the same is said again
/// A client that says this often that it knows nothing of the copy does not.
constexpr int kMostRefusals = 10;

xdr::offload_info4 info_of(const Offload& offload) {
  xdr::offload_info4 info;
  info.coa_status = status_of_errno(offload.error);
  info.coa_resok4.wr_count = info.coa_bytes_copied = offload.copied;
  info.coa_resok4.wr_committed = xdr::stable_how4::UNSTABLE4;
  info.coa_resok4.wr_writeverf = offload.verifier;
  return info;
}

}  // namespace

class OffloadCallbacks::Report final : public Callback {
 public:
  Report(OffloadCallbacks& owner, const Offload& offload, const Stateid& stateid)
      : owner_(owner),
        number_(offload.number),
        stateid_(stateid),
        handle_(offload.handle),
        info_(info_of(offload)) {}

  xdr::nfs_cb_opnum4 operation() const override { return xdr::nfs_cb_opnum4::OP_CB_OFFLOAD; }
  ByteSpan encode(MutableByteSpan room, const CallbackTarget& target,
                  const xdr::CB_SEQUENCE4args* sequence) const override {
    xdr::CB_OFFLOAD4args args;
    args.coa_fh.data = handle_;
    args.coa_stateid = to_wire(stateid_);
    args.coa_offload_info = info_;
    return encode_callback(room, target, sequence, args);
  }
  void finished(const CallbackReply* reply) override {
    const auto report = owner_.reports_.find(number_);
    if (report == owner_.reports_.end()) return;
    report->second.under_way = false;
    if (reply == nullptr || reply->status == nfsstat4::NFS4ERR_DELAY) return;
    if (reply->status != nfsstat4::NFS4_OK && ++report->second.refusals < kMostRefusals) return;
    owner_.table_.acknowledged(number_);
  }

 private:
  OffloadCallbacks& owner_;
  const OffloadNumber number_;
  const Stateid stateid_;
  const std::vector<std::byte> handle_;
  const xdr::offload_info4 info_;
};

void OffloadCallbacks::tick() {
  // Those of copies that are no more: acknowledged, cancelled, or their client is gone.
  std::erase_if(reports_, [this](const auto& one) { return !table_.ended().contains(one.first); });
  const TimePoint now = state_.now();
  for (const OffloadNumber number : table_.ended()) {
    Progress& progress = reports_[number];
    if (progress.under_way || now < progress.next) continue;
    const Offload& offload = *table_.find(number);
    progress.under_way = state_.caller.call(
        offload.client, std::make_unique<Report>(*this, offload, table_.stateid_of(offload)));
    if (progress.under_way) progress.next = now + kPause;
  }
}

}  // namespace nfsrdma::nfs4
