// SPDX-License-Identifier: Apache-2.0
// The command line of one subcommand: options by Boost.Program_options, operands, --help, and one
// clear line when something is wrong.
#pragma once

#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <vector>

namespace nfsrdma::tool {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

class Arguments {
 public:
  /// "ls", "[-l] URL|PATH...", "Lists directories and files."
  Arguments(std::string command, std::string synopsis, std::string about);

  boost::program_options::options_description_easy_init add() { return options_.add_options(); }
  /// For commands that give 2 a meaning of its own.
  void set_usage_exit(int code) { usage_exit_ = code; }
  /// Nothing: go on. A number: exit with it, everything has been said.
  std::optional<int> parse(const std::vector<std::string>& words, std::size_t least_operands,
                           std::size_t most_operands);

  bool has(const char* name) const { return values_.count(name) != 0; }
  template <typename T>
  const T& get(const char* name) const {
    return values_[name].as<T>();
  }
  const std::vector<std::string>& operands() const { return operands_; }
  /// Says what is wrong; returns the exit code.
  int usage_error(const std::string& what) const;

 private:
  void print_help() const;

  std::string command_, synopsis_, about_;
  boost::program_options::options_description options_;
  boost::program_options::variables_map values_;
  std::vector<std::string> operands_;
  int usage_exit_ = kExitUsage;
};

/// "nfs-rdma COMMAND: what" to standard error, without what names of a server could do to a
/// terminal.
void complain(const std::string& command, const std::string& what);

/// "64", "4k", "1M", "2g" in bytes; nothing when it is none of these.
std::optional<std::uint64_t> parse_bytes(const std::string& text);

}  // namespace nfsrdma::tool
