// SPDX-License-Identifier: Apache-2.0
// OldClient: a client of minor version 0 of Nfs4Harness, which can be called at a CallbackService.
// It has one open-owner.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "server/nfs4/callback_lines.h"
#include "tests/support/callback_service.h"
#include "tests/support/nfs4_harness.h"
#include "xdr/universal_address.h"

namespace nfsrdma::test {

class OldClient {
 public:
  using Line = nfs4::CallbackLines::State;

  OldClient(Nfs4Harness& harness, std::string name) : harness_(harness), name_(std::move(name)) {}
  std::uint64_t id() const { return id_; }

  Reply4 run(const Operations4& operations) { return harness_.run_bare(operations, 0); }

  /// SETCLIENTID, of that life of the client, and its confirmation: it is called there.
  void introduce(std::string_view host, std::uint16_t port, std::uint8_t life = 0) {
    const std::string address = xdr::format_universal_address(host, port);
    xdr::SETCLIENTID4args who;
    who.client.id = as_bytes(name_);
    who.client.verifier.fill(std::byte{life});
    who.callback.cb_program = CallbackService::kProgram;
    who.callback.cb_location = {"tcp", address};
    who.callback_ident = CallbackService::kIdent;
    const auto known = run(Operations4().add<OP_SETCLIENTID>(who)).get<OP_SETCLIENTID>().resok4;
    id_ = known.clientid;
    ASSERT_EQ(
        run(Operations4().add<OP_SETCLIENTID_CONFIRM>({known.clientid, known.setclientid_confirm}))
            .status,
        NFS4_OK);
  }
  /// Once it is known whether it can be called.
  Line line() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      {
        std::lock_guard lock(harness_.state().mutex);
        const Line now = harness_.state().caller.lines().state(id_);
        if (now != Line::kUnknown) return now;
      }
      if (std::chrono::steady_clock::now() >= end) return Line::kUnknown;
      std::this_thread::yield();
    }
  }

  Reply4 open(std::string_view name, std::uint32_t access) {
    xdr::OPEN4args args = open_args(access);
    args.claim.file = name;
    return run(Operations4().putfh(harness_.root()).add<OP_OPEN>(args));
  }
  /// After a restart of the server, with the delegation that it had.
  Reply4 reclaim(const FileHandle& file, std::uint32_t access,
                 xdr::open_delegation_type4 delegation) {
    owner_seqid_ = 0;
    xdr::OPEN4args args = open_args(access);
    args.claim.claim = xdr::open_claim_type4::CLAIM_PREVIOUS;
    args.claim.delegate_type = delegation;
    return run(Operations4().putfh(file).add<OP_OPEN>(args));
  }
  /// By an open of `name`. An owner that is not known, whose request may be an old one, is promised
  /// nothing.
  void confirm_owner(std::string_view name) {
    const Reply4 first = open(name, xdr::OPEN4_SHARE_ACCESS_READ);
    ASSERT_EQ(first.status, NFS4_OK);
    const auto& result = first.get<OP_OPEN>().resok4;
    EXPECT_EQ(result.delegation.delegation_type, xdr::open_delegation_type4::OPEN_DELEGATE_NONE);
    ASSERT_NE(result.rflags & xdr::OPEN4_RESULT_CONFIRM, 0u);
    ASSERT_EQ(run(Operations4()
                      .putfh(harness_.lookup(harness_.root(), name))
                      .add<OP_OPEN_CONFIRM>({result.stateid, ++owner_seqid_}))
                  .status,
              NFS4_OK);
  }

 private:
  xdr::OPEN4args open_args(std::uint32_t access) {
    xdr::OPEN4args args;
    args.seqid = ++owner_seqid_;
    args.share_access = access;
    args.owner = {id_, as_bytes(std::string_view("owner"))};
    return args;
  }

  Nfs4Harness& harness_;
  const std::string name_;
  std::uint64_t id_ = 0;
  std::uint32_t owner_seqid_ = 0;  // of the last request
};

}  // namespace nfsrdma::test
