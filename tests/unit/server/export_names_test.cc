// SPDX-License-Identifier: Apache-2.0
// The system's name service with databases of the test's own: a child process sees another /etc.
#include "server/export_table.h"
#include "tests/support/another_etc.h"

namespace nfsrdma::test {
namespace {

int with_another_etc(const std::function<int()>& work) {
  return with_files_in_etc({{"nsswitch.conf", "hosts: files\nnetgroup: files\n"},
                            {"hosts",
                             "192.0.2.1 a.example.org alias.example.org\n"
                             "192.0.2.2 b\n"
                             "2001:db8::1 c.example.org\n"},
                            {"netgroup",
                             "full (a.example.org,,) (-,,) (,user,)\n"
                             "nested (b,-,) full\n"
                             "users (,alice,) (,bob,)\n"}},
                           work);
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

TEST(SystemHostNames, NetgroupsHaveHostsAndNothingElse) {
  NFSRDMA_NEEDS_ROOT();
  const int result = with_another_etc([] {
    const auto names = make_system_host_names();
    return first_wrong(
        {names->in_netgroup("full", "a.example.org").value(),
         names->in_netgroup("full", "A.Example.ORG").value(),
         !names->in_netgroup("full", "b").value(), names->in_netgroup("nested", "b").value(),
         names->in_netgroup("nested", "a.example.org").value(),
         // A member without a host is not every host.
         !names->in_netgroup("users", "b").value(), !names->in_netgroup("full", "-").value(),
         !names->in_netgroup("unknown", "b").value()});
  });
  EXPECT_EQ(result, 0);
}

TEST(SystemHostNames, AliasesAreNamesToo) {
  NFSRDMA_NEEDS_ROOT();
  const int result = with_another_etc([] {
    const auto names = make_system_host_names();
    const std::vector<std::string> both = {"a.example.org", "alias.example.org"};
    return first_wrong(
        {names->names_of(peer("192.0.2.1")).value() == both,
         names->names_of(peer("::ffff:192.0.2.1")).value() == both,
         names->names_of(peer("2001:db8::1")).value() == std::vector<std::string>{"c.example.org"},
         names->names_of(peer("192.0.2.9")).value().empty(),
         names->addresses_of("b").value().size() == 1});
  });
  EXPECT_EQ(result, 0);
}

/// Nobody answers at the address of the name server, which is not the same as that nobody has the
/// name.
TEST(SystemHostNames, ANameServiceThatDoesNotAnswerIsNoAnswer) {
  NFSRDMA_NEEDS_ROOT();
  const int result = with_another_etc([] {
    put_file("/etc/nsswitch.conf", "hosts: files dns\n");
    put_file("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
    if (::unshare(CLONE_NEWNET) != 0) return kNoNamespace;  // without even a loopback
    const auto names = make_system_host_names();
    return first_wrong({names->names_of(peer("192.0.2.1")).ok(),
                        !names->names_of(peer("192.0.2.9")).ok(), names->addresses_of("b").ok(),
                        !names->addresses_of("unknown.example.org").ok()});
  });
  EXPECT_EQ(result, 0);
}

TEST(SystemHostNames, AnExportForANetgroupIsForItsHosts) {
  NFSRDMA_NEEDS_ROOT();
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
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace nfsrdma::test
