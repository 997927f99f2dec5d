// SPDX-License-Identifier: Apache-2.0
// The table of keys and their values. config_syntax.cc reads the lines.
#include "config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "config/edit_distance.h"
#include "rpcrdma/base/socket_address.h"

namespace nfsrdma {

namespace {

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

bool parse_flag(std::string_view text, bool* value) {
  for (std::string_view word : {"yes", "true", "on", "1"}) {
    if (equals_ignoring_case(text, word)) return *value = true, true;
  }
  for (std::string_view word : {"no", "false", "off", "0"}) {
    if (equals_ignoring_case(text, word)) return *value = false, true;
  }
  return false;
}

bool parse_number(std::string_view text, std::uint64_t min, std::uint64_t max,
                  std::uint64_t* value) {
  std::uint64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < min || n > max) return false;
  *value = n;
  return true;
}

bool parse_size_in(std::string_view text, std::uint64_t min, std::uint64_t max,
                   std::uint64_t* value) {
  std::uint64_t n = 0;
  if (!parse_size(text, &n) || n < min || n > max) return false;
  *value = n;
  return true;
}

bool parse_port_or_off(std::string_view text, std::uint64_t* value) {
  if (equals_ignoring_case(text, "off")) return *value = 0, true;
  return parse_number(text, 1, 65535, value);
}

bool parse_choice(std::string_view text, std::string_view words, std::string* value) {
  while (!words.empty()) {
    std::string_view word = words.substr(0, words.find('|'));
    if (text == word) return *value = text, true;
    words.remove_prefix(std::min(words.size(), word.size() + 1));
  }
  return false;
}

bool parse_addresses(std::string_view text, std::string* value) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find_first_of(" \t,"));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (!word.empty() && !SocketAddress::parse(word, 0).ok()) return false;
  }
  *value = text;
  return true;
}

std::string size_text(std::uint64_t bytes) {
  for (auto [shift, unit] : {std::pair{30, 'G'}, {20, 'M'}, {10, 'K'}}) {
    if (bytes >> shift != 0 && bytes % (std::uint64_t{1} << shift) == 0) {
      return fmt::format("{}{}", bytes >> shift, unit);
    }
  }
  return std::to_string(bytes);
}

std::string choice_text(std::string_view words) {
  std::string out = "one of ";
  for (char c : words)
    out += c == '|' ? std::string(", ") : std::string(1, c);
  return out;
}

struct Row {
  OptionRow shown;
  bool (*set)(Config&, std::string_view);
};

std::vector<Row> make_rows() {
  std::vector<Row> rows;
  auto add = [&rows](std::string_view key, std::string initial, std::string expected,
                     std::string_view help, bool (*set)(Config&, std::string_view)) {
    rows.push_back({{key, std::move(initial), std::move(expected), help}, set});
  };
#define FLAG(key, field, initial, help)                  \
  add(#key, (initial) ? "yes" : "no", "yes or no", help, \
      [](Config& c, std::string_view v) { return parse_flag(v, &c.field); });
#define NUMBER(key, field, initial, min, max, help)                          \
  add(#key, #initial, fmt::format("a number from {} to {}", min, max), help, \
      [](Config& c, std::string_view v) { return parse_number(v, min, max, &c.field); });
#define SIZE(key, field, initial, min, max, help)                                \
  add(#key, size_text(initial),                                                  \
      fmt::format("a size from {} to {}", size_text(min), size_text(max)), help, \
      [](Config& c, std::string_view v) { return parse_size_in(v, min, max, &c.field); });
#define PORT_OR_OFF(key, field, initial, help)                \
  add(#key, #initial, "a port from 1 to 65535, or off", help, \
      [](Config& c, std::string_view v) { return parse_port_or_off(v, &c.field); });
#define ADDRESSES(key, field, initial, help)              \
  add(#key, initial, "a list of numeric addresses", help, \
      [](Config& c, std::string_view v) { return parse_addresses(v, &c.field); });
#define TEXT(key, field, initial, help) \
  add(#key, initial, "text", help, [](Config& c, std::string_view v) { return c.field = v, true; });
#define CHOICE(key, field, initial, words, help) \
  add(#key, initial, choice_text(words), help,   \
      [](Config& c, std::string_view v) { return parse_choice(v, words, &c.field); });
#include "config/options.def"
#undef FLAG
#undef NUMBER
#undef SIZE
#undef PORT_OR_OFF
#undef ADDRESSES
#undef TEXT
#undef CHOICE
  return rows;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> table = make_rows();
  return table;
}

}  // namespace

std::span<const OptionRow> option_rows() {
  static const std::vector<OptionRow> shown = [] {
    std::vector<OptionRow> out;
    for (const Row& row : rows())
      out.push_back(row.shown);
    return out;
  }();
  return shown;
}

bool parse_size(std::string_view text, std::uint64_t* bytes) {
  std::uint64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc()) return false;
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  unsigned shift = 0;
  if (!unit.empty()) {
    constexpr std::string_view kUnits = "KMGT";
    std::size_t which = kUnits.find(static_cast<char>(unit[0] & ~0x20));
    if (which == std::string_view::npos) return false;
    unit.remove_prefix(1);
    if (!unit.empty() && !equals_ignoring_case(unit, "iB") && !equals_ignoring_case(unit, "B")) {
      return false;
    }
    shift = 10 * static_cast<unsigned>(which + 1);
  }
  if (n > (~std::uint64_t{0} >> shift)) return false;
  *bytes = n << shift;
  return true;
}

bool set_option(Config& config, std::string_view key, std::string_view value,
                std::string* problem) {
  for (const Row& row : rows()) {
    if (row.shown.key != key) continue;
    if (row.set(config, value)) return true;
    *problem = fmt::format("{}: '{}' is not {}", key, value, row.shown.expected);
    return false;
  }
  std::vector<std::string_view> keys;
  for (const Row& row : rows())
    keys.push_back(row.shown.key);
  std::string_view nearest = nearest_word(key, keys);
  *problem = fmt::format("unknown key '{}'", key);
  if (!nearest.empty()) *problem += fmt::format(", did you mean {}?", nearest);
  if (nearest.empty()) *problem += ", expected a key of rdma.conf(5)";
  return false;
}

}  // namespace nfsrdma
