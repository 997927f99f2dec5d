// SPDX-License-Identifier: Apache-2.0
// Registration against an rpcbind of the test's own, on a unix socket.
#include "server/rpcbind.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <thread>

#include "rpcrdma/base/bytes.h"
#include "xdr/rpc.h"
#include "xdr/rpcb.h"

namespace nfsrdma {
namespace {

/// Answers SET, UNSET and DUMP as rpcbind does to root: what is taken is refused, and UNSET takes
/// away whose entry it may be.
class FakeRpcbind {
 public:
  FakeRpcbind() {
    char name[] = "/tmp/fake-rpcbind-XXXXXX";
    directory_ = ::mkdtemp(name);
    path = directory_ + "/rpcbind.sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeRpcbind() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    ::unlink(path.c_str());
    ::rmdir(directory_.c_str());
  }
  std::string path;
  std::map<std::string, std::string> entries;  // "program netid" to address
  bool lists = true;                           // DUMP is answered
  std::size_t most_sets = 1000;                // behind these it closes

 private:
  void serve() {
    for (;;) {
      UniqueFd fd(::accept(listener_.get(), nullptr, nullptr));
      if (!fd) return;
      while (answer(fd.get())) {
      }
    }
  }
  bool answer(int fd) {
    std::byte mark[4];
    if (::recv(fd, mark, 4, MSG_WAITALL) != 4) return false;
    std::vector<std::byte> message(load_be32(mark) & 0x7fffffff);
    if (::recv(fd, message.data(), message.size(), MSG_WAITALL) !=
        static_cast<ssize_t>(message.size())) {
      return false;
    }
    xdr::Decoder decoder{ByteSpan(message)};
    xdr::rpc_msg call;
    xdr::rpcb entry;
    EXPECT_TRUE(xdr::decode(decoder, call));
    EXPECT_EQ(call.cbody.prog, xdr::kRpcbProgram);
    EXPECT_EQ(call.cbody.vers, 4u);
    if (call.cbody.proc == static_cast<std::uint32_t>(xdr::rpcbproc::RPCBPROC_DUMP)) {
      EXPECT_TRUE(decoder.at_end());
      return list(fd, call.xid);
    }
    EXPECT_TRUE(xdr::decode(decoder, entry) && decoder.at_end());
    const std::string key = std::to_string(entry.r_prog) + " " + std::string(entry.r_netid);
    xdr::RpcbDone done;
    if (call.cbody.proc == static_cast<std::uint32_t>(xdr::rpcbproc::RPCBPROC_SET)) {
      if (entries.size() >= most_sets) return false;
      done.done = entries.emplace(key, entry.r_addr).second;
      if (done.done) versions_[key] = entry.r_vers;
    } else {
      done.done = entries.erase(key) == 1;
    }
    std::byte reply[256];
    xdr::Encoder encoder(MutableByteSpan(reply).subspan(4));
    xdr::encode(encoder, xdr::accepted(call.xid, xdr::accept_stat::SUCCESS));
    xdr::encode(encoder, done);
    store_be32(reply, 0x80000000u | static_cast<std::uint32_t>(encoder.size()));
    return ::send(fd, reply, encoder.size() + 4, MSG_NOSIGNAL) > 0;
  }
  bool list(int fd, std::uint32_t xid) {
    std::byte reply[8192];
    xdr::Encoder encoder(MutableByteSpan(reply).subspan(4));
    xdr::encode(encoder, xdr::accepted(xid, lists ? xdr::accept_stat::SUCCESS
                                                  : xdr::accept_stat::PROC_UNAVAIL));
    if (lists) {
      xdr::ListWriter<xdr::rpcb> writer(encoder);
      // More than fits into the reply to a SET, as in a real one.
      for (int i = 0; i < 100; ++i)
        EXPECT_TRUE(writer.try_add({100000, 4, "local", "/run/rpcbind.sock", "superuser"}));
      for (const auto& [key, address] : entries) {
        const std::size_t blank = key.find(' ');
        const auto program = static_cast<std::uint32_t>(std::stoul(key));
        EXPECT_TRUE(
            writer.try_add({program, versions_[key], key.substr(blank + 1), address, "superuser"}));
      }
      writer.finish();
    }
    store_be32(reply, 0x80000000u | static_cast<std::uint32_t>(encoder.size()));
    return ::send(fd, reply, encoder.size() + 4, MSG_NOSIGNAL) > 0;
  }
  std::map<std::string, std::uint32_t> versions_;  // of entries that were SET
  std::string directory_;
  UniqueFd listener_;
  std::thread thread_;
};

SocketAddress address(const char* host, std::uint16_t port) {
  return SocketAddress::parse(host, port).value();
}

std::vector<RpcbEntry> both() {
  std::vector<RpcbEntry> all = rpcb_entries(100003, 3, "rdma", address("0.0.0.0", 20049));
  for (RpcbEntry& entry : rpcb_entries(100005, 3, "tcp", address("0.0.0.0", 2049))) {
    all.push_back(entry);
  }
  return all;
}

TEST(RpcbEntriesText, HasEachProgramOnce) {
  EXPECT_EQ(rpcb_entries_text({{100003, 3, "tcp", ""},
                               {100003, 3, "tcp6", ""},
                               {100005, 3, "udp", ""},
                               {100003, 3, "rdma", ""}}),
            "program 100003 version 3 (tcp, tcp6, rdma), 100005 version 3 (udp)");
}

TEST(RpcbEntries, NetidsFollowFabricAndFamily) {
  EXPECT_EQ(rpcb_entries(100003, 3, "rdma", address("192.0.2.1", 20049))[0].netid, "rdma");
  EXPECT_EQ(rpcb_entries(100003, 3, "tcp", address("192.0.2.1", 2049))[0].netid, "tcp");
  EXPECT_EQ(rpcb_entries(100003, 3, "rdma", address("2001:db8::1", 20049))[0].netid, "rdma6");
  EXPECT_EQ(rpcb_entries(100003, 3, "tcp", address("2001:db8::1", 2049))[0].netid, "tcp6");
}

TEST(RpcbEntries, AddressesAreUniversal) {
  EXPECT_EQ(rpcb_entries(100003, 3, "rdma", address("192.0.2.1", 20049))[0].address,
            "192.0.2.1.78.81");
}

TEST(RpcbEntries, TheIpv6WildcardStandsForBothFamilies) {
  const auto entries = rpcb_entries(100003, 3, "tcp", address("::", 2049));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].netid, "tcp6");
  EXPECT_EQ(entries[1].netid, "tcp");
}

TEST(Rpcbind, SetsWhatIsFreeAndUnsetsItAtTheEnd) {
  FakeRpcbind rpcbind;
  {
    RpcbindRegistrar registrar({rpcbind.path, 0, std::chrono::seconds(5)});
    const auto outcome = registrar.register_all(both());
    EXPECT_TRUE(outcome.reachable);
    EXPECT_EQ(outcome.registered.size(), 2u);
    EXPECT_EQ(rpcbind.entries["100003 rdma"], "0.0.0.0.78.81");
    EXPECT_EQ(rpcbind.entries["100005 tcp"], "0.0.0.0.8.1");
  }
  EXPECT_TRUE(rpcbind.entries.empty());
}

TEST(Rpcbind, EntriesOfAnotherServerStay) {
  FakeRpcbind rpcbind;
  rpcbind.entries["100005 tcp"] = "another's";
  {
    RpcbindRegistrar registrar({rpcbind.path, 0, std::chrono::seconds(5)});
    const auto outcome = registrar.register_all(both());
    EXPECT_EQ(outcome.registered.size(), 1u);
    ASSERT_EQ(outcome.refused.size(), 1u);
    EXPECT_EQ(outcome.refused[0].program, 100005u);
  }
  EXPECT_EQ(rpcbind.entries["100005 tcp"], "another's");
}

/// As the kernel's lock manager does.
TEST(Rpcbind, WhatAnotherServerTookMeanwhileIsItsOwn) {
  FakeRpcbind rpcbind;
  {
    RpcbindRegistrar registrar({rpcbind.path, 0, std::chrono::seconds(5)});
    EXPECT_EQ(registrar.register_all(both()).registered.size(), 2u);
    rpcbind.entries["100005 tcp"] = "0.0.0.0.171.205";
  }
  EXPECT_EQ(rpcbind.entries["100005 tcp"], "0.0.0.0.171.205");
  EXPECT_EQ(rpcbind.entries.count("100003 rdma"), 0u) << "what is still ours goes";
}

TEST(Rpcbind, WithoutAListNothingIsTakenAway) {
  FakeRpcbind rpcbind;
  rpcbind.lists = false;
  {
    RpcbindRegistrar registrar({rpcbind.path, 0, std::chrono::seconds(5)});
    EXPECT_EQ(registrar.register_all(both()).registered.size(), 2u);
  }
  EXPECT_EQ(rpcbind.entries.size(), 2u);
}

/// Nor is that one taken for one that does not run.
TEST(Rpcbind, WhatItDoesNotAnswerToIsLeftOut) {
  FakeRpcbind rpcbind;
  rpcbind.most_sets = 1;
  RpcbindRegistrar registrar({rpcbind.path, 0, std::chrono::seconds(5)});
  std::vector<RpcbEntry> all = both();
  all.push_back({100021, 4, "tcp", "0.0.0.0.8.1"});
  const auto outcome = registrar.register_all(all);
  EXPECT_TRUE(outcome.there);
  EXPECT_TRUE(outcome.reachable);
  EXPECT_EQ(outcome.registered.size(), 1u);
  ASSERT_EQ(outcome.left_out.size(), 2u);
  EXPECT_EQ(outcome.left_out[0].program, 100005u);
  EXPECT_EQ(outcome.left_out[1].program, 100021u);
}

TEST(Rpcbind, WithoutRpcbindNothingHappens) {
  RpcbindRegistrar registrar({"/nonexistent/rpcbind.sock", 0, std::chrono::seconds(5)});
  const auto outcome = registrar.register_all(both());
  EXPECT_FALSE(outcome.there);
  EXPECT_FALSE(outcome.reachable);
  EXPECT_TRUE(outcome.registered.empty());
}

}  // namespace
}  // namespace nfsrdma
