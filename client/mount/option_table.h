// SPDX-License-Identifier: Apache-2.0
// One row per mount option: its name, whether it takes a value, and what it does.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "client/mount/options.h"

namespace nfsrdma {

struct OptionRow {
  enum class Value { kNone, kRequired, kOptional };
  std::string_view name;
  Value value;
  /// Empty string: fine. Else what is wrong, without the option's name.
  std::string (*apply)(MountOptions& options, std::string_view value);
};

std::span<const OptionRow> mount_option_table();

}  // namespace nfsrdma
