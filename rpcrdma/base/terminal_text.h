// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace nfsrdma {

/// `text` as it may go to a terminal when it came from outside (names of files, of hosts): control
/// characters, those of C1 in UTF-8 too, and what is no UTF-8 become question marks.
std::string terminal_text(std::string_view text);

}  // namespace nfsrdma
