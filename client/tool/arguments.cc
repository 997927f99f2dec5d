// SPDX-License-Identifier: Apache-2.0
#include "client/tool/arguments.h"

#include <charconv>
#include <cstdio>
#include <sstream>

#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma::tool {

namespace po = boost::program_options;

Arguments::Arguments(std::string command, std::string synopsis, std::string about)
    : command_(std::move(command)),
      synopsis_(std::move(synopsis)),
      about_(std::move(about)),
      options_("Options") {
  options_.add_options()("help,h", "say this");
}

std::optional<int> Arguments::parse(const std::vector<std::string>& words,
                                    std::size_t least_operands, std::size_t most_operands) {
  po::options_description hidden;
  hidden.add_options()("operand", po::value<std::vector<std::string>>(&operands_));
  po::options_description all;
  all.add(options_).add(hidden);
  po::positional_options_description positional;
  positional.add("operand", -1);
  try {
    using namespace po::command_line_style;
    // No guessing from prefixes: scripts must not break when an option is added.
    const int style = unix_style & ~allow_guessing;
    po::store(po::command_line_parser(words).options(all).positional(positional).style(style).run(),
              values_);
    po::notify(values_);
  } catch (const po::error& error) {
    return usage_error(error.what());
  }
  if (has("help")) {
    print_help();
    return kExitOk;
  }
  if (operands_.size() < least_operands) return usage_error("an operand is missing");
  if (operands_.size() > most_operands) {
    return usage_error("one operand too many: '" + operands_[most_operands] + "'");
  }
  return std::nullopt;
}

int Arguments::usage_error(const std::string& what) const {
  complain(command_, what + " (usage: nfs-rdma " + command_ + " " + synopsis_ + ")");
  return usage_exit_;
}

void Arguments::print_help() const {
  std::ostringstream text;
  text << "Usage: nfs-rdma " << command_ << " " << synopsis_ << "\n"
       << about_ << "\n\n"
       << options_;
  std::fputs(text.str().c_str(), stdout);
}

void complain(const std::string& command, const std::string& what) {
  std::fprintf(stderr, "nfs-rdma %s: %s\n", command.c_str(), terminal_text(what).c_str());
}

std::optional<std::uint64_t> parse_bytes(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || end - rest > 1) return std::nullopt;
  if (rest == end) return value;
  int shift = 0;
  switch (*rest) {
    case 'k':
    case 'K':
      shift = 10;
      break;
    case 'm':
    case 'M':
      shift = 20;
      break;
    case 'g':
    case 'G':
      shift = 30;
      break;
    case 't':
    case 'T':
      shift = 40;
      break;
    default:
      return std::nullopt;
  }
  if (value > (UINT64_MAX >> shift)) return std::nullopt;
  return value << shift;
}

}  // namespace nfsrdma::tool
