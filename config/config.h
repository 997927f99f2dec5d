// SPDX-License-Identifier: Apache-2.0
// rdma.conf: KEY=VALUE lines as a shell would read them, without expansion. Our keys are the rows
// of options.def; keys that belong to the rdma service of a distribution are let pass with a
// notice; anything else is a problem that names the nearest key.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "config/problem.h"

namespace nfsrdma {

/// The values of every key, defaults first. Field names as in options.def.
struct Config {
#define FLAG(key, field, initial, when, help) bool field = initial;
#define NUMBER(key, field, initial, min, max, when, help) std::uint64_t field = initial;
#define SIZE(key, field, initial, min, max, when, help) std::uint64_t field = initial;
#define PORT_OR_OFF(key, field, initial, when, help) std::uint64_t field = initial;
#define ADDRESSES(key, field, initial, when, help) std::string field = initial;
#define TEXT(key, field, initial, when, help) std::string field = initial;
#define ENDPOINT(key, field, initial, when, help) std::string field = initial;
#define CHOICE(key, field, initial, words, when, help) std::string field = initial;
#include "config/options.def"
#undef FLAG
#undef NUMBER
#undef SIZE
#undef PORT_OR_OFF
#undef ADDRESSES
#undef TEXT
#undef ENDPOINT
#undef CHOICE

  bool operator==(const Config&) const = default;
};

/// When a new value of a key counts for a server that runs.
enum class TakesEffect : std::uint8_t { kAtReload, kAtStart };

/// One row of options.def for people.
struct OptionRow {
  std::string_view key;
  std::string initial;   // "20049", "yes", "auto", "4M"
  std::string expected;  // "a number from 1 to 65535", "yes or no", "one of auto, verbs, ..."
  TakesEffect when;
  std::string_view help;
};
std::span<const OptionRow> option_rows();

/// The value of a key, as a line of the file would have it, but for quotes. "" for unknown keys.
std::string option_text(const Config& config, std::string_view key);
/// Gives `key` the value that it has in `from`.
void copy_option(Config& to, const Config& from, std::string_view key);
/// "KEY=VALUE" with the quotes that the value needs.
std::string assignment_text(std::string_view key, std::string_view value);

struct ParsedConfig {
  Config config;
  ConfigProblems problems;  // not empty: do not use `config`
  ConfigProblems notices;
  std::map<std::string, unsigned, std::less<>> lines;  // the keys that are set, and where
  bool ok() const { return problems.empty(); }
};

/// `file` is only used in messages.
ParsedConfig parse_config(std::string_view text, const std::string& file);
/// Reads and parses. A missing file is a problem; the caller decides whether to ask for one.
ParsedConfig read_config_file(const std::string& file);

/// Sets one key as a line of the file would. False with *problem set (what was expected) when the
/// key is unknown or the value bad.
bool set_option(Config& config, std::string_view key, std::string_view value, std::string* problem);

/// Are RDMA and TCP to have one port? Over iWARP, which listens on a TCP port of its own, that
/// cannot be.
bool ports_collide(const Config& config);

/// "4096", "4k", "1M", "2GiB": bytes. False when it is none of these or overflows.
bool parse_size(std::string_view text, std::uint64_t* bytes);

}  // namespace nfsrdma
