// SPDX-License-Identifier: Apache-2.0
// Nfs4Operations: READDIR. NFSv4 has no entries for "." and "..", which applications expect: they
// are made up here. Cookies 1 and 2, which no server uses for others (RFC 8881, section 18.23.3),
// stand behind them.
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
using nfs4::put;
using nfs4::status_error;
using xdr::bitmap4;
using xdr::fattr4_number;
using xdr::nfs_opnum4;
using xdr::nfsstat4;

constexpr std::uint64_t kBehindDot = 1;
constexpr std::uint64_t kBehindDotDot = 2;
/// What a page takes besides its entries, and the attributes of the directory.
constexpr std::size_t kPageOverhead = 1024;

constexpr bitmap4 kEntry =
    bitmap4::of({fattr4_number::FATTR4_RDATTR_ERROR, fattr4_number::FATTR4_FILEID});

bitmap4 attributes_of_entries(bool plus) {
  bitmap4 mask = plus ? kAttributes : kEntry;
  mask.set(fattr4_number::FATTR4_RDATTR_ERROR);
  if (plus) mask.set(fattr4_number::FATTR4_FILEHANDLE);
  return mask;
}

/// Hands entries over until the visitor has enough.
class PageVisit {
 public:
  PageVisit(DirectoryVisitor& visitor, nfs4::IdNames& names, std::uint64_t cookie)
      : visitor_(visitor), names_(names) {
    page.cookie = cookie;
  }

  void dots(const FileHandle& directory, const std::optional<Attributes>& attributes) {
    const std::uint64_t fileid = attributes ? attributes->fileid : 1;
    const Attributes* known = attributes ? &*attributes : nullptr;
    if (page.cookie < kBehindDot) take({fileid, ".", kBehindDot, known, &directory});
    if (page.cookie < kBehindDotDot) take({fileid, "..", kBehindDotDot, nullptr, nullptr});
  }

  void entries(const xdr::READDIR4resok& result) {
    page.verifier = load_be64(result.cookieverf.data());
    received = !result.reply.entries.empty();
    for (const xdr::entry4& entry : result.reply.entries) {
      if (full_) break;
      if (sane_entry_name(entry.name)) {
        one(entry);
      } else {
        page.cookie = entry.cookie;
      }
    }
    page.eof = result.reply.eof && !full_;
  }

  DirectoryPage page;
  bool received = false;

 private:
  void one(const xdr::entry4& entry) {
    xdr::FileAttributes4 values;
    const bool readable =
        xdr::decode_attributes(entry.attrs, values).outcome == xdr::AttributeDecoding::kOk;
    std::optional<Attributes> attributes;
    FileHandle handle;
    std::uint64_t fileid = 0;
    if (readable) {
      if (values.attrmask.has(fattr4_number::FATTR4_FILEID)) fileid = values.fileid;
      // Of an object that could not be looked at, the server gives the error alone.
      const bool bad = values.attrmask.has(fattr4_number::FATTR4_RDATTR_ERROR) &&
                       values.rdattr_error != nfsstat4::NFS4_OK;
      values.attrmask.clear(fattr4_number::FATTR4_RDATTR_ERROR);
      if (!bad) attributes = nfs4::from_wire(values, names_);
      if (values.attrmask.has(fattr4_number::FATTR4_FILEHANDLE)) {
        handle = FileHandle(values.filehandle.data);
      }
    }
    take({fileid, entry.name, entry.cookie, attributes ? &*attributes : nullptr,
          handle.empty() ? nullptr : &handle});
  }

  void take(const DirectoryEntry& entry) {
    if (full_) return;
    if (!visitor_.on_entry(entry)) {
      full_ = true;
      return;
    }
    page.cookie = entry.cookie;
    ++page.entries;
  }

  DirectoryVisitor& visitor_;
  nfs4::IdNames& names_;
  bool full_ = false;
};

}  // namespace

Task<Result<DirectoryPage>> Nfs4Operations::page(const OpContext& op, const FileHandle& directory,
                                                 std::uint64_t cookie, std::uint64_t verifier,
                                                 std::uint32_t max_bytes, bool plus,
                                                 DirectoryVisitor& visitor) {
  xdr::READDIR4args args;
  args.cookie = cookie <= kBehindDotDot ? 0 : cookie;
  if (args.cookie != 0) store_be64(args.cookieverf.data(), verifier);
  args.dircount = max_bytes;
  args.maxcount = std::min(max_bytes, session_.max_read());
  args.attr_request = attributes_of_entries(plus);
  PageVisit visit(visitor, names_, cookie);
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(directory));
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
    out.op(nfs_opnum4::OP_READDIR, args);
  };
  auto parse = [&](CompoundReader& in) {
    xdr::READDIR4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH)) return;
    visit.page.directory = nfs4::next_attributes(in, names_);
    if (!in.next(nfs_opnum4::OP_READDIR, got)) return;
    visit.dots(directory, visit.page.directory);
    visit.entries(got.resok4);
  };
  NFSRDMA_CO_TRY(
      Ending end,
      co_await call(session_, op, {.max_results = args.maxcount + kPageOverhead}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "READDIR");
  if (visit.page.entries == 0 && !visit.received && !visit.page.eof) {
    co_return Error{Errc::kProtocol, EIO, "READDIR: empty page before the end"};
  }
  co_return visit.page;
}

Task<Result<DirectoryPage>> Nfs4Operations::readdir(const OpContext& op,
                                                    const FileHandle& directory,
                                                    std::uint64_t cookie, std::uint64_t verifier,
                                                    std::uint32_t max_bytes,
                                                    DirectoryVisitor& visitor) {
  return page(op, directory, cookie, verifier, max_bytes, false, visitor);
}

Task<Result<DirectoryPage>> Nfs4Operations::readdirplus(
    const OpContext& op, const FileHandle& directory, std::uint64_t cookie, std::uint64_t verifier,
    std::uint32_t max_bytes, DirectoryVisitor& visitor) {
  return page(op, directory, cookie, verifier, max_bytes, true, visitor);
}

}  // namespace nfsrdma
