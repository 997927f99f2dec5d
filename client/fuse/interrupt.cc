// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/interrupt.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

namespace {

/// A small file of /proc. False: the process is gone.
bool read_proc(pid_t pid, const char* name, std::array<char, 8192>& room, std::string_view* text) {
  UniqueFd fd(::open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  const ssize_t n = ::read(fd.get(), room.data(), room.size() - 1);
  if (n <= 0) return false;
  room[static_cast<std::size_t>(n)] = '\0';  // for strtoull
  *text = {room.data(), static_cast<std::size_t>(n)};
  return true;
}

}  // namespace

bool ended_by_signal(std::string_view stat) {
  constexpr unsigned kFlagsField = 9, kExitCodeField = 52;  // proc(5)
  constexpr unsigned long kExiting = 0x4, kSignalMask = 0x7f;
  // The second field is a name in parentheses, which may hold anything.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return false;
  bool exiting = false;
  unsigned field = 3;
  for (std::size_t at = name_end + 2; at < stat.size(); ++field) {
    std::size_t end = stat.find_first_of(" \n", at);
    if (end == std::string_view::npos) end = stat.size();
    unsigned long value = 0;
    const auto parsed = std::from_chars(stat.data() + at, stat.data() + end, value);
    at = end + 1;
    if (parsed.ec != std::errc()) continue;
    if (field == kFlagsField) exiting = (value & kExiting) != 0;
    if (field == kExitCodeField) return exiting && (value & kSignalMask) != 0;
  }
  return false;
}

bool fatal_signal_pending(pid_t pid) {
  if (pid <= 0) return true;  // in a foreign namespace: the kernel's word has to do
  std::array<char, 8192> room;
  std::string_view text;
  if (!read_proc(pid, "status", room, &text)) return true;
  // The kernel turns every signal that ends a process into a SIGKILL of its threads.
  constexpr std::string_view kLabel = "\nSigPnd:\t";
  const std::size_t at = text.find(kLabel);
  if (at == std::string_view::npos) return true;
  const unsigned long long pending = std::strtoull(text.data() + at + kLabel.size(), nullptr, 16);
  if ((pending >> (SIGKILL - 1) & 1) != 0) return true;
  // A thread that has died of it closes its files, and takes no further signal while it waits.
  return !read_proc(pid, "stat", room, &text) || ended_by_signal(text);
}

}  // namespace nfsrdma
