// SPDX-License-Identifier: Apache-2.0
// Nfs4Operations: extended attributes (RFC 8276, section 8.4).
#include "client/nfs4/attributes_result.h"
#include "client/nfs4/call.h"
#include "client/nfs4/operations.h"

namespace nfsrdma {
namespace {

using nfs4::call;
using nfs4::CompoundReader;
using nfs4::CompoundWriter;
using nfs4::Ending;
using nfs4::kAttributes;
using nfs4::next_attributes;
using nfs4::put;
using nfs4::status_error;
using xdr::nfs_opnum4;
using xdr::nfsstat4;

constexpr std::size_t kUserPrefix = 5;  // "user."
/// Of a LISTXATTRS4resok, asked for at a time.
constexpr std::uint32_t kPageBytes = 16384;
/// Results of the other operations in front of those that can be long.
constexpr std::size_t kOtherResults = 1024;
/// Arguments beside a value: the handle, the name and what goes in front.
constexpr std::size_t kOtherArguments = 2048;

xdr::setxattr_option4 to_wire(XattrThere there) {
  switch (there) {
    case XattrThere::kNo:
      return xdr::setxattr_option4::SETXATTR4_CREATE;
    case XattrThere::kYes:
      return xdr::setxattr_option4::SETXATTR4_REPLACE;
    case XattrThere::kEither:
      break;
  }
  return xdr::setxattr_option4::SETXATTR4_EITHER;
}

/// A name that xattr(7) could not show is none.
bool is_sane(std::string_view name) {
  return !name.empty() && name.find('\0') == std::string_view::npos;
}

}  // namespace

Task<Result<std::string>> Nfs4Operations::get_xattr(const OpContext& op, const FileHandle& file,
                                                    std::string_view name) {
  if (!has_xattrs()) co_return not_in_this_version("GETXATTR");
  std::string value;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_GETXATTR, xdr::GETXATTR4args{name});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::GETXATTR4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_GETXATTR, got)) return;
    value = as_text(got.resok4.gxr_value);
  };
  const std::size_t room =
      std::min<std::size_t>(kMaxXattrBytes, session_.max_read()) + kOtherResults;
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {.max_results = room}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "GETXATTR");
  co_return value;
}

Task<Result<Wcc>> Nfs4Operations::set_xattr(const OpContext& op, const FileHandle& file,
                                            std::string_view name, ByteSpan value,
                                            XattrThere there) {
  if (!has_xattrs()) co_return not_in_this_version("SETXATTR");
  if (value.size() > std::min<std::size_t>(kMaxXattrBytes, session_.max_write())) {
    co_return Error{Errc::kSystem, E2BIG, "SETXATTR"};
  }
  Wcc result;
  bool done = false;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_SETXATTR, xdr::SETXATTR4args{to_wire(there), name, value});
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::SETXATTR4res set;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_SETXATTR, set)) return;
    done = true;
    result.change = nfs4::from_wire(set.resok4);
    next_attributes(in, names_, &result.after);
  };
  const std::size_t arguments = round_up4(value.size()) + kOtherArguments;
  NFSRDMA_CO_TRY(Ending end,
                 co_await call(session_, op, {.once = true, .arguments = arguments}, build, parse));
  if (done) co_return result;
  // In a second session: it may have been made, and found, by the first call.
  const bool doubtful =
      end.resent && there == XattrThere::kNo && end.status == nfsstat4::NFS4ERR_EXIST;
  if (doubtful) {
    Result<std::string> now = co_await get_xattr(op, file, name);
    if (now.ok() && *now == as_text(value)) co_return result;
  }
  co_return status_error(end.status, "SETXATTR");
}

Task<Result<std::vector<std::string>>> Nfs4Operations::list_xattrs(const OpContext& op,
                                                                   const FileHandle& file) {
  if (!has_xattrs()) co_return not_in_this_version("LISTXATTRS");
  std::vector<std::string> names;
  xdr::LISTXATTRS4args args;
  args.lxa_maxcount = std::min(kPageBytes, session_.max_read());
  std::size_t bytes = 0;
  bool eof = false;
  std::size_t before = 0;  // names of earlier pages: a page is read once for each time it is sent
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_LISTXATTRS, args);
  };
  std::uint64_t next = 0;
  bool received = false;
  auto parse = [&](CompoundReader& in) {
    xdr::LISTXATTRS4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_LISTXATTRS, got)) return;
    names.resize(before);
    for (const xdr::xattrkey4& key : got.resok4.lxr_names) {
      if (!is_sane(key.name)) continue;
      received = true;  // each such name counts towards the limit
      names.emplace_back(key.name);
    }
    next = got.resok4.lxr_cookie;
    eof = got.resok4.lxr_eof;
  };
  while (!eof) {
    received = false;
    NFSRDMA_CO_TRY(Ending end,
                   co_await call(session_, op, {.max_results = args.lxa_maxcount + kOtherResults},
                                 build, parse));
    if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "LISTXATTRS");
    if (!received && !eof) {
      co_return Error{Errc::kProtocol, EIO, "LISTXATTRS: empty page before the end"};
    }
    for (; before < names.size(); ++before)
      bytes += names[before].size() + kUserPrefix + 1;
    if (bytes > kMaxXattrBytes) co_return Error{Errc::kSystem, E2BIG, "LISTXATTRS"};
    args.lxa_cookie = next;
  }
  co_return names;
}

Task<Result<Wcc>> Nfs4Operations::remove_xattr(const OpContext& op, const FileHandle& file,
                                               std::string_view name) {
  if (!has_xattrs()) co_return not_in_this_version("REMOVEXATTR");
  Wcc result;
  bool done = false;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_REMOVEXATTR, xdr::REMOVEXATTR4args{name});
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::REMOVEXATTR4res removed;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_REMOVEXATTR, removed)) return;
    done = true;
    result.change = nfs4::from_wire(removed.resok4);
    next_attributes(in, names_, &result.after);
  };
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {.once = true}, build, parse));
  // In a second session: the first call has removed it.
  if (done || (end.resent && end.status == nfsstat4::NFS4ERR_NOXATTR)) co_return result;
  co_return status_error(end.status, "REMOVEXATTR");
}

}  // namespace nfsrdma
