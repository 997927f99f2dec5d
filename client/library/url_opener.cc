// SPDX-License-Identifier: Apache-2.0
#include "client/library/url_opener.h"

#include <fmt/format.h>

#include "client/library/referred_trees.h"
#include "client/mount_url.h"
#include "client/rpc_client.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma::client {
namespace {

Task<nfsrdma::Result<void>> connect(Mount::Impl& impl, LastReferral last, std::string* detail) {
  UrlOpener opener(impl, last, UrlOpener::For::kUrl);
  impl.trail.emplace(impl.asked);
  std::optional<ReferralMet> met;
  nfsrdma::Result<void> done = co_await opener.open(impl.asked, detail, &met);
  if (!met) co_return done;
  done =
      co_await follow_referral(impl.driver->loop(), impl.asked, *met, opener, &*impl.trail, detail);
  if (!done.ok()) *detail = met->path + " is a referral that cannot be followed: " + *detail;
  co_return done;
}

Task<void> say_goodbye(Mount::Impl& impl) {
  impl.left = true;
  co_await impl.mount->unmount();
}

/// Says goodbye to its server, and to those that its referrals led to, unless Files are open there.
Task<nfsrdma::Result<void>> leave(Mount::Impl& impl) {
  TaskGroup all;
  if (impl.mount && !impl.left) all.spawn(say_goodbye(impl));
  impl.referred->each([&all](const std::shared_ptr<Mount::Impl>& tree) {
    if (tree.use_count() == 1 && !tree->left) all.spawn(say_goodbye(*tree));
  });
  co_await all.wait();
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

Task<nfsrdma::Result<void>> UrlOpener::walk(PathTree& tree, std::string* detail,
                                            std::optional<ReferralMet>* met) {
  const Duration patience = tree.mount().settings().first_answers;
  CancelToken cancel;
  Timer limit([&cancel] { cancel.cancel(); });
  limit.arm_after(impl_.driver->loop(), patience);
  OpContext op;
  op.identity = impl_.op.identity;
  op.cancel = &cancel;
  nfsrdma::Result<PathNode> found = co_await tree.resolve(op, "", true);
  const ReferralMet* there = found.ok() ? nullptr : tree.met(found.error());
  if (there != nullptr) {
    if (there->rest.empty() && last_ == LastReferral::kStay) co_return nfsrdma::Result<void>();
    *met = *there;
    co_return kReferralMet;
  }
  if (!found.ok() && cancel.cancelled()) {
    *detail = fmt::format("no answer about the path for {:.3g} s",
                          std::chrono::duration<double>(patience).count());
    co_return Error{Errc::kTimedOut, ETIMEDOUT, "path"};
  }
  // What is wrong with the path of a URL is the business of whoever uses it.
  if (what_ == For::kUrl) co_return nfsrdma::Result<void>();
  if (!found.ok()) co_return found.error();
  const bool directory = found->attributes.type == FileType::kDirectory;
  if (!directory) co_return Error{Errc::kSystem, ENOTDIR, "path"};
  co_return nfsrdma::Result<void>();
}

Task<nfsrdma::Result<void>> UrlOpener::open(MountSettings settings, std::string* detail,
                                            std::optional<ReferralMet>* met) {
  std::string rest;
  Fabrics fabrics = default_fabrics(settings.require_crc);
  auto opened = co_await open_longest_export(impl_.driver->loop(), std::move(fabrics),
                                             std::move(settings), &rest, detail);
  if (!opened.ok()) co_return opened.error();
  std::unique_ptr<AsyncMount> mount = std::move(*opened);
  mount->set_observer(telling_of_silence(mount->settings().host));
  auto tree = std::make_unique<PathTree>(*mount, rest);
  if (what_ == For::kReferral) tree->keep_inside();
  nfsrdma::Result<void> walked;
  const bool refers = mount->settings().version.major == 4;
  if (!rest.empty() && (refers || what_ == For::kReferral)) {
    walked = co_await walk(*tree, detail, met);
  }
  if (!walked.ok()) {
    tree.reset();
    co_await mount->unmount();
    co_await mount->rpc().yield();
    co_return walked.error();
  }
  impl_.mount = std::move(mount);
  impl_.tree = std::move(tree);
  impl_.opens = std::make_unique<OpenFiles>(*impl_.mount, impl_.op);
  co_return nfsrdma::Result<void>();
}

Mount::Impl::Impl(std::shared_ptr<LoopDriver> its_driver, MountSettings its_asked)
    : driver(std::move(its_driver)),
      asked(std::move(its_asked)),
      trees(std::make_shared<std::size_t>(0)),
      referred(std::make_unique<ReferredTrees>()) {
  op.identity = asked.identity;
}

Mount::Impl::~Impl() {
  tree.reset();
  // So that the server need not keep its session for the rest of a lease.
  static_cast<void>(driver->run(leave(*this)));
  driver->while_it_stands([this] {
    opens.reset();
    mount.reset();
  });
}

nfsrdma::Result<std::shared_ptr<Mount::Impl>> open_impl(std::string_view url,
                                                        std::shared_ptr<LoopDriver> driver,
                                                        LastReferral last, std::string* detail) {
  detail->clear();  // an error before is no reason
  MountSettings settings;
  if (!parse_mount_url(url, &settings, detail)) return Error{Errc::kInvalid, EINVAL, "URL"};
  NFSRDMA_CHECK_OK(resolve_host(settings, detail));
  settings.lock_records = default_lock_records();
  auto impl = std::make_shared<Mount::Impl>(std::move(driver), std::move(settings));
  nfsrdma::Result<void> done = impl->driver->run(connect(*impl, last, detail));
  if (!done.ok()) {
    if (detail->empty()) *detail = done.error().message();
    return done.error();
  }
  return impl;
}

}  // namespace nfsrdma::client
