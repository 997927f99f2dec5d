// SPDX-License-Identifier: Apache-2.0
#include "client/follow_referral.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/apart_threads.h"
#include "client/gate.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma {
namespace {

// Bytes of what is said about servers that could not be used.
constexpr std::size_t kLongestDetail = 1000;

/// Somewhere to go.
struct Candidate {
  MountSettings settings;
  ReferralTrail trail;
};

/// What was tried in vain.
class Failures {
 public:
  explicit Failures(std::string* detail) : detail_(*detail) { detail_.clear(); }

  void note(const std::string& where, const Error& error, const std::string& why) {
    last = error;
    if (detail_.size() > kLongestDetail) return;
    if (!detail_.empty()) detail_ += "; ";
    // Paths and names come from servers, and this is for people.
    detail_ += terminal_text(where + ": " + (why.empty() ? error.message() : why));
  }
  Error last{Errc::kNotFound, ENOENT, "referral"};

 private:
  std::string& detail_;
};

std::string text_of(const MountSettings& settings) {
  const bool usual = settings.rdma_port == MountSettings().rdma_port;
  return ReferralTarget{settings.host, usual ? std::uint16_t{0} : settings.rdma_port, settings.path}
      .text();
}

/// The targets of `met` onto the end of *todo, the first of them last.
void add_candidates(const MountSettings& from, const ReferralMet& met, const ReferralTrail& trail,
                    std::vector<Candidate>* todo, Failures* failures) {
  std::vector<Candidate> found;
  for (const ReferralTarget& target : met.referral.targets) {
    Result<std::string> path = path_at_target(met, target);
    if (!path.ok()) {
      failures->note(target.text(), path.error(), "");
      continue;
    }
    MountSettings settings = settings_at(from, target, std::move(*path));
    std::string why;
    Result<ReferralTrail> there = trail.with(settings, &why);
    if (!there.ok()) {
      failures->note(text_of(settings), there.error(), why);
      continue;
    }
    found.push_back({std::move(settings), std::move(*there)});
  }
  todo->insert(todo->end(), std::make_move_iterator(found.rbegin()),
               std::make_move_iterator(found.rend()));
}

}  // namespace

std::string ReferralTrail::place_of(const MountSettings& settings) {
  std::string host = settings.host;
  for (char& c : host) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return fmt::format("{} {} {} {}", host, settings.rdma_port, settings.tcp_port, settings.path);
}

Result<ReferralTrail> ReferralTrail::with(const MountSettings& next, std::string* detail) const {
  std::string place = place_of(next);
  if (std::find(places_.begin(), places_.end(), place) != places_.end()) {
    *detail = "the referrals lead round in a circle";
    return Error{Errc::kInvalid, ELOOP, "referral"};
  }
  if (referrals() >= kMostReferrals) {
    *detail = fmt::format("more than {} referrals, one to the next", kMostReferrals);
    return Error{Errc::kInvalid, ELOOP, "referral"};
  }
  ReferralTrail longer = *this;
  longer.places_.push_back(std::move(place));
  return longer;
}

MountSettings settings_at(const MountSettings& from, const ReferralTarget& target,
                          std::string path) {
  MountSettings settings = from;
  settings.path = std::move(path);
  if (target.host.empty()) return settings;
  const MountSettings usual;
  if (settings.host != target.host) settings.put_off = nullptr;
  settings.host = target.host;
  settings.addresses.clear();
  settings.addresses_of_host.clear();
  settings.rdma_port = target.port != 0 ? target.port : usual.rdma_port;
  settings.tcp_port = target.port != 0 ? target.port : usual.tcp_port;
  return settings;
}

Task<Result<void>> find_addresses(EventLoop& loop, MountSettings* settings, std::string* detail,
                                  std::chrono::milliseconds patience) {
  struct Question {
    MountSettings settings;
    std::string detail;
    Result<void> outcome = Error{Errc::kTimedOut, ETIMEDOUT, "host name"};
    bool over = false;  // on the loop's thread
    Gate gate;
  };
  auto question = std::make_shared<Question>();
  question->settings = *settings;
  // Posted, since who waits ends what is told here.
  const auto wake = [&loop, question] {
    loop.post([question] {
      question->over = true;
      question->gate.wake_all();
    });
  };
  bool answered = false;
  ApartThreads apart(loop);
  apart.run([question] { question->outcome = resolve_host(question->settings, &question->detail); },
            [&answered, wake] {
              answered = true;
              wake();
            });
  Timer limit(wake);
  limit.arm_after(loop, patience);
  while (!question->over) {
    [[maybe_unused]] const bool told = co_await question->gate.wait(nullptr);
  }
  if (!answered) {
    *detail = fmt::format("no answer for {:.3g} s about the host '{}'",
                          std::chrono::duration<double>(patience).count(), settings->host);
    co_return Error{Errc::kTimedOut, ETIMEDOUT, "host name"};
  }
  *detail = question->detail;
  if (!question->outcome.ok()) {
    // Whatever the resolver says; its EAGAIN would mean something else to whoever opens files.
    const Error& error = question->outcome.error();
    co_return Error{error.code, EHOSTUNREACH, error.where};
  }
  settings->addresses = question->settings.addresses;
  co_return Result<void>();
}

Task<Result<void>> follow_referral(EventLoop& loop, const MountSettings& from,
                                   const ReferralMet& met, TreeOpener& opener, ReferralTrail* trail,
                                   std::string* detail) {
  const TimePoint until = loop.refresh_now() + kReferralPatience;
  Failures failures(detail);
  std::vector<Candidate> todo;
  add_candidates(from, met, *trail, &todo, &failures);
  for (unsigned tries = 0; !todo.empty(); ++tries) {
    Candidate next = std::move(todo.back());
    todo.pop_back();
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - loop.refresh_now());
    if (tries == kMostReferralTries || left.count() <= 0) {
      failures.note(text_of(next.settings), {Errc::kTimedOut, ETIMEDOUT, "referral"},
                    "not tried any more");
      break;
    }
    MountSettings& settings = next.settings;
    settings.connect_timeout = std::min(settings.connect_timeout, left);
    settings.first_answers = std::min(settings.first_answers, left);
    std::string why;
    Result<void> done;
    if (settings.addresses.empty()) done = co_await find_addresses(loop, &settings, &why);
    std::optional<ReferralMet> further;
    if (done.ok()) done = co_await opener.open(settings, &why, &further);
    if (done.ok()) {
      *trail = std::move(next.trail);
      detail->clear();
      co_return Result<void>();
    }
    if (settings.stop != nullptr && settings.stop->cancelled()) co_return done.error();
    if (further) {
      add_candidates(settings, *further, next.trail, &todo, &failures);
    } else {
      failures.note(text_of(settings), done.error(), why);
    }
  }
  co_return failures.last;
}

}  // namespace nfsrdma
