// SPDX-License-Identifier: Apache-2.0
// Where MOUNT is looked for when nothing answers there.
#include "client/nfs3/mount_service.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "client/async_mount.h"
#include "client/version_choice.h"
#include "rpcrdma/base/unique_fd.h"
#include "tests/unit/client/fake_environment.h"
#include "xdr/mount3.h"

namespace nfsrdma {
namespace {

UniqueFd tcp_socket(int flags = 0) {
  return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

/// A socket on which somebody could listen, at 127.0.0.1.
struct Place {
  Place() : socket(tcp_socket()) {
    address = SocketAddress::parse("127.0.0.1", 0).value();
    EXPECT_EQ(::bind(socket.get(), address.data(), address.length()), 0);
    address = SocketAddress::local_of(socket.get()).value();
  }
  UniqueFd socket;
  SocketAddress address;
};

/// As behind a firewall that drops what is not allowed: the queue is full and SYNs are ignored.
struct SilentPlace : Place {
  SilentPlace() {
    EXPECT_EQ(::listen(socket.get(), 0), 0);
    for (UniqueFd& filler : fillers) {
      filler = tcp_socket(SOCK_NONBLOCK);
      (void)::connect(filler.get(), address.data(), address.length());
    }
  }
  std::array<UniqueFd, 4> fillers;
};

class MountServiceTest : public testing::Test {
 protected:
  MountServiceTest() {
    settings_.host = "127.0.0.1";
    settings_.addresses = {SocketAddress::parse("127.0.0.1", 0).value()};
    settings_.reserved_port = false;
    auto environment = std::make_unique<FakeEnvironment>();
    environment_ = environment.get();
    RpcClientOptions options;
    options.candidates = {
        {TransportKind::kTcp, SocketAddress::parse("192.0.2.1", 2049).value(), nullptr}};
    nfs_ = std::make_unique<RpcClient>(std::move(environment), options);
  }
  ~MountServiceTest() override { nfs_->abort_all(); }

  static Task<void> find(nfs3::MountService& service, std::string* detail,
                         std::optional<Result<void>>* out) {
    out->emplace(co_await service.find(detail));
  }
  void start() {
    service_ = std::make_unique<nfs3::MountService>(*loop_, settings_, *nfs_);
    service_->set_cancel(&token_);
    group_.spawn(find(*service_, &detail_, &found_));
  }
  /// The NFS connection has no MOUNT.
  void refuse_on_nfs() {
    environment_->settle();
    environment_->transport()->accept();
    ASSERT_FALSE(environment_->transport()->out().empty());
    environment_->transport()->answer({}, xdr::accept_stat::PROG_UNAVAIL);
  }
  void turn_for(std::chrono::milliseconds time) {
    bool over = false;
    Timer timer([&over] { over = true; });
    timer.arm_after(*loop_, time);
    while (!over && !found_)
      loop_->turn(Duration(-1));
  }
  void expect_cancel_ends_it() {
    turn_for(std::chrono::milliseconds(30));
    ASSERT_FALSE(found_.has_value());
    token_.cancel();
    const TimePoint before = std::chrono::steady_clock::now();
    while (!found_)
      loop_->turn(Duration(-1));
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(1));
    EXPECT_FALSE(found_->ok());
  }

  SilentPlace silent_;
  std::unique_ptr<EventLoop> loop_ = EventLoop::create().value();
  FakeEnvironment* environment_ = nullptr;
  std::unique_ptr<RpcClient> nfs_;
  MountSettings settings_;
  CancelToken token_;
  std::unique_ptr<nfs3::MountService> service_;
  std::string detail_;
  std::optional<Result<void>> found_;
  TaskGroup group_;
};

TEST_F(MountServiceTest, AConnectionThatIsBeingMadeIsGivenUpWhenItIsCancelled) {
  settings_.mount_port = silent_.address.port();
  start();
  expect_cancel_ends_it();
  EXPECT_NE(detail_.find("no connection until it was given up"), std::string::npos) << detail_;
}

TEST_F(MountServiceTest, SoIsTheOneToRpcbind) {
  settings_.tcp_port = Place().address.port();  // nobody listens there
  settings_.rpcbind_port = silent_.address.port();
  start();
  refuse_on_nfs();
  expect_cancel_ends_it();
}

TEST_F(MountServiceTest, NoFurtherPlaceIsTriedThen) {
  settings_.tcp_port = silent_.address.port();
  settings_.rpcbind_port = silent_.address.port();
  start();
  refuse_on_nfs();
  expect_cancel_ends_it();
  EXPECT_EQ(detail_.find("rpcbind"), std::string::npos) << detail_;
}

TEST_F(MountServiceTest, ByTcpTheNfsConnectionIsNotAsked) {
  settings_.mount_by_tcp = true;
  settings_.tcp_port = silent_.address.port();
  start();
  environment_->settle();
  EXPECT_EQ(environment_->transport(), nullptr);
  expect_cancel_ends_it();
  EXPECT_EQ(detail_.find("NFS connection"), std::string::npos) << detail_;
}

TEST_F(MountServiceTest, ConnectingHasATimeLimitOfItsOwn) {
  settings_.mount_port = silent_.address.port();
  settings_.mount_connect_timeout = std::chrono::milliseconds(20);
  start();
  turn_for(std::chrono::seconds(10));
  ASSERT_TRUE(found_.has_value());
  EXPECT_EQ(found_->error().sys, ECONNREFUSED);
}

/// MOUNT is on the NFS connection.
class MountedByFlavors : public MountServiceTest {
 protected:
  MountedByFlavors() {
    start();
    environment_->settle();
    environment_->transport()->accept();
    environment_->transport()->answer({});
    EXPECT_TRUE(found_ && found_->ok());
  }
  static Task<void> mnt(nfs3::MountService& service, const OpContext& op,
                        std::optional<Result<FileHandle>>* out) {
    out->emplace(co_await service.mnt(op, "/export"));
  }
  /// The errno of mnt() when the handle takes `flavors`; 0: it is mounted.
  int mounted(std::initializer_list<std::uint32_t> flavors) {
    std::optional<Result<FileHandle>> done;
    group_.spawn(mnt(*service_, op_, &done));
    const std::array<std::byte, 4> handle{std::byte{1}};
    xdr::mountres3 result;
    result.mountinfo.fhandle = handle;
    for (const std::uint32_t flavor : flavors)
      result.mountinfo.auth_flavors.push_back(flavor);
    environment_->transport()->answer([&](xdr::Encoder& out) { xdr::encode(out, result); });
    if (!done) return -1;
    return done->ok() ? 0 : done->error().sys;
  }

  OpContext op_;
};

TEST_F(MountedByFlavors, WhereAuthSysIsAmongThemItIsMounted) {
  EXPECT_EQ(mounted({1}), 0);
  EXPECT_EQ(mounted({390003, 390004, 1}), 0);
  EXPECT_EQ(mounted({0}), 0);
  EXPECT_EQ(mounted({}), 0);
}

TEST_F(MountedByFlavors, WithoutAuthSysItIsRefused) {
  EXPECT_EQ(mounted({390003}), EACCES);
  EXPECT_EQ(mounted({390003, 390004, 390005}), EACCES);
}

/// Takes one connection, and speaks no version of any program.
class Stranger : public Place {
 public:
  Stranger() {
    EXPECT_EQ(::listen(socket.get(), 8), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~Stranger() { thread_.join(); }

 private:
  void serve() {
    const UniqueFd peer(::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<std::byte, 4> mark;
    while (::recv(peer.get(), mark.data(), 4, MSG_WAITALL) == 4) {
      std::vector<std::byte> call(load_be32(mark.data()) & 0x7fffffff);
      if (::recv(peer.get(), call.data(), call.size(), MSG_WAITALL) < 4) return;
      std::array<std::byte, 256> room;
      xdr::Encoder out(room);
      out.u32(0);
      xdr::encode(out, xdr::accepted(load_be32(call.data()), xdr::accept_stat::PROG_UNAVAIL));
      store_be32(room.data(), 0x80000000u | static_cast<std::uint32_t>(out.size() - 4));
      if (::send(peer.get(), room.data(), out.size(), MSG_NOSIGNAL) < 0) return;
    }
  }
  std::thread thread_;
};

/// Stops there, having seen how long MOUNT would be waited for.
class CuriousFinder final : public RootFinder {
 public:
  Task<Result<void>> find_root(AsyncMount& mount, CancelToken&, std::string*) override {
    version = mount.settings().version;
    patience = mount.settings().mount_connect_timeout;
    co_return Error{Errc::kSystem, EXDEV, "seen"};
  }
  NfsVersion version = kBestVersion;
  std::chrono::milliseconds patience{};
};

TEST(VersionFallback, MountIsWaitedForLessWhereNobodyHasAskedForVersion3) {
  for (const bool named : {false, true}) {
    const Stranger stranger;
    MountSettings settings;
    settings.host = "127.0.0.1";
    settings.addresses = {stranger.address};
    settings.proto = ProtoChoice::kTcp;
    settings.tcp_port = stranger.address.port();
    settings.reserved_port = false;
    if (named) settings.version = {};
    std::unique_ptr<EventLoop> loop = EventLoop::create().value();
    std::string detail;
    CuriousFinder finder;
    auto made = run_to_completion(*loop, AsyncMount::open(*loop, {}, settings, finder, &detail));
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(finder.version, (NfsVersion{3, 0})) << made.error().message();
    EXPECT_EQ(finder.patience, named ? settings.connect_timeout : kFallbackConnectTimeout);
  }
}

}  // namespace
}  // namespace nfsrdma
