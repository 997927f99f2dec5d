// SPDX-License-Identifier: Apache-2.0
// nfs-rdma doctor: what is wrong on this host and on the way to a server, and what helps. The
// checks are in client/doctor/.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "client/doctor/report.h"
#include "client/doctor/table.h"
#include "client/tool/arguments.h"
#include "client/tool/commands.h"
#include "rpcrdma/base/json_value.h"

namespace nfsrdma::tool {
namespace {

namespace po = boost::program_options;

constexpr std::chrono::seconds kQuiet{2};
constexpr std::uint32_t kDefaultPatience = 5;
constexpr std::uint32_t kMostPatience = 60;

/// One line on a terminal that says which check is running, once that has taken a while.
class Current {
 public:
  explicit Current(bool wanted) {
    if (wanted) thread_ = std::thread([this] { run(); });
  }
  ~Current() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
    }
    changed_.notify_one();
    thread_.join();
    if (drawn_) std::fputs("\r\033[K", stderr);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  void begin(const doctor::CheckRow& row) {
    const std::lock_guard<std::mutex> lock(mutex_);
    text_ = fmt::format("{}: {} ...", row.id, row.about);
    changed_.notify_one();
  }

 private:
  void run() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (changed_.wait_for(lock, kQuiet, [this] { return ending_; })) return;
    while (!ending_) {
      std::fprintf(stderr, "\r\033[K%s", text_.substr(0, 78).c_str());
      drawn_ = true;
      changed_.wait(lock);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  bool ending_ = false;
  bool drawn_ = false;
  std::thread thread_;
};

std::size_t columns_of_output() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 0;
  return size.ws_col;
}

/// False with a line in *error.
bool read_file(const std::string& file, std::string* text, std::string* error) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  std::ostringstream all;
  // Nothing in it is no error of reading, though the stream says so.
  const bool empty = in && in.peek() == std::ifstream::traits_type::eof() && errno == 0;
  if (!empty && (!in || !(all << in.rdbuf()))) {
    *error = fmt::format("{}: {}", file, errno != 0 ? std::strerror(errno) : "cannot be read");
    return false;
  }
  *text = all.str();
  return true;
}

/// What the doctor said at the other end. False with a line in *error.
bool read_other_end(const std::string& file, std::string* text, std::string* error) {
  if (!read_file(file, text, error)) {
    *error = "--other-end " + *error;
    return false;
  }
  const std::optional<JsonValue> document = JsonValue::parse(*text);
  if (document && (*document)["roce_ports"].kind() == JsonValue::Kind::kArray) return true;
  *error = fmt::format("--other-end {}: that is not what 'nfs-rdma doctor --json' writes: {}", file,
                       text->empty() ? "the file is empty"
                       : document    ? "it has no roce_ports"
                                     : "it is no JSON");
  return false;
}

/// "a,b" into {"a", "b"}; names what is no check.
bool parse_only(const std::string& text, std::vector<std::string>* only, std::string* error) {
  std::istringstream in(text);
  for (std::string id; std::getline(in, id, ',');) {
    if (doctor::find_row(id) == nullptr) {
      *error = fmt::format("'{}' is no check; --list names them", id);
      return false;
    }
    only->push_back(id);
  }
  if (only->empty()) *error = "--only names no check; --list has them";
  return !only->empty();
}

/// False with a line in *error: a check that was named cannot run.
bool can_run(const std::vector<std::string>& only, bool has_server, std::string* error) {
  for (const std::string& id : only) {
    if (has_server || doctor::find_row(id)->of_server == nullptr) continue;
    *error = fmt::format("--only {}: that check needs a SERVER", id);
    return false;
  }
  return true;
}

void add_options(Arguments& arguments) {
  arguments.add()("json", "one JSON object")("verbose,v",
                                             "also why something was not looked at, and "
                                             "what could be better")("list", "name the checks")(
      "only", po::value<std::string>()->value_name("CHECK,..."), "these alone")(
      "path", po::value<std::string>()->value_name("DIR"),
      "exported directory, where a file is made, read back and removed")(
      "timeout", po::value<std::uint32_t>()->default_value(kDefaultPatience)->value_name("SECONDS"),
      "for each step over the network")("other-end", po::value<std::string>()->value_name("FILE"),
                                        "what 'nfs-rdma doctor --json' said on the server")(
      "strict", "exit with 1 for warnings, too");
}

struct Wanted {
  std::vector<std::string> only;
  MountSettings settings;
  bool has_server = false, has_path = false;
  std::string server, other_end;
  std::chrono::seconds patience{kDefaultPatience};
};

/// Everything that the command line says; false with a line in *error.
bool understand(const Arguments& arguments, Wanted* wanted, std::string* error) {
  if (arguments.has("only") &&
      !parse_only(arguments.get<std::string>("only"), &wanted->only, error)) {
    return false;
  }
  const auto seconds = arguments.get<std::uint32_t>("timeout");
  if (seconds < 1 || seconds > kMostPatience) {
    *error = fmt::format("--timeout {}: expected a number from 1 to {}", seconds, kMostPatience);
    return false;
  }
  wanted->patience = std::chrono::seconds(seconds);
  wanted->has_server = !arguments.operands().empty();
  for (const char* of_server : {"path", "other-end"}) {
    if (arguments.has(of_server) && !wanted->has_server) {
      *error = fmt::format("--{} needs a SERVER", of_server);
      return false;
    }
  }
  if (!can_run(wanted->only, wanted->has_server, error)) return false;
  if (!wanted->has_server) return true;
  wanted->server = arguments.operands().front();
  if (!doctor::parse_server(wanted->server, &wanted->settings, &wanted->has_path, error)) {
    return false;
  }
  if (arguments.has("path")) {
    wanted->settings.path = arguments.get<std::string>("path");
    wanted->has_path = true;
    if (!wanted->settings.path.starts_with('/')) {
      *error = fmt::format("--path {}: expected a path that begins with /", wanted->settings.path);
      return false;
    }
  }
  return !arguments.has("other-end") ||
         read_other_end(arguments.get<std::string>("other-end"), &wanted->other_end, error);
}

/// To standard output; says when that takes it not, so that main() need not.
bool put(const std::string& text) {
  errno = 0;
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return true;
  complain("doctor", fmt::format("the report cannot be written: {}", std::strerror(errno)));
  std::clearerr(stdout);
  return false;
}

}  // namespace

int run_doctor(const Words& words) {
  Arguments arguments("doctor", "[--path DIR] [--json] [--verbose] [SERVER]",
                      "Looks for what keeps NFS over RDMA from working, on this host and, with "
                      "SERVER, on the\nway there, and says what helps. SERVER: host, host:port, "
                      "host:/path or a URL.\nExit status: 0 nothing is broken, 1 there are "
                      "problems, 2 wrong usage.");
  add_options(arguments);
  if (auto code = arguments.parse(words, 0, 1)) return *code;
  if (arguments.has("list")) {
    if (arguments.has("json")) return arguments.usage_error("--list is text: no --json");
    return put(doctor::list_text()) ? kExitOk : kExitFailure;
  }
  Wanted wanted;
  std::string error;
  if (!understand(arguments, &wanted, &error)) return arguments.usage_error(error);
  const doctor::HostView host = doctor::real_host();
  const std::unique_ptr<doctor::Network> network = doctor::real_network();
  doctor::ServerVisit visit{.host = host,
                            .network = *network,
                            .settings = wanted.settings,
                            .has_path = wanted.has_path,
                            .patience = wanted.patience,
                            .other_end = wanted.other_end,
                            .server = wanted.server};
  std::vector<doctor::CheckResult> results;
  {
    Current current(::isatty(STDERR_FILENO) != 0);
    results = doctor::run_checks(host, wanted.has_server ? &visit : nullptr, wanted.only,
                                 [&](const doctor::CheckRow& row) { current.begin(row); });
  }
  const doctor::ReportStyle style{arguments.has("verbose"), columns_of_output()};
  const std::string report = arguments.has("json")
                                 ? doctor::report_json(results, host, wanted.server) + "\n"
                                 : doctor::report_text(results, style);
  if (!put(report)) return kExitFailure;
  return doctor::exit_code(results, arguments.has("strict"));
}

}  // namespace nfsrdma::tool
