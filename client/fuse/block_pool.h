// SPDX-License-Identifier: Apache-2.0
// BlockPool: blocks of the size of a FUSE request, used again and again, since fresh memory of a
// megabyte costs more in page faults than moving the data does. Single thread; the blocks may
// outlive the pool.
#pragma once

#include <unistd.h>

#include <memory>
#include <vector>

#include "client/fuse/data_block.h"

namespace nfsrdma {

class BlockPool {
 public:
  /// Free blocks kept.
  static constexpr std::size_t kKeep = 48;

  /// What libfuse reads into: 256 pages of data and a page of header (its own bufsize).
  static std::size_t block_bytes() {
    return 256 * static_cast<std::size_t>(::getpagesize()) + 0x1000;
  }

  BlockRef take() {
    std::unique_ptr<DataBlock> block;
    if (free_->empty()) {
      block = std::make_unique<DataBlock>(block_bytes());
    } else {
      block = std::move(free_->back());
      free_->pop_back();
    }
    block->used = 0;
    return BlockRef(block.release(), Return{free_});
  }

 private:
  using FreeList = std::vector<std::unique_ptr<DataBlock>>;
  struct Return {
    std::weak_ptr<FreeList> list;
    void operator()(DataBlock* block) const {
      std::unique_ptr<DataBlock> owned(block);
      std::shared_ptr<FreeList> free_list = list.lock();
      if (free_list != nullptr && free_list->size() < kKeep) {
        free_list->push_back(std::move(owned));
      }
    }
  };
  std::shared_ptr<FreeList> free_ = std::make_shared<FreeList>();
};

}  // namespace nfsrdma
