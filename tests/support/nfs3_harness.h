// SPDX-License-Identifier: Apache-2.0
// Nfs3Harness: a server's file layer over a fresh directory, whose procedures a test calls with
// typed arguments. Stands in for dispatcher and transport: buffers, workers and durability are
// given as a real dispatcher would.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "server/nfs3/procedures.h"
#include "server/server_context.h"
#include "tests/support/exported_directory.h"
#include "tests/support/fake_call.h"
#include "tests/support/serving_thread.h"
#include "xdr/nfs3.h"

namespace nfsrdma::test {

using xdr::nfsproc3;
using xdr::nfsstat3;
using enum xdr::nfsstat3;

/// A result and the bytes that its views point into.
template <typename Res>
struct Reply {
  std::vector<std::byte> bytes;
  Res res;
  Outcome outcome = Outcome::kDrop;
  bool waited_for_disk = false;
  bool ran_on_worker = false;
  bool shows_pages = false;  // its payload is a window
  nfsstat3 status() const { return res.status; }
};

class Nfs3Harness {
 public:
  explicit Nfs3Harness(HarnessOptions options = {})
      : options_(std::move(options)), connection_(SocketAddress::parse("192.0.2.7", 700).value()) {
    directory_ = options_.directory.empty() ? home_.path() + "/export" : options_.directory;
    std::filesystem::create_directories(directory_);
    if (options_.directory.empty()) ::chmod(directory_.c_str(), 0777);
    start();
  }

  /// As if the process had been started anew: same state directory, everything else fresh.
  void restart() {
    server_.reset();
    start();
  }
  void export_with(const ExportOptions& options) {
    options_.exported = options;
    load_exports();
  }

  ServerContext& server() { return *server_; }
  const std::string& directory() const { return directory_; }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string state_dir() const { return home_.path() + "/state"; }
  /// A reference: what fh() makes of it points into it.
  const FileHandle& root() const { return root_; }
  bool acts_as_callers() const { return can_switch_identity(); }
  StubConnection& connection() { return connection_; }
  void set_caller(RpcCredentials caller) { caller_ = caller; }

  /// Calls procedure kNumber as set_caller() said (root at first).
  template <nfsproc3 kNumber>
  auto call(const typename std::tuple_element_t<static_cast<std::size_t>(kNumber),
                                                xdr::Nfs3Procedures>::Args& args) {
    using Res =
        typename std::tuple_element_t<static_cast<std::size_t>(kNumber), xdr::Nfs3Procedures>::Res;
    return call_row<Res>(nfs3::program_table().procedures[static_cast<std::size_t>(kNumber)], args);
  }
  /// The same with any row of a program: NFSACL, RQUOTA.
  template <typename Res, typename Args>
  Reply<Res> call_row(const ProcedureRow& row, const Args& args) {
    // Neither cleared nor made anew for each call, which took most of a test's time.
    constexpr std::size_t kRoom = std::size_t{5} << 20;
    static thread_local const auto room = std::make_unique_for_overwrite<std::byte[]>(kRoom);
    xdr::Encoder encoder({room.get(), kRoom});
    xdr::encode(encoder, args);
    Reply<Res> reply;
    thread_.run([&] { serve(row, flatten(encoder), reply); });
    xdr::Decoder decoder(reply.bytes);
    if (reply.outcome == Outcome::kReply) {
      EXPECT_TRUE(xdr::decode(decoder, reply.res)) << "the result does not decode";
      EXPECT_TRUE(decoder.at_end()) << "the result has trailing bytes";
    }
    return reply;
  }
  /// What happens while a call waits for the disk.
  std::function<void()> during_commit;
  /// How that ends.
  int commit_error = 0;
  /// On the serving thread.
  void on_serving_thread(std::function<void()> work) { thread_.run(std::move(work)); }

  // Short forms of what most tests need.
  FileHandle lookup(const FileHandle& dir, std::string_view name);
  nfsstat3 lookup_status(const FileHandle& dir, std::string_view name);
  FileHandle create(const FileHandle& dir, std::string_view name, std::uint32_t mode = 0644);
  FileHandle mkdir(const FileHandle& dir, std::string_view name, std::uint32_t mode = 0755);
  nfsstat3 write(const FileHandle& file, std::uint64_t offset, std::string_view data,
                 xdr::stable_how stable = xdr::stable_how::UNSTABLE);
  /// The data, or "error N".
  std::string read(const FileHandle& file, std::uint64_t offset, std::uint32_t count);
  xdr::GETATTR3res getattr(const FileHandle& object);
  nfsstat3 setattr(const FileHandle& object, const xdr::sattr3& values);
  nfsstat3 remove(const FileHandle& dir, std::string_view name);
  nfsstat3 rename(const FileHandle& from, std::string_view old_name, const FileHandle& to,
                  std::string_view new_name);
  std::uint32_t access(const FileHandle& object, std::uint32_t wanted);

  static xdr::nfs_fh3 fh(const FileHandle& handle) { return {handle.bytes()}; }

 private:
  void start() {
    ServerOptions options;
    options.state_dir = state_dir();
    options.handle_scheme = options_.scheme;
    options.sync_names = options_.sync_names;
    auto created = ServerContext::create(std::move(options));
    ASSERT_TRUE(created.ok()) << created.error().message();
    server_ = std::move(created).value();
    load_exports();
    find_root();
  }
  void load_exports() {
    ExportEntry entry;
    entry.path = directory_;
    ExportClient everyone;
    everyone.options = options_.exported;
    entry.clients.push_back(everyone);
    ConfigProblems problems;
    server_->exports.reload({entry}, &problems);
    ASSERT_TRUE(problems.empty()) << problems[0].text();
  }
  void find_root() {
    thread_.run([&] {
      Resolved top;
      ASSERT_EQ(server_->resolver.open_root(*server_->exports.current().exports.at(0), &top), 0);
      root_ = top.file->handle();
    });
  }

  template <typename Res>
  void serve(const ProcedureRow& row, std::vector<std::byte> arguments, Reply<Res>& reply) {
    StubCall call(connection_, std::move(arguments));
    Request request;
    request.call = &call;
    request.credentials = caller_;
    request.failures_before = server_->committer.failures();
    request.may_block = row.placement == Placement::kWorker;
    for (int attempt = 0; attempt < 4; ++attempt) {
      xdr::Encoder result(call.reply_room());
      xdr::Decoder args = call.decoder();
      reply.outcome = row.run(*server_, request, args, result);
      if (reply.outcome == Outcome::kWouldBlock) {
        EXPECT_FALSE(request.may_block) << "a worker has nobody to pass a call on to";
        request.may_block = true;
        reply.ran_on_worker = true;
        continue;
      }
      if (reply.outcome == Outcome::kNeedBuffer) {
        request.payload = connection_.buffers().acquire(request.buffer_wanted);
        continue;
      }
      if (reply.outcome == Outcome::kReplyDurable) {
        reply.waited_for_disk = true;
        if (during_commit) during_commit();
        EXPECT_EQ(server_->committer.commit_now(request.durable_fd, request.durable_data_only,
                                                request.durable_since()),
                  commit_error);
        if (request.verifier_mark != 0) {
          const std::uint64_t verifier = server_->verifier.value();
          result.patch_u32(request.verifier_mark, static_cast<std::uint32_t>(verifier >> 32));
          result.patch_u32(request.verifier_mark + 4, static_cast<std::uint32_t>(verifier));
        }
        reply.outcome = Outcome::kReply;
      }
      reply.bytes = flatten(result);
      reply.shows_pages = request.payload.window() != nullptr;
      break;
    }
    if (request.release != nullptr) request.release(request);
  }

  HarnessOptions options_;
  TemporaryDirectory home_;
  std::string directory_;
  std::unique_ptr<ServerContext> server_;
  StubConnection connection_;
  ServingThread thread_;
  FileHandle root_;
  RpcCredentials caller_ = user(0, 0);
};

inline FileHandle Nfs3Harness::lookup(const FileHandle& dir, std::string_view name) {
  auto reply = call<nfsproc3::NFSPROC3_LOOKUP>({{fh(dir), name}});
  EXPECT_EQ(reply.status(), NFS3_OK) << "LOOKUP " << name;
  return reply.status() == NFS3_OK ? to_handle(reply.res.resok.object.data) : FileHandle();
}
inline nfsstat3 Nfs3Harness::lookup_status(const FileHandle& dir, std::string_view name) {
  return call<nfsproc3::NFSPROC3_LOOKUP>({{fh(dir), name}}).status();
}
inline FileHandle Nfs3Harness::create(const FileHandle& dir, std::string_view name,
                                      std::uint32_t mode) {
  xdr::CREATE3args args;
  args.where = {fh(dir), name};
  args.how.mode = xdr::createmode3::GUARDED;
  args.how.obj_attributes.mode = {true, mode};
  auto reply = call<nfsproc3::NFSPROC3_CREATE>(args);
  EXPECT_EQ(reply.status(), NFS3_OK) << "CREATE " << name;
  return reply.status() == NFS3_OK ? to_handle(reply.res.resok.obj.handle.data) : FileHandle();
}
inline FileHandle Nfs3Harness::mkdir(const FileHandle& dir, std::string_view name,
                                     std::uint32_t mode) {
  xdr::MKDIR3args args;
  args.where = {fh(dir), name};
  args.attributes.mode = {true, mode};
  auto reply = call<nfsproc3::NFSPROC3_MKDIR>(args);
  EXPECT_EQ(reply.status(), NFS3_OK) << "MKDIR " << name;
  return reply.status() == NFS3_OK ? to_handle(reply.res.resok.obj.handle.data) : FileHandle();
}
inline nfsstat3 Nfs3Harness::write(const FileHandle& file, std::uint64_t offset,
                                   std::string_view data, xdr::stable_how stable) {
  xdr::WRITE3args args;
  args.file = fh(file);
  args.offset = offset;
  args.count = static_cast<std::uint32_t>(data.size());
  args.stable = stable;
  args.data.bytes = as_bytes(data);
  return call<nfsproc3::NFSPROC3_WRITE>(args).status();
}
inline std::string Nfs3Harness::read(const FileHandle& file, std::uint64_t offset,
                                     std::uint32_t count) {
  auto reply = call<nfsproc3::NFSPROC3_READ>({fh(file), offset, count});
  if (reply.status() != NFS3_OK) {
    return "error " + std::to_string(static_cast<unsigned>(reply.status()));
  }
  EXPECT_EQ(reply.res.resok.count, reply.res.resok.data.bytes.size());
  return std::string(as_text(reply.res.resok.data.bytes));
}
inline xdr::GETATTR3res Nfs3Harness::getattr(const FileHandle& object) {
  return call<nfsproc3::NFSPROC3_GETATTR>({fh(object)}).res;
}
inline nfsstat3 Nfs3Harness::setattr(const FileHandle& object, const xdr::sattr3& values) {
  return call<nfsproc3::NFSPROC3_SETATTR>({fh(object), values, {}}).status();
}
inline nfsstat3 Nfs3Harness::remove(const FileHandle& dir, std::string_view name) {
  return call<nfsproc3::NFSPROC3_REMOVE>({{fh(dir), name}}).status();
}
inline nfsstat3 Nfs3Harness::rename(const FileHandle& from, std::string_view old_name,
                                    const FileHandle& to, std::string_view new_name) {
  return call<nfsproc3::NFSPROC3_RENAME>({{fh(from), old_name}, {fh(to), new_name}}).status();
}
inline std::uint32_t Nfs3Harness::access(const FileHandle& object, std::uint32_t wanted) {
  auto reply = call<nfsproc3::NFSPROC3_ACCESS>({fh(object), wanted});
  EXPECT_EQ(reply.status(), NFS3_OK);
  return reply.res.resok.access;
}

}  // namespace nfsrdma::test
