// SPDX-License-Identifier: Apache-2.0
// Monitored: what a lock manager of this host has asked its status monitor to watch (MON), and its
// form in the file that outlives restarts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xdr/nsm1.h"

namespace nfsrdma::nsm {

struct Monitored {
  std::string mon_name;  // the host to watch: a name, or an address as text
  std::string my_name;   // what that host calls this one
  std::uint32_t my_prog = 0, my_vers = 0, my_proc = 0;
  std::array<std::byte, xdr::kNsmPrivate> priv{};
  std::string boot_id;     // of the machine, when it was asked
  std::int32_t state = 0;  // what the host is to be told of a restart since then; 0: there was none

  /// Of one lock manager, about one host.
  bool same_as(const Monitored& other) const {
    return mon_name == other.mon_name && my_prog == other.my_prog && my_vers == other.my_vers &&
           my_proc == other.my_proc;
  }
};

/// Names have neither blanks nor characters that do not print.
bool is_plain_name(std::string_view name);

/// A file with all of them.
std::string to_text(const std::vector<Monitored>& all);
/// Empty: it is no such file, or damaged.
std::optional<std::vector<Monitored>> from_text(std::string_view text);

}  // namespace nfsrdma::nsm
