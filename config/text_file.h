// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/problem.h"

namespace nfsrdma {

/// Reads a whole file of at most `largest` bytes; false with a problem added when it cannot.
bool read_text_file(const std::string& file, std::size_t largest, std::string* text,
                    ConfigProblems* problems);

}  // namespace nfsrdma
