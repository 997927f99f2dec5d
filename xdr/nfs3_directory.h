// SPDX-License-Identifier: Apache-2.0
// NFS version 3 (RFC 1813): the results of READDIR and READDIRPLUS.
//
// The client decodes READDIR3res and walks resok.reply.entries, a list that stays encoded. The
// server does not build such a value but streams it (directory_writer.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "xdr/directory_writer.h"
#include "xdr/encoded_list.h"
#include "xdr/nfs3_results.h"
#include "xdr/nfs3_types.h"

namespace nfsrdma::xdr {

/// Of READDIR3resok and READDIRPLUS3resok, what comes before the entries.
struct DirectoryHead3 {
  post_op_attr dir_attributes{};
  cookieverf3 cookieverf{};
};
template <typename A, Is<DirectoryHead3> V>
void visit(A& ar, V& v) {
  ar("dir_attributes", v.dir_attributes);
  ar("cookieverf", v.cookieverf);
}

struct entry3 {
  using Head = DirectoryHead3;
  static constexpr std::size_t kDirectoryBytes = 8 + 4 + 8;  // fileid, length, cookie
  std::uint64_t fileid = 0;
  std::string_view name{};
  std::uint64_t cookie = 0;
};
template <typename A, Is<entry3> V>
void visit(A& ar, V& v) {
  ar("fileid", v.fileid);
  ar.string("name", v.name, kNfs3MaxName);
  ar("cookie", v.cookie);
}

struct dirlist3 {
  EncodedList<entry3> entries{};
  bool eof = false;
};
template <typename A, Is<dirlist3> V>
void visit(A& ar, V& v) {
  ar.list("entries", v.entries, kNfs3MaxDirectoryEntries);
  ar("eof", v.eof);
}

struct READDIR3resok {
  post_op_attr dir_attributes{};
  cookieverf3 cookieverf{};
  dirlist3 reply{};
};
template <typename A, Is<READDIR3resok> V>
void visit(A& ar, V& v) {
  ar("dir_attributes", v.dir_attributes);
  ar("cookieverf", v.cookieverf);
  ar("reply", v.reply);
}

struct READDIR3resfail {
  post_op_attr dir_attributes{};
};
template <typename A, Is<READDIR3resfail> V>
void visit(A& ar, V& v) {
  ar("dir_attributes", v.dir_attributes);
}

using READDIR3res = Nfs3Result<READDIR3resok, READDIR3resfail>;

struct entryplus3 {
  using Head = DirectoryHead3;
  static constexpr std::size_t kDirectoryBytes = entry3::kDirectoryBytes;
  std::uint64_t fileid = 0;
  std::string_view name{};
  std::uint64_t cookie = 0;
  post_op_attr name_attributes{};
  post_op_fh3 name_handle{};
};
template <typename A, Is<entryplus3> V>
void visit(A& ar, V& v) {
  ar("fileid", v.fileid);
  ar.string("name", v.name, kNfs3MaxName);
  ar("cookie", v.cookie);
  ar("name_attributes", v.name_attributes);
  ar("name_handle", v.name_handle);
}

struct dirlistplus3 {
  EncodedList<entryplus3> entries{};
  bool eof = false;
};
template <typename A, Is<dirlistplus3> V>
void visit(A& ar, V& v) {
  ar.list("entries", v.entries, kNfs3MaxDirectoryEntries);
  ar("eof", v.eof);
}

struct READDIRPLUS3resok {
  post_op_attr dir_attributes{};
  cookieverf3 cookieverf{};
  dirlistplus3 reply{};
};
template <typename A, Is<READDIRPLUS3resok> V>
void visit(A& ar, V& v) {
  ar("dir_attributes", v.dir_attributes);
  ar("cookieverf", v.cookieverf);
  ar("reply", v.reply);
}

struct READDIRPLUS3resfail {
  post_op_attr dir_attributes{};
};
template <typename A, Is<READDIRPLUS3resfail> V>
void visit(A& ar, V& v) {
  ar("dir_attributes", v.dir_attributes);
}

using READDIRPLUS3res = Nfs3Result<READDIRPLUS3resok, READDIRPLUS3resfail>;

}  // namespace nfsrdma::xdr
