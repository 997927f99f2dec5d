// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/mountinfo.h"

#include <algorithm>
#include <sstream>

namespace nfsrdma {

std::string unescape_mountinfo(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i + 1, 3);
    const bool octal =
        digits.size() == 3 && digits[0] <= '3' &&
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '7'; });
    if (text[i] == '\\' && octal) {
      out.push_back(
          static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + (digits[2] - '0')));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

std::string mount_point_in(const std::string& line) {
  std::istringstream fields(line);
  std::string point;  // the fifth field
  for (int field = 0; field < 5; ++field) {
    if (!(fields >> point)) return {};
  }
  return unescape_mountinfo(point);
}

}  // namespace nfsrdma
