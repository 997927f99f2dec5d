// SPDX-License-Identifier: Apache-2.0
// AsyncMount: files that are made with their data.
#include "client/async_mount.h"

namespace nfsrdma {
namespace {

/// Writes that a server which restarts again and again has lost, before that is an error.
constexpr int kLostWrites = 4;

/// write() that is on stable storage when it is over, whatever the server makes of FILE_SYNC.
Task<Result<WriteResult>> write_stable(AsyncMount& mount, const OpContext& op,
                                       const FileHandle& file, std::uint64_t offset,
                                       ByteSpan data) {
  for (int lost = 0; lost < kLostWrites; ++lost) {
    NFSRDMA_CO_TRY(WriteResult written,
                   co_await mount.write(op, file, offset, data, Stability::kFileSync));
    if (written.stability != Stability::kUnstable) co_return written;
    NFSRDMA_CO_TRY(const CommitResult commit, co_await mount.commit(op, file, 0, 0));
    if (!written.verifier_changed && commit.verifier == written.verifier) co_return written;
  }
  co_return Error{Errc::kProtocol, EIO, "the server keeps losing what it has committed"};
}

}  // namespace

Task<Result<CreateResult>> AsyncMount::create_with_data(const OpContext& op,
                                                        const FileHandle& directory,
                                                        std::string_view name, CreateMode mode,
                                                        const SetAttributes& set, ByteSpan data) {
  SetAttributes first = set;
  first.size.reset();
  if (mode == CreateMode::kUnchecked) first.size = 0;
  std::size_t written = 0;
  Result<CreateResult> made = Error{};
  if (!data.empty() && data.size() <= most_with_create()) {
    made = co_await operations_->create_with_data(op, directory, name, mode, first, data, &written);
  } else {
    made = co_await operations_->create(op, directory, name, mode, first);
  }
  if (!made.ok()) co_return made.error();
  if (written < data.size()) {
    NFSRDMA_CO_TRY(WriteResult rest,
                   co_await write_stable(*this, op, made->handle, written, data.subspan(written)));
    made->attributes = rest.wcc.after;
  }
  co_return std::move(*made);
}

}  // namespace nfsrdma
