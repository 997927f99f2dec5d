// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "config/exports_file.h"

namespace nfsrdma {

/// One option list: its words in order, and then finish(). Later words win over earlier ones.
/// Behind a sec= the words ro, rw and those of squashing hold for its flavours only.
class ExportOptionList {
 public:
  explicit ExportOptionList(ExportOptions& options) : options_(options) {}

  /// One word ("rw", "anonuid=99"). False with *problem: what is wrong and what was expected.
  /// *notice is set for what is accepted but has no effect here.
  bool apply(std::string_view word, std::string* problem, std::string* notice);
  /// Behind the last word: is anything left that this server serves? *at: which word, from 0, is to
  /// blame.
  bool finish(std::string* problem, std::size_t* at);

 private:
  /// The flavours that the words which follow are for.
  struct Flavors {
    bool sys = true;
    bool none = true;
  };
  bool set_flavors(std::string_view list, std::string* problem, std::string* notice);
  void set_rights(std::string_view name);

  ExportOptions& options_;
  Flavors active_;
  bool flavors_named_ = false;
  std::size_t words_ = 0;
  std::size_t last_flavors_ = 0;  // word that named them
};

}  // namespace nfsrdma
