// SPDX-License-Identifier: Apache-2.0
// Nfs3Operations: READDIR and READDIRPLUS, one page at a time.
#include "client/nfs3/call.h"
#include "client/nfs3/operations.h"

namespace nfsrdma {
namespace {

using nfs3::Answer;
using nfs3::call;
using nfs3::from_wire;
using nfs3::status_error;
using nfs3::to_wire;
using xdr::nfsproc3;
using xdr::nfsstat3;

/// What a page takes besides its entries: status, directory attributes, verifier, end.
constexpr std::size_t kPageOverhead = 256;

xdr::cookieverf3 verifier_to_wire(std::uint64_t verifier) {
  xdr::cookieverf3 wire;
  store_be64(wire.data(), verifier);
  return wire;
}

bool visit_entry(const xdr::entry3& wire, DirectoryVisitor& visitor) {
  return visitor.on_entry({wire.fileid, wire.name, wire.cookie, nullptr, nullptr});
}

bool visit_entry(const xdr::entryplus3& wire, DirectoryVisitor& visitor) {
  std::optional<Attributes> attributes = from_wire(wire.name_attributes);
  FileHandle handle;
  if (wire.name_handle.handle_follows) handle = FileHandle(wire.name_handle.handle.data);
  return visitor.on_entry({wire.fileid, wire.name, wire.cookie, attributes ? &*attributes : nullptr,
                           handle.empty() ? nullptr : &handle});
}

template <typename Resok>
DirectoryPage visit_page(const Resok& ok, std::uint64_t cookie, DirectoryVisitor& visitor) {
  DirectoryPage page;
  page.verifier = load_be64(ok.cookieverf.data());
  page.directory = from_wire(ok.dir_attributes);
  page.cookie = cookie;
  page.eof = ok.reply.eof;
  for (const auto& entry : ok.reply.entries) {
    if (sane_entry_name(entry.name) && !visit_entry(entry, visitor)) {
      page.eof = false;
      break;
    }
    page.cookie = entry.cookie;
    ++page.entries;
  }
  return page;
}

}  // namespace

Task<Result<DirectoryPage>> Nfs3Operations::readdir(const OpContext& op,
                                                    const FileHandle& directory,
                                                    std::uint64_t cookie, std::uint64_t verifier,
                                                    std::uint32_t max_bytes,
                                                    DirectoryVisitor& visitor) {
  const xdr::READDIR3args args{to_wire(directory), cookie, verifier_to_wire(verifier), max_bytes};
  NFSRDMA_CO_TRY(Answer<xdr::READDIR3res> answer,
                 co_await call<xdr::READDIR3res>(*rpc_, op, nfsproc3::NFSPROC3_READDIR, args,
                                                 {.max_results = max_bytes + kPageOverhead}));
  if (answer.value.status != nfsstat3::NFS3_OK) {
    co_return status_error(answer.value.status, "READDIR");
  }
  DirectoryPage page = visit_page(answer.value.resok, cookie, visitor);
  if (page.entries == 0 && answer.value.resok.reply.entries.empty() && !page.eof) {
    co_return Error{Errc::kProtocol, EIO, "READDIR: empty page before the end"};
  }
  co_return page;
}

Task<Result<DirectoryPage>> Nfs3Operations::readdirplus(
    const OpContext& op, const FileHandle& directory, std::uint64_t cookie, std::uint64_t verifier,
    std::uint32_t max_bytes, DirectoryVisitor& visitor) {
  if (!readdirplus_)
    co_return co_await readdir(op, directory, cookie, verifier, max_bytes, visitor);
  const xdr::READDIRPLUS3args args{to_wire(directory), cookie, verifier_to_wire(verifier),
                                   max_bytes, max_bytes};
  Result<Answer<xdr::READDIRPLUS3res>> called = co_await call<xdr::READDIRPLUS3res>(
      *rpc_, op, nfsproc3::NFSPROC3_READDIRPLUS, args, {.max_results = max_bytes + kPageOverhead});
  const bool lacks_it =
      called.ok() ? called->value.status == nfsstat3::NFS3ERR_NOTSUPP
                  : called.error().code == Errc::kUnsupported && called.error().sys == EOPNOTSUPP;
  if (lacks_it) {
    // Some servers do, or their administrators have it so.
    readdirplus_ = false;
    co_return co_await readdir(op, directory, cookie, verifier, max_bytes, visitor);
  }
  if (!called.ok()) co_return called.error();
  const Answer<xdr::READDIRPLUS3res>& answer = *called;
  if (answer.value.status != nfsstat3::NFS3_OK) {
    co_return status_error(answer.value.status, "READDIRPLUS");
  }
  DirectoryPage page = visit_page(answer.value.resok, cookie, visitor);
  if (page.entries == 0 && answer.value.resok.reply.entries.empty() && !page.eof) {
    co_return Error{Errc::kProtocol, EIO, "READDIRPLUS: empty page before the end"};
  }
  co_return page;
}

}  // namespace nfsrdma
