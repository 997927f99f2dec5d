// SPDX-License-Identifier: Apache-2.0
// What a parser of a configuration file has to say about it: where, and what was expected there.
#pragma once

#include <string>
#include <vector>

namespace nfsrdma {

struct ConfigProblem {
  std::string file;
  unsigned line = 0;    // from 1; 0: not about a line (the file cannot be read, a command line)
  unsigned column = 0;  // from 1; 0: the whole line
  std::string message;

  /// "FILE:LINE:COLUMN: MESSAGE", leaving out what is not known.
  std::string text() const;
};

using ConfigProblems = std::vector<ConfigProblem>;

}  // namespace nfsrdma
