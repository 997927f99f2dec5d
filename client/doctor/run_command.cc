// SPDX-License-Identifier: Apache-2.0
// A program of this host, its output and its exit status, without a shell and never for longer than
// asked. A child that does not end is killed.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "client/doctor/host_view.h"
#include "rpcrdma/base/unique_fd.h"

extern char** environ;

namespace nfsrdma::doctor {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostOutput = 8 << 20;  // a large ruleset of a firewall
constexpr int kLastWait = 1000;               // milliseconds for one that was killed

struct Pipe {
  UniqueFd read, write;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = UniqueFd(ends[0]);
    write = UniqueFd(ends[1]);
    return true;
  }
};

int left(Clock::time_point deadline) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return ms < 0 ? 0 : static_cast<int>(ms);
}

/// False: the end of the stream.
bool take(int fd, std::string* into) {
  std::array<char, 16384> buffer;
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n > 0 && into->size() < kMostOutput) into->append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0;
}

/// Until both streams are at their end; false when time is up first.
bool collect(Pipe& out, Pipe& err, Clock::time_point deadline, CommandOutput* result) {
  std::array<pollfd, 2> streams{{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    const int ready = ::poll(streams.data(), streams.size(), left(deadline));
    if (ready == 0 || (ready < 0 && errno != EINTR)) return false;
    if (ready < 0) continue;
    if (streams[0].revents != 0 && !take(streams[0].fd, &result->out)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !take(streams[1].fd, &result->err)) streams[1].fd = -1;
  }
  return true;
}

/// Within so many milliseconds.
bool ended(int process, int patience) {
  pollfd end{process, POLLIN, 0};
  return ::poll(&end, 1, patience) == 1;
}

pid_t start(const std::string& program, const std::vector<std::string>& words, Pipe& out,
            Pipe& err) {
  std::vector<char*> arguments;
  for (const std::string& word : words)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err.write.get(), STDERR_FILENO);
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -1;
}

}  // namespace

CommandOutput run_command(const std::vector<std::string>& words,
                          std::chrono::milliseconds patience) {
  CommandOutput result;
  const std::string program =
      words.front().starts_with('/') ? words.front() : HostView{}.program(words.front());
  Pipe out, err;
  if (program.empty() || !out.open() || !err.open()) return result;
  const pid_t pid = start(program, words, out, err);
  out.write.reset();
  err.write.reset();
  if (pid < 0) return result;
  result.found = true;
  const Clock::time_point deadline = Clock::now() + patience;
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  result.timed_out = !collect(out, err, deadline, &result) || !ended(process.get(), left(deadline));
  if (result.timed_out) ::kill(pid, SIGKILL);
  // One that hangs in the kernel is left to init.
  if (result.timed_out && !ended(process.get(), kLastWait)) return result;
  int status = 0;
  if (::waitpid(pid, &status, 0) == pid && WIFEXITED(status)) result.status = WEXITSTATUS(status);
  return result;
}

}  // namespace nfsrdma::doctor
