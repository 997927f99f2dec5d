// SPDX-License-Identifier: Apache-2.0
// The lines of rdma.conf. Such files are read by shells elsewhere, so quoting is the shell's; what
// a shell would expand ($, `) is refused rather than taken literally.
#include <fmt/format.h>

#include <algorithm>

#include "config/config.h"
#include "config/text_file.h"

namespace nfsrdma {

namespace {

// Keys of the rdma service (RHEL's rdma-core and its forerunners) that share this file with ours.
constexpr std::string_view kForeignKeys[] = {
    "IPOIB_LOAD",        "SRP_LOAD",      "SRPT_LOAD",     "ISER_LOAD",       "ISERT_LOAD",
    "RDS_LOAD",          "XPRTRDMA_LOAD", "SVCRDMA_LOAD",  "FIXUP_MTRR_REGS", "ARPTABLE_TUNING",
    "TECH_PREVIEW_LOAD", "SDP_LOAD",      "RDMA_UCM_LOAD", "RDMA_CM_LOAD",    "UCM_LOAD",
    "UMAD_LOAD",         "UVERBS_LOAD",   "QIB_LOAD",      "OPA_LOAD",        "MLX4_LOAD",
    "MLX5_LOAD",         "CXGB4_LOAD",    "RXE_LOAD",      "SIW_LOAD",
};

bool is_key_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// One line: finds KEY and VALUE. Problems are reported with their column.
class Line {
 public:
  Line(std::string_view text, std::string* problem) : text_(text), problem_(problem) {}

  /// False: nothing there, or wrong (then the problem is set).
  bool parse(std::string* key, std::string* value) {
    skip_blanks();
    if (at_end_or_comment()) return false;
    if (text_.substr(at_).starts_with("export ")) {
      at_ += 7;
      skip_blanks();
    }
    std::size_t start = at_;
    while (at_ < text_.size() && is_key_char(text_[at_]))
      ++at_;
    if (at_ == start) return fail("expected KEY=VALUE");
    key->assign(text_.substr(start, at_ - start));
    if (at_ == text_.size() || text_[at_] != '=') {
      return fail(fmt::format("expected '=' right after {}, without blanks", *key));
    }
    ++at_;
    if (!parse_value(value)) return false;
    skip_blanks();
    if (!at_end_or_comment()) {
      return fail("expected the end of the line; a value with blanks needs quotes");
    }
    return true;
  }
  unsigned column() const { return static_cast<unsigned>(at_) + 1; }

 private:
  bool parse_value(std::string* value) {
    value->clear();
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '\t') {
      const char c = text_[at_];
      if (c == '\'' || c == '"') {
        if (!quoted(c, value)) return false;
        continue;
      }
      if (c == '$' || c == '`') return fail("shell expansion is not done here; quote with '");
      if (c == ';' || c == '&' || c == '|' || c == '<' || c == '>' || c == '(' || c == ')') {
        return fail(fmt::format("'{}' must be quoted", c));
      }
      if (c == '\\' && ++at_ == text_.size()) return fail("expected a character after '\\'");
      value->push_back(text_[at_++]);
    }
    return true;
  }
  bool quoted(char quote, std::string* value) {
    const std::size_t start = at_++;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (quote == '"' && (text_[at_] == '$' || text_[at_] == '`')) {
        return fail("shell expansion is not done here; quote with '");
      }
      const bool escape = quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size() &&
                          std::string_view("\"\\$`").find(text_[at_ + 1]) != std::string_view::npos;
      if (escape) ++at_;
      value->push_back(text_[at_]);
    }
    if (at_ == text_.size()) {
      at_ = start;
      return fail(fmt::format("no closing {}", quote));
    }
    ++at_;
    return true;
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t'))
      ++at_;
  }
  bool at_end_or_comment() const { return at_ == text_.size() || text_[at_] == '#'; }
  bool fail(std::string message) {
    *problem_ = std::move(message);
    return false;
  }

  std::string_view text_;
  std::string* problem_;
  std::size_t at_ = 0;
};

void take_assignment(const std::string& key, const std::string& value, ConfigProblem place,
                     ParsedConfig& parsed) {
  if (std::find(std::begin(kForeignKeys), std::end(kForeignKeys), key) != std::end(kForeignKeys)) {
    place.message = fmt::format("{} is for the rdma service and has no meaning here", key);
    parsed.notices.push_back(std::move(place));
    return;
  }
  if (!set_option(parsed.config, key, value, &place.message)) {
    parsed.problems.push_back(std::move(place));
    return;
  }
  const auto [known, fresh] = parsed.lines.emplace(key, place.line);
  if (fresh) return;
  // Which of the two was meant nobody can tell; a shell would take the last.
  place.message =
      fmt::format("{} is set in line {} already; leave one of them", key, known->second);
  parsed.problems.push_back(std::move(place));
}

}  // namespace

ParsedConfig parse_config(std::string_view text, const std::string& file) {
  ParsedConfig parsed;
  unsigned number = 0;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    std::string key, value, problem;
    Line parser(line, &problem);
    if (line.find('\0') != std::string_view::npos) {
      parsed.problems.push_back({file, number, 0, "NUL character; is this a text file?"});
    } else if (parser.parse(&key, &value)) {
      take_assignment(key, value, {file, number, 0, ""}, parsed);
    } else if (!problem.empty()) {
      parsed.problems.push_back({file, number, parser.column(), problem});
    }
  }
  return parsed;
}

ParsedConfig read_config_file(const std::string& file) {
  constexpr std::size_t kLargest = 1u << 20;
  std::string text;
  ParsedConfig failed;
  if (!read_text_file(file, kLargest, &text, &failed.problems)) return failed;
  return parse_config(text, file);
}

}  // namespace nfsrdma
