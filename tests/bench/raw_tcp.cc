// SPDX-License-Identifier: Apache-2.0
// raw_tcp: what a bare TCP connection on loopback does on this machine, as the yardstick for
// scripts/bench. Two processes, each on its own core, one connection; no RPC, no file.
//
//   raw_tcp stream SECONDS BLOCK          one way; prints {"bytes_per_second":...}
//   raw_tcp pingpong SECONDS REQ REP [CLIENT SERVER [CLIENT_CPU SERVER_CPU]]
//                                         request/reply of these sizes; prints p50 and p99 in us.
//                                         CLIENT, SERVER: how that side waits, as microseconds of
//                                         polling before it blocks: 0 blocks at once (the default),
//                                         a large number never. CPUs: where each side is pinned.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

// A connected pair of TCP sockets on loopback.
void connect_pair(int* client, int* server) {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0) die("bind");
  if (::listen(listener, 1) != 0) die("listen");
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  *client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(*client, reinterpret_cast<sockaddr*>(&address), length) != 0) die("connect");
  *server = ::accept(listener, nullptr, nullptr);
  if (*server < 0) die("accept");
  ::close(listener);
  int one = 1;
  for (int fd : {*client, *server}) {
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
}

bool send_all(int fd, const std::vector<char>& data) {
  std::size_t done = 0;
  while (done < data.size()) {
    ssize_t n = ::send(fd, data.data() + done, data.size() - done, MSG_NOSIGNAL);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

// Polls for `poll_us` microseconds, then blocks.
bool receive_all(int fd, std::vector<char>& data, double poll_us) {
  const auto start = Clock::now();
  bool poll = poll_us > 0;
  std::size_t done = 0;
  while (done < data.size()) {
    ssize_t n = ::recv(fd, data.data() + done, data.size() - done, poll ? MSG_DONTWAIT : 0);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      return false;
    }
    if (poll) {
      poll = std::chrono::duration<double, std::micro>(Clock::now() - start).count() < poll_us;
    }
  }
  return true;
}

void pin(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) die("sched_setaffinity");
}

// A server is never in its client's session, and the kernel schedules by session (autogroup): a
// wake-up preempts within one that would wait across two.
void leave_session() {
  ::setsid();
}

int stream(double seconds, std::size_t block) {
  int sender, receiver;
  connect_pair(&sender, &receiver);
  pid_t child = ::fork();
  if (child == 0) {
    leave_session();
    ::close(receiver);
    std::vector<char> data(block, 'x');
    while (send_all(sender, data)) {
    }
    ::_exit(0);
  }
  ::close(sender);
  std::vector<char> data(block);
  const auto start = Clock::now();
  std::size_t bytes = 0;
  while (std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    ssize_t n = ::recv(receiver, data.data(), data.size(), 0);
    if (n <= 0) break;
    bytes += static_cast<std::size_t>(n);
  }
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  ::close(receiver);
  ::waitpid(child, nullptr, 0);
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const double sender_cpu =
      static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
      static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  std::printf("{\"bytes_per_second\": %.0f, \"sender_cpu_us_per_mib\": %.1f}\n",
              static_cast<double>(bytes) / took,
              sender_cpu * 1e6 / (static_cast<double>(bytes) / 1048576.0));
  return 0;
}

struct Side {
  double poll_us = 0;
  int cpu = -1;  // -1: wherever the kernel likes
};

int pingpong(double seconds, std::size_t request, std::size_t reply, Side here, Side there) {
  int client, server;
  connect_pair(&client, &server);
  pid_t child = ::fork();
  if (child == 0) {
    leave_session();
    ::close(client);
    pin(there.cpu);
    std::vector<char> in(request), out(reply, 'r');
    while (receive_all(server, in, there.poll_us) && send_all(server, out)) {
    }
    ::_exit(0);
  }
  ::close(server);
  pin(here.cpu);
  std::vector<char> out(request, 'q'), in(reply);
  std::vector<double> micros;
  const auto start = Clock::now();
  auto now = start;
  while (std::chrono::duration<double>(now - start).count() < seconds) {
    const auto sent = Clock::now();
    if (!send_all(client, out) || !receive_all(client, in, here.poll_us)) die("ping-pong");
    now = Clock::now();
    micros.push_back(std::chrono::duration<double, std::micro>(now - sent).count());
  }
  ::close(client);
  ::waitpid(child, nullptr, 0);
  std::sort(micros.begin(), micros.end());
  std::printf("{\"latency_us\": {\"p50\": %.1f, \"p99\": %.1f}, \"rounds\": %zu}\n",
              micros[micros.size() / 2], micros[micros.size() * 99 / 100], micros.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "stream" && argc == 4) {
    return stream(std::atof(argv[2]), std::strtoul(argv[3], nullptr, 0));
  }
  if (mode == "pingpong" && (argc == 5 || argc == 7 || argc == 9)) {
    Side client, server;
    if (argc >= 7) {
      client.poll_us = std::atof(argv[5]);
      server.poll_us = std::atof(argv[6]);
    }
    if (argc == 9) {
      client.cpu = std::atoi(argv[7]);
      server.cpu = std::atoi(argv[8]);
    }
    return pingpong(std::atof(argv[2]), std::strtoul(argv[3], nullptr, 0),
                    std::strtoul(argv[4], nullptr, 0), client, server);
  }
  std::fprintf(stderr,
               "usage: raw_tcp stream SECONDS BLOCK\n"
               "       raw_tcp pingpong SECONDS REQ REP [CLIENT SERVER [CLIENT_CPU SERVER_CPU]]\n");
  return 2;
}
