// SPDX-License-Identifier: Apache-2.0
// NlmHarness: NLM and NSM beside the NFSv4 of an Nfs4Harness, and what is called on hosts. All
// hosts are on 127.0.0.1, as far as they are called: HostPrograms stands for their rpcbind, lock
// manager and status monitor.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "rpcrdma/record_mark.h"
#include "server/calling_thread.h"
#include "server/nlm/lock_service.h"
#include "server/nlm/nlm_program.h"
#include "server/nsm/nsm_program.h"
#include "server/nsm/status_monitor.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/nfs4_harness.h"
#include "xdr/nlm4.h"
#include "xdr/nsm1.h"
#include "xdr/rpcb.h"

namespace nfsrdma::test {

/// rpcbind, lock manager and status monitor of a host, all at one port. Answers GRANTED as it is
/// told to, all else with nothing; what it is called for can be waited for.
class HostPrograms {
 public:
  struct Seen {
    std::uint32_t program = 0;
    std::uint32_t procedure = 0;
    std::vector<std::byte> arguments;
    /// What it brings views into `arguments`.
    template <typename Args>
    Args as() const {
      Args args;
      xdr::Decoder decoder{ByteSpan(arguments)};
      EXPECT_TRUE(xdr::decode(decoder, args));
      return args;
    }
  };

  HostPrograms() : socket_(listen_on_loopback(&address_)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~HostPrograms() {
    stopping_ = true;
    thread_.join();
  }
  std::uint16_t port() const { return address_.port(); }

  /// The answer to GRANTED from now on.
  void answer_granted(xdr::nlm4_stats stat) { granted_ = static_cast<std::uint32_t>(stat); }
  /// Are the programs registered with its rpcbind?
  void register_programs(bool yes) { registered_ = yes; }

  /// The next call that comes, but for rpcbind's; procedure 99 when none does.
  Seen next(std::chrono::seconds patience = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex_);
    if (!more_.wait_for(lock, patience, [this] { return !seen_.empty(); })) return {0, 99, {}};
    Seen out = std::move(seen_.front());
    seen_.pop_front();
    return out;
  }
  std::size_t waiting() {
    std::lock_guard lock(mutex_);
    return seen_.size();
  }

 private:
  void serve() {
    std::vector<UniqueFd> connections;
    while (!stopping_) {
      std::vector<pollfd> fds{{socket_.get(), POLLIN, 0}};
      for (const UniqueFd& fd : connections)
        fds.push_back({fd.get(), POLLIN, 0});
      ::poll(fds.data(), fds.size(), 20);
      for (std::size_t i = fds.size(); i-- > 1;) {
        if (fds[i].revents == 0) continue;
        if (!serve_one(connections[i - 1].get()))
          connections.erase(connections.begin() + long(i) - 1);
      }
      if (fds[0].revents != 0) connections.emplace_back(::accept(socket_.get(), nullptr, nullptr));
    }
  }

  bool serve_one(int fd) {
    std::array<std::byte, 4> mark;
    if (::recv(fd, mark.data(), 4, MSG_WAITALL) != 4) return false;
    std::vector<std::byte> call(load_be32(mark.data()) & 0x7fffffff);
    const auto wanted = static_cast<ssize_t>(call.size());
    if (::recv(fd, call.data(), call.size(), MSG_WAITALL) != wanted) return false;
    xdr::Decoder decoder{ByteSpan(call)};
    xdr::rpc_msg header;
    EXPECT_TRUE(xdr::decode(decoder, header));
    std::vector<std::byte> reply(512);
    xdr::Encoder out(MutableByteSpan(reply).subspan(4));
    xdr::encode(out, xdr::accepted(header.xid, xdr::accept_stat::SUCCESS));
    if (header.cbody.prog == xdr::kRpcbProgram) {
      out.u32(registered_ ? port() : 0);
    } else {
      note(header, decoder, out);
    }
    reply.resize(4 + out.size());
    store_be32(reply.data(), 0x80000000 | static_cast<std::uint32_t>(out.size()));
    return ::send(fd, reply.data(), reply.size(), MSG_NOSIGNAL) == ssize_t(reply.size());
  }

  void note(const xdr::rpc_msg& header, xdr::Decoder& decoder, xdr::Encoder& out) {
    const auto rest = decoder.rest();
    std::lock_guard lock(mutex_);
    seen_.push_back({header.cbody.prog, header.cbody.proc, {rest.begin(), rest.end()}});
    more_.notify_all();
    const bool granted = header.cbody.prog == xdr::kNlmProgram && header.cbody.proc == 5;
    if (!granted) return;
    xdr::nlm4_testargs args;
    EXPECT_TRUE(xdr::decode(decoder, args));
    xdr::encode(out, xdr::nlm4_res{args.cookie, static_cast<xdr::nlm4_stats>(granted_.load())});
  }

  SocketAddress address_;
  UniqueFd socket_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> registered_{true};
  std::atomic<std::uint32_t> granted_{0};
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Seen> seen_;
  std::thread thread_;
};

/// A length of 0 is to the end of the file.
struct NlmRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
struct NlmOwner {
  std::string caller = "host";
  std::uint32_t svid = 1;
};

class NlmHarness {
 public:
  explicit NlmHarness(HarnessOptions options = on_loopback()) : nfs4(std::move(options)) {
    serve_nlm();
  }
  ~NlmHarness() { end_nlm(); }

  static HarnessOptions on_loopback() {
    HarnessOptions options;
    options.peer = "127.0.0.1";
    return options;
  }

  /// As if the process had been started anew. `meanwhile`: while there is no server.
  void restart(const std::function<void()>& meanwhile = {}) {
    end_nlm();
    nfs4.restart(meanwhile);
    serve_nlm();
  }

  /// A file with a handle of NFSv3, which NFSv4's is too.
  FileHandle make_file(const std::string& name, mode_t mode = 0666) {
    put_file(nfs4.path(name), "content", mode);
    return nfs4.lookup(nfs4.root(), name);
  }

  /// Who calls from now on.
  void set_caller(const RpcCredentials& caller) { caller_ = caller; }
  void set_peer(std::string_view address, std::uint16_t port = 700) {
    nfs4.connection().set_peer(SocketAddress::parse(address, port).value());
  }

  template <typename Args>
  std::vector<std::byte> run(const ProgramTable& table, std::uint32_t procedure, const Args& args) {
    std::vector<std::byte> bytes(4096), out;
    xdr::Encoder encoder(bytes);
    xdr::encode(encoder, args);
    bytes.resize(encoder.size());
    nfs4.on_its_thread([&] {
      StubCall call(nfs4.connection(), bytes);
      Request request;
      request.call = &call;
      request.credentials = caller_;
      request.may_block = true;
      std::vector<std::byte> room(Call::kInlineReply);
      xdr::Encoder result(room);
      xdr::Decoder decoder = call.decoder();
      outcome = table.procedures[procedure].run(nfs4.server(), request, decoder, result);
      out.assign(result.bytes().begin(), result.bytes().end());
      if (request.release != nullptr) request.release(request);
    });
    return out;
  }
  template <typename Res, typename Args>
  Res call(xdr::nlmproc4 procedure, const Args& args) {
    last_ = run(nlm4_program(), static_cast<std::uint32_t>(procedure), args);
    EXPECT_EQ(outcome, Outcome::kReply);
    Res res;
    xdr::Decoder decoder{ByteSpan(last_)};
    EXPECT_TRUE(xdr::decode(decoder, res) && decoder.at_end());
    return res;
  }

  // Short forms.
  xdr::nlm4_lock name(const FileHandle& file, const NlmOwner& owner, NlmRange range) const {
    return {owner.caller, file.bytes(), as_bytes(std::string_view("oh")),
            owner.svid,   range.offset, range.length};
  }
  xdr::nlm4_stats lock(const FileHandle& file, const NlmOwner& owner, bool exclusive = true,
                       NlmRange range = {}, bool block = false, bool reclaim = false,
                       std::int32_t state = 0) {
    const xdr::nlm4_lockargs args{cookie(), block, exclusive, name(file, owner, range),
                                  reclaim,  state};
    return call<xdr::nlm4_res>(xdr::nlmproc4::NLMPROC4_LOCK, args).stat;
  }
  xdr::nlm4_stats unlock(const FileHandle& file, const NlmOwner& owner, NlmRange range = {}) {
    const xdr::nlm4_unlockargs args{cookie(), name(file, owner, range)};
    return call<xdr::nlm4_res>(xdr::nlmproc4::NLMPROC4_UNLOCK, args).stat;
  }
  xdr::nlm4_stats cancel(const FileHandle& file, const NlmOwner& owner, bool exclusive = true,
                         NlmRange range = {}) {
    const xdr::nlm4_cancargs args{cookie(), true, exclusive, name(file, owner, range)};
    return call<xdr::nlm4_res>(xdr::nlmproc4::NLMPROC4_CANCEL, args).stat;
  }
  xdr::nlm4_testrply test(const FileHandle& file, const NlmOwner& owner, bool exclusive = true,
                          NlmRange range = {}) {
    const xdr::nlm4_testargs args{cookie(), exclusive, name(file, owner, range)};
    return call<xdr::nlm4_testres>(xdr::nlmproc4::NLMPROC4_TEST, args).test_stat;
  }
  xdr::nlm4_stats share(const FileHandle& file, std::string_view oh, xdr::fsh4_access access,
                        xdr::fsh4_mode mode, std::string_view caller = "host") {
    const xdr::nlm4_shareargs args{
        cookie(), {caller, file.bytes(), as_bytes(oh), mode, access}, false};
    return call<xdr::nlm4_shareres>(xdr::nlmproc4::NLMPROC4_SHARE, args).stat;
  }
  xdr::nlm4_stats unshare(const FileHandle& file, std::string_view oh,
                          std::string_view caller = "host") {
    const xdr::nlm4_shareargs args{cookie(), {caller, file.bytes(), as_bytes(oh), {}, {}}, false};
    return call<xdr::nlm4_shareres>(xdr::nlmproc4::NLMPROC4_UNSHARE, args).stat;
  }
  void notify(std::string_view caller, std::int32_t state) {
    run(nsm1_program(), 6, xdr::stat_chge{caller, state});
    EXPECT_EQ(outcome, Outcome::kReply);
  }

  nlm::LockService& service() { return *nfs4.server().nlm; }
  HostPrograms programs;
  Nfs4Harness nfs4;
  Outcome outcome = Outcome::kDrop;  // of the last call

 private:
  static ByteSpan cookie() {
    static const std::array<std::byte, 4> bytes{std::byte{1}, std::byte{2}, std::byte{3},
                                                std::byte{4}};
    return bytes;
  }
  void serve_nlm() {
    calling_ = CallingThread::start(programs.port()).value();
    nlm::LockService::Options options;
    options.call_again = std::chrono::milliseconds(200);
    options.look_again = std::chrono::milliseconds(50);
    ServerContext& server = nfs4.server();
    server.nlm = std::make_unique<nlm::LockService>(nfs4.state(), *calling_, options);
    auto monitor = nsm::StatusMonitor::start(*server.nlm, *calling_, nfs4.state_dir());
    ASSERT_TRUE(monitor.ok());
    server.nsm = std::move(monitor).value();
  }
  void end_nlm() {
    calling_->stop();
    nfs4.server().nsm.reset();
    nfs4.server().nlm.reset();
  }

  RpcCredentials caller_ = user(0, 0);
  std::unique_ptr<CallingThread> calling_;
  std::vector<std::byte> last_;
};

}  // namespace nfsrdma::test
