// SPDX-License-Identifier: Apache-2.0
// Options may stand before, between and after the two operands, as mount(8) puts them behind. The
// lists of all -o are read after the whole line, so that -s counts wherever it stands.
#include "client/mount/command_line.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace nfsrdma {
namespace {

struct Collected {
  std::vector<std::string> operands;
  std::vector<std::string> option_lists;
  bool sloppy = false;
};

bool take_flag(char flag, MountCommandLine* line, Collected* all) {
  switch (flag) {
    case 'f':
      line->fake = true;
      return true;
    case 'F':
      line->foreground = true;
      return true;
    case 'v':
      line->verbose = true;
      return true;
    case 's':
      all->sloppy = true;
      return true;
    case 'n':
      return true;  // there is no /etc/mtab to leave out
    case 'r':
      all->option_lists.emplace_back("ro");
      return true;
    case 'w':
      all->option_lists.emplace_back("rw");
      return true;
    case 'h':
      line->show_help = true;
      return true;
    case 'V':
      line->show_version = true;
      return true;
    default:
      return false;
  }
}

/// One "-abc" or "-o LIST". Advances *next past a value taken from the following argument.
bool take_options(std::string_view word, std::span<const char* const> arguments, std::size_t* next,
                  MountCommandLine* line, Collected* all, std::string* error) {
  for (std::size_t i = 1; i < word.size(); ++i) {
    const char flag = word[i];
    if (take_flag(flag, line, all)) continue;
    if (flag != 'o' && flag != 't' && flag != 'N') {
      *error = fmt::format("unknown option '-{}'; try -h", flag);
      return false;
    }
    std::string value(word.substr(i + 1));
    if (value.empty()) {
      if (*next >= arguments.size()) {
        *error = fmt::format("option '-{}' needs a value", flag);
        return false;
      }
      value = arguments[(*next)++];
    }
    if (flag == 'o') all->option_lists.push_back(value);
    return true;  // -t TYPE and -N NAMESPACE come from mount(8) and say nothing new
  }
  return true;
}

bool collect(std::span<const char* const> arguments, MountCommandLine* line, Collected* all,
             std::string* error) {
  bool options_over = false;
  for (std::size_t next = 0; next < arguments.size();) {
    std::string_view word = arguments[next++];
    if (word == "--" && !options_over) {
      options_over = true;
    } else if (word == "--help" && !options_over) {
      line->show_help = true;
    } else if (word == "--foreground" && !options_over) {
      line->foreground = true;
    } else if (word == "--fake" && !options_over) {
      line->fake = true;
    } else if (word == "--version" && !options_over) {
      line->show_version = true;
    } else if (!options_over && word.size() > 2 && word.substr(0, 2) == "--") {
      *error = fmt::format("unknown option '{}'; try -h", word);
      return false;
    } else if (!options_over && word.size() > 1 && word[0] == '-') {
      if (!take_options(word, arguments, &next, line, all, error)) return false;
    } else {
      all->operands.emplace_back(word);
    }
  }
  return true;
}

}  // namespace

bool parse_mount_command_line(std::span<const char* const> arguments, MountCommandLine* line,
                              std::string* error) {
  Collected all;
  if (!collect(arguments, line, &all, error)) return false;
  if (line->show_help || line->show_version) return true;
  if (all.operands.size() != 2) {
    *error = all.operands.size() < 2 ? "expected SERVER:/PATH and MOUNTPOINT; try -h"
                                     : fmt::format("unexpected argument '{}'", all.operands[2]);
    return false;
  }
  line->source_text = all.operands[0];
  line->mount_point = all.operands[1];
  if (!parse_mount_source(line->source_text, &line->source, error)) return false;
  for (const std::string& list : all.option_lists) {
    if (!parse_mount_options(list, all.sloppy, &line->options, error)) return false;
  }
  return finish_mount_options(&line->options, error);
}

const char* mount_usage() {
  return "usage: mount.nfs-rdma SERVER:/PATH MOUNTPOINT [-o OPTIONS] [-Ffnrsvw]\n"
         "  -o LIST  nfs(5) options, comma-separated: proto=rdma, port=20049, rsize=, soft ...\n"
         "           and fabric=auto|verbs|iwarp, proto=auto, tcpport=N, noreferrals ...;\n"
         "           see mount.nfs-rdma(8)\n"
         "  -F       stay in the foreground (--foreground)\n"
         "  -f       check options and mount point, mount nothing (--fake, mount -f)\n"
         "  -n       accepted for mount(8)\n"
         "  -r, -w   read-only, read-write\n"
         "  -s       ignore unknown mount options\n"
         "  -v       print the effective options\n"
         "  -h, -V   this text; the version\n";
}

}  // namespace nfsrdma
