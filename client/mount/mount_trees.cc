// SPDX-License-Identifier: Apache-2.0
#include "client/mount/mount_trees.h"

#include <fmt/format.h>

#include "client/fuse/mounted_remote.h"
#include "client/rpc_client.h"
#include "rpcrdma/connection_json.h"

namespace nfsrdma {
namespace {

class MountTree final : public OpenTree {
 public:
  MountTree(std::unique_ptr<AsyncMount> server, MountSettings settings, int errno_of_timeout)
      : server_(std::move(server)),
        settings_(std::move(settings)),
        shards_(*server_, false),
        remote_(shards_, errno_of_timeout) {}

  Remote& remote() override { return remote_; }
  const MountSettings& settings() const override { return settings_; }
  Task<void> end() override {
    co_await server_->unmount();
    // Out of its own last message.
    co_await server_->rpc().yield();
  }
  void abort() override { server_->abort_all(); }
  void stop_waiting() override { server_->stop_waiting(); }
  std::uint64_t replies() const override { return server_->totals().replies; }
  void describe(JsonWriter& json) const override {
    json.field("source", settings_.host + ":" + settings_.path);
    json.field("nfs_version", server_->version());
    json.field("rsize", server_->read_size());
    json.field("wsize", server_->write_size());
    json.field("files_open", server_->files_open());
    json.field("locks_held", server_->locks_held());
    json.field("delegations_held", server_->delegations_held());
    json.field("calls_outstanding", server_->calls_outstanding());
    json.key("connections");
    json.begin_array();
    for (const ConnectionInfo& info : server_->connections())
      write_connection(json, info, 0);
    json.end_array();
  }

 private:
  std::unique_ptr<AsyncMount> server_;
  MountSettings settings_;
  MountShards shards_;
  MountedRemote remote_;
};

}  // namespace

bool keep_family(MountFamily family, std::vector<SocketAddress>* addresses) {
  std::erase_if(*addresses, [family](const SocketAddress& address) {
    return (family == MountFamily::kV6 && !address.is_v6()) ||
           (family == MountFamily::kV4 && address.is_v6());
  });
  return !addresses->empty();
}

Task<Result<void>> ConnectOpener::open(MountSettings settings, std::string* detail,
                                       std::optional<ReferralMet>* met) {
  if (!keep_family(family_, &settings.addresses)) {
    *detail = fmt::format("{} has no address of the family that the mount asks for", settings.host);
    co_return Error{Errc::kNotFound, EHOSTUNREACH, "referral"};
  }
  ReferralMet further;
  Result<std::unique_ptr<AsyncMount>> made =
      co_await AsyncMount::connect(loop_, fabrics_, settings, detail, &further);
  if (!made.ok()) {
    if (is_referral_met(made.error())) *met = std::move(further);
    co_return made.error();
  }
  const std::optional<Attributes>& root = (*made)->info().attributes;
  if (root && root->type != FileType::kDirectory) {
    *detail = settings.path + " is not a directory there";
    std::unique_ptr<AsyncMount> mount = std::move(*made);
    co_await mount->unmount();
    co_await mount->rpc().yield();
    co_return Error{Errc::kSystem, ENOTDIR, "referral"};
  }
  opened_ = std::move(*made);
  co_return Result<void>();
}

Task<Result<std::unique_ptr<OpenTree>>> MountTrees::open(const MountSettings& from,
                                                         const Referral& referral,
                                                         ReferralTrail* trail,
                                                         std::string* detail) {
  ConnectOpener opener(loop_, fabrics_, family_);
  // LOOKUP leads from a file system that is here to the root of the one that is not.
  const ReferralMet met{referral, referral.root, ""};
  NFSRDMA_CO_CHECK_OK(co_await follow_referral(loop_, from, met, opener, trail, detail));
  std::unique_ptr<AsyncMount> mount = opener.take();
  mount->set_observer(observer_(mount->settings().host));
  MountSettings there = mount->settings();
  // What following has cut short is no option.
  there.connect_timeout = from.connect_timeout;
  there.first_answers = from.first_answers;
  co_return std::unique_ptr<OpenTree>(
      std::make_unique<MountTree>(std::move(mount), std::move(there), errno_of_timeout_));
}

}  // namespace nfsrdma
