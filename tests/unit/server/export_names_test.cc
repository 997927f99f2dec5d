// SPDX-License-Identifier: Apache-2.0
// The system's name service with databases of the test's own: a child process sees another /etc.
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "server/export_table.h"
#include "tests/support/exported_directory.h"

namespace nfsrdma::test {
namespace {

constexpr int kNoNamespace = 77;

/// In a process of its own, whose /etc is empty but for three files.
int with_another_etc(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child != 0) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", "/etc", "tmpfs", 0, nullptr) != 0) {
    ::_exit(kNoNamespace);
  }
  put_file("/etc/nsswitch.conf", "hosts: files\nnetgroup: files\n");
  put_file("/etc/hosts",
           "192.0.2.1 a.example.org alias.example.org\n"
           "192.0.2.2 b\n"
           "2001:db8::1 c.example.org\n");
  put_file("/etc/netgroup",
           "full (a.example.org,,) (-,,) (,user,)\n"
           "nested (b,-,) full\n"
           "users (,alice,) (,bob,)\n");
  ::_exit(work());
}

/// 0, or the number of the first that is not so.
int first_wrong(std::initializer_list<bool> all) {
  int number = 0;
  for (const bool each : all) {
    ++number;
    if (!each) return number;
  }
  return 0;
}

SocketAddress peer(const char* host) {
  return SocketAddress::parse(host, 700).value();
}

#define NEEDS_NAMESPACE(result) \
  if ((result) == kNoNamespace) GTEST_SKIP() << "no mount namespace of our own to be had here"

TEST(SystemHostNames, NetgroupsHaveHostsAndNothingElse) {
  const int result = with_another_etc([] {
    const auto names = make_system_host_names();
    return first_wrong({names->in_netgroup("full", "a.example.org"),
                        names->in_netgroup("full", "A.Example.ORG"),
                        !names->in_netgroup("full", "b"), names->in_netgroup("nested", "b"),
                        names->in_netgroup("nested", "a.example.org"),
                        // A member without a host is not every host.
                        !names->in_netgroup("users", "b"), !names->in_netgroup("full", "-"),
                        !names->in_netgroup("unknown", "b")});
  });
  NEEDS_NAMESPACE(result);
  EXPECT_EQ(result, 0);
}

TEST(SystemHostNames, AliasesAreNamesToo) {
  const int result = with_another_etc([] {
    const auto names = make_system_host_names();
    const std::vector<std::string> both = {"a.example.org", "alias.example.org"};
    return first_wrong(
        {names->names_of(peer("192.0.2.1")) == both,
         names->names_of(peer("::ffff:192.0.2.1")) == both,
         names->names_of(peer("2001:db8::1")) == std::vector<std::string>{"c.example.org"},
         names->names_of(peer("192.0.2.9")).empty(), names->addresses_of("b").size() == 1});
  });
  NEEDS_NAMESPACE(result);
  EXPECT_EQ(result, 0);
}

TEST(SystemHostNames, AnExportForANetgroupIsForItsHosts) {
  const int result = with_another_etc([] {
    ExportTable table;
    const ParsedExports parsed = parse_exports("/ @nested(rw)\n", "test");
    ConfigProblems problems;
    table.reload(parsed.entries, &problems);
    if (!problems.empty()) return 100;
    auto allowed = [&](const char* host) {
      ExportAccess access;
      table.access(*table.current().exports.at(0), peer(host), true, &access);
      return access.allowed;
    };
    return first_wrong({allowed("192.0.2.1"), allowed("192.0.2.2"), !allowed("2001:db8::1")});
  });
  NEEDS_NAMESPACE(result);
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace nfsrdma::test
