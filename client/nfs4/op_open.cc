// SPDX-License-Identifier: Apache-2.0
// Nfs4Operations: OPEN of files that are there, with ACCESS and GETATTR in one COMPOUND; in minor
// version 0 only where that may bring a delegation. And which stateid data travels with.
#include "client/nfs4/attributes_result.h"
#include "client/nfs4/call.h"
#include "client/nfs4/operations.h"
#include "client/nfs4/owner_bytes.h"
#include "client/nfs4/stateid_check.h"

namespace nfsrdma {

using nfs4::CompoundReader;
using nfs4::CompoundWriter;
using nfs4::kAttributes;
using nfs4::next_attributes;
using xdr::nfs_opnum4;
using xdr::nfsstat4;

/// Shared: who asked may be gone before the answer comes, and what it brings must not be lost.
class Nfs4Operations::Opening final : public nfs4::OpenCompanion {
 public:
  Opening(Nfs4Operations& nfs, const OpContext& op, const FileHandle& file, std::uint32_t wanted,
          std::uint32_t share)
      : nfs_(nfs), identity_(op.identity), file_(file), wanted_(wanted), share_(share) {}

  /// What is opened may be recalled before the answer is here.
  void ask_for_a_delegation() { asking_.emplace(nfs_.delegations_, file_); }
  /// None: the server has said nothing of rights.
  std::optional<AccessResult>& result() { return result_; }

 private:
  std::uint32_t wants() const override {
    if (!asking_) return xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
    const bool writes = (share_ & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0;
    return writes ? xdr::OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG
                  : xdr::OPEN4_SHARE_ACCESS_WANT_READ_DELEG;
  }
  void opened(const xdr::open_delegation4& delegation) override {
    nfs_.delegations_.granted(file_, identity_, share_, delegation);
    asking_.reset();
  }
  void build(CompoundWriter& out) const override {
    out.op(nfs_opnum4::OP_ACCESS, xdr::ACCESS4args{wanted_});
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  }
  void parse(CompoundReader& in) override {
    xdr::ACCESS4res access;
    if (!in.next(nfs_opnum4::OP_ACCESS, access)) return;
    result_.emplace();
    result_->allowed = access.resok4.access & wanted_;
    next_attributes(in, nfs_.names_, &result_->attributes);
  }

  Nfs4Operations& nfs_;
  const AuthSys identity_;
  const FileHandle file_;
  const std::uint32_t wanted_;
  const std::uint32_t share_;
  std::optional<nfs4::Delegations::Asking> asking_;
  std::optional<AccessResult> result_;
};

namespace {

/// The server refuses to keep it open, not to have it used.
bool may_do_without(const Error& error, bool execute) {
  switch (error.sys) {
    // ACCESS decides about that: what may only be executed is not to be opened to read.
    case EACCES:
      return execute;
    case EIO:
    case EREMOTEIO:
    case EINVAL:
    case EOPNOTSUPP:
      return error.code != Errc::kTimedOut && error.code != Errc::kProtocol;
    default:
      return false;
  }
}

}  // namespace

Task<Result<AccessResult>> Nfs4Operations::open(const OpContext& op, const FileHandle& file,
                                                std::uint32_t wanted, OpenFor how) {
  const std::uint32_t share = nfs4::share_access(how.access);
  if (share == 0) co_return co_await access(op, file, wanted);
  if (how.deny.access != 0) {
    // A new file is closed behind its answer there, and that would be in the way.
    if (session_.minor() == 0) co_await new_files_.wait(op);
    NFSRDMA_CO_CHECK_OK(co_await locks_.open(op, file, share, nullptr, how.deny));
    Result<AccessResult> found = co_await access(op, file, wanted);
    if (!found.ok()) locks_.drop_denial(file, how.deny.owner);
    co_return found;
  }
  const bool ask = how.delegation && may_be_delegated() && delegations_.may_ask(file);
  if (session_.minor() == 0) {
    session_.offer_callbacks_again();
    if (!ask || op.place == nullptr) co_return co_await access(op, file, wanted);
    // A write delegation has to be good for READ, too: another stateid would be somebody else's.
    const bool writes = (share & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0;
    const std::uint32_t asked = writes ? xdr::OPEN4_SHARE_ACCESS_BOTH : share;
    auto opening = std::make_shared<Opening>(*this, op, file, wanted, asked);
    opening->ask_for_a_delegation();
    co_await delegation_opens_.open(op, file, *op.place, asked, opening);
    if (opening->result()) co_return std::move(*opening->result());
    co_return co_await access(op, file, wanted);
  }
  if (!ask && locks_.open_already(op.identity, file, share))
    co_return co_await access(op, file, wanted);
  auto opening = std::make_shared<Opening>(*this, op, file, wanted, share);
  if (ask) opening->ask_for_a_delegation();
  Result<void> opened = co_await locks_.open(op, file, share, opening);
  if (opened.ok() && opening->result()) co_return std::move(*opening->result());
  if (!opened.ok() && !may_do_without(opened.error(), how.execute)) co_return opened.error();
  co_return co_await access(op, file, wanted);
}

Task<void> Nfs4Operations::give_back(const FileHandle& file) {
  return end_behind_claim(file, &nfs4::Delegations::give_back);
}

Task<void> Nfs4Operations::give_way(const FileHandle& file) {
  if (!delegations_.may_be_in_the_way(file)) co_return;
  // What it has become behind the claim is looked at once more.
  co_await end_behind_claim(file, &nfs4::Delegations::give_way);
}

Task<void> Nfs4Operations::end_behind_claim(FileHandle file, DelegationEnding how) {
  const std::optional<xdr::stateid4> by = delegations_.stateid_to_claim_by(file);
  if (by) co_await locks_.claim(file, *by);
  co_await (delegations_.*how)(file);
  locks_.claim_later(file);
}

bool Nfs4Operations::open_already(const OpContext& op, const FileHandle& file,
                                  std::uint32_t access) {
  const std::uint32_t share = nfs4::share_access(access);
  if (session_.minor() == 0) return true;
  const DelegationKind held = delegations_.held(file);
  const bool writes = (share & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0;
  if (held == DelegationKind::kWrite || (held == DelegationKind::kRead && !writes)) {
    locks_.note_open(op.identity, file, share);
    return true;
  }
  return locks_.open_already(op.identity, file, share);
}

void Nfs4Operations::narrow_open(const OpContext& op, const FileHandle& file,
                                 std::uint32_t access) {
  locks_.narrow(op.identity, file, nfs4::share_access(access));
}

bool Nfs4Operations::may_be_delegated() const {
  return session_.has_back_channel();
}

xdr::stateid4 Nfs4Operations::stateid_now(const FileHandle& file, std::uint32_t access,
                                          const AuthSys& identity) const {
  constexpr xdr::stateid4 kAnonymous{};
  const xdr::stateid4 of_lock = locks_.stateid_of_lock(file, access);
  if (of_lock.other != kAnonymous.other || of_lock.seqid != 0) return of_lock;
  const xdr::stateid4 of_delegation = delegations_.stateid_for(file, access);
  if (of_delegation.other != kAnonymous.other) return of_delegation;
  return locks_.stateid_of_open(file, access, identity);
}

Result<DataRight> Nfs4Operations::right_for(const OpContext& op, const FileHandle& file,
                                            std::uint32_t access) const {
  NFSRDMA_CHECK_OK(locks_.usable(file));
  const xdr::stateid4 stateid = stateid_now(file, nfs4::share_access(access), op.identity);
  return DataRight{stateid.seqid, stateid.other};
}

bool Nfs4Operations::once_more(const FileHandle& file, const xdr::stateid4& used, nfsstat4 status) {
  if (!nfs4::stateid_is_gone(status)) return false;
  return delegations_.gone(file, used, status) || locks_.again(file, used, status);
}

}  // namespace nfsrdma
