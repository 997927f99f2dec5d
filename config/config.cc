// SPDX-License-Identifier: Apache-2.0
// The table of keys and their values. config_syntax.cc reads the lines.
#include "config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "config/edit_distance.h"
#include "config/endpoint.h"
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

bool parse_endpoint_or_path(std::string_view text, std::string* value) {
  SocketAddress address;
  if (!text.empty() && !text.starts_with('/') && !parse_endpoint(text, &address)) return false;
  *value = text;
  return true;
}

std::string size_text(std::uint64_t bytes) {
  for (auto [shift, unit] : {std::pair{40, 'T'}, {30, 'G'}, {20, 'M'}, {10, 'K'}}) {
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

std::string flag_text(bool value) {
  return value ? "yes" : "no";
}

struct Row {
  OptionRow shown;
  bool (*set)(Config&, std::string_view);
  std::string (*get)(const Config&);
  void (*copy)(Config&, const Config&);
};

std::vector<Row> make_rows() {
  std::vector<Row> rows;
  auto add = [&rows](OptionRow shown, bool (*set)(Config&, std::string_view),
                     std::string (*get)(const Config&), void (*copy)(Config&, const Config&)) {
    rows.push_back({std::move(shown), set, get, copy});
  };
  using enum TakesEffect;
#define ROW(key, field, when, help, initial, expected, set, get)                                \
  add(                                                                                          \
      {#key, initial, expected, when, help}, [](Config& c, std::string_view v) { return set; }, \
      [](const Config& c) -> std::string { return get; },                                       \
      [](Config& to, const Config& from) { to.field = from.field; });
#define FLAG(key, field, initial, when, help)                                           \
  ROW(key, field, when, help, flag_text(initial), "yes or no", parse_flag(v, &c.field), \
      flag_text(c.field))
#define NUMBER(key, field, initial, min, max, when, help)                                \
  ROW(key, field, when, help, #initial, fmt::format("a number from {} to {}", min, max), \
      parse_number(v, min, max, &c.field), std::to_string(c.field))
#define SIZE(key, field, initial, min, max, when, help)                    \
  ROW(key, field, when, help, size_text(initial),                          \
      fmt::format("a size from {} to {}", size_text(min), size_text(max)), \
      parse_size_in(v, min, max, &c.field), size_text(c.field))
#define PORT_OR_OFF(key, field, initial, when, help)                      \
  ROW(key, field, when, help, #initial, "a port from 1 to 65535, or off", \
      parse_port_or_off(v, &c.field), c.field == 0 ? "off" : std::to_string(c.field))
#define ADDRESSES(key, field, initial, when, help)                    \
  ROW(key, field, when, help, initial, "a list of numeric addresses", \
      parse_addresses(v, &c.field), c.field)
#define TEXT(key, field, initial, when, help) \
  ROW(key, field, when, help, initial, "text", (c.field = v, true), c.field)
#define ENDPOINT(key, field, initial, when, help)                                          \
  ROW(key, field, when, help, initial,                                                     \
      "a numeric address with a port (127.0.0.1:9465) or the path of a socket (/run/...)", \
      parse_endpoint_or_path(v, &c.field), c.field)
#define CHOICE(key, field, initial, words, when, help)                                       \
  ROW(key, field, when, help, initial, choice_text(words), parse_choice(v, words, &c.field), \
      c.field)
#include "config/options.def"
#undef FLAG
#undef NUMBER
#undef SIZE
#undef PORT_OR_OFF
#undef ADDRESSES
#undef TEXT
#undef ENDPOINT
#undef CHOICE
#undef ROW
  return rows;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> table = make_rows();
  return table;
}

const Row* find_row(std::string_view key) {
  const auto found =
      std::ranges::find_if(rows(), [key](const Row& row) { return row.shown.key == key; });
  return found == rows().end() ? nullptr : &*found;
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

std::string option_text(const Config& config, std::string_view key) {
  const Row* row = find_row(key);
  return row == nullptr ? std::string() : row->get(config);
}

void copy_option(Config& to, const Config& from, std::string_view key) {
  if (const Row* row = find_row(key)) row->copy(to, from);
}

bool ports_collide(const Config& config) {
  const bool iwarp = config.fabric == "auto" || config.fabric == "iwarp";
  return iwarp && config.tcp_port != 0 && config.port == config.tcp_port;
}

std::string assignment_text(std::string_view key, std::string_view value) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-:,+@%";
  std::string out = fmt::format("{}=", key);
  if (!value.empty() && value.find_first_not_of(kPlain) == std::string_view::npos) {
    return out.append(value);
  }
  out += '\'';
  for (char c : value) {
    // A quote ends the quoted part, stands for itself behind a backslash, and begins the next.
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out += '\'';
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
  if (const Row* row = find_row(key)) {
    if (row->set(config, value)) return true;
    *problem = fmt::format("{}: '{}' is not {}", key, value, row->shown.expected);
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
