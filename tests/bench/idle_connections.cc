// SPDX-License-Identifier: Apache-2.0
// idle_connections: makes connections to a server and leaves them idle, for the server's memory per
// connection (scripts/bench). Each is a mount of its own that has done a READ and a WRITE.
//
//   idle_connections URL BYTES COUNT...
//
// URL: a file, see nfsrdma/client.h; it is made when missing. BYTES: size of each READ and WRITE.
// For every COUNT the connections are brought up to that number, "ready COUNT FABRIC" is printed,
// and a line on standard input is awaited.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "client/include/nfsrdma/client.h"

namespace {

using nfsrdma::client::File;
using nfsrdma::client::Mount;

struct Connection {
  Mount mount;
  File file;
};

[[noreturn]] void die(const char* what, const std::string& why) {
  std::fprintf(stderr, "idle_connections: %s: %s\n", what, why.c_str());
  std::exit(1);
}

Connection connect(const char* url, std::size_t bytes) {
  std::string detail;
  auto mount = Mount::open(url, &detail);
  if (!mount) die("mount", detail.empty() ? mount.error().message() : detail);
  auto file = mount->open("", O_RDWR | O_CREAT, 0644);
  if (!file) die("open", file.error().message());
  std::vector<std::byte> data(bytes, std::byte{0x5a});
  // The WRITE first: the READ then finds data.
  auto written = file->pwrite(data, 0);
  if (!written || *written != bytes) die("WRITE", written.error().message());
  if (auto synced = file->fsync(); !synced) die("COMMIT", synced.error().message());
  auto got = file->pread(data, 0);
  if (!got || *got != bytes) die("READ", got ? "short" : got.error().message());
  return {std::move(*mount), std::move(*file)};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: idle_connections URL BYTES COUNT...\n");
    return 2;
  }
  const std::size_t bytes = std::strtoul(argv[2], nullptr, 0);
  std::vector<Connection> connections;
  for (int i = 3; i < argc; ++i) {
    const std::size_t count = std::strtoul(argv[i], nullptr, 0);
    while (connections.size() < count)
      connections.push_back(connect(argv[1], bytes));
    const auto status = connections.back().mount.connections();
    std::printf("ready %zu %s\n", count, status.empty() ? "none" : status[0].fabric.c_str());
    std::fflush(stdout);
    if (std::getchar() == EOF) break;
  }
  // The server sees all of them end at once, as when a host goes away.
  std::_Exit(0);
}
