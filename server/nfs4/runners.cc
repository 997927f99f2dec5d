// SPDX-License-Identifier: Apache-2.0
// From operation numbers to the functions behind them.
#include <array>

#include "server/nfs4/operations.h"
#include "server/nfs4/owner_turn.h"

namespace nfsrdma::nfs4 {

namespace {

using xdr::nfsstat4;

template <typename Args>
bool decode_args(xdr::Decoder& decoder, Args& args) {
  if constexpr (std::is_same_v<Args, xdr::Void>) {
    return true;
  } else {
    return xdr::decode(decoder, args);
  }
}

/// A function with a result of the wire's type.
template <typename Args, typename Res, nfsstat4 (*kRun)(Compound&, const Args&, Res&)>
nfsstat4 typed(Compound& compound, xdr::Decoder& decoder, xdr::Encoder& result) {
  Args args;
  Res res;
  res.status = decode_args(decoder, args) ? compound.with_expired(kRun(compound, args, res))
                                          : nfsstat4::NFS4ERR_BADXDR;
  if (!compound.is_retry()) xdr::encode(result, res);
  return res.status;
}

/// The same for requests that minor version 0 puts into a sequence.
template <xdr::nfs_opnum4 kNumber, typename Args, typename Res,
          nfsstat4 (*kRun)(Compound&, const Args&, Res&)>
nfsstat4 sequenced(Compound& compound, xdr::Decoder& decoder, xdr::Encoder& result) {
  if (compound.minor_version() != 0) return typed<Args, Res, kRun>(compound, decoder, result);
  Args args;
  Res res;
  if (!decode_args(decoder, args)) {
    res.status = nfsstat4::NFS4ERR_BADXDR;
    xdr::encode(result, res);
    return res.status;
  }
  OwnerTurn turn(compound, args, static_cast<std::uint32_t>(kNumber));
  if (turn.what() == OwnerTurn::What::kReplay) {
    result.fixed_opaque(turn.reply());
    return turn.status();
  }
  const bool runs = turn.what() == OwnerTurn::What::kRun;
  res.status = runs ? compound.with_expired(kRun(compound, args, res)) : turn.status();
  if (compound.is_retry()) return res.status;
  const std::size_t mark = result.mark();
  xdr::encode(result, res);
  if (runs && !result.overflowed()) turn.finish(res.status, result.bytes().subspan(mark));
  return res.status;
}

/// One that writes its result itself when it succeeds.
template <typename Args, typename Res, nfsstat4 (*kRun)(Compound&, const Args&, xdr::Encoder&)>
nfsstat4 streamed(Compound& compound, xdr::Decoder& decoder, xdr::Encoder& result) {
  Args args;
  Res res;
  const std::size_t mark = result.mark();
  res.status = decode_args(decoder, args) ? compound.with_expired(kRun(compound, args, result))
                                          : nfsstat4::NFS4ERR_BADXDR;
  if (compound.is_retry() || res.status == nfsstat4::NFS4_OK) return res.status;
  result.rewind(mark);
  xdr::encode(result, res);
  return res.status;
}

struct Row {
  xdr::nfs_opnum4 number;
  Runner run;
};

#define TYPED(NAME, function)                                                      \
  Row {                                                                            \
    xdr::nfs_opnum4::OP_##NAME, typed<xdr::NAME##4args, xdr::NAME##4res, function> \
  }
#define SEQUENCED(NAME, function)                                                          \
  Row {                                                                                    \
    xdr::nfs_opnum4::OP_##NAME,                                                            \
        sequenced<xdr::nfs_opnum4::OP_##NAME, xdr::NAME##4args, xdr::NAME##4res, function> \
  }
#define PLAIN(NAME, function)                                               \
  Row {                                                                     \
    xdr::nfs_opnum4::OP_##NAME, typed<xdr::Void, xdr::NAME##4res, function> \
  }
#define STREAMED(NAME, function)                                                      \
  Row {                                                                               \
    xdr::nfs_opnum4::OP_##NAME, streamed<xdr::NAME##4args, xdr::NAME##4res, function> \
  }

constexpr Row kRows[] = {
    TYPED(ACCESS, access),
    SEQUENCED(CLOSE, close),
    TYPED(COMMIT, commit),
    TYPED(CREATE, create),
    TYPED(DELEGRETURN, delegreturn),
    STREAMED(GETATTR, getattr),
    PLAIN(GETFH, getfh),
    TYPED(LINK, link),
    SEQUENCED(LOCK, lock),
    TYPED(LOCKT, lockt),
    SEQUENCED(LOCKU, locku),
    TYPED(LOOKUP, lookup),
    PLAIN(LOOKUPP, lookupp),
    TYPED(NVERIFY, nverify),
    SEQUENCED(OPEN, open),
    SEQUENCED(OPEN_DOWNGRADE, open_downgrade),
    TYPED(PUTFH, putfh),
    PLAIN(PUTPUBFH, putrootfh),
    PLAIN(PUTROOTFH, putrootfh),
    TYPED(READ, read),
    STREAMED(READDIR, readdir),
    PLAIN(READLINK, readlink),
    TYPED(REMOVE, remove),
    TYPED(RENAME, rename),
    PLAIN(RESTOREFH, restorefh),
    PLAIN(SAVEFH, savefh),
    TYPED(SECINFO, secinfo),
    TYPED(SETATTR, setattr),
    TYPED(VERIFY, verify),
    TYPED(WRITE, write),
    TYPED(RENEW, renew),
    TYPED(SETCLIENTID, setclientid),
    TYPED(SETCLIENTID_CONFIRM, setclientid_confirm),
    SEQUENCED(OPEN_CONFIRM, open_confirm),
    TYPED(RELEASE_LOCKOWNER, release_lockowner),
    TYPED(BACKCHANNEL_CTL, backchannel_ctl),
    TYPED(BIND_CONN_TO_SESSION, bind_conn_to_session),
    TYPED(EXCHANGE_ID, exchange_id),
    STREAMED(CREATE_SESSION, create_session),
    TYPED(DESTROY_SESSION, destroy_session),
    TYPED(FREE_STATEID, free_stateid),
    TYPED(SECINFO_NO_NAME, secinfo_no_name),
    TYPED(SEQUENCE, sequence),
    TYPED(TEST_STATEID, test_stateid),
    TYPED(DESTROY_CLIENTID, destroy_clientid),
    TYPED(RECLAIM_COMPLETE, reclaim_complete),
    TYPED(ALLOCATE, allocate),
    TYPED(COPY, copy),
    TYPED(DEALLOCATE, deallocate),
    TYPED(IO_ADVISE, io_advise),
    TYPED(OFFLOAD_CANCEL, offload_cancel),
    TYPED(OFFLOAD_STATUS, offload_status),
    STREAMED(READ_PLUS, read_plus),
    TYPED(SEEK, seek),
    TYPED(CLONE, clone),
    TYPED(GETXATTR, getxattr),
    TYPED(SETXATTR, setxattr),
    TYPED(LISTXATTRS, listxattrs),
    TYPED(REMOVEXATTR, removexattr),
};
#undef TYPED
#undef SEQUENCED
#undef PLAIN
#undef STREAMED

constexpr auto make_table() {
  std::array<Runner, xdr::kNfs4LastOperation + 1> table{};
  for (const Row& row : kRows)
    table[static_cast<std::size_t>(row.number)] = row.run;
  return table;
}
constexpr auto kTable = make_table();

}  // namespace

Runner runner_of(std::uint32_t number) {
  return number < kTable.size() ? kTable[number] : nullptr;
}

}  // namespace nfsrdma::nfs4
