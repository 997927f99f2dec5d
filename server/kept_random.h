// SPDX-License-Identifier: Apache-2.0
// Random numbers that a server draws once and keeps in its state directory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "rpcrdma/base/result.h"

namespace nfsrdma {

using KeptRandom = std::array<std::uint8_t, 16>;

/// A file of the state directory. All three are static strings.
struct KeptFile {
  const char* name;
  std::string_view magic;  // a line that says what it is, and of which version
  const char* not_known;   // the error when it is something else
};

/// The numbers in `file`: behind its magic, 16 bytes. Drawn and written at the first start, with
/// the directory and its parents (0700): mode 0600, written aside, synced and linked into place, so
/// that two starting servers agree and no crash leaves half a file. When this returns, name and
/// content are on stable storage. kUnsupported, with what to do in words, for a file of another
/// form: it is never replaced. Blocks; any thread.
Result<KeptRandom> load_or_draw(const std::string& state_dir, const KeptFile& file);

}  // namespace nfsrdma
