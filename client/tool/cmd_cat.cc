// SPDX-License-Identifier: Apache-2.0
// nfs-rdma cat.
#include <unistd.h>

#include <cstring>

#include "client/tool/arguments.h"
#include "client/tool/commands.h"
#include "client/tool/side.h"
#include "rpcrdma/base/lasting_memory.h"

namespace nfsrdma::tool {
namespace {

constexpr std::size_t kBlock = 8 << 20;  // read as several requests at once

Result<void> write_all(std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("write to standard output");
    data = data.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Task<Result<void>> cat_place(Place place) {
  NFSRDMA_CO_TRY(struct stat st, co_await place.side->status(place.path, true));
  if (S_ISDIR(st.st_mode)) co_return Error{Errc::kSystem, EISDIR, "cat"};
  NFSRDMA_CO_TRY(std::unique_ptr<SideFile> file, co_await place.side->open(place.path));
  std::vector<std::byte> buffer(kBlock);
  const LastingMemory lasting(buffer);
  for (std::uint64_t offset = 0;;) {
    NFSRDMA_CO_TRY(std::size_t count, co_await file->read(buffer, offset));
    if (count == 0) break;
    NFSRDMA_CO_CHECK_OK(write_all({buffer.data(), count}));
    offset += count;
  }
  co_return Result<void>();
}

}  // namespace

int run_cat(const Words& words) {
  Arguments arguments("cat", "URL|PATH...", "Writes files to standard output.");
  if (auto code = arguments.parse(words, 1, 1000)) return *code;
  auto driver = LoopDriver::create();
  if (!driver.ok()) {
    complain("cat", driver.error().message());
    return kExitFailure;
  }
  std::shared_ptr<LoopDriver> shared = std::move(*driver);
  int code = kExitOk;
  for (const std::string& operand : arguments.operands()) {
    Place place;
    std::string error;
    if (!open_place(operand, shared, &place, &error)) {
      complain("cat", error);
      code = kExitFailure;
      continue;
    }
    Result<void> done = shared->run(cat_place(place));
    if (!done.ok()) {
      complain("cat", place.shown + ": " + std::strerror(errno_of(done.error())));
      code = kExitFailure;
    }
  }
  return code;
}

}  // namespace nfsrdma::tool
