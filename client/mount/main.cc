// SPDX-License-Identifier: Apache-2.0
// mount.nfs-rdma: checks what can be checked at once, then leaves a daemon behind and waits until
// it says that the mount can be used, or why not. Exit codes as mount(8).
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "client/default_fabrics.h"
#include "client/mount/command_line.h"
#include "client/mount/mount_daemon.h"
#include "client/mount/mount_point.h"
#include "client/mount/remount.h"
#include "client/mount/report.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/base/standard_streams.h"

namespace nfsrdma {
namespace {

constexpr int kUsage = 1, kSystem = 2, kMountFailed = 32;
constexpr std::chrono::seconds kBetweenTries{5};
constexpr const char* kNobodyWaits = "the command that waited for the mount was killed";

int complain(int code, const std::string& why) {
  std::fprintf(stderr, "mount.nfs-rdma: %s\n", why.c_str());
  return code;
}

/// Tries until it works or retry= is over. Empty: connected.
std::string connect_with_patience(MountDaemon& daemon, const MountCommandLine& line,
                                  MountReport& report) {
  const TimePoint end = std::chrono::steady_clock::now() + line.options.retry;
  bool told = false;
  for (;;) {
    bool again = false;
    std::string why = daemon.connect(&again);
    // Whoever killed the command has given the mount up, and may do without its mount point.
    if (report.abandoned()) return kNobodyWaits;
    if (why.empty()) return {};
    if (!again || std::chrono::steady_clock::now() + kBetweenTries > end) return why;
    if (line.options.background && report.open()) {
      ::setsid();
      if (!report.send('B', why)) return kNobodyWaits;
      // At once: whoever reads what the command writes waits until nobody can write any more.
      daemon.log_to_syslog();
    } else if (!told) {
      std::fprintf(stderr, "mount.nfs-rdma: %s; trying for %ld min (retry=)\n", why.c_str(),
                   static_cast<long>(line.options.retry.count()));
    }
    told = true;
    daemon.pause(kBetweenTries);
    if (report.abandoned()) return kNobodyWaits;
  }
}

void tell_usable(MountDaemon& daemon, const MountCommandLine& line, MountReport& report) {
  if (line.foreground) {
    if (line.verbose) std::printf("%s\n", daemon.description().c_str());
    std::fflush(stdout);
    return;
  }
  // Not before: systemd's automount lets only its own process group at the mount point until it is
  // mounted, and keeps everybody else waiting for that.
  ::setsid();
  const bool gone = report.open() && !report.send('K', daemon.description());
  daemon.log_to_syslog();
  daemon.tell_way();
  if (!gone) return;
  log_warning("{}; unmounting", kNobodyWaits);
  daemon.stop();
}

int serve(const MountCommandLine& line, const std::string& mount_point, MountReport report) {
  auto loop = EventLoop::create();
  if (!loop.ok()) return complain(kSystem, loop.error().message());
  const Fabrics fabrics = default_fabrics(line.options.require_crc);
  MountDaemon daemon(**loop, fabrics, line, mount_point);
  std::string why = connect_with_patience(daemon, line, report);
  if (why.empty()) why = daemon.mount();
  if (why.empty()) {
    if (daemon.run([&] { tell_usable(daemon, line, report); })) return 0;
    why = "the mount ended before it could be used";
  }
  return report.send('E', why) ? kMountFailed : complain(kMountFailed, why);
}

/// The parent: waits for the report.
int wait_for_report(UniqueFd pipe, const MountCommandLine& line) {
  std::string text;
  char piece[512];
  for (;;) {
    const ssize_t n = ::read(pipe.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(piece, static_cast<std::size_t>(n));
  }
  if (text.empty()) return complain(kMountFailed, "the daemon died");
  const std::string rest = text.substr(1);
  if (text[0] == 'E') return complain(kMountFailed, rest);
  if (text[0] == 'B') {
    std::fprintf(stderr, "mount.nfs-rdma: %s; goes on in the background\n", rest.c_str());
    return 0;
  }
  if (line.verbose) std::printf("%s\n", rest.c_str());
  return 0;
}

int run(int argc, char** argv) {
  MountCommandLine line;
  std::string error;
  const std::span<const char* const> arguments(argv + 1, static_cast<std::size_t>(argc - 1));
  if (!parse_mount_command_line(arguments, &line, &error)) return complain(kUsage, error);
  if (line.show_help) {
    std::fputs(mount_usage(), stdout);
    return 0;
  }
  if (line.show_version) {
    std::printf("mount.nfs-rdma %s\n", NFSRDMA_VERSION);
    return 0;
  }
  for (const std::string& notice : line.options.notices) {
    std::fprintf(stderr, "mount.nfs-rdma: %s\n", notice.c_str());
  }
  if (line.options.remount && !line.fake) {
    error = remount(line);
    return error.empty() ? 0 : complain(kMountFailed, error);
  }
  auto mount_point = resolve_mount_point(line.mount_point, &error);
  if (!mount_point.ok()) return complain(kMountFailed, error);
  if (line.fake) return 0;
  if (error = fuse_unavailable(); !error.empty()) return complain(kMountFailed, error);
  if (line.foreground) return serve(line, *mount_point, MountReport(UniqueFd()));

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return complain(kSystem, std::strerror(errno));
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return complain(kSystem, std::strerror(errno));
  if (child > 0) {
    write_end.reset();
    return wait_for_report(std::move(read_end), line);
  }
  read_end.reset();
  if (::chdir("/") != 0) return complain(kSystem, std::strerror(errno));
  return serve(line, *mount_point, MountReport(std::move(write_end)));
}

}  // namespace
}  // namespace nfsrdma

int main(int argc, char** argv) {
  nfsrdma::hold_standard_streams(nfsrdma::ClosedStream::kIsNull);
  // Who reads our report or messages may be gone: the daemon's end would leave a dead mount.
  ::signal(SIGPIPE, SIG_IGN);
  return nfsrdma::run(argc, argv);
}
