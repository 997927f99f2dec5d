// SPDX-License-Identifier: Apache-2.0
#include "server/reload.h"

#include <gmock/gmock.h>

namespace nfsrdma::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Settings settings_of(const std::string& config) {
  ParsedConfig parsed = parse_config(config, "rdma.conf");
  EXPECT_TRUE(parsed.ok());
  Settings out;
  out.config = parsed.config;
  out.exports_file = parsed.config.exports_file;
  return out;
}

std::vector<std::string> changes(const char* before, const char* after) {
  const ParsedExports old = parse_exports(before, "old");
  const ParsedExports fresh = parse_exports(after, "new");
  EXPECT_TRUE(old.ok() && fresh.ok());
  return export_changes(old.entries, fresh.entries);
}

TEST(Reload, TheSameSettingsChangeNothing) {
  const ReloadPlan plan =
      plan_reload(settings_of("NFSoRDMA_PORT=7\n"), settings_of("NFSoRDMA_PORT=7\n"));
  EXPECT_THAT(plan.lines, IsEmpty());
  EXPECT_THAT(plan.apply, IsEmpty());
  EXPECT_THAT(plan.later, IsEmpty());
}

TEST(Reload, AReloadableKeyCountsAtOnce) {
  const ReloadPlan plan = plan_reload(settings_of(""), settings_of("NFSoRDMA_LOG_LEVEL=debug\n"));
  EXPECT_THAT(plan.lines, ElementsAre("NFSoRDMA_LOG_LEVEL: info -> debug"));
  EXPECT_TRUE(plan.applies("NFSoRDMA_LOG_LEVEL"));
  EXPECT_EQ(plan.settings.config.log_level, "debug");
}

TEST(Reload, AnotherKeyWaitsForTheNextStartAndIsToldAgain) {
  const Settings running = settings_of("");
  const Settings fresh = settings_of("NFSoRDMA_PORT=2050\nNFSoRDMA_LISTEN=::1\n");
  ReloadPlan plan = plan_reload(running, fresh);
  EXPECT_THAT(plan.lines, ElementsAre("NFSoRDMA_PORT: 20049 -> 2050 takes effect at the next start",
                                      "NFSoRDMA_LISTEN: '' -> ::1 takes effect at the next start"));
  EXPECT_THAT(plan.apply, IsEmpty());
  EXPECT_THAT(plan.later, ElementsAre("NFSoRDMA_PORT", "NFSoRDMA_LISTEN"));
  EXPECT_EQ(plan.settings.config.port, 20049u);
  EXPECT_EQ(plan_reload(plan.settings, fresh).lines.size(), 2u);
  EXPECT_THAT(plan_reload(plan.settings, running).lines, IsEmpty());
}

TEST(Reload, AnotherExportsFileIsRead) {
  const ReloadPlan plan =
      plan_reload(settings_of(""), settings_of("NFSoRDMA_EXPORTS=/etc/exports\n"));
  EXPECT_EQ(plan.settings.exports_file, "/etc/exports");
  EXPECT_THAT(plan.lines, ElementsAre("NFSoRDMA_EXPORTS: /etc/nfs-rdma.exports -> /etc/exports"));
}

TEST(ExportChanges, NoneForTheSameInOtherWords) {
  EXPECT_THAT(changes("/a *(ro)\n/b h(rw)\n", "# x\n/a *\n/b -rw h\n"), IsEmpty());
}

TEST(ExportChanges, NoneForNetworksThatAreWrittenOtherwise) {
  EXPECT_THAT(changes("/a 192.0.2.7 192.0.2.0/24 10.0.0.0/8\n",
                      "/a 192.0.2.7/32 192.0.2.0/255.255.255.0 10.1.0.0/8\n"),
              IsEmpty());
}

TEST(ExportChanges, NameExportsThatCameAndWent) {
  EXPECT_THAT(changes("/a *\n/b *\n", "/b *\n/c *\n"),
              ElementsAre("export /c: added", "export /a: removed"));
}

TEST(ExportChanges, NameClientsAndWhatIsNewAboutThem) {
  EXPECT_THAT(changes("/b 192.0.2.0/24(ro) old(rw)\n", "/b 192.0.2.0/24(rw) @new(async)\n"),
              ElementsAre("export /b: client 192.0.2.0/24: ro -> rw",
                          "export /b: client @new: added (async,wdelay,hide,secure,"
                          "no_subtree_check,secure_locks,anonuid=65534,anongid=65534,ro,"
                          "root_squash,no_all_squash)",
                          "export /b: client old: removed"));
}

TEST(ExportChanges, NameOnlyTheOptionsThatDiffer) {
  EXPECT_THAT(
      changes("/b h(rw,fsid=1)\n", "/b h(rw,insecure,anonuid=7)\n"),
      ElementsAre("export /b: client h: secure,fsid=1,anonuid=65534 -> insecure,anonuid=7"));
}

TEST(ExportChanges, NameAnotherOrderOfClients) {
  EXPECT_THAT(changes("/b 10.0.0.0/8(ro) 10.1.0.0/16(rw)\n", "/b 10.1.0.0/16(rw) 10.0.0.0/8(ro)\n"),
              ElementsAre("export /b: clients are in another order, which decides between those of "
                          "one kind"));
}

}  // namespace
}  // namespace nfsrdma::test
