// SPDX-License-Identifier: Apache-2.0
// The real program: started on high ports, used through libnfs, ended by SIGTERM.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <nfsc/libnfs.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "rpcrdma/base/socket_address.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A TCP port of the loopback that nobody has right now, and that no outgoing connection takes
/// before the server has it: those get theirs from 32768 on.
int free_port() {
  static int port = 12000 + static_cast<int>(std::random_device()() % 20000);
  for (;; ++port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress address =
        SocketAddress::parse("127.0.0.1", static_cast<std::uint16_t>(port)).value();
    if (::bind(fd.get(), address.data(), address.length()) == 0) return port++;
  }
}

/// A child process with its outputs.
class Child {
 public:
  explicit Child(const std::vector<std::string>& args, const char* program = NFS_RDMAD,
                 const std::vector<std::string>& more = {}) {
    int out[2], err[2];
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(err, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(err[1], STDERR_FILENO);
      std::vector<char*> argv{const_cast<char*>(program)};
      for (const auto* words : {&args, &more}) {
        for (const std::string& arg : *words)
          argv.push_back(const_cast<char*>(arg.c_str()));
      }
      argv.push_back(nullptr);
      ::execv(program, argv.data());
      ::_exit(127);
    }
    out_.reset(out[0]);
    err_.reset(err[0]);
    ::close(out[1]);
    ::close(err[1]);
  }
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    if (testing::Test::HasFailure()) std::fprintf(stderr, "its log:\n%s\n", err_all().c_str());
  }
  void signal(int number) { ::kill(pid_, number); }
  /// A line of the output, or what there is when it ends or 20 seconds pass.
  std::string out_line() { return out_until("\n"); }
  std::string out_until(const std::string& text) { return read_until(out_.get(), out_text_, text); }
  /// All of stderr up to where `text` appears (or the end).
  std::string err_until(const std::string& text) { return read_until(err_.get(), err_text_, text); }
  std::string err_all() { return err_until(std::string("\0", 1)); }
  int exit_status() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  static std::string read_until(int fd, std::string& text, const std::string& end) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      if (std::size_t at = text.find(end); at != std::string::npos) {
        std::string head = text.substr(0, at + end.size());
        text.erase(0, head.size());
        return head;
      }
      pollfd p{fd, POLLIN, 0};
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0 || ::poll(&p, 1, static_cast<int>(left.count())) <= 0) return text;
      char chunk[4096];
      const ssize_t n = ::read(fd, chunk, sizeof chunk);
      if (n <= 0) return text;
      text.append(chunk, static_cast<std::size_t>(n));
    }
  }
  pid_t pid_ = -1;
  UniqueFd out_, err_;
  std::string out_text_, err_text_;
};

class DaemonTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/nfs-rdmad-test-XXXXXX";
    directory_ = ::mkdtemp(name);
    exported_ = directory_ + "/exported";
    std::filesystem::create_directories(exported_ + "/sub/deep");
    std::ofstream(exported_ + "/hello") << "hello, world\n";
    // Tests run as root as well as not; every caller may come here.
    ::chmod(directory_.c_str(), 0755);
    ::chmod(exported_.c_str(), 0777);
    std::ofstream(directory_ + "/rdma.conf") << "# nothing\n";
    port_ = free_port();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::vector<std::string> arguments(std::vector<std::string> more) {
    std::vector<std::string> all{
        "--foreground",        "--config",   directory_ + "/rdma.conf",    "--state-dir",
        directory_ + "/state", "--control",  directory_ + "/control.sock", "--listen",
        "127.0.0.1",           "--tcp-port", std::to_string(port_)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string tcp_listener() const { return "tcp 127.0.0.1:" + std::to_string(port_); }
  std::string udp_listener() const { return "udp 127.0.0.1:" + std::to_string(port_); }
  std::string export_argument(const std::string& options = "rw,insecure,no_root_squash") const {
    return exported_ + ":" + options;
  }

  /// Mounts `path` by libnfs; "" when it went well, else the error.
  std::string mount(const std::string& path) {
    nfs_.reset(::nfs_init_context());
    const std::string port = std::to_string(port_);
    const std::string url =
        "nfs://127.0.0.1" + path + "?version=3&nfsport=" + port + "&mountport=" + port;
    nfs_url* parsed = ::nfs_parse_url_dir(nfs_.get(), url.c_str());
    if (parsed == nullptr) return ::nfs_get_error(nfs_.get());
    const int mounted = ::nfs_mount(nfs_.get(), parsed->server, parsed->path);
    ::nfs_destroy_url(parsed);
    if (mounted == 0) return "";
    return ::nfs_get_error(nfs_.get());
  }
  std::string read_file(const std::string& path) {
    struct nfsfh* file = nullptr;
    if (::nfs_open(nfs_.get(), path.c_str(), O_RDONLY, &file) != 0) {
      return ::nfs_get_error(nfs_.get());
    }
    char text[100] = {};
    const int n = ::nfs_read(nfs_.get(), file, sizeof text, text);
    ::nfs_close(nfs_.get(), file);
    return std::string(text, static_cast<std::size_t>(std::max(n, 0)));
  }
  /// A connection to the control socket that has asked for that.
  UniqueFd ask_control_for(const std::string& request) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory_ + "/control.sock";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::write(fd.get(), request.data(), request.size()),
              static_cast<ssize_t>(request.size()));
    return fd;
  }
  static std::string all_of(const UniqueFd& fd) {
    std::string answer;
    char chunk[4096];
    for (ssize_t n; (n = ::read(fd.get(), chunk, sizeof chunk)) > 0;) {
      answer.append(chunk, static_cast<std::size_t>(n));
    }
    return answer;
  }
  std::string ask_control(const std::string& request) { return all_of(ask_control_for(request)); }

  /// What GETATTR of NFSv4.0 says of the owner of the root, with all that the reply has around it.
  std::string owner_of_root() {
    constexpr std::uint32_t kLast = 1u << 31;
    const std::uint32_t call[] = {
        0,  // the record's mark
        1,  0, 2, 100003,
        4,  1,                      // xid, CALL, RPC version, NFS, 4, COMPOUND
        0,  0, 0, 0,                // AUTH_NONE, twice
        0,  0, 2,                   // tag, minor version, operations
        24,                         // PUTROOTFH
        9,  2, 0, 1u << (36 - 32),  // GETATTR of owner
    };
    std::vector<std::uint32_t> wire(std::begin(call), std::end(call));
    wire[0] = kLast | static_cast<std::uint32_t>((wire.size() - 1) * 4);
    for (std::uint32_t& word : wire)
      word = htonl(word);
    const SocketAddress address =
        SocketAddress::parse("127.0.0.1", static_cast<std::uint16_t>(port_)).value();
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), address.data(), address.length()), 0);
    EXPECT_EQ(::send(fd.get(), wire.data(), wire.size() * 4, MSG_NOSIGNAL),
              static_cast<ssize_t>(wire.size() * 4));
    std::uint32_t mark = 0;
    EXPECT_EQ(::recv(fd.get(), &mark, sizeof mark, MSG_WAITALL), 4);
    std::string reply(ntohl(mark) & ~kLast, '\0');
    EXPECT_EQ(::recv(fd.get(), reply.data(), reply.size(), MSG_WAITALL),
              static_cast<ssize_t>(reply.size()));
    return reply;
  }

  struct DestroyNfs {
    void operator()(nfs_context* nfs) const { ::nfs_destroy_context(nfs); }
  };
  std::string directory_, exported_;
  int port_ = 0;
  std::unique_ptr<nfs_context, DestroyNfs> nfs_;
};

TEST_F(DaemonTest, TheReadyLineListsTheListeners) {
  Child server(arguments({"--fabric", "none", "-e", export_argument()}));
  EXPECT_EQ(server.out_line(), "ready " + tcp_listener() + ", " + udp_listener() + "\n");
}

TEST_F(DaemonTest, TheReadyLineIsThereOnceWhereBothOutputsAreOne) {
  Child server({"-c", "exec \"$0\" \"$@\" 2>&1", NFS_RDMAD}, "/bin/sh",
               arguments({"--fabric", "none", "-e", export_argument()}));
  std::string all;
  for (std::string line; !line.starts_with("ready "); all += line) {
    line = server.out_line();
    ASSERT_TRUE(line.ends_with("\n")) << all << line;
  }
  server.signal(SIGTERM);
  const std::string rest = server.out_until(std::string("\0", 1));
  EXPECT_EQ(server.exit_status(), 0);
  EXPECT_THAT(rest, AllOf(HasSubstr("stopped"), Not(HasSubstr("ready"))));
}

TEST_F(DaemonTest, TheReadyLineListsIwarpFirst) {
  const std::string rdma_port = std::to_string(free_port());
  Child server(arguments({"--fabric", "iwarp", "--port", rdma_port, "-e", export_argument()}));
  EXPECT_EQ(server.out_line(), "ready iwarp 127.0.0.1:" + rdma_port + ", " + tcp_listener() + ", " +
                                   udp_listener() + "\n");
}

TEST_F(DaemonTest, SigtermEndsItCleanly) {
  Child server(arguments({"--fabric", "none", "-e", export_argument()}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  server.signal(SIGTERM);
  EXPECT_EQ(server.exit_status(), 0);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/control.sock"));
}

TEST_F(DaemonTest, SigtermEndsItWithAClientConnected) {
  Child server(arguments({"--fabric", "none", "-e", export_argument()}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  ASSERT_EQ(mount(exported_), "");
  server.signal(SIGTERM);
  EXPECT_EQ(server.exit_status(), 0);
}

/// What crossed just before, down to the end of the connection, and its statistics.
TEST_F(DaemonTest, ACaptureHasTheLastFramesWhenTheServerEnds) {
  Child server(arguments({"--fabric", "none", "-e", export_argument()}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  const UniqueFd capture = ask_control_for("capture\n");
  // The head is there: it has begun.
  char first = 0;
  ASSERT_EQ(::recv(capture.get(), &first, 1, MSG_PEEK), 1);
  ASSERT_EQ(mount(exported_), "");
  EXPECT_EQ(read_file("/hello"), "hello, world\n");
  server.signal(SIGTERM);
  const std::string captured = all_of(capture);
  EXPECT_THAT(captured, HasSubstr("hello, world"));
  ASSERT_GT(captured.size(), 76u);
  EXPECT_EQ(captured.substr(captured.size() - 76, 8), std::string("\5\0\0\0\x4c\0\0\0", 8));
  EXPECT_THAT(server.err_until("the capture ended"), HasSubstr("the capture ended"));
  EXPECT_THAT(server.err_until("\n"), StartsWith(" with the server: "));
  EXPECT_EQ(server.exit_status(), 0);
}

/// A reload that does not end, here since the exports file is a pipe that nobody writes to.
TEST_F(DaemonTest, SigtermEndsItWhileAReloadHangs) {
  const std::string exports = directory_ + "/exports";
  std::ofstream(exports) << exported_ << " *(insecure)\n";
  Child server(arguments({"--fabric", "none", "--exports", exports}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  std::filesystem::remove(exports);
  ASSERT_EQ(::mkfifo(exports.c_str(), 0600), 0);
  server.signal(SIGHUP);
  // There is a reader as soon as it hangs.
  UniqueFd writer;
  while (!writer)
    writer.reset(::open(exports.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  server.signal(SIGTERM);
  EXPECT_THAT(server.err_until("leaving without them"), HasSubstr("exports are stuck"));
  EXPECT_EQ(server.exit_status(), 0);
}

// Nobody is served yet, and the file system with the exports, or one of them, may never answer.
TEST_F(DaemonTest, SigtermEndsItWhileTheStartHangs) {
  const std::string exports = directory_ + "/exports";
  ASSERT_EQ(::mkfifo(exports.c_str(), 0600), 0);
  Child server(arguments({"--fabric", "none", "--exports", exports}));
  UniqueFd writer;
  while (!writer)
    writer.reset(::open(exports.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  server.signal(SIGTERM);
  EXPECT_EQ(server.exit_status(), -SIGTERM);
}

/// Here open(2) waits for somebody who has a lease, as it would for an NFS server that is gone.
TEST_F(DaemonTest, SigtermEndsItWhileTheStateDirectoryHangs) {
  const std::string records = directory_ + "/state/nfs4-clients";
  std::filesystem::create_directories(records);
  ASSERT_NE(::signal(SIGIO, SIG_IGN), SIG_ERR);
  UniqueFd leased(::open((records + "/log.new").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::fcntl(leased.get(), F_SETLEASE, F_WRLCK), 0);
  Child server(arguments({"--fabric", "none", "-e", export_argument()}));
  // It is to be given up as soon as somebody waits for that.
  while (::fcntl(leased.get(), F_GETLEASE) == F_WRLCK)
    ::poll(nullptr, 0, 1);
  server.signal(SIGTERM);
  EXPECT_EQ(server.exit_status(), -SIGTERM);
  EXPECT_THAT(server.err_all(),
              HasSubstr("ended by SIGTERM before the start was over; it was waiting for the state "
                        "directory " +
                        directory_ + "/state\n"));
}

/// Nor does it name an option that there is not.
TEST_F(DaemonTest, ATakenMetricsPortLeavesTheFilesServed) {
  const int taken = free_port();
  UniqueFd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress address =
      SocketAddress::parse("127.0.0.1", static_cast<std::uint16_t>(taken)).value();
  ASSERT_EQ(::bind(other.get(), address.data(), address.length()), 0);
  ASSERT_EQ(::listen(other.get(), 1), 0);
  std::ofstream(directory_ + "/rdma.conf") << "NFSoRDMA_METRICS=" << address.text() << "\n";
  Child server(arguments({"--fabric", "none", "-e", export_argument()}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  EXPECT_THAT(server.err_until("in rdma.conf"),
              AllOf(HasSubstr("no metrics are served: NFSoRDMA_METRICS: cannot listen on " +
                              address.text()),
                    HasSubstr("; process " + std::to_string(::getpid())),
                    HasSubstr("choose another with NFSoRDMA_METRICS in rdma.conf")));
  ASSERT_EQ(mount(exported_), "");
}

TEST_F(DaemonTest, WhatIsNoRecordOfMonitoredHostsIsNamed) {
  const std::string log = directory_ + "/state/nsm/log";
  std::filesystem::create_directories(log);
  Child server(arguments({"--fabric", "none", "-e", export_argument()}));
  EXPECT_THAT(server.err_all(), HasSubstr(log + ": not a regular file"));
  EXPECT_NE(server.exit_status(), 0);
}

TEST_F(DaemonTest, LibnfsReadsAFile) {
  Child server(arguments({"--fabric", "none", "-e", export_argument()}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  ASSERT_EQ(mount(exported_), "");
  EXPECT_EQ(read_file("/hello"), "hello, world\n");
}

TEST_F(DaemonTest, LibnfsCreatesWritesAndRenames) {
  Child server(arguments({"--fabric", "none", "-e", export_argument()}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  ASSERT_EQ(mount(exported_), "");
  struct nfsfh* file = nullptr;
  ASSERT_EQ(::nfs_creat(nfs_.get(), "/new", 0644, &file), 0) << ::nfs_get_error(nfs_.get());
  char text[] = "written";
  EXPECT_EQ(::nfs_write(nfs_.get(), file, 7, text), 7);
  EXPECT_EQ(::nfs_close(nfs_.get(), file), 0);
  EXPECT_EQ(::nfs_rename(nfs_.get(), "/new", "/newer"), 0) << ::nfs_get_error(nfs_.get());
  std::string content;
  std::ifstream(exported_ + "/newer") >> content;
  EXPECT_EQ(content, "written");
}

TEST_F(DaemonTest, ADirectoryBelowAnExportCanBeMounted) {
  Child server(arguments({"--fabric", "none", "-e", export_argument()}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  EXPECT_EQ(mount(exported_ + "/sub//deep/"), "");
}

TEST_F(DaemonTest, WhatIsNotExportedIsRefused) {
  Child server(arguments({"--fabric", "none", "-e", export_argument()}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  EXPECT_THAT(mount("/etc"), HasSubstr("ACCES"));
  EXPECT_THAT(mount("/nonexistent-at-all"), HasSubstr("ACCES"));
  EXPECT_THAT(mount(exported_ + "/../.."), HasSubstr("ACCES"));
}

TEST_F(DaemonTest, AMissingDirectoryInsideAnExportIsNotThere) {
  Child server(arguments({"--fabric", "none", "-e", export_argument()}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  EXPECT_THAT(mount(exported_ + "/missing"), HasSubstr("NOENT"));
}

TEST_F(DaemonTest, HandlesSurviveARestart) {
  auto args = arguments({"--fabric", "none", "-e", export_argument()});
  auto first = std::make_unique<Child>(args);
  ASSERT_THAT(first->out_line(), StartsWith("ready"));
  ASSERT_EQ(mount(exported_), "");
  EXPECT_EQ(read_file("/hello"), "hello, world\n");
  first->signal(SIGKILL);
  EXPECT_EQ(first->exit_status(), -SIGKILL);
  Child second(args);
  ASSERT_THAT(second.out_line(), StartsWith("ready"));
  EXPECT_EQ(read_file("/hello"), "hello, world\n");
}

TEST_F(DaemonTest, StatusHasTheContractsKeys) {
  Child server(arguments({"--fabric", "none", "-e", export_argument()}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  ASSERT_EQ(mount(exported_), "");
  const std::string status = ask_control("status\n");
  for (const char* key : {"version",
                          "pid",
                          "uptime_seconds",
                          "listeners",
                          "exports",
                          "connections",
                          "totals",
                          "memory",
                          "drc",
                          "fsync",
                          "fabric",
                          "device",
                          "peer",
                          "local",
                          "inline_send",
                          "inline_recv",
                          "credits",
                          "ord",
                          "ird",
                          "remote_invalidation",
                          "crc",
                          "rdma_write_bytes",
                          "rdma_read_bytes",
                          "inline_bytes",
                          "calls",
                          "replies",
                          "errors",
                          "age_seconds",
                          "detail",
                          "fallback_reason"}) {
    EXPECT_THAT(status, HasSubstr("\"" + std::string(key) + "\":"));
  }
  EXPECT_THAT(status, HasSubstr("\"fabric\":\"tcp\""));
}

/// As numbers, unless it is told otherwise.
TEST_F(DaemonTest, OwnersGoByNameWhereThatIsWanted) {
  const passwd* me = ::getpwuid(::geteuid());
  ASSERT_NE(me, nullptr);
  const std::string name = std::string(me->pw_name) + "@";
  for (const bool by_name : {false, true}) {
    std::ofstream(directory_ + "/rdma.conf")
        << (by_name ? "NFSoRDMA_NFS4_OWNER_NAMES=yes\n" : "# nothing\n");
    Child daemon(arguments({"-e", export_argument("rw,insecure,fsid=0")}));
    ASSERT_THAT(daemon.out_line(), HasSubstr(tcp_listener()));
    const std::string reply = owner_of_root();
    EXPECT_EQ(reply.find(name) != std::string::npos, by_name) << name;
    if (!by_name) {
      // As XDR has it: its length, then itself.
      const std::string number = std::to_string(::geteuid());
      EXPECT_THAT(reply,
                  HasSubstr(std::string(3, '\0') + static_cast<char>(number.size()) + number));
    }
    daemon.signal(SIGTERM);
    EXPECT_EQ(daemon.exit_status(), 0);
  }
}

TEST_F(DaemonTest, AnUnknownControlRequestIsAnError) {
  Child server(arguments({"--fabric", "none", "-e", export_argument()}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  EXPECT_THAT(ask_control("reboot\n"), HasSubstr("\"error\""));
}

/// Root of a user namespace that has nobody else has capabilities, and nobody to become: it serves
/// as an ordinary user does, and says why.
TEST_F(DaemonTest, RootOfALonelyUserNamespaceServesAsAnOrdinaryUser) {
  Child server({"-r", NFS_RDMAD}, "/usr/bin/unshare",
               arguments({"--fabric", "none", "-e", export_argument("rw,insecure")}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  EXPECT_THAT(
      server.err_until("everything is done as uid 0"),
      AllOf(HasSubstr("root cannot act as other users here: "), HasSubstr("/proc/self/uid_map")));
  ASSERT_EQ(mount(exported_), "");
  EXPECT_EQ(read_file("/hello"), "hello, world\n");
}

TEST_F(DaemonTest, SighupReadsTheExportsAgain) {
  const std::string exports = directory_ + "/exports";
  std::ofstream(exports) << exported_ << "/sub *(insecure)\n";
  Child server(arguments({"--fabric", "none", "--exports", exports}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  EXPECT_THAT(mount(exported_), HasSubstr("ACCES"));
  std::ofstream(exports) << exported_ << " *(insecure)\n";
  server.signal(SIGHUP);
  EXPECT_THAT(server.err_until("read again"), HasSubstr("read again"));
  EXPECT_EQ(mount(exported_), "");
}

TEST_F(DaemonTest, SighupWithABadFileKeepsTheOldExports) {
  const std::string exports = directory_ + "/exports";
  std::ofstream(exports) << exported_ << " *(insecure)\n";
  Child server(arguments({"--fabric", "none", "--exports", exports}));
  ASSERT_THAT(server.out_line(), StartsWith("ready"));
  std::ofstream(exports) << exported_ << " *(insecur)\n";
  server.signal(SIGHUP);
  EXPECT_THAT(server.err_until("stay as they were"), HasSubstr("did you mean insecure?"));
  EXPECT_EQ(mount(exported_), "");
}

TEST_F(DaemonTest, ATakenPortIsNamed) {
  Child first(arguments({"--fabric", "none", "-e", export_argument()}));
  ASSERT_THAT(first.out_line(), StartsWith("ready"));
  auto args = arguments({"--fabric", "none", "-e", export_argument()});
  args[4] = directory_ + "/other-state";
  args[6] = directory_ + "/other.sock";
  Child second(args);
  EXPECT_EQ(second.exit_status(), 1);
  EXPECT_THAT(second.err_all(),
              AllOf(HasSubstr("tcp cannot listen on 127.0.0.1:" + std::to_string(port_)),
                    HasSubstr("(nfs-rdmad) has it"), HasSubstr("--tcp-port")));
}

TEST_F(DaemonTest, ASecondServerDoesNotTakeTheControlSocket) {
  Child first(arguments({"--fabric", "none", "-e", export_argument()}));
  ASSERT_THAT(first.out_line(), StartsWith("ready"));
  port_ = free_port();
  auto args = arguments({"--fabric", "none", "-e", export_argument()});
  args[4] = directory_ + "/other-state";
  Child second(args);
  EXPECT_EQ(second.exit_status(), 1);
  EXPECT_THAT(second.err_all(), HasSubstr("another server answers there"));
}

TEST_F(DaemonTest, TwoServersDoNotShareAStateDirectory) {
  Child first(arguments({"--fabric", "none", "-e", export_argument()}));
  ASSERT_THAT(first.out_line(), StartsWith("ready"));
  port_ = free_port();
  auto args = arguments({"--fabric", "none", "-e", export_argument()});
  args[6] = directory_ + "/other.sock";
  Child second(args);
  EXPECT_EQ(second.exit_status(), 1);
  EXPECT_THAT(second.err_all(), AllOf(HasSubstr(directory_ + "/state"), HasSubstr("--state-dir")));
}

TEST_F(DaemonTest, AStaleControlSocketIsReplaced) {
  auto args = arguments({"--fabric", "none", "-e", export_argument()});
  auto first = std::make_unique<Child>(args);
  ASSERT_THAT(first->out_line(), StartsWith("ready"));
  first->signal(SIGKILL);
  EXPECT_EQ(first->exit_status(), -SIGKILL);
  Child second(args);
  EXPECT_THAT(second.out_line(), StartsWith("ready"));
}

TEST_F(DaemonTest, CheckConfigSaysWhatIsInForce) {
  Child server(arguments({"--check-config", "-e", export_argument()}));
  EXPECT_THAT(server.out_line(), HasSubstr("configuration is good"));
  EXPECT_THAT(server.out_line(), HasSubstr(exported_ + " *(rw,sync,no_root_squash,insecure)"));
  EXPECT_EQ(server.exit_status(), 0);
}

TEST_F(DaemonTest, CheckConfigSaysThatAGoodConfigurationServesNothing) {
  std::ofstream(directory_ + "/rdma.conf") << "NFSoRDMA_LOAD=no\n";
  Child server(arguments({"--check-config", "-e", export_argument()}));
  EXPECT_THAT(server.out_line(), HasSubstr("configuration is good"));
  EXPECT_THAT(server.out_line(), HasSubstr("note: NFSoRDMA_LOAD=no"));
  EXPECT_EQ(server.exit_status(), 0);
}

TEST_F(DaemonTest, CheckConfigFailsWithFileAndLine) {
  std::ofstream(directory_ + "/rdma.conf") << "\nNFSoRDMA_PROT=1\n";
  Child server(arguments({"--check-config", "-e", export_argument()}));
  EXPECT_EQ(server.exit_status(), 1);
  EXPECT_THAT(server.err_all(), HasSubstr("rdma.conf:2: unknown key 'NFSoRDMA_PROT', did you "
                                          "mean NFSoRDMA_PORT?"));
}

TEST_F(DaemonTest, AnUnknownOptionIsAUsageError) {
  Child server({"--prot", "1"});
  EXPECT_EQ(server.exit_status(), 2);
  EXPECT_THAT(server.err_all(), HasSubstr("--prot"));
}

TEST_F(DaemonTest, AWrongValueIsAUsageErrorThatNamesTheOption) {
  Child port({"--check-config", "--port", "abc"});
  EXPECT_EQ(port.exit_status(), 2);
  EXPECT_EQ(port.err_all(), "nfs-rdmad: --port: 'abc' is not a number from 1 to 65535\n");
  Child listen({"--check-config", "--listen", "eth0"});
  EXPECT_EQ(listen.exit_status(), 2);
  EXPECT_THAT(listen.err_all(), HasSubstr("--listen: 'eth0' is no numeric"));
  Child extra({"extra"});
  EXPECT_EQ(extra.exit_status(), 2);
  EXPECT_THAT(extra.err_all(), HasSubstr("unexpected argument 'extra'"));
}

TEST_F(DaemonTest, AMissingExportsFileSaysWhatToDo) {
  Child server(arguments({"--check-config", "--exports", directory_ + "/none"}));
  EXPECT_EQ(server.exit_status(), 1);
  EXPECT_THAT(server.err_all(), HasSubstr("/none: cannot be read: No such file or directory; write "
                                          "it as in nfs-rdma.exports(5)"));
}

TEST_F(DaemonTest, CheckConfigSaysThatNothingIsExported) {
  std::ofstream(directory_ + "/empty") << "# nothing\n";
  Child server(arguments({"--check-config", "--exports", directory_ + "/empty"}));
  EXPECT_THAT(server.out_line(), HasSubstr("configuration is good"));
  EXPECT_EQ(server.out_line(), "note: nothing is exported: " + directory_ + "/empty is empty\n");
  EXPECT_EQ(server.exit_status(), 0);
}

TEST_F(DaemonTest, CheckConfigFindsMissingDirectories) {
  const std::string exports = directory_ + "/exports";
  std::ofstream(exports) << exported_ << " *(rw)\n" << directory_ << "/none *(rw)\n";
  Child server(arguments({"--check-config", "--exports", exports}));
  EXPECT_THAT(server.out_line(), HasSubstr("configuration is good"));
  EXPECT_EQ(server.exit_status(), 0) << "a start leaves it out, and serves";
  EXPECT_THAT(server.err_all(),
              AllOf(HasSubstr("warning: " + exports + ":2: " + directory_ + "/none: "),
                    HasSubstr("No such file or directory; left out until it is there\n")));
}

TEST_F(DaemonTest, WhatCannotBeListenedOnIsFoundByTheCheckAndTheStart) {
  std::ofstream(directory_ + "/rdma.conf") << "NFSoRDMA_METRICS=localhost:9000\n";
  Child check(arguments({"--check-config", "-e", export_argument()}));
  EXPECT_EQ(check.exit_status(), 1);
  EXPECT_THAT(
      check.err_all(),
      HasSubstr("rdma.conf:1: NFSoRDMA_METRICS: 'localhost:9000' is not a numeric address"));
  std::ofstream(directory_ + "/rdma.conf") << "\n";
  const std::string same = std::to_string(port_);
  Child ports(arguments({"--check-config", "--port", same, "-e", export_argument()}));
  EXPECT_EQ(ports.exit_status(), 1);
  EXPECT_THAT(ports.err_all(), HasSubstr("are both " + same));
  Child start(arguments({"--port", same, "-e", export_argument()}));
  EXPECT_EQ(start.exit_status(), 3);
  EXPECT_THAT(start.err_all(), AllOf(HasSubstr("NFSoRDMA_PORT (--port)"),
                                     HasSubstr("NFSoRDMA_TCP_PORT (--tcp-port)")));
}

// The service does not try again then.
TEST_F(DaemonTest, AMistakeInTheExportsHasAStatusOfItsOwn) {
  const std::string exports = directory_ + "/exports";
  std::ofstream(exports) << exported_ << " *(insecur)\n";
  Child server(arguments({"--fabric", "none", "--exports", exports}));
  EXPECT_EQ(server.exit_status(), 3);
  EXPECT_THAT(server.err_all(), HasSubstr("did you mean insecure?"));
  auto args = arguments({"--fabric", "none", "--exports", exports});
  args.erase(args.begin());  // in the background
  Child background(args);
  EXPECT_EQ(background.exit_status(), 3);
}

TEST_F(DaemonTest, AMissingDirectoryOfTheFileDoesNotStopTheOthers) {
  const std::string exports = directory_ + "/exports";
  std::ofstream(exports) << exported_ << " *(insecure)\n" << directory_ << "/none *(rw)\n";
  Child server(arguments({"--fabric", "none", "--exports", exports}));
  EXPECT_THAT(server.out_line(), StartsWith("ready"));
  EXPECT_EQ(mount(exported_), "");
  server.signal(SIGTERM);
  EXPECT_EQ(server.exit_status(), 0);
  EXPECT_THAT(server.err_all(), HasSubstr("exports:2: " + directory_ + "/none"));
}

TEST_F(DaemonTest, TheStateDirectoryIsMadeWithItsParents) {
  const std::string state = directory_ + "/home/.local/state/nfs-rdma";
  auto args = arguments({"--fabric", "none", "-e", export_argument()});
  args[4] = state;
  Child server(args);
  EXPECT_THAT(server.out_line(), StartsWith("ready"));
  EXPECT_TRUE(std::filesystem::exists(state + "/handle-key"));
  EXPECT_EQ(std::filesystem::status(state).permissions(), std::filesystem::perms::owner_all);
}

TEST_F(DaemonTest, VersionAndHelpExitWithZero) {
  Child version({"--version"});
  EXPECT_THAT(version.out_line(), StartsWith("nfs-rdmad "));
  EXPECT_EQ(version.exit_status(), 0);
  Child help({"--help"});
  EXPECT_THAT(help.out_line(), StartsWith("Usage: nfs-rdmad"));
}

}  // namespace
}  // namespace nfsrdma
