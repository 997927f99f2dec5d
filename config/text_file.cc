// SPDX-License-Identifier: Apache-2.0
#include "config/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

bool read_text_file(const std::string& file, std::size_t largest, std::string* text,
                    ConfigProblems* problems) {
  UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  auto fail = [&](std::string why) {
    problems->push_back({file, 0, 0, std::move(why)});
    return false;
  };
  if (!fd) return fail(std::string("cannot be read: ") + std::strerror(errno));
  text->clear();
  char chunk[16384];
  for (;;) {
    ssize_t n = ::read(fd.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(std::string("cannot be read: ") + std::strerror(errno));
    if (n == 0) return true;
    text->append(chunk, static_cast<std::size_t>(n));
    if (text->size() > largest) {
      return fail("is larger than " + std::to_string(largest) + " bytes");
    }
  }
}

}  // namespace nfsrdma
