// SPDX-License-Identifier: Apache-2.0
// NFS version 4: READDIR.
//
// The client decodes READDIR4res and walks resok4.reply.entries, a list that stays encoded. The
// server does not build such a value but streams it (directory_writer.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "xdr/directory_writer.h"
#include "xdr/nfs4_attributes.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

struct READDIR4args {
  std::uint64_t cookie = 0;
  verifier4 cookieverf{};
  std::uint32_t dircount = 0;  // of names and cookies alone, a hint
  std::uint32_t maxcount = 0;  // of READDIR4resok, in bytes of XDR
  bitmap4 attr_request{};
};
template <typename A, Is<READDIR4args> V>
void visit(A& ar, V& v) {
  ar("cookie", v.cookie);
  ar("cookieverf", v.cookieverf);
  ar("dircount", v.dircount);
  ar("maxcount", v.maxcount);
  ar("attr_request", v.attr_request);
}

struct entry4 {
  std::uint64_t cookie = 0;
  std::string_view name{};
  fattr4 attrs{};
};
template <typename A, Is<entry4> V>
void visit(A& ar, V& v) {
  ar("cookie", v.cookie);
  ar.string("name", v.name, kNfs4MaxName);
  ar("attrs", v.attrs);
}

struct dirlist4 {
  EncodedList<entry4> entries{};
  bool eof = false;
};
template <typename A, Is<dirlist4> V>
void visit(A& ar, V& v) {
  ar.list("entries", v.entries, kNfs4MaxDirectoryEntries);
  ar("eof", v.eof);
}

struct READDIR4resok {
  verifier4 cookieverf{};
  dirlist4 reply{};
};
template <typename A, Is<READDIR4resok> V>
void visit(A& ar, V& v) {
  ar("cookieverf", v.cookieverf);
  ar("reply", v.reply);
}

using READDIR4res = Nfs4Result<READDIR4resok>;

/// entry4 with its attributes as values, for the server to encode.
struct AttributedEntry4 {
  using Head = verifier4;
  static constexpr std::size_t kDirectoryBytes = 8 + 4;  // cookie, length
  std::uint64_t cookie = 0;
  std::string_view name{};
  FileAttributes4 attrs{};
};
template <typename A, Is<AttributedEntry4> V>
void visit(A& ar, V& v) {
  ar("cookie", v.cookie);
  ar.string("name", v.name, kNfs4MaxName);
  ar("attrs", v.attrs);
}

/// Of READDIR's arguments, for DirectoryWriter<AttributedEntry4>; its head is the cookie verifier.
/// A dircount of 0 is no limit (RFC 8881, 18.23.3).
inline DirectoryLimits directory_limits(const READDIR4args& args) {
  DirectoryLimits limits{.result_bytes = args.maxcount};
  if (args.dircount != 0) limits.directory_bytes = args.dircount;
  return limits;
}

}  // namespace nfsrdma::xdr
