// SPDX-License-Identifier: Apache-2.0
// Nfs4Harness: a server's NFSv4 over a fresh directory, to which a test sends COMPOUNDs. Stands in
// for dispatcher and transport: workers, buffers, room and durability are given as the dispatcher
// would (server/dispatch.cc), the session's slot moves on by itself, and time stands still until
// the test moves it.
#pragma once

#include <atomic>

#include "server/nfs4/program.h"
#include "server/nfs4/server_state.h"
#include "tests/support/exported_directory.h"
#include "tests/support/nfs4_compound.h"
#include "tests/support/serving_thread.h"

namespace nfsrdma::test {

/// A session with one slot in use, and whose it is.
struct Session4 {
  std::uint64_t client = 0;
  xdr::sessionid4 id{};
  std::uint32_t sequence = 0;  // of the last request in slot 0
  std::uint32_t minor_version = 2;
  bool cache_this = false;
};

/// An open file.
struct Open4 {
  nfsstat4 status = NFS4ERR_SERVERFAULT;
  FileHandle handle;
  xdr::stateid4 stateid{};
};

/// A lock for writing, by an owner that has none yet. `owner` is referred to.
inline xdr::LOCK4args first_lock(const xdr::stateid4& open, std::uint64_t offset,
                                 std::uint64_t length, std::string_view owner = "locker") {
  xdr::LOCK4args args;
  args.locktype = xdr::nfs_lock_type4::WRITE_LT;
  args.offset = offset;
  args.length = length;
  args.locker.new_lock_owner = true;
  args.locker.open_owner = {0, open, 0, {0, as_bytes(owner)}};
  return args;
}

class HarnessClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(Duration(now_.load())); }
  void move(Duration by) { now_ += by.count(); }

 private:
  /// The server's own threads look at it as well.
  std::atomic<Duration::rep> now_{Duration(std::chrono::hours(1000)).count()};
};

class Nfs4Harness {
 public:
  explicit Nfs4Harness(HarnessOptions options = {},
                       const nfs4::Limits& limits = nfs4::ServerState::Options().limits)
      : options_(std::move(options)),
        limits_(limits),
        connection_(SocketAddress::parse(options_.peer, 700).value()) {
    directory_ = options_.directory.empty() ? home_.path() + "/export" : options_.directory;
    std::filesystem::create_directories(directory_);
    if (options_.directory.empty()) ::chmod(directory_.c_str(), 0777);
    start();
    session = connect("first");
    find_root();
  }

  /// As if the process had been started anew. Sessions are gone; handles are not. `meanwhile`:
  /// while there is no server.
  void restart(const std::function<void()>& meanwhile = {}) {
    server_.reset();
    if (meanwhile) meanwhile();
    start();
  }
  void export_with(const ExportOptions& options) {
    options_.exported = options;
    load_exports();
  }

  ServerContext& server() { return *server_; }
  nfs4::ServerState& state() { return *server_->nfs4; }
  const std::string& directory() const { return directory_; }
  std::string state_dir() const { return home_.path() + "/state"; }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  const FileHandle& root() const { return root_; }
  StubConnection& connection() { return connection_; }
  /// By way of which calls come, instead of connection(); null: that one. Known to state() as open.
  StubConnection* over = nullptr;
  /// Whom calls come from now on.
  void set_peer(std::string_view host) {
    connection_.set_peer(SocketAddress::parse(host, 700).value());
  }
  /// Runs `what` on the thread that serves the calls.
  void on_its_thread(const std::function<void()>& what) { thread_.run(what); }
  void set_caller(RpcCredentials caller) { caller_ = caller; }
  HarnessClock clock;
  /// What happens while a call waits for the disk, and how that ends: 0 for as it does, or an
  /// errno.
  std::function<int()> during_commit;

  /// EXCHANGE_ID, CREATE_SESSION and RECLAIM_COMPLETE of a client of that name.
  Session4 connect(std::string_view name, std::uint32_t minor_version = 2);

  /// The operations in a COMPOUND of their own: behind SEQUENCE, in slot 0 of the session.
  Reply4 run(Session4& in, const Operations4& operations);
  Reply4 run(const Operations4& operations) { return run(session, operations); }
  /// Without SEQUENCE.
  Reply4 run_bare(const Operations4& operations, std::uint32_t minor_version = 2);

  /// One operation on an object.
  template <nfs_opnum4 kNumber>
  Reply4 on(const FileHandle& object, const typename OperationRow<kNumber>::Args& args = {}) {
    return run(Operations4().putfh(object).add<kNumber>(args));
  }

  // Short forms of what most tests need, all in `session`.
  FileHandle lookup(const FileHandle& directory, std::string_view name);
  Open4 open(const FileHandle& directory, std::string_view name,
             std::uint32_t access = xdr::OPEN4_SHARE_ACCESS_BOTH, bool create = true);
  nfsstat4 close(const Open4& file);
  nfsstat4 write(const Open4& file, std::uint64_t offset, std::string_view data,
                 xdr::stable_how4 stable = xdr::stable_how4::UNSTABLE4);
  /// The data, or "error N".
  std::string read(const Open4& file, std::uint64_t offset, std::uint32_t count);
  /// The change attribute.
  std::uint64_t change(const FileHandle& object);

  /// Who opens in open().
  Session4 session;

 private:
  void start();
  void load_exports();
  void find_root();
  Reply4 send(std::vector<std::byte> arguments);
  void serve(std::vector<std::byte> arguments, Reply4& reply);

  HarnessOptions options_;
  const nfs4::Limits limits_;
  TemporaryDirectory home_;
  std::string directory_;
  StubConnection connection_;  // outlives the server's threads
  std::unique_ptr<ServerContext> server_;
  ServingThread thread_;
  FileHandle root_;
  RpcCredentials caller_ = user(0, 0);
};

inline void Nfs4Harness::start() {
  ServerOptions options;
  options.state_dir = home_.path() + "/state";
  options.handle_scheme = options_.scheme;
  options.sync_names = options_.sync_names;
  options.committer_calls = options_.committer_calls;
  auto created = ServerContext::create(std::move(options));
  ASSERT_TRUE(created.ok()) << created.error().message();
  server_ = std::move(created).value();
  nfs4::ServerState::Options state;
  state.state_dir = home_.path() + "/state";
  state.domain = "example.org";
  state.clock = &clock;
  state.limits = limits_;
  state.mirror_locks = options_.local_locks;
  std::string why;
  server_->serve_nfs4(nfs4::ServerState::create(state, &why));
  ASSERT_NE(server_->nfs4, nullptr) << why;
  server_->nfs4->connection_opened(connection_);
  load_exports();
}

inline void Nfs4Harness::load_exports() {
  ExportEntry entry;
  entry.path = directory_;
  ExportClient everyone;
  everyone.options = options_.exported;
  entry.clients.push_back(everyone);
  ConfigProblems problems;
  server_->exports.reload({entry}, &problems);
  ASSERT_TRUE(problems.empty()) << problems[0].text();
}

/// Down the pseudo file system, as clients come.
inline void Nfs4Harness::find_root() {
  Operations4 operations;
  operations.add<OP_PUTROOTFH>();
  for (const auto& part : std::filesystem::path(directory_).relative_path())
    operations.add<OP_LOOKUP>({part.string()});
  const Reply4 reply = run(operations.add<OP_GETFH>());
  ASSERT_EQ(reply.status, NFS4_OK);
  root_ = to_handle(reply.get<OP_GETFH>().resok4.object.data);
}

inline Session4 Nfs4Harness::connect(std::string_view name, std::uint32_t minor_version) {
  Session4 out;
  out.minor_version = minor_version;
  xdr::EXCHANGE_ID4args who;
  who.eia_clientowner.co_ownerid = as_bytes(name);
  const Reply4 known = run_bare(Operations4().add<OP_EXCHANGE_ID>(who), minor_version);
  const auto id = known.get<OP_EXCHANGE_ID>();
  EXPECT_EQ(id.status, NFS4_OK);
  out.client = id.resok4.eir_clientid;
  xdr::CREATE_SESSION4args wanted;
  wanted.csa_clientid = out.client;
  wanted.csa_sequence = id.resok4.eir_sequenceid;
  std::array<std::byte, 4> no_security{};  // callback_sec_parms4 of AUTH_NONE
  if (connection_.max_backward != 0) {
    wanted.csa_flags = xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
    wanted.csa_cb_program = 0x40000000;
    wanted.csa_sec_parms = {no_security, 1};
  }
  for (xdr::channel_attrs4* channel : {&wanted.csa_fore_chan_attrs, &wanted.csa_back_chan_attrs}) {
    channel->ca_maxrequestsize = channel->ca_maxresponsesize = 2u << 20;
    channel->ca_maxresponsesize_cached = 8192;
    channel->ca_maxoperations = 64;
    channel->ca_maxrequests = 4;
  }
  const Reply4 made = run_bare(Operations4().add<OP_CREATE_SESSION>(wanted), minor_version);
  const auto created = made.get<OP_CREATE_SESSION>();
  EXPECT_EQ(created.status, NFS4_OK);
  out.id = created.resok4.csr_sessionid;
  // The latter in a further session of a client.
  const nfsstat4 complete = run(out, Operations4().add<OP_RECLAIM_COMPLETE>()).status;
  EXPECT_TRUE(complete == NFS4_OK || complete == xdr::nfsstat4::NFS4ERR_COMPLETE_ALREADY);
  return out;
}

inline Reply4 Nfs4Harness::run(Session4& in, const Operations4& operations) {
  Operations4 all;
  all.add<OP_SEQUENCE>({in.id, ++in.sequence, 0, 0, in.cache_this});
  return run_bare(all.add(operations), in.minor_version);
}

inline Reply4 Nfs4Harness::run_bare(const Operations4& operations, std::uint32_t minor_version) {
  std::vector<std::byte> arguments(64);
  xdr::Encoder encoder(arguments);
  xdr::encode(encoder, xdr::COMPOUND4args{"", minor_version, operations.count()});
  arguments.resize(encoder.size());
  arguments.insert(arguments.end(), operations.bytes().begin(), operations.bytes().end());
  return send(std::move(arguments));
}

inline Reply4 Nfs4Harness::send(std::vector<std::byte> arguments) {
  Reply4 reply;
  thread_.run([&] { serve(std::move(arguments), reply); });
  if (reply.outcome == Outcome::kReply) reply.parse();
  return reply;
}

inline void Nfs4Harness::serve(std::vector<std::byte> arguments, Reply4& reply) {
  StubConnection& connection = over == nullptr ? connection_ : *over;
  StubCall call(connection, std::move(arguments));
  Request request;
  request.call = &call;
  request.failures_before = server_->committer.failures();
  request.credentials = caller_;
  const ProcedureRow& row = nfs4::program_table().procedures[xdr::NFSPROC4_COMPOUND];
  std::vector<std::byte> room(Call::kInlineReply), larger;
  xdr::Encoder result(room);
  for (int i = 0; i < 6; ++i)
    result.u32(0);  // where a reply's RPC header is
  const std::size_t header = result.size();
  int commit_error = 0;
  for (int attempt = 0;; ++attempt) {
    ASSERT_LT(attempt, 300) << "it asks for something again and again";
    xdr::Decoder args = call.decoder();
    reply.outcome = row.run(*server_, request, args, result);
    const bool on_worker = std::exchange(request.may_block, false);
    if (reply.outcome == Outcome::kWouldBlock) {
      ASSERT_FALSE(on_worker) << "a worker has nobody to pass a call on to";
      request.may_block = reply.ran_on_worker = true;
    } else if (reply.outcome == Outcome::kNeedBuffer) {
      request.payload = connection.buffers().acquire(request.buffer_wanted);
      ASSERT_TRUE(request.payload);
    } else if (reply.outcome == Outcome::kNeedRoom) {
      ++reply.grew;
      larger.assign(result.bytes().begin(), result.bytes().end());
      larger.resize(result.size() + request.room_wanted);
      result.move_to(larger);
      room = std::move(larger);
    } else {
      break;
    }
  }
  if (reply.outcome == Outcome::kReplyDurable) {
    reply.waited_for_disk = true;
    if (during_commit) commit_error = during_commit();
    const int error = server_->committer.commit_now(request.durable_fd, request.durable_data_only,
                                                    request.durable_since());
    if (commit_error == 0) commit_error = error;
    reply.outcome = Outcome::kReply;
  }
  if (reply.outcome == Outcome::kReply) {
    ASSERT_FALSE(result.overflowed());
    request.progress->finish(result, commit_error);
    reply.bytes = flatten(result);
    reply.shows_pages = request.payload.window() != nullptr;
    reply.bytes.erase(reply.bytes.begin(),
                      reply.bytes.begin() + static_cast<std::ptrdiff_t>(header));
  }
  if (request.progress != nullptr) request.progress->release();
  if (request.release != nullptr) request.release(request);
}

inline FileHandle Nfs4Harness::lookup(const FileHandle& directory, std::string_view name) {
  const Reply4 reply = run(Operations4().putfh(directory).add<OP_LOOKUP>({name}).add<OP_GETFH>());
  EXPECT_EQ(reply.status, NFS4_OK) << "LOOKUP " << name;
  if (reply.status != NFS4_OK) return {};
  return to_handle(reply.get<OP_GETFH>().resok4.object.data);
}

inline Open4 Nfs4Harness::open(const FileHandle& directory, std::string_view name,
                               std::uint32_t access, bool create) {
  std::array<std::byte, 4> mode{};
  store_be32(mode.data(), 0644);
  xdr::OPEN4args args;
  args.share_access = access | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
  args.owner = {session.client, as_bytes("owner")};
  args.claim.file = name;
  if (create) {
    args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
    args.openhow.how.createattrs.attrmask.set(xdr::fattr4_number::FATTR4_MODE);
    args.openhow.how.createattrs.attr_vals = mode;
  }
  const Reply4 reply = run(Operations4().putfh(directory).add<OP_OPEN>(args).add<OP_GETFH>());
  Open4 out;
  out.status = reply.status;
  if (out.status != NFS4_OK) return out;
  out.handle = to_handle(reply.get<OP_GETFH>().resok4.object.data);
  out.stateid = reply.get<OP_OPEN>().resok4.stateid;
  return out;
}

inline nfsstat4 Nfs4Harness::close(const Open4& file) {
  return on<OP_CLOSE>(file.handle, {0, file.stateid}).status;
}

inline nfsstat4 Nfs4Harness::write(const Open4& file, std::uint64_t offset, std::string_view data,
                                   xdr::stable_how4 stable) {
  return on<OP_WRITE>(file.handle, {file.stateid, offset, stable, {as_bytes(data)}}).status;
}

inline std::string Nfs4Harness::read(const Open4& file, std::uint64_t offset, std::uint32_t count) {
  const Reply4 reply = on<OP_READ>(file.handle, {file.stateid, offset, count});
  if (reply.status != NFS4_OK) {
    return "error " + std::to_string(static_cast<unsigned>(reply.status));
  }
  return std::string(as_text(reply.get<OP_READ>().resok4.data.bytes));
}

inline std::uint64_t Nfs4Harness::change(const FileHandle& object) {
  xdr::GETATTR4args args;
  args.attr_request.set(xdr::fattr4_number::FATTR4_CHANGE);
  const Reply4 reply = on<OP_GETATTR>(object, args);
  EXPECT_EQ(reply.status, NFS4_OK);
  const auto res = reply.get<OP_GETATTR>();
  EXPECT_EQ(res.resok4.obj_attributes.attr_vals.size(), 8u);
  return load_be64(res.resok4.obj_attributes.attr_vals.data());
}

}  // namespace nfsrdma::test
