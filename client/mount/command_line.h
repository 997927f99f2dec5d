// SPDX-License-Identifier: Apache-2.0
// mount.nfs-rdma SERVER:/PATH MOUNTPOINT [-o OPTIONS] [-FfnrsvwhV]
#pragma once

#include <span>
#include <string>

#include "client/mount/options.h"

namespace nfsrdma {

struct MountCommandLine {
  MountSource source;
  std::string source_text;
  std::string mount_point;
  MountOptions options;
  bool verbose = false;
  bool foreground = false;
  bool fake = false;  // nothing is mounted
  bool show_help = false;
  bool show_version = false;
};

/// `arguments` without the program's name. False with one line in *error.
bool parse_mount_command_line(std::span<const char* const> arguments, MountCommandLine* line,
                              std::string* error);

/// What -h prints.
const char* mount_usage();

}  // namespace nfsrdma
