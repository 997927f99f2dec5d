// SPDX-License-Identifier: Apache-2.0
// Enumerations of the protocols: the values and their names from one list.
//
//   #define FTYPE3_VALUES(X) X(NF3REG, 1) X(NF3DIR, 2)
//   NFSRDMA_XDR_ENUM(ftype3, FTYPE3_VALUES)
//   #undef FTYPE3_VALUES
//
// A value from the wire may be none of them: it is kept, and enum_name() says "".
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace nfsrdma::xdr {

struct EnumName {
  std::uint32_t value = 0;
  std::string_view name;
};

#define NFSRDMA_XDR_ENUMERATOR(name, value) name = value,
#define NFSRDMA_XDR_ENUM_NAME(name, value) {value, #name},
#define NFSRDMA_XDR_ENUM(type, values)                                                        \
  enum class type : std::uint32_t { values(NFSRDMA_XDR_ENUMERATOR) };                         \
  inline constexpr ::nfsrdma::xdr::EnumName type##_names[] = {values(NFSRDMA_XDR_ENUM_NAME)}; \
  constexpr std::span<const ::nfsrdma::xdr::EnumName> enum_names(type) {                      \
    return type##_names;                                                                      \
  }

/// The RFC's name for `v`, "" for a value it does not know.
template <typename E>
constexpr std::string_view enum_name(E v) {
  for (const EnumName& entry : enum_names(v)) {
    if (entry.value == static_cast<std::uint32_t>(v)) return entry.name;
  }
  return {};
}

template <typename E>
constexpr bool is_known(E v) {
  return !enum_name(v).empty();
}

}  // namespace nfsrdma::xdr
