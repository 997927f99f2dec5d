// SPDX-License-Identifier: Apache-2.0
// A made-up host for the checks of nfs-rdma doctor: a tree of files in a temporary directory, and
// answers to what is no file. And a made-up network.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "client/doctor/server_visit.h"
#include "client/doctor/table.h"

namespace nfsrdma::doctor {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class DoctorTest : public testing::Test {
 protected:
  DoctorTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "doctor.XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    host_.root = root_;
    host_.kernel_release = "6.1.0-test";
    host_.host_name = "testhost";
    host_.command = [this](const std::vector<std::string>& words) {
      const auto answer = commands_.find(joined(words, " "));
      return answer == commands_.end() ? CommandOutput{} : answer->second;
    };
    host_.rdma_host = [this] { return rdma_; };
    host_.clock = [this] { return clock_; };
    host_.rpcbind = [this] { return rpcbind_; };
    host_.addresses = [this] { return addresses_; };
    rdma_.verbs.memlock_unlimited = true;
    clock_ = {true, true, 0.001};
  }
  ~DoctorTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  void file(const std::string& path, const std::string& text, mode_t mode = 0644) {
    const std::filesystem::path at = root_ + path;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at, std::ios::binary) << text;
    ASSERT_EQ(::chmod(at.c_str(), mode), 0);
  }
  void link(const std::string& path, const std::string& target) {
    const std::filesystem::path at = root_ + path;
    std::filesystem::create_directories(at.parent_path());
    std::filesystem::create_symlink(target, at);
  }
  void directory(const std::string& path) { std::filesystem::create_directories(root_ + path); }
  void command(const std::string& words, const std::string& out, int status = 0,
               const std::string& err = "") {
    commands_[words] = {true, false, status, out, err};
  }

  // --- parts of hosts ---
  struct Port {
    std::string device = "mlx5_0";
    std::string number = "1";
    std::string state = "4: ACTIVE";
    std::string physical = "5: LinkUp";
    std::string layer = "Ethernet";
    std::string interface = "eth0";
    std::vector<std::string> gid_types{"IB/RoCE v1", "RoCE v2"};
    std::string gid = "0000:0000:0000:0000:0000:ffff:c000:0201";
    std::string node_type = "1: CA";
  };
  void port(const Port& p) {
    const std::string device = "/sys/class/infiniband/" + p.device;
    const std::string at = device + "/ports/" + p.number;
    file(device + "/node_type", p.node_type + "\n");
    file(at + "/state", p.state + "\n");
    file(at + "/phys_state", p.physical + "\n");
    file(at + "/link_layer", p.layer + "\n");
    file(at + "/rate", "100 Gb/sec (4X EDR)\n");
    for (std::size_t i = 0; i < p.gid_types.size(); ++i) {
      file(fmt::format("{}/gids/{}", at, i), p.gid + "\n");
      file(fmt::format("{}/gid_attrs/types/{}", at, i), p.gid_types[i] + "\n");
      file(fmt::format("{}/gid_attrs/ndevs/{}", at, i), p.interface + "\n");
    }
    file(at + "/gids/255", "0000:0000:0000:0000:0000:0000:0000:0000\n");
  }
  void interface(const std::string& name, bool up = true, unsigned mtu = 1500,
                 const std::string& type = "1", const std::string& mac = "02:00:00:00:00:01") {
    const std::string at = "/sys/class/net/" + name;
    file(at + "/flags", up ? "0x1003\n" : "0x1002\n");
    file(at + "/mtu", std::to_string(mtu) + "\n");
    file(at + "/type", type + "\n");
    file(at + "/address", mac + "\n");
  }
  void process(const std::string& pid, const std::string& name,
               std::vector<std::string> words = {}) {
    file("/proc/" + pid + "/comm", name + "\n");
    std::string line = name + '\0';
    for (const std::string& word : words)
      line += word + '\0';
    file("/proc/" + pid + "/cmdline", line);
  }
  /// A socket that listens, held by `pid` ("" by nobody).
  void listener(std::uint16_t port, const std::string& inode, const std::string& pid) {
    char line[160];
    std::snprintf(
        line, sizeof line,
        "   0: 00000000:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0 "
        "       0 %s 1 0000000000000000 100 0 0 10 0\n",
        port, inode.c_str());
    tcp_ += line;
    file("/proc/net/tcp", "  sl  local_address rem_address   st ...\n" + tcp_);
    if (!pid.empty()) link("/proc/" + pid + "/fd/" + inode, "socket:[" + inode + "]");
  }
  void server_configured() { file("/etc/nfs-rdma.exports", "/srv *(rw)\n"); }

  // --- what was found ---
  static ::testing::AssertionResult says(const CheckResult& result, Verdict verdict,
                                         const std::string& seen, const std::string& remedy = "") {
    std::string all;
    for (const Finding& finding : result.findings) {
      const std::string help = joined(finding.remedy, "\n");
      all +=
          std::string(verdict_name(finding.verdict)) + ": " + finding.seen + "\n  " + help + "\n";
      if (finding.verdict == verdict && contains(finding.seen, seen) && contains(help, remedy)) {
        return ::testing::AssertionSuccess();
      }
    }
    return ::testing::AssertionFailure()
           << "no " << verdict_name(verdict) << " '" << seen << "' with '" << remedy << "' in:\n"
           << all;
  }

  std::string root_;
  std::string tcp_;
  std::map<std::string, CommandOutput> commands_;
  RdmaHostReport rdma_;
  ClockState clock_;
  std::optional<std::vector<RpcbindEntry>> rpcbind_;
  std::vector<HostAddress> addresses_;
  HostView host_;
};

inline SocketAddress address(const char* text, std::uint16_t port = 0) {
  auto parsed = SocketAddress::parse(text, port);
  EXPECT_TRUE(parsed.ok());
  return parsed.ok() ? *parsed : SocketAddress();
}

/// Answers what it was told to, and counts.
class FakeNetwork final : public Network {
 public:
  Lookup resolve(const std::string&, std::chrono::milliseconds) override {
    ++lookups;
    return lookup;
  }
  std::string reverse(const SocketAddress& of, std::chrono::milliseconds) override {
    return names[of.host_text()];
  }
  Reached reach(const SocketAddress& at, std::chrono::milliseconds) override {
    if (const auto one = reached_at.find(at.text()); one != reached_at.end()) return one->second;
    return reached[at.port()];
  }
  std::optional<Route> route(const SocketAddress&) override { return way; }
  NullAnswer null_call(const MountSettings&, TransportKind kind,
                       std::chrono::milliseconds) override {
    ++null_calls;
    return nulls[kind];
  }
  DataAnswer exchange(const MountSettings& settings, TransportKind kind,
                      std::chrono::milliseconds) override {
    paths.push_back(settings.path);
    return data[kind];
  }

  Lookup lookup{Lookup::How::kFound, {address("192.0.2.1")}};
  std::map<std::string, std::string> names;
  std::map<std::uint16_t, Reached> reached;
  std::map<std::string, Reached> reached_at;
  std::optional<Route> way;
  std::map<TransportKind, NullAnswer> nulls;
  std::map<TransportKind, DataAnswer> data;
  int lookups = 0;
  int null_calls = 0;
  std::vector<std::string> paths;
};

}  // namespace nfsrdma::doctor
