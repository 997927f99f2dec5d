// SPDX-License-Identifier: Apache-2.0
#include "config/config_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "config/config.h"

namespace nfsrdma {

namespace {

constexpr std::string_view kKeyPrefix = "NFSoRDMA_";

/// Takes what is in front of the next `separator`, and that as well.
std::string_view take(std::string_view& rest, char separator) {
  const std::string_view part = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

/// Lines that begin with `prefix` and have no more than `width` characters, where words allow that.
class Lines {
 public:
  Lines(std::string_view prefix, std::size_t width) : prefix_(prefix), width_(width) {}

  void add(std::string_view word) {
    if (!line_.empty() && prefix_.size() + line_.size() + 1 + word.size() > width_) end();
    if (!line_.empty()) line_ += ' ';
    line_ += word;
  }
  void end() {
    if (!line_.empty()) text_ += fmt::format("{}{}\n", prefix_, line_);
    line_.clear();
  }
  void add_line(std::string_view line) {
    end();
    text_ += fmt::format("{}\n", line);
  }
  std::string take_text() {
    end();
    return std::move(text_);
  }

 private:
  std::string prefix_;
  std::size_t width_;
  std::string line_;
  std::string text_;
};

/// "KEY", or "KEY=value", with what ends the clause behind it.
std::string key_macro(std::string_view word) {
  std::string_view end;
  if (const std::size_t at = word.find_last_not_of(".,;:)"); at + 1 < word.size()) {
    end = word.substr(at + 1);
    word = word.substr(0, at + 1);
  }
  const std::string_view key = take(word, '=');
  std::string macro = fmt::format(".Cm {}", key);
  if (!word.empty()) macro += fmt::format(" Ns = Ns Cm {}", word);
  if (!end.empty()) macro += fmt::format(" {}", end);
  return macro;
}

/// Sentences begin lines, keys are marked.
std::string mdoc_text(std::string_view text) {
  Lines lines("", 90);
  while (!text.empty()) {
    const std::string_view word = take(text, ' ');
    if (word.starts_with(kKeyPrefix)) {
      lines.add_line(key_macro(word));
    } else {
      lines.add(word);
      if (word.ends_with('.')) lines.end();
    }
  }
  return lines.take_text();
}

std::string item(const OptionRow& row) {
  std::string allowed = "Ar text";
  std::string_view expected = row.expected;
  if (expected == "yes or no") {
    allowed = "Cm yes | Cm no";
  } else if (expected.starts_with("a number")) {
    allowed = "Ar number";
  } else if (expected.starts_with("a size")) {
    allowed = "Ar size";
  } else if (expected.starts_with("a port")) {
    allowed = "Ar port | Cm off";
  } else if (expected.starts_with("a list")) {
    allowed = "Ar addresses";
  } else if (constexpr std::string_view kOneOf = "one of "; expected.starts_with(kOneOf)) {
    expected.remove_prefix(kOneOf.size());
    allowed.clear();
    while (!expected.empty()) {
      std::string_view word = take(expected, ',');
      word.remove_prefix(word.starts_with(' ') ? 1 : 0);
      allowed += fmt::format("{}Cm {}", allowed.empty() ? "" : " | ", word);
    }
  }
  return fmt::format(".It Cm {} Ns = Ns {}\n", row.key, allowed);
}

/// Range, reload and default.
std::string item_end(const OptionRow& row) {
  std::string out;
  if (row.when == TakesEffect::kAtReload) out += "A reload is enough.\n";
  if (const std::size_t from = row.expected.find(" from "); from != std::string::npos) {
    out += fmt::format("From {}.\n", row.expected.substr(from + 6));
  }
  if (!row.initial.empty()) out += fmt::format("Default:\n.Li {} .\n", row.initial);
  return out;
}

}  // namespace

std::string sample_config() {
  std::string out =
      "# SPDX-License-Identifier: Apache-2.0\n"
      "# rdma.conf - see rdma.conf(5). Lines are KEY=VALUE; what is commented out is the default.\n"
      "# The file is shared with the rdma service of some distributions, whose keys are left "
      "alone.\n"
      "# New values count from the next start on, or where it says (reload) after \"systemctl "
      "reload\".\n";
  for (const OptionRow& row : option_rows()) {
    Lines lines("# ", 100);
    std::string text(row.help);
    if (row.expected.starts_with("one of ")) text += fmt::format(" ({})", row.expected);
    if (row.when == TakesEffect::kAtReload) text += " (reload)";
    for (std::string_view rest = text; !rest.empty();)
      lines.add(take(rest, ' '));
    // These two are what everybody looks for.
    const bool set = row.key == "NFSoRDMA_LOAD" || row.key == "NFSoRDMA_PORT";
    out += fmt::format("\n{}{}{}\n", lines.take_text(), set ? "" : "#",
                       row.initial.empty() ? fmt::format("{}=\"\"", row.key)
                                           : assignment_text(row.key, row.initial));
  }
  return out;
}

std::string config_page(std::string_view page, std::string* problem) {
  std::string out;
  std::set<std::string_view> missing;
  for (const OptionRow& row : option_rows())
    missing.insert(row.key);
  const OptionRow* open = nullptr;
  auto end_item = [&] {
    if (open != nullptr) out += item_end(*open);
    open = nullptr;
  };
  while (!page.empty()) {
    const std::string_view line = take(page, '\n');
    if (line.starts_with('@')) {
      end_item();
      const auto row = std::ranges::find(option_rows(), line.substr(1), &OptionRow::key);
      if (row == option_rows().end() || missing.erase(row->key) == 0) {
        *problem = fmt::format("{}: no such key, or for the second time", line.substr(1));
        return {};
      }
      open = &*row;
      out += item(*open) + mdoc_text(open->help);
      continue;
    }
    if (line == ".El") end_item();
    out += fmt::format("{}\n", line);
  }
  if (!missing.empty()) *problem = fmt::format("{} has no entry", *missing.begin());
  return out;
}

}  // namespace nfsrdma
