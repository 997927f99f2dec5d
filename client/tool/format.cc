// SPDX-License-Identifier: Apache-2.0
#include "client/tool/format.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include <cmath>
#include <ctime>

namespace nfsrdma::tool {
namespace {

std::string strftime_text(const timespec& time, const char* form) {
  struct tm parts {};
  char text[80] = "?";
  if (::localtime_r(&time.tv_sec, &parts) != nullptr) {
    std::strftime(text, sizeof text, form, &parts);
  }
  return text;
}

}  // namespace

const char* type_text(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "directory";
    case S_IFLNK:
      return "symbolic link";
    case S_IFIFO:
      return "fifo";
    case S_IFSOCK:
      return "socket";
    case S_IFCHR:
      return "character device";
    case S_IFBLK:
      return "block device";
    default:
      return "regular file";
  }
}

std::string mode_text(mode_t mode) {
  std::string text = "-rwxrwxrwx";
  switch (mode & S_IFMT) {
    case S_IFDIR:
      text[0] = 'd';
      break;
    case S_IFLNK:
      text[0] = 'l';
      break;
    case S_IFIFO:
      text[0] = 'p';
      break;
    case S_IFSOCK:
      text[0] = 's';
      break;
    case S_IFCHR:
      text[0] = 'c';
      break;
    case S_IFBLK:
      text[0] = 'b';
      break;
    default:
      break;
  }
  for (int bit = 0; bit < 9; ++bit) {
    if ((mode & (0400u >> bit)) == 0) text[static_cast<std::size_t>(bit) + 1] = '-';
  }
  if ((mode & S_ISUID) != 0) text[3] = text[3] == 'x' ? 's' : 'S';
  if ((mode & S_ISGID) != 0) text[6] = text[6] == 'x' ? 's' : 'S';
  if ((mode & S_ISVTX) != 0) text[9] = text[9] == 'x' ? 't' : 'T';
  return text;
}

std::string minute_text(const timespec& time) {
  return strftime_text(time, "%Y-%m-%d %H:%M");
}

std::string exact_time_text(const timespec& time) {
  return strftime_text(time, "%Y-%m-%d %H:%M:%S") + fmt::format(".{:09}", time.tv_nsec) +
         strftime_text(time, " %z");
}

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string duration_text(double seconds) {
  const auto total = static_cast<std::uint64_t>(std::llround(seconds));
  if (total >= 3600) {
    return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  }
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

std::string user_text(uid_t uid) {
  const passwd* entry = ::getpwuid(uid);
  return entry != nullptr ? entry->pw_name : std::to_string(uid);
}

std::string group_text(gid_t gid) {
  const group* entry = ::getgrgid(gid);
  return entry != nullptr ? entry->gr_name : std::to_string(gid);
}

}  // namespace nfsrdma::tool
