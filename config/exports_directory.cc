// SPDX-License-Identifier: Apache-2.0
// An exports file and the directory beside it: FILE and FILE.d/*.exports.
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "config/exports_file.h"

namespace nfsrdma {

namespace {

struct CloseListing {
  void operator()(DIR* listing) const { ::closedir(listing); }
};

std::string path_in(const std::string& directory, const std::string& name) {
  return directory + "/" + name;
}

/// The files of the directory that count, in their order. A directory that is not there has none.
std::vector<std::string> exports_in(const std::string& directory, ConfigProblems* problems) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, CloseListing> listing(::opendir(directory.c_str()));
  if (!listing) {
    if (errno != ENOENT && errno != ENOTDIR)
      problems->push_back(
          {directory, 0, 0, std::string("cannot be read: ") + std::strerror(errno)});
    return names;
  }
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (name.starts_with('.') || !name.ends_with(".exports")) continue;
    // Links count as what they lead to; one that leads nowhere is a problem when it is read.
    struct stat st;
    if (::stat(path_in(directory, name).c_str(), &st) == 0 && !S_ISREG(st.st_mode)) continue;
    names.push_back(name);
  }
  std::ranges::sort(names, [](const std::string& a, const std::string& b) {
    return ::strverscmp(a.c_str(), b.c_str()) < 0;
  });
  return names;
}

}  // namespace

ParsedExports read_exports_files(const std::string& file) {
  ParsedExports all;
  const std::string directory = file + ".d";
  const std::vector<std::string> names = exports_in(directory, &all.problems);
  if (names.empty() || ::access(file.c_str(), F_OK) == 0 || errno != ENOENT)
    merge_exports(all, read_exports_file(file));
  for (const std::string& name : names)
    merge_exports(all, read_exports_file(path_in(directory, name)));
  return all;
}

}  // namespace nfsrdma
