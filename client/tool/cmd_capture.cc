// SPDX-License-Identifier: Apache-2.0
// nfs-rdma capture: what crosses connections of a server, as a file for Wireshark.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "client/status_source.h"
#include "client/tool/capture_file.h"
#include "client/tool/commands.h"
#include "client/tool/control.h"
#include "client/tool/format.h"
#include "rpcrdma/base/json_writer.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma::tool {

namespace {

using Clock = std::chrono::steady_clock;

// How often the progress line changes, and when it comes first.
constexpr std::chrono::milliseconds kLook{500};
constexpr std::chrono::seconds kQuiet{2};
// How long the server may take to end what it was told to end.
constexpr std::chrono::seconds kLastWords{15};
// How long a reader may take then for what was read before.
constexpr std::chrono::milliseconds kLastTry{1000};
constexpr std::size_t kPiece = std::size_t{1} << 20;

/// By which the server knows whose capture is to end.
std::string capture_id() {
  return fmt::format("{}-{}", ::getpid(), Clock::now().time_since_epoch().count());
}

std::string request_of(const Arguments& arguments, const std::string& id) {
  JsonWriter json;
  json.begin_object();
  json.field("request", "capture");
  json.field("id", id);
  if (arguments.has("client")) json.field("client", arguments.get<std::string>("client"));
  if (arguments.has("fabric")) json.field("fabric", arguments.get<std::string>("fabric"));
  if (arguments.has("snap")) json.field("snap", arguments.get<std::uint64_t>("snap"));
  json.end_object();
  return json.take();
}

/// Ctrl-C and its like, to be waited for together with data. A second one ends the program.
class Interruption {
 public:
  Interruption() {
    sigset_t set = signals();
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  int fd() const { return fd_.get(); }
  /// It came: from now on they do what they do otherwise.
  void take() {
    signalfd_siginfo info{};
    [[maybe_unused]] const ssize_t n = ::read(fd_.get(), &info, sizeof info);
    const sigset_t set = signals();
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
    fd_.reset();
  }

 private:
  static sigset_t signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP})
      sigaddset(&set, number);
    return set;
  }
  UniqueFd fd_;
};

class CaptureRun {
 public:
  explicit CaptureRun(const Arguments& arguments)
      : path_(arguments.operands()[0]),
        socket_(server_socket(arguments)),
        request_(request_of(arguments, id_)),
        most_packets_(arguments.get<std::uint64_t>("count")),
        seconds_(arguments.get<double>("seconds")) {}

  int run() {
    std::string why;
    if (!lines_.open(socket_, request_, &why).ok()) return failed(why);
    buffer_.resize(kPiece);
    if (!begin()) return kExitFailure;
    const bool good = follow();
    if (progress_shown_) std::fputs("\r\033[K", stderr);
    if (!file_->finish(&why) && good) return failed(path_ + ": " + why);
    std::fprintf(stderr, "%lu packets captured (%s), %lu lost\n",
                 static_cast<unsigned long>(file_->packets()),
                 bytes_text(static_cast<double>(file_->bytes())).c_str(),
                 static_cast<unsigned long>(file_->lost()));
    return good ? kExitOk : kExitFailure;
  }

 private:
  static int failed(const std::string& why) {
    complain("capture", why);
    return kExitFailure;
  }

  /// Takes the first that comes, a refusal or the head of the file, which is only made then.
  bool begin() {
    // Until then Ctrl-C does what it always does.
    pollfd first_bytes{lines_.fd(), POLLIN, 0};
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(kLastWords);
    if (::poll(&first_bytes, 1, static_cast<int>(limit.count())) == 0) {
      return failed("the server takes the request and does not answer: it hangs"), false;
    }
    const ssize_t n = lines_.read(buffer_);
    if (n <= 0) return failed("the server is gone"), false;
    const std::string_view first(buffer_.data(), static_cast<std::size_t>(n));
    if (first.starts_with('{')) {
      const std::optional<JsonValue> refusal = JsonValue::parse(first);
      failed(refusal ? (*refusal)["error"].text() : "the server refuses");
      return false;
    }
    int fd = STDOUT_FILENO;
    if (path_ != "-") {
      made_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
      if (!made_) return failed(path_ + ": " + std::strerror(errno)), false;
      fd = made_.get();
    }
    // Behind the opening, which waits for the reader of a FIFO.
    interruption_.emplace();
    file_.emplace(fd, most_packets_, ::close, [this](int to) { return wait_to_write(to); });
    return write(first);
  }

  bool write(std::string_view bytes) {
    std::string why;
    if (file_->add(bytes, &why)) return true;
    failed(path_ + ": " + why);
    return false;
  }

  /// For a reader that does not read nobody can wait who is told to end, or has to at a time.
  bool wait_to_write(int fd) {
    for (;;) {
      pollfd fds[] = {{fd, POLLOUT, 0}, {interruption_->fd(), POLLIN, 0}};
      const int ready = ::poll(fds, 2, patience_for_reader());
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return false;
      if (fds[0].revents != 0) return true;
      interruption_->take();
      interrupted_ = true;
    }
  }
  int patience_for_reader() const {
    if (ending_ || interrupted_) return static_cast<int>(kLastTry.count());
    if (seconds_ <= 0) return -1;
    const double left = std::clamp(seconds_ - elapsed(), 0.0, 86400.0);
    return static_cast<int>(left * 1000) + static_cast<int>(kLastTry.count());
  }

  /// Writes what comes until it ends; false when that is not how it should end.
  bool follow() {
    for (;;) {
      if (!ending_ && (interrupted_ || file_->full() || (seconds_ > 0 && elapsed() >= seconds_))) {
        if (!ask_for_end()) return true;
      }
      if (ending_ && Clock::now() >= last_words_) return true;
      pollfd fds[] = {{lines_.fd(), POLLIN, 0}, {interruption_->fd(), POLLIN, 0}};
      const int ready = ::poll(fds, 2, patience());
      show_progress();
      if (ready <= 0) continue;
      if ((fds[1].revents & POLLIN) != 0) {
        interruption_->take();
        if (!ending_ && !ask_for_end()) return true;
      }
      if (fds[0].revents == 0) continue;
      const ssize_t n = lines_.read(buffer_);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        if (!ending_) failed("the server is gone; what came until now is in the file");
        return ending_;
      }
      if (!write({buffer_.data(), static_cast<std::size_t>(n)})) return false;
    }
  }

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }
  /// Until something has to be done without anything coming.
  int patience() const {
    auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(kLook);
    if (!ending_ && seconds_ > 0) {
      const auto left =
          std::chrono::milliseconds(static_cast<std::int64_t>((seconds_ - elapsed()) * 1000) + 1);
      wait = std::clamp(left, std::chrono::milliseconds(0), wait);
    }
    return static_cast<int>(wait.count());
  }

  /// The server then sends what has crossed until now. False: it cannot be asked any more.
  bool ask_for_end() {
    ending_ = true;
    last_words_ = Clock::now() + kLastWords;
    std::string why;
    return ask_control(socket_, request_text("capture_stop", "id", id_), &why).ok();
  }

  void show_progress() {
    if (!on_terminal_ || Clock::now() < next_look_) return;
    next_look_ = Clock::now() + kLook;
    progress_shown_ = true;
    std::fprintf(stderr, "\r\033[K%lu packets, %s, %lu lost",
                 static_cast<unsigned long>(file_->packets()),
                 bytes_text(static_cast<double>(file_->bytes())).c_str(),
                 static_cast<unsigned long>(file_->lost()));
  }

  std::string id_ = capture_id();
  std::string path_;
  std::string socket_;
  std::string request_;
  std::uint64_t most_packets_;
  double seconds_;
  std::optional<Interruption> interruption_;  // once there is something to end
  ControlLines lines_;
  UniqueFd made_;
  std::optional<CaptureFile> file_;
  std::vector<char> buffer_;
  bool interrupted_ = false;  // while it waited for its reader
  bool ending_ = false;
  Clock::time_point last_words_;
  Clock::time_point started_ = Clock::now();
  Clock::time_point next_look_ = started_ + kQuiet;
  bool on_terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool progress_shown_ = false;
};

}  // namespace

int run_capture(const Words& words) {
  Arguments arguments(
      "capture",
      "[--client ADDRESS] [--fabric F] [--snap BYTES] [--count N] [--seconds N] [--server SOCKET] "
      "FILE",
      "Writes what crosses the connections of a server from now on until Ctrl-C to FILE (- is\n"
      "standard output) as pcapng, which Wireshark and tshark dissect down to the NFS calls, also\n"
      "where tcpdump sees nothing (RDMA adapters). RDMA connections of any fabric are written as\n"
      "iWARP over TCP. One capture at a time; FILE is overwritten.\n"
      "FILE holds the names and the data of files: it is made for its owner alone (mode 0600).");
  namespace po = boost::program_options;
  add_server_option(arguments);
  arguments.add()("client", po::value<std::string>()->value_name("ADDRESS"),
                  "only connections from there")(
      "fabric", po::value<std::string>()->value_name("F"), "only over iwarp, verbs or tcp")(
      "snap", po::value<std::uint64_t>()->value_name("BYTES"),
      "keep no more of what an RDMA Write or Read moves, nor of a message on TCP beyond 1024; all "
      "of it")("count", po::value<std::uint64_t>()->value_name("N")->default_value(0),
               "end after so many packets; 0: never")(
      "seconds", po::value<double>()->value_name("N")->default_value(0, "0"),
      "end after so many seconds; 0: never");
  if (auto code = arguments.parse(words, 1, 1)) return *code;
  if (!(arguments.get<double>("seconds") >= 0 && arguments.get<double>("seconds") <= 1e9)) {
    return arguments.usage_error("--seconds: expected seconds");
  }
  if (arguments.operands()[0] == "-" && ::isatty(STDOUT_FILENO) == 1) {
    return arguments.usage_error("standard output is a terminal: name a file");
  }
  return CaptureRun(arguments).run();
}

}  // namespace nfsrdma::tool
