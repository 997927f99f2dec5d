// SPDX-License-Identifier: Apache-2.0
#include "client/library/url_opener.h"

#include "client/library/referred_trees.h"
#include "client/mount_url.h"
#include "client/rpc_client.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma::client {
namespace {

Task<nfsrdma::Result<void>> connect(Mount::Impl& impl, MountSettings settings, LastReferral last,
                                    std::string* detail) {
  UrlOpener opener(impl, last, UrlOpener::Leaving::kMay);
  impl.trail.emplace(settings);
  std::optional<ReferralMet> met;
  nfsrdma::Result<void> done = co_await opener.open(settings, detail, &met);
  if (!met) co_return done;
  done =
      co_await follow_referral(impl.driver->loop(), settings, *met, opener, &*impl.trail, detail);
  if (!done.ok()) *detail = met->path + " is a referral that cannot be followed: " + *detail;
  co_return done;
}

Task<nfsrdma::Result<void>> say_goodbye(AsyncMount& mount) {
  co_await mount.unmount();
  co_return nfsrdma::Result<void>();
}

}  // namespace

MountObserver telling_of_silence(std::string_view server) {
  const std::string name = terminal_text(server);
  MountObserver observer;
  observer.not_responding = [name] { log_warning("server {} not responding, still trying", name); };
  observer.responding = [name] { log_warning("server {} OK", name); };
  return observer;
}

Task<nfsrdma::Result<void>> UrlOpener::open(MountSettings settings, std::string* detail,
                                            std::optional<ReferralMet>* met) {
  std::string rest;
  Fabrics fabrics = default_fabrics(settings.require_crc);
  auto opened = co_await open_longest_export(impl_.driver->loop(), std::move(fabrics),
                                             std::move(settings), &rest, detail);
  if (!opened.ok()) co_return opened.error();
  std::unique_ptr<AsyncMount> mount = std::move(*opened);
  auto tree = std::make_unique<PathTree>(*mount, rest);
  if (leaving_ == Leaving::kNever) tree->keep_inside();
  if (mount->settings().version.major == 4 && !rest.empty()) {
    // What else is wrong with the path is the business of whoever uses it.
    auto found = co_await tree->resolve(impl_.op, "", true);
    const ReferralMet* there = found.ok() ? nullptr : tree->met(found.error());
    const bool stays = there != nullptr && there->rest.empty() && last_ == LastReferral::kStay;
    if (there != nullptr && !stays) *met = *there;
  }
  if (*met) {
    tree.reset();
    co_await mount->unmount();
    co_await mount->rpc().yield();
    co_return kReferralMet;
  }
  mount->set_observer(telling_of_silence(mount->settings().host));
  impl_.mount = std::move(mount);
  impl_.tree = std::move(tree);
  impl_.opens = std::make_unique<OpenFiles>(*impl_.mount, impl_.op);
  co_return nfsrdma::Result<void>();
}

Mount::Impl::Impl(std::shared_ptr<LoopDriver> its_driver)
    : driver(std::move(its_driver)), referred(std::make_unique<ReferredTrees>()) {}

Mount::Impl::~Impl() {
  referred.reset();
  tree.reset();
  // So that the server need not keep its session for the rest of a lease.
  if (mount) static_cast<void>(driver->run(say_goodbye(*mount)));
  driver->while_it_stands([this] {
    opens.reset();
    mount.reset();
  });
}

nfsrdma::Result<std::shared_ptr<Mount::Impl>> open_impl(std::string_view url,
                                                        std::shared_ptr<LoopDriver> driver,
                                                        LastReferral last, std::string* detail) {
  MountSettings settings;
  if (!parse_mount_url(url, &settings, detail)) return Error{Errc::kInvalid, EINVAL, "URL"};
  NFSRDMA_CHECK_OK(resolve_host(settings, detail));
  settings.lock_records = default_lock_records();
  auto impl = std::make_shared<Mount::Impl>(std::move(driver));
  impl->op.identity = settings.identity;
  nfsrdma::Result<void> done = impl->driver->run(connect(*impl, std::move(settings), last, detail));
  if (!done.ok()) {
    if (detail->empty()) *detail = done.error().message();
    return done.error();
  }
  return impl;
}

}  // namespace nfsrdma::client
