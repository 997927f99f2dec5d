// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/id_names.h"

#include <strings.h>

#include <charconv>
#include <mutex>

#include "client/request_ends.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma::nfs4 {
namespace {

bool parse_number(std::string_view text, std::uint32_t* number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool same_text(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

struct IdNames::Host {
  Host(std::unique_ptr<NameService> its_service, std::function<std::string()> its_domain)
      : service(std::move(its_service)), domain_of_host(std::move(its_domain)) {}

  const std::string& domain() {
    std::call_once(once, [this] { known_domain = domain_of_host(); });
    return known_domain;
  }
  std::optional<std::uint32_t> id_of(Kind kind, const std::string& who) {
    // The last one: user names may have an "@", domains may not.
    const std::size_t at = who.rfind('@');
    if (!same_text(std::string_view(who).substr(at + 1), domain())) return std::nullopt;
    const std::string name = who.substr(0, at);
    return kind == kUser ? service->uid_of(name) : service->gid_of(name);
  }
  /// Nothing: it has no name that could be sent.
  std::optional<std::string> text_of(Kind kind, std::uint32_t id) {
    const std::optional<std::string> name =
        kind == kUser ? service->user_of(id) : service->group_of(id);
    std::uint32_t would_be = 0;
    if (!name || name->empty() || parse_number(*name, &would_be)) return std::nullopt;
    std::string text = *name + "@" + domain();
    if (text.size() > kTextBytes) return std::nullopt;
    return text;
  }

  const std::unique_ptr<NameService> service;
  const std::function<std::string()> domain_of_host;
  std::once_flag once;
  std::string known_domain;  // since `once`
};

IdNames::IdNames(ClientEnvironment& environment, std::unique_ptr<NameService> service,
                 std::function<std::string()> domain)
    : environment_(environment),
      host_(std::make_shared<Host>(std::move(service), std::move(domain))),
      pauses_(environment),
      self_(std::make_shared<IdNames*>(this)) {}

template <typename Table, typename Key>
typename Table::mapped_type* IdNames::row(Table& table, const Key& key) {
  if (const auto found = table.find(key); found != table.end()) return &found->second;
  if (table.size() >= kMostKnown) {
    std::erase_if(table, [](const auto& entry) { return entry.second.question == nullptr; });
    if (table.size() >= kMostKnown) return nullptr;
  }
  return &table[typename Table::key_type(key)];
}

template <typename Value, typename Table, typename Key>
IdNames::QuestionRef<Value> IdNames::ask(Table& table, Kept<Value>& kept, const Key& key,
                                         std::function<std::optional<Value>(Host&)> look_up) {
  if (kept.question != nullptr) return kept.question;
  auto question = std::make_shared<Question<Value>>();
  question->before = kept.value;
  question->asked_at = environment_.now();
  question->over = stopped_;
  if (stopped_) return question;
  kept.question = question;
  environment_.run_apart(
      [host = host_, question, look_up = std::move(look_up)] { question->answer = look_up(*host); },
      [self = std::weak_ptr(self_), question, &table, key] {
        const std::shared_ptr<IdNames*> here = self.lock();
        if (here == nullptr) return;
        IdNames& names = **here;
        const auto row = table.find(key);
        if (row != table.end() && row->second.question == question) {
          const Duration keep = question->answer ? kKeep : kKeepUnknown;
          row->second = {question->answer, names.environment_.now() + keep, nullptr};
        }
        question->answered = question->over = true;
        names.pauses_.nudge();
      });
  return question;
}

void IdNames::find_id(Kind kind, std::string_view who, std::uint32_t* id) {
  if (parse_number(who, id)) return;
  *id = kNobody;
  const std::size_t at = who.rfind('@');
  // Without a domain it is not ours; "nobody" is the RFC's own.
  if (at == who.npos || at == 0 || who.find('\0') != who.npos) return;
  Ids& table = ids_[kind];
  Kept<std::uint32_t>* kept = row(table, who);
  if (kept == nullptr) return;
  *id = kept->value.value_or(kNobody);
  if (environment_.now() < kept->until) return;
  const std::string name(who);
  Open& open = open_.emplace_back();
  open.id = id;
  open.had_answer = kept->until != TimePoint{};
  open.question = ask<std::uint32_t>(table, *kept, name,
                                     [kind, name](Host& host) { return host.id_of(kind, name); });
}

IdNames::QuestionRef<std::string> IdNames::find_text(Kind kind, std::uint32_t id,
                                                     std::string* text) {
  Texts& table = texts_[kind];
  Kept<std::string>* kept = row(table, id);
  *text = std::to_string(id);
  if (kept == nullptr) return nullptr;
  if (environment_.now() < kept->until) {
    if (kept->value) *text = *kept->value;
    return nullptr;
  }
  return ask<std::string>(table, *kept, id,
                          [kind, id](Host& host) { return host.text_of(kind, id); });
}

IdNames::OpenIds IdNames::take_open() {
  return std::exchange(open_, {});
}

template <typename Value>
Task<Result<void>> IdNames::wait(const QuestionRef<Value>& question, CancelToken* cancel) {
  const TimePoint until = question->asked_at + kPatience;
  co_await pauses_.pause(until - environment_.now(), cancel, &question->over);
  if (stopped_) co_return kStopped;
  if (!question->over && cancel != nullptr && cancel->cancelled()) co_return kInterrupted;
  co_return Result<void>();
}

Task<Result<void>> IdNames::settle(OpenIds& open, bool old_will_do, CancelToken* cancel) {
  for (const Open& one : open) {
    if (old_will_do && one.had_answer) continue;
    NFSRDMA_CO_CHECK_OK(co_await wait(one.question, cancel));
    *one.id = one.question->best().value_or(kNobody);
  }
  co_return Result<void>();
}

Task<Result<OwnerTexts>> IdNames::texts(const SetAttributes& set, CancelToken* cancel) {
  OwnerTexts result;
  result.by_name = sends_names_;
  if (!sends_names_) {
    if (set.uid) result.owner = std::to_string(*set.uid);
    if (set.gid) result.group = std::to_string(*set.gid);
    co_return result;
  }
  QuestionRef<std::string> owner;
  QuestionRef<std::string> group;
  if (set.uid) owner = find_text(kUser, *set.uid, &result.owner);
  if (set.gid) group = find_text(kGroup, *set.gid, &result.group);
  if (owner != nullptr) {
    NFSRDMA_CO_CHECK_OK(co_await wait(owner, cancel));
    if (owner->best()) result.owner = *owner->best();
  }
  if (group != nullptr) {
    NFSRDMA_CO_CHECK_OK(co_await wait(group, cancel));
    if (group->best()) result.group = *group->best();
  }
  co_return result;
}

bool IdNames::refused(bool by_name) {
  if (by_name) return false;
  if (!sends_names_) {
    sends_names_ = true;
    environment_.run_apart([host = host_] { host->domain(); },
                           [host = host_] {
                             log_notice(
                                 "the server takes no numbers for owners of files; it gets names, "
                                 "@{}",
                                 host->domain());
                           });
  }
  return true;
}

template <typename Table>
void IdNames::give_up(Table& table) {
  for (auto& entry : table) {
    if (entry.second.question != nullptr) entry.second.question->over = true;
  }
}

void IdNames::stop() {
  stopped_ = true;
  for (const Kind kind : {kUser, kGroup}) {
    give_up(ids_[kind]);
    give_up(texts_[kind]);
  }
  pauses_.nudge();
}

}  // namespace nfsrdma::nfs4
