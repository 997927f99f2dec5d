// SPDX-License-Identifier: Apache-2.0
// Copies our wire values into the structs that rpcgen makes from the .x files here, field by field
// and by name. Texts and list nodes live in an Arena; opaques point into our value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "xdr/archive.h"

namespace nfsrdma::oracle {

/// Owns what the oracle's structs point to.
class Arena {
 public:
  char* text(std::string_view view) { return texts_.emplace_back(view).data(); }
  template <typename T>
  T* make() {
    auto node = std::make_shared<T>();
    std::memset(static_cast<void*>(node.get()), 0, sizeof(T));
    nodes_.push_back(node);
    return node.get();
  }
  /// `count` elements, all zero.
  template <typename T>
  T* make_array(std::size_t count) {
    auto bytes = std::make_shared<std::vector<std::max_align_t>>(
        count * sizeof(T) / sizeof(std::max_align_t) + 1);
    nodes_.push_back(bytes);
    return reinterpret_cast<T*>(bytes->data());
  }

 private:
  std::deque<std::string> texts_;
  std::vector<std::shared_ptr<void>> nodes_;
};

inline void convert(Arena&, std::uint32_t from, unsigned int& to) {
  to = from;
}
inline void convert(Arena&, std::uint64_t from, unsigned long& to) {
  to = from;
}
inline void convert(Arena&, std::int32_t from, int& to) {
  to = from;
}
inline void convert(Arena&, std::int64_t from, long& to) {
  to = from;
}
inline void convert(Arena&, bool from, int& to) {
  to = from ? 1 : 0;
}
inline void convert(Arena& arena, std::string_view from, char*& to) {
  to = arena.text(from);
}
template <std::size_t N>
void convert(Arena&, const std::array<std::byte, N>& from, char (&to)[N]) {
  std::memcpy(to, from.data(), N);
}
/// Enumerations, also with a number that is none of theirs.
template <typename E, typename T>
requires(std::is_enum_v<E> && sizeof(E) == sizeof(T)) void convert(Arena&, E from, T& to) {
  std::memcpy(&to, &from, sizeof to);
}
/// A list whose nodes have their link in a field called `next`.
template <typename T, typename Node>
void convert(Arena& arena, const xdr::EncodedList<T>& from, Node*& to) {
  Node** link = &to;
  for (const T& item : from) {
    *link = arena.make<Node>();
    convert(arena, item, **link);
    link = &(*link)->next;
  }
  *link = nullptr;
}

template <typename Items, typename Item>
void convert_items(Arena& arena, const Items& from, std::size_t count, unsigned int& length,
                   Item*& to) {
  length = static_cast<unsigned int>(count);
  to = arena.make_array<Item>(count);
  Item* next = to;
  for (const auto& item : from)
    convert(arena, item, *next++);
}
/// A counted array, whose length and elements rpcgen has in two fields.
template <typename T, typename Item>
void convert_array(Arena& arena, const xdr::EncodedArray<T>& from, unsigned int& length,
                   Item*& to) {
  convert_items(arena, from, from.count, length, to);
}
template <typename T, std::size_t N, typename Item>
void convert_array(Arena& arena, const xdr::BoundedArray<T, N>& from, unsigned int& length,
                   Item*& to) {
  convert_items(arena, from.view(), from.count, length, to);
}

#define ORACLE_FIELD(field) convert(arena, from.field, to.field);
#define ORACLE_OPAQUE(field, view)                             \
  to.field.field##_len = static_cast<unsigned>((view).size()); \
  to.field.field##_val = reinterpret_cast<char*>(const_cast<std::byte*>((view).data()));
#define ORACLE_ARRAY(field) \
  convert_array(arena, from.field, to.field.field##_len, to.field.field##_val);
#define ORACLE_ARM_OPAQUE(type, field, view)                            \
  to.type##_u.field.field##_len = static_cast<unsigned>((view).size()); \
  to.type##_u.field.field##_val = reinterpret_cast<char*>(const_cast<std::byte*>((view).data()));
#define ORACLE_ARM(type, field) convert(arena, from.field, to.type##_u.field);

#define ORACLE_BEGIN(type) \
  inline void convert([[maybe_unused]] Arena& arena, const xdr::type& from, ::type& to) {
#define ORACLE_END }

#define ORACLE_1(type, a) ORACLE_BEGIN(type) ORACLE_FIELD(a) ORACLE_END
#define ORACLE_2(type, a, b) ORACLE_BEGIN(type) ORACLE_FIELD(a) ORACLE_FIELD(b) ORACLE_END
#define ORACLE_3(type, a, b, c) \
  ORACLE_BEGIN(type) ORACLE_FIELD(a) ORACLE_FIELD(b) ORACLE_FIELD(c) ORACLE_END
#define ORACLE_4(type, a, b, c, d) \
  ORACLE_BEGIN(type)               \
  ORACLE_FIELD(a) ORACLE_FIELD(b) ORACLE_FIELD(c) ORACLE_FIELD(d) ORACLE_END
#define ORACLE_5(type, a, b, c, d, e) \
  ORACLE_BEGIN(type)                  \
  ORACLE_FIELD(a) ORACLE_FIELD(b) ORACLE_FIELD(c) ORACLE_FIELD(d) ORACLE_FIELD(e) ORACLE_END
#define ORACLE_6(type, a, b, c, d, e, f) \
  ORACLE_BEGIN(type)                     \
  ORACLE_FIELD(a)                        \
  ORACLE_FIELD(b) ORACLE_FIELD(c) ORACLE_FIELD(d) ORACLE_FIELD(e) ORACLE_FIELD(f) ORACLE_END
#define ORACLE_7(type, a, b, c, d, e, f, g) \
  ORACLE_BEGIN(type)                        \
  ORACLE_FIELD(a)                           \
  ORACLE_FIELD(b)                           \
  ORACLE_FIELD(c) ORACLE_FIELD(d) ORACLE_FIELD(e) ORACLE_FIELD(f) ORACLE_FIELD(g) ORACLE_END
#define ORACLE_8(type, a, b, c, d, e, f, g, h) \
  ORACLE_BEGIN(type)                           \
  ORACLE_FIELD(a)                              \
  ORACLE_FIELD(b)                              \
  ORACLE_FIELD(c)                              \
  ORACLE_FIELD(d) ORACLE_FIELD(e) ORACLE_FIELD(f) ORACLE_FIELD(g) ORACLE_FIELD(h) ORACLE_END

/// A discriminant, and one arm that is there when `condition` holds.
#define ORACLE_UNION(type, discriminant, condition, arm) \
  ORACLE_BEGIN(type)                                     \
  ORACLE_FIELD(discriminant)                             \
  if (condition) {                                       \
    ORACLE_ARM(type, arm)                                \
  }                                                      \
  ORACLE_END

}  // namespace nfsrdma::oracle
