// SPDX-License-Identifier: Apache-2.0
#include "client/mount/remount_plan.h"

#include <sys/mount.h>

#include <algorithm>

#include "client/mount/options.h"

namespace nfsrdma {

namespace {

struct FlagWord {
  std::string_view word;
  unsigned long sets = 0;
  unsigned long clears = 0;
};
constexpr unsigned long kAccessTimes = MS_NOATIME | MS_RELATIME | MS_STRICTATIME;
constexpr FlagWord kFlagWords[] = {
    {"ro", MS_RDONLY, 0},
    {"rw", 0, MS_RDONLY},
    {"suid", 0, MS_NOSUID},
    {"nosuid", MS_NOSUID, 0},
    {"dev", 0, MS_NODEV},
    {"nodev", MS_NODEV, 0},
    {"exec", 0, MS_NOEXEC},
    {"noexec", MS_NOEXEC, 0},
    {"atime", 0, MS_NOATIME},
    {"noatime", MS_NOATIME, kAccessTimes},
    {"diratime", 0, MS_NODIRATIME},
    {"nodiratime", MS_NODIRATIME, 0},
    {"relatime", MS_RELATIME, kAccessTimes},
    {"norelatime", 0, MS_RELATIME},
    {"strictatime", MS_STRICTATIME, kAccessTimes},
    {"nostrictatime", 0, MS_STRICTATIME},
    {"dirsync", MS_DIRSYNC, 0},
    {"lazytime", MS_LAZYTIME, 0},
    {"nolazytime", 0, MS_LAZYTIME},
};

bool apply_flag(std::string_view word, unsigned long* flags) {
  const auto found = std::ranges::find(kFlagWords, word, &FlagWord::word);
  if (found == std::end(kFlagWords)) return false;
  *flags = (*flags & ~found->clears) | found->sets;
  return true;
}

/// Both are one version, or one of them leaves the minor one to the server.
bool same_version(const NfsVersion& asked, const NfsVersion& running) {
  if (asked.any) return true;
  if (asked.major != running.major) return false;
  return asked.major == 3 || asked.any_minor || asked.minor == running.minor;
}

/// Would the word change what the daemon runs with? Some say nothing of that: remount, allow_other.
bool changes(const std::string& word, const MountOptions& running) {
  MountOptions asked = running;
  std::string error;
  // What is wrong in itself was refused before.
  if (!parse_mount_options(word, true, &asked, &error)) return true;
  if (asked.minor_version) asked.version.minor = *asked.minor_version;
  if (!same_version(asked.version, running.version)) return true;
  asked.version = running.version;
  [[maybe_unused]] const std::string left_out = asked.leave_out_of(asked.version.major);
  return asked.text() != running.text();
}

}  // namespace

RemountPlan plan_remount(std::span<const std::string> given, std::string_view running) {
  RemountPlan plan;
  plan.flags = MS_REMOUNT;
  MountOptions now;
  std::string error;
  const bool known = parse_mount_options(running, true, &now, &error);
  // mount(8) repeats what fstab says; that devices are kept off nobody has said.
  if (!known || !now.dev) plan.flags |= MS_NODEV;
  for (const std::string& word : given) {
    if (apply_flag(word, &plan.flags)) continue;
    if (!known || changes(word, now)) plan.refused.push_back(word);
  }
  return plan;
}

}  // namespace nfsrdma
