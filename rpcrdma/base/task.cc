// SPDX-License-Identifier: Apache-2.0
// Coroutine frames: four size classes with a bounded free list per thread each; bigger frames and
// what does not fit the lists go to the heap. Under AddressSanitizer every frame is a heap block,
// so that a use after its end is seen.
#include "rpcrdma/base/task.h"

#include <array>
#include <new>

namespace nfsrdma {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kReuse = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kReuse = false;
#else
constexpr bool kReuse = true;
#endif
#else
constexpr bool kReuse = true;
#endif

constexpr std::array<std::size_t, 4> kClassBytes = {256, 512, 1024, 2048};
constexpr std::size_t kMaxFree = 64;  // frames kept per class and thread

constexpr std::size_t class_of(std::size_t bytes) {
  std::size_t i = 0;
  while (i < kClassBytes.size() && bytes > kClassBytes[i])
    ++i;
  return i;
}

struct FreeFrame {
  FreeFrame* next;
};

struct FreeLists {
  struct List {
    FreeFrame* head = nullptr;
    std::size_t count = 0;
  };
  std::array<List, kClassBytes.size()> lists;
  bool gone = false;

  ~FreeLists() {
    gone = true;
    for (List& list : lists) {
      while (FreeFrame* frame = list.head) {
        list.head = frame->next;
        ::operator delete(frame);
      }
    }
  }
};

thread_local FreeLists free_lists;

}  // namespace

void* allocate_frame(std::size_t bytes) {
  if (!kReuse) return ::operator new(bytes);
  const std::size_t size_class = class_of(bytes);
  if (size_class == kClassBytes.size()) return ::operator new(bytes);
  FreeLists::List& list = free_lists.lists[size_class];
  if (FreeFrame* frame = list.head) {
    list.head = frame->next;
    --list.count;
    return frame;
  }
  return ::operator new(kClassBytes[size_class]);
}

void release_frame(void* frame, std::size_t bytes) noexcept {
  if (!kReuse) {
    ::operator delete(frame);
    return;
  }
  const std::size_t size_class = class_of(bytes);
  if (size_class == kClassBytes.size() || free_lists.gone) {
    ::operator delete(frame);
    return;
  }
  FreeLists::List& list = free_lists.lists[size_class];
  if (list.count == kMaxFree) {
    ::operator delete(frame);
    return;
  }
  list.head = new (frame) FreeFrame{list.head};
  ++list.count;
}

}  // namespace nfsrdma
