// SPDX-License-Identifier: Apache-2.0
// The lines of an exports file. Physical lines are joined first (a backslash at the end), each
// character remembering where it stood, so that every message can name line and column.
#include "config/exports_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "config/export_host.h"
#include "config/export_options.h"
#include "config/text_file.h"

namespace nfsrdma {

namespace {

struct Place {
  unsigned line = 0;
  unsigned column = 0;
};

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

/// One logical line.
struct Line {
  std::string text;
  std::vector<Place> places;  // one per character, and one for the end

  void clear() {
    text.clear();
    places.clear();
  }
};

/// Cuts a file into logical lines.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}

  bool next(Line& line) {
    line.clear();
    if (at_ >= text_.size()) return false;
    bool quoted = false, comment = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') break;
      if (c == '"') quoted = !quoted;
      comment |= c == '#' && !quoted && (line.text.empty() || is_blank(line.text.back()));
      // A comment ends with its own line, whatever stands at its end.
      if (c == '\\' && !comment && rest_is_newline(at_ + 1)) {
        add(line, ' ');
        skip_to_next_line();
        continue;
      }
      if (c != '\r' || !rest_is_newline(at_)) add(line, c);
      ++at_;
      ++column_;
    }
    line.places.push_back({number_, column_});
    skip_to_next_line();
    return true;
  }

 private:
  bool rest_is_newline(std::size_t at) const {
    if (at < text_.size() && text_[at] == '\r') ++at;
    return at < text_.size() && text_[at] == '\n';
  }
  void add(Line& line, char c) {
    line.text.push_back(c);
    line.places.push_back({number_, column_});
  }
  void skip_to_next_line() {
    while (at_ < text_.size() && text_[at_] != '\n')
      ++at_;
    ++at_;
    ++number_;
    column_ = 1;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  unsigned number_ = 1;
  unsigned column_ = 1;
};

const ExportClient* find_client(const ExportEntry& entry, const ExportClient& like) {
  const auto found = std::ranges::find_if(
      entry.clients, [&](const ExportClient& client) { return client.is_same_as(like); });
  return found == entry.clients.end() ? nullptr : &*found;
}

/// Parses one logical line into an ExportEntry.
class LineParser {
 public:
  LineParser(const Line& line, const std::string& file, ParsedExports& out)
      : line_(line), file_(file), out_(out) {}

  void run() {
    skip_blanks();
    if (done()) return;
    ExportEntry entry;
    entry.file = file_;
    entry.line = place().line;
    if (parse_path(entry.path)) parse_clients(std::move(entry));
  }

  /// What stands behind the path.
  void parse_clients(ExportEntry entry) {
    for (skip_blanks(); !done(); skip_blanks()) {
      if (!parse_client(entry)) return;
    }
    if (entry.clients.empty()) {
      ExportClient everyone;
      everyone.options = defaults_;
      everyone.file = file_;
      everyone.line = entry.line;
      entry.clients.push_back(std::move(everyone));
      notice(place(), fmt::format("{} names no client and is exported to everyone; write {} *(...) "
                                  "to say so",
                                  entry.path, entry.path));
    }
    out_.entries.push_back(std::move(entry));
  }

 private:
  bool parse_path(std::string& path) {
    const std::size_t start = at_;
    if (!parse_word(path, "") || !closes_quotes()) return false;
    if (path.empty() || path.front() != '/') {
      return problem(start, fmt::format("'{}' is no absolute path, expected /DIRECTORY", path));
    }
    if (path.find('\0') != std::string::npos) return problem(start, "NUL in a path");
    if (path.size() >= 4096) return problem(start, "the path is longer than 4095 bytes");
    const std::string written = std::exchange(path, normal_path(path));
    if ((written + "/").find("/../") != std::string::npos)
      notice(line_.places[start], fmt::format("'{}' is taken for {}", written, path));
    return true;
  }

  bool parse_client(ExportEntry& entry) {
    if (line_.text[at_] == '-') return parse_defaults();
    ExportClient client;
    client.file = file_;
    client.line = place().line;
    client.column = place().column;
    client.options = defaults_;
    const std::size_t start = at_;
    std::string host, why;
    if (!parse_word(host, "(")) return false;
    if (!parse_export_host(host, client, &why)) return problem(start, why);
    if (at_ < line_.text.size() && line_.text[at_] == '(') {
      if (host.empty() && !entry.clients.empty()) {
        notice(place(),
               "a blank before '(': these options are for everyone, not for the host "
               "before it");
      }
      if (!parse_parenthesised(client.options)) return false;
    } else if (!closes_quotes()) {
      return false;
    }
    if (const ExportClient* first = find_client(entry, client)) {
      return problem(start, fmt::format("{} is named twice for {}{}", client.text, entry.path,
                                        first->text == client.text ? "" : ", as " + first->text));
    }
    note_covered(entry.clients, client, &out_.notices);
    entry.clients.push_back(std::move(client));
    return true;
  }

  bool parse_defaults() {
    ++at_;
    defaults_ = ExportOptions();
    return parse_options(end_of_list(""), "", defaults_) && closes_quotes();
  }

  bool parse_parenthesised(ExportOptions& options) {
    const std::size_t open = at_++;
    const std::size_t end = end_of_list(")");
    if (end == line_.text.size()) return problem(open, "no closing ')' for this '('");
    if (line_.text[end] != ')')
      return problem(end, "a blank inside of an option list, expected ')'");
    if (!parse_options(end, ")", options)) return false;
    ++at_;
    if (in_quotes() && at_ < line_.text.size() && line_.text[at_] == '"') {
      toggle_quotes();
      ++at_;
    }
    if (!closes_quotes()) return false;
    // A '#' is no comment here, as LineReader has it.
    if (at_ < line_.text.size() && !is_blank(line_.text[at_])) {
      return problem(at_, "expected a blank or the end of the line after ')'");
    }
    return true;
  }

  /// Where the option list that begins at at_ ends: at one of `stops`, or a blank outside of
  /// quotes.
  std::size_t end_of_list(std::string_view stops) const {
    bool quoted = in_quotes();
    std::size_t end = at_;
    for (; end < line_.text.size(); ++end) {
      const char c = line_.text[end];
      if (stops.find(c) != std::string_view::npos || (!quoted && is_blank(c))) break;
      if (c == '"') quoted = !quoted;
    }
    return end;
  }

  /// The list in [at_, end), which ends as end_of_list(stops) says.
  bool parse_options(std::size_t end, std::string_view stops, ExportOptions& options) {
    const std::string word_stops = std::string(",").append(stops);
    ExportOptionList list(options);
    std::vector<std::size_t> starts;  // of its words
    const std::size_t notices = out_.notices.size();
    std::string why;
    while (at_ < end) {
      const std::size_t start = at_;
      std::string word, note;
      if (!parse_word(word, word_stops)) return false;
      if (word.find('\0') != std::string::npos) return problem(start, "NUL in an option");
      if (!word.empty()) {
        starts.push_back(start);
        if (!list.apply(word, &why, &note)) return problem(start, why);
      }
      if (!note.empty()) notice(line_.places[start], note);
      if (at_ < end) ++at_;  // the comma
    }
    std::size_t blamed = 0;
    if (list.finish(&why, &blamed)) return true;
    // What the list as a whole lacks says more than what was noticed of its words.
    out_.notices.erase(out_.notices.begin() + static_cast<std::ptrdiff_t>(notices),
                       out_.notices.end());
    return problem(blamed < starts.size() ? starts[blamed] : at_, why);
  }

  /// Up to one of `stops`, or a blank outside of quotes; quotes and \ooo are taken away. Quotes may
  /// go on behind it, as in "*(rw,mp=/a b)".
  bool parse_word(std::string& word, std::string_view stops) {
    for (; at_ < line_.text.size(); ++at_) {
      const char c = line_.text[at_];
      if (stops.find(c) != std::string_view::npos || (!in_quotes() && is_blank(c))) {
        return true;
      } else if (c == '"') {
        toggle_quotes();
      } else if (c == '\\') {
        if (!parse_escape(word)) return false;
      } else {
        word.push_back(c);
      }
    }
    return true;
  }

  bool in_quotes() const { return quote_at_ != kNoQuote; }
  void toggle_quotes() { quote_at_ = in_quotes() ? kNoQuote : at_; }
  bool closes_quotes() { return in_quotes() ? problem(quote_at_, "no closing '\"'") : true; }

  bool parse_escape(std::string& word) {
    unsigned value = 0;
    for (std::size_t i = 1; i <= 3; ++i) {
      const char c = at_ + i < line_.text.size() ? line_.text[at_ + i] : ' ';
      if (c < '0' || c > '7') return problem(at_, "expected three octal digits after '\\'");
      value = value * 8 + static_cast<unsigned>(c - '0');
    }
    if (value > 255) return problem(at_, "expected an octal number up to \\377");
    word.push_back(static_cast<char>(value));
    at_ += 3;
    return true;
  }

  void skip_blanks() {
    while (at_ < line_.text.size() && is_blank(line_.text[at_]))
      ++at_;
  }
  bool done() const { return at_ >= line_.text.size() || line_.text[at_] == '#'; }
  Place place() const { return line_.places[std::min(at_, line_.places.size() - 1)]; }
  bool problem(std::size_t at, std::string message) {
    const Place where = line_.places[std::min(at, line_.places.size() - 1)];
    out_.problems.push_back({file_, where.line, where.column, std::move(message)});
    return false;
  }
  void notice(Place where, std::string message) {
    out_.notices.push_back({file_, where.line, where.column, std::move(message)});
  }

  const Line& line_;
  const std::string& file_;
  ParsedExports& out_;
  ExportOptions defaults_;
  std::size_t at_ = 0;
  static constexpr std::size_t kNoQuote = std::string::npos;
  std::size_t quote_at_ = kNoQuote;  // where those that are open were opened
};

/// Puts exports together; knows which paths there are.
class Merger {
 public:
  explicit Merger(ParsedExports& all) : all_(all) {
    for (std::size_t i = 0; i < all.entries.size(); ++i)
      by_path_.emplace(all.entries[i].path, i);
  }
  void add(ParsedExports more) {
    append(all_.problems, more.problems);
    append(all_.notices, more.notices);
    for (ExportEntry& entry : more.entries) {
      const auto [known, fresh] = by_path_.emplace(entry.path, all_.entries.size());
      if (fresh) {
        all_.entries.push_back(std::move(entry));
      } else {
        add_clients(all_.entries[known->second], entry);
      }
    }
  }

 private:
  static void append(ConfigProblems& to, ConfigProblems& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  }
  void add_clients(ExportEntry& known, ExportEntry& entry) {
    const std::size_t before = known.clients.size();  // of other lines
    for (ExportClient& client : entry.clients) {
      const ExportClient* first = find_client(known, client);
      if (first == nullptr) {
        note_covered(std::span(known.clients).first(before), client, &all_.notices);
        known.clients.push_back(std::move(client));
        continue;
      }
      all_.notices.push_back(
          {client.file, client.line, client.column,
           fmt::format("{} is exported to {} already in {}:{}, which counts{}", entry.path,
                       client.text, first->file, first->line,
                       first->options == client.options ? "" : "; the options differ")});
    }
  }

  ParsedExports& all_;
  std::unordered_map<std::string, std::size_t> by_path_;
};

std::string place_of(const ExportClient& client) {
  return client.file == kCommandLineExport ? client.file
                                           : fmt::format("{}:{}", client.file, client.line);
}

/// Where an option whose value may have colons stands in an -e argument; npos: nowhere.
std::size_t first_with_colons(std::string_view argument) {
  std::size_t first = std::string_view::npos;
  for (std::string_view option : {":refer=", ",refer=", ":replicas=", ",replicas=", ":sec=",
                                  ",sec=", ":xprtsec=", ",xprtsec="})
    first = std::min(first, argument.find(option));
  return first;
}

void check_fsids(ParsedExports& all) {
  if (all.ok()) all.problems = fsid_problems(all.entries);
}

}  // namespace

std::string normal_path(std::string_view path) {
  if (!path.starts_with('/')) return std::string(path);
  std::string out;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      out.resize(out.empty() ? 0 : out.rfind('/'));
    } else {
      out.append("/").append(name);
    }
  }
  return out.empty() ? "/" : out;
}

void note_covered(std::span<const ExportClient> before, const ExportClient& client,
                  ConfigProblems* notices) {
  // Single addresses decide before all networks.
  if (client.is_single_address()) return;
  for (const ExportClient& other : before) {
    if (!other.contains(client)) continue;
    notices->push_back(
        {client.file, client.line, client.column,
         fmt::format("{} never counts: {} stands before it and has all of it; of networks the "
                     "first that matches decides",
                     client.text, other.text)});
    return;
  }
}

std::string fsid_of(const ExportEntry& entry) {
  const auto its = std::ranges::find_if(
      entry.clients, [](const ExportClient& client) { return !client.options.fsid.empty(); });
  return its == entry.clients.end() ? std::string() : its->options.fsid;
}

// File handles begin with it.
ConfigProblems fsid_problems(const std::vector<ExportEntry>& entries) {
  ConfigProblems problems;
  std::unordered_map<std::string, std::pair<const ExportEntry*, const ExportClient*>> known;
  for (const ExportEntry& entry : entries) {
    const ExportClient* its = nullptr;
    for (const ExportClient& client : entry.clients) {
      const std::string& fsid = client.options.fsid;
      if (fsid.empty() || (its != nullptr && its->options.fsid == fsid)) continue;
      const auto problem = [&](std::string message) {
        problems.push_back({client.file, client.line, client.column, std::move(message)});
      };
      if (its != nullptr) {
        problem(
            fmt::format("fsid={} for {} here and fsid={} in {}: give it one for all of its clients",
                        fsid, entry.path, its->options.fsid, place_of(*its)));
        continue;
      }
      its = &client;
      const auto [other, fresh] = known.emplace(fsid, std::pair(&entry, &client));
      if (fresh) continue;
      problem(fmt::format("fsid={} is that of {} in {} already: give {} another", fsid,
                          other->second.first->path, place_of(*other->second.second), entry.path));
    }
  }
  return problems;
}

ParsedExports parse_exports(std::string_view text, const std::string& file) {
  ParsedExports out;
  Merger merger(out);
  LineReader reader(text);
  Line line;
  while (reader.next(line)) {
    ParsedExports one;
    LineParser(line, file, one).run();
    merger.add(std::move(one));
  }
  check_fsids(out);
  return out;
}

void merge_exports(ParsedExports& all, ParsedExports more) {
  Merger(all).add(std::move(more));
  check_fsids(all);
}

ParsedExports read_exports_file(const std::string& file) {
  ParsedExports failed;
  std::string text;
  if (!read_text_file(file, kMaxExportsFile, &text, &failed.problems)) return failed;
  return parse_exports(text, file);
}

ParsedExports parse_export_argument(std::string_view argument) {
  ParsedExports out;
  const std::size_t colon = argument.rfind(':', first_with_colons(argument));
  std::string_view path = argument.substr(0, colon);
  std::string_view options =
      colon == std::string_view::npos ? std::string_view() : argument.substr(colon + 1);
  ExportEntry entry;
  entry.file = kCommandLineExport;
  entry.path = path;
  while (entry.path.size() > 1 && entry.path.back() == '/')
    entry.path.pop_back();
  auto problem = [&](std::string message) {
    out.problems.push_back({fmt::format("-e {}", argument), 0, 0, std::move(message)});
  };
  if (path.empty()) problem("expected DIR or DIR:OPTIONS");
  ExportClient everyone;
  everyone.file = kCommandLineExport;
  ExportOptionList list(everyone.options);
  std::string why;
  while (!options.empty()) {
    std::string_view word = options.substr(0, options.find(','));
    options.remove_prefix(std::min(options.size(), word.size() + 1));
    std::string note;
    if (!word.empty() && !list.apply(word, &why, &note)) problem(why);
    if (!note.empty()) out.notices.push_back({"-e", 0, 0, note});
  }
  std::size_t blamed = 0;
  if (out.problems.empty() && !list.finish(&why, &blamed)) problem(why);
  entry.clients.push_back(std::move(everyone));
  out.entries.push_back(std::move(entry));
  return out;
}

}  // namespace nfsrdma
