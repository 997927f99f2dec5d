// SPDX-License-Identifier: Apache-2.0
// Memory that holds file data on its way to the server: what write-behind keeps until COMMIT, and
// what FUSE requests are received into, so that a large write becomes dirty data without a copy.
// Blocks serve one request after the other, so adapters may keep them registered.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "rpcrdma/base/lasting_memory.h"

namespace nfsrdma {

class DataBlock {
 public:
  explicit DataBlock(std::size_t capacity)
      : memory_(static_cast<std::byte*>(std::malloc(capacity))),
        capacity_(capacity),
        lasting_({memory_.get(), capacity}) {
    if (memory_ == nullptr) std::abort();
  }
  DataBlock(const DataBlock&) = delete;
  DataBlock& operator=(const DataBlock&) = delete;

  std::byte* data() const { return memory_.get(); }
  std::size_t capacity() const { return capacity_; }

  /// Bytes handed out from the front; an extent that ends here may grow in place.
  std::size_t used = 0;

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t capacity_;
  LastingMemory lasting_;  // ends before the memory does
};

using BlockRef = std::shared_ptr<DataBlock>;

}  // namespace nfsrdma
