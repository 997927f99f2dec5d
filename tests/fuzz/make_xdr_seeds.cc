// SPDX-License-Identifier: Apache-2.0
// Writes the seed corpora of the xdr_ fuzz targets from random values:
//   make_xdr_seeds tests/fuzz
// The files are checked in; run it again only when types are added.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/xdr_bytes.h"
#include "tests/support/xdr_nfs4_types.h"
#include "tests/support/xdr_types.h"
#include "xdr/random.h"

namespace {

using namespace nfsrdma;

constexpr std::size_t kLargestSeed = 600;

void write_file(const std::filesystem::path& path, std::size_t index,
                std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.put(static_cast<char>(index));
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

/// The largest of a few values that is no larger than a seed may be: more arms, more lists.
template <typename T>
std::vector<std::byte> seed_bytes(std::uint64_t first_seed) {
  std::vector<std::byte> best;
  for (std::uint64_t seed = first_seed; seed < first_seed + 20; ++seed) {
    xdr::RandomSource random(seed, 64);
    auto bytes = testing::encode_flat(random.make<T>());
    if (bytes.size() <= kLargestSeed && bytes.size() >= best.size()) best = bytes;
  }
  return best;
}

template <typename... T>
void write_corpus(testing::TypeList<T...>, const std::filesystem::path& folder, int per_type) {
  std::filesystem::create_directories(folder);
  for (int round = 0; round < per_type; ++round) {
    std::size_t index = 0;
    auto write = [&](const std::vector<std::byte>& bytes) {
      write_file(folder / (std::to_string(index) + "_" + std::to_string(round)), index, bytes);
      ++index;
    };
    (write(seed_bytes<T>(static_cast<std::uint64_t>(round) * 1000)), ...);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_xdr_seeds tests/fuzz\n");
    return 2;
  }
  const std::filesystem::path root = argv[1];
  write_corpus(testing::RpcTypes{}, root / "xdr_rpc" / "corpus", 8);
  write_corpus(testing::Nfs3Args{}, root / "xdr_nfs3_args" / "corpus", 1);
  write_corpus(testing::Nfs3Results{}, root / "xdr_nfs3_results" / "corpus", 1);
  write_corpus(testing::Nfs4ServerReads{}, root / "xdr_nfs4_server" / "corpus", 1);
  write_corpus(testing::Nfs4ClientReads{}, root / "xdr_nfs4_client" / "corpus", 1);
  write_corpus(testing::Mount3Types{}, root / "xdr_mount3" / "corpus", 4);
  write_corpus(testing::NfsAcl3Types{}, root / "xdr_nfsacl3" / "corpus", 4);
  write_corpus(testing::RquotaTypes{}, root / "xdr_rquota" / "corpus", 2);
  write_corpus(testing::Nlm4Types{}, root / "xdr_nlm4" / "corpus", 2);
  write_corpus(testing::Nsm1Types{}, root / "xdr_nsm1" / "corpus", 2);
  write_corpus(testing::RpcbTypes{}, root / "xdr_rpcb" / "corpus", 2);
  return 0;
}
