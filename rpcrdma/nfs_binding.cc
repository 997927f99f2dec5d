// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/nfs_binding.h"

#include "rpcrdma/chunk_list.h"

namespace nfsrdma {

namespace {
constexpr std::uint32_t kNfsProgram = 100003;
constexpr std::uint32_t NFSPROC3_READLINK = 5;
constexpr std::uint32_t NFSPROC3_READ = 6;
constexpr std::uint32_t kMaxVerifier = 400;
constexpr std::uint32_t kAttributeWords = 21;  // fattr3
constexpr std::uint32_t NFSPROC4_COMPOUND = 1;
constexpr std::uint32_t OP_GETATTR = 9;
constexpr std::uint32_t OP_PUTFH = 22;
constexpr std::uint32_t OP_READ = 25;
constexpr std::uint32_t OP_READLINK = 27;
constexpr std::uint32_t OP_SEQUENCE = 53;
constexpr std::uint32_t kSequenceWords = 9;  // SEQUENCE4resok

void skip(WordReader& in, std::uint32_t words) {
  for (std::uint32_t i = 0; i < words && in.ok(); ++i)
    in.word();
}

/// READ3res or READLINK3res, up to the data's length word.
bool skip_to_data3(WordReader& in, std::uint32_t procedure) {
  const bool good = in.word() == 0;  // NFS3_OK
  const std::uint32_t attributes = in.word();
  if (!good || attributes > 1) return false;
  skip(in, attributes * kAttributeWords);
  if (procedure == NFSPROC3_READ) skip(in, 2);  // count, eof
  return true;
}

/// COMPOUND4res, up to the length word of the first READ's or READLINK's data. Only operations that
/// a reader puts in front of them are stepped over.
bool skip_to_data4(WordReader& in) {
  if (in.word() != 0) return false;  // NFS4_OK
  skip(in, (in.word() + 3) / 4);     // tag
  for (std::uint32_t left = in.word(); left > 0 && in.ok(); --left) {
    const std::uint32_t operation = in.word();
    if (in.word() != 0) return false;
    switch (operation) {
      case OP_PUTFH:
        break;
      case OP_SEQUENCE:
        skip(in, kSequenceWords);
        break;
      case OP_GETATTR:
        skip(in, in.word());            // mask
        skip(in, (in.word() + 3) / 4);  // values
        break;
      case OP_READ:
        in.word();  // eof
        return true;
      case OP_READLINK:
        return true;
      default:
        return false;
    }
  }
  return false;
}
}  // namespace

std::optional<ResultPlace> find_result(ByteSpan call_head, ByteSpan reply_prefix) {
  if (call_head.size() < 24 || load_be32(call_head.data() + 12) != kNfsProgram) {
    return std::nullopt;
  }
  const std::uint32_t version = load_be32(call_head.data() + 16);
  const std::uint32_t procedure = load_be32(call_head.data() + 20);
  const bool compound = version == 4 && procedure == NFSPROC4_COMPOUND;
  const bool reader =
      version == 3 && (procedure == NFSPROC3_READ || procedure == NFSPROC3_READLINK);
  if (!compound && !reader) return std::nullopt;

  WordReader in(reply_prefix);
  in.word();                      // xid
  bool good = in.word() == 1;     // REPLY
  good = in.word() == 0 && good;  // MSG_ACCEPTED
  in.word();                      // verifier flavour
  const std::uint32_t verifier = in.word();
  if (!good || verifier > kMaxVerifier) return std::nullopt;
  skip(in, (verifier + 3) / 4);
  if (in.word() != 0) return std::nullopt;  // SUCCESS
  if (!(compound ? skip_to_data4(in) : skip_to_data3(in, procedure))) return std::nullopt;
  const std::uint32_t length = in.word();
  if (!in.ok()) return std::nullopt;
  return ResultPlace{in.consumed(), length};
}

}  // namespace nfsrdma
