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
  // All that there is to say of a file system that is elsewhere.
  mask.set(fattr4_number::FATTR4_MOUNTED_ON_FILEID);
  if (plus) mask.set(fattr4_number::FATTR4_FILEHANDLE);
  return mask;
}

/// Hands entries over until the visitor has enough. From the first one on whose owners are not
/// known yet they are kept until those are.
class PageVisit {
 public:
  PageVisit(DirectoryVisitor& visitor, nfs4::IdNames& names, std::uint64_t cookie)
      : visitor_(visitor), names_(names) {
    page.cookie = cookie;
  }

  void dots(const FileHandle& directory) {
    // The directory's attributes may have to wait for their owners: they are looked at then.
    const std::uint64_t fileid = page.directory ? page.directory->fileid : 1;
    if (page.cookie < kBehindDot) {
      Entry& dot = next();
      dot.to_visit = {fileid, ".", kBehindDot, nullptr, &directory};
      dot.is_directory_itself = true;
      take();
    }
    if (page.cookie < kBehindDotDot) {
      next().to_visit = {fileid, "..", kBehindDotDot, nullptr, nullptr};
      take();
    }
  }

  void entries(const xdr::READDIR4resok& result) {
    page.verifier = load_be64(result.cookieverf.data());
    received = !result.reply.entries.empty();
    eof_ = result.reply.eof;
    for (const xdr::entry4& entry : result.reply.entries) {
      if (full_) break;
      if (sane_entry_name(entry.name)) {
        one(entry);
      } else if (kept_.empty()) {
        page.cookie = entry.cookie;
      }
    }
  }

  /// The names of owners are settled.
  void finish() {
    for (const std::unique_ptr<Entry>& entry : kept_)
      visit(*entry);
    page.eof = eof_ && !full_;
  }

  DirectoryPage page;
  bool received = false;

 private:
  struct Entry {
    DirectoryEntry to_visit;
    bool is_directory_itself = false;
    std::optional<Attributes> attributes;
    FileHandle handle;
    std::string name;  // once it is kept
  };

  /// The room for the next entry, which stays where it is when that is kept.
  Entry& next() {
    if (next_ == nullptr) {
      next_ = std::make_unique<Entry>();
    } else {
      *next_ = {};
    }
    return *next_;
  }

  void one(const xdr::entry4& from) {
    Entry& entry = next();
    xdr::FileAttributes4 values;
    const bool readable =
        xdr::decode_attributes(from.attrs, values).outcome == xdr::AttributeDecoding::kOk;
    std::uint64_t fileid = 0;
    if (readable) {
      if (values.attrmask.has(fattr4_number::FATTR4_FILEID)) {
        fileid = values.fileid;
      } else if (values.attrmask.has(fattr4_number::FATTR4_MOUNTED_ON_FILEID)) {
        fileid = values.mounted_on_fileid;
      }
      // Of an object that could not be looked at, the server gives the error alone.
      const bool bad = values.attrmask.has(fattr4_number::FATTR4_RDATTR_ERROR) &&
                       values.rdattr_error != nfsstat4::NFS4_OK;
      values.attrmask.clear(fattr4_number::FATTR4_RDATTR_ERROR);
      if (!bad) nfs4::from_wire(values, names_, &entry.attributes);
      if (values.attrmask.has(fattr4_number::FATTR4_FILEHANDLE)) {
        entry.handle = FileHandle(values.filehandle.data);
      }
    }
    entry.to_visit = {fileid, from.name, from.cookie, nullptr,
                      entry.handle.empty() ? nullptr : &entry.handle};
    take();
  }

  /// What next() gave.
  void take() {
    if (!names_.any_open()) {
      visit(*next_);
      return;
    }
    // The reply's bytes go away.
    next_->name = next_->to_visit.name;
    next_->to_visit.name = next_->name;
    kept_.push_back(std::move(next_));
  }

  void visit(Entry& entry) {
    if (full_) return;
    const std::optional<Attributes>& attributes =
        entry.is_directory_itself ? page.directory : entry.attributes;
    if (attributes) entry.to_visit.attributes = &*attributes;
    if (!visitor_.on_entry(entry.to_visit)) {
      full_ = true;
      return;
    }
    page.cookie = entry.to_visit.cookie;
    ++page.entries;
  }

  DirectoryVisitor& visitor_;
  nfs4::IdNames& names_;
  std::unique_ptr<Entry> next_;
  std::vector<std::unique_ptr<Entry>> kept_;
  bool full_ = false;
  bool eof_ = false;
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
    nfs4::next_attributes(in, names_, &visit.page.directory);
    if (!in.next(nfs_opnum4::OP_READDIR, got)) return;
    visit.dots(directory);
    visit.entries(got.resok4);
  };
  NFSRDMA_CO_TRY(
      Ending end,
      co_await call(session_, op, {.max_results = args.maxcount + kPageOverhead}, build, parse));
  // The verifier is from before a change: the same to whoever reads (RFC 8881 18.23.3).
  if (end.status == nfsstat4::NFS4ERR_NOT_SAME) end.status = nfsstat4::NFS4ERR_BAD_COOKIE;
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "READDIR");
  visit.finish();
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
