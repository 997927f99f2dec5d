// SPDX-License-Identifier: Apache-2.0
// Runs every file of the given folders through a fuzz target, without libFuzzer. Each file is also
// cut at every length of its first 256 bytes, since truncation is what parsers forget.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {
/// In memory of exactly this size, so that a sanitizer sees the first byte too many.
void run(const std::vector<char>& bytes, std::size_t size) {
  auto exact = std::make_unique<std::uint8_t[]>(size);
  std::copy_n(bytes.begin(), size, exact.get());
  LLVMFuzzerTestOneInput(exact.get(), size);
}
}  // namespace

int main(int argc, char** argv) {
  std::size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
      for (std::size_t n = 0; n <= std::min<std::size_t>(bytes.size(), 256); ++n)
        run(bytes, n);
      run(bytes, bytes.size());
      ++files;
    }
  }
  std::printf("%zu files replayed\n", files);
  return files > 0 ? 0 : 1;
}
