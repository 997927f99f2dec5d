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
}  // namespace

std::optional<ResultPlace> find_result(ByteSpan call_head, ByteSpan reply_prefix) {
  if (call_head.size() < 24 || load_be32(call_head.data() + 12) != kNfsProgram ||
      load_be32(call_head.data() + 16) != 3) {
    return std::nullopt;
  }
  const std::uint32_t procedure = load_be32(call_head.data() + 20);
  if (procedure != NFSPROC3_READ && procedure != NFSPROC3_READLINK) return std::nullopt;

  WordReader in(reply_prefix);
  in.word();                      // xid
  bool good = in.word() == 1;     // REPLY
  good = in.word() == 0 && good;  // MSG_ACCEPTED
  in.word();                      // verifier flavour
  const std::uint32_t verifier = in.word();
  if (!good || verifier > kMaxVerifier) return std::nullopt;
  for (std::uint32_t i = 0; i < (verifier + 3) / 4; ++i)
    in.word();
  good = in.word() == 0;          // SUCCESS
  good = in.word() == 0 && good;  // NFS3_OK
  const std::uint32_t attributes = in.word();
  if (!good || attributes > 1) return std::nullopt;
  for (std::uint32_t i = 0; i < attributes * kAttributeWords; ++i)
    in.word();
  if (procedure == NFSPROC3_READ) {
    in.word();  // count
    in.word();  // eof
  }
  const std::uint32_t length = in.word();
  if (!in.ok()) return std::nullopt;
  return ResultPlace{in.consumed(), length};
}

}  // namespace nfsrdma
