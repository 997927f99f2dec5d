// SPDX-License-Identifier: Apache-2.0
// "Did you mean ...?": finds the known word that is nearest to a mistyped one.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace nfsrdma {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`; letters'
/// case does not count. Inputs longer than 64 characters count as far away.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The nearest of `known`, or empty when nothing is near (more than a third of the word differs).
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);

}  // namespace nfsrdma
