// SPDX-License-Identifier: Apache-2.0
// Making regular files: CREATE of version 3, OPEN with OPEN4_CREATE of version 4.
//
// An exclusive create keeps the client's verifier in the times of the new file, as Linux's server
// does: a client that asks again, also after a restart, is told that it was its own. For that the
// name must never be there without the verifier, not even when the server is killed: the file is
// made without a name (O_TMPFILE), gets its times, and then its name.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "server/files/file_call.h"
#include "server/files/new_attributes.h"

namespace nfsrdma {

struct NewFile {
  enum class How : std::uint8_t {
    kUnchecked,  // a regular file that is there is good, cut to the size asked for
    kGuarded,    // EEXIST
    kExclusive,  // EEXIST, unless it has this very verifier
  };
  using Verifier = std::array<std::byte, 8>;

  How how = How::kUnchecked;
  Verifier verifier{};
  /// kExclusive: only mode and owner, which EXCLUSIVE4_1 has; times hold the verifier.
  NewAttributes attributes;
};

/// Makes or finds `name`, as the caller. 0 or an errno. *object has fresh attributes; *made: it was
/// not there before.
int create_file(FileCall& call, Resolved& directory, std::string_view name, const NewFile& wanted,
                Resolved* object, bool* made);

}  // namespace nfsrdma
