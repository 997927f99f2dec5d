// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/terminal_text.h"

#include <cstdint>

namespace nfsrdma {

namespace {

/// Length of the character at the start of `text` when it is well-formed UTF-8 (RFC 3629) and no
/// control character; otherwise 0.
std::size_t shown_length(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const std::uint8_t second = byte(1);
  const bool is_c1 = first == 0xc2 && second < 0xa0;
  const bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool is_no_character =
      (first == 0xed && second >= 0xa0) || (first == 0xf4 && second > 0x8f);
  return is_c1 || is_overlong || is_no_character ? 0 : length;
}

}  // namespace

std::string terminal_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = shown_length(text);
    if (length == 0) {
      out += '?';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace nfsrdma
