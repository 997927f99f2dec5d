// SPDX-License-Identifier: Apache-2.0
// IdNames: owners of files are texts in NFSv4 (RFC 8881, section 5.9): "1000", or "name@domain"
// from servers that map ids.
//
// Received: names of our domain (case does not matter) are looked up in this machine's user
// database. What nobody here knows is 65534 (nobody), and so is a name of another domain: "root"
// over there is not root here.
// Sent: numbers, as Linux's client does with AUTH_SYS. When the server takes none
// (NFS4ERR_BADOWNER), names from then on, as Linux's client again; who has no name stays a number.
//
// The user database may ask the network, and so may our domain: both are asked on another thread
// (ClientEnvironment::run_apart()), the domain once, in front of the first name. A reply whose
// names are not known yet is read with kNobody in their place; call.h waits for the answers
// (settle()), which then go where the ids belong. Answers are kept for a while: users come and go,
// and a database that could not be reached is not believed for long.
//
// On the session's thread. stop() before destroying; nothing may be awaited then.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/nfs_types.h"
#include "client/pauses.h"
#include "config/user_names.h"

namespace nfsrdma::nfs4 {

/// What stands for the owners of a SetAttributes in a request.
struct OwnerTexts {
  std::string owner;
  std::string group;
  bool by_name = false;
};

class IdNames {
  /// Is under way while Kept::question is this. `answer` is the other thread's until it is over.
  template <typename Value>
  struct Question {
    std::optional<Value> before;  // what was known
    std::optional<Value> answer;
    bool answered = false;
    bool over = false;  // answered or stopped
    TimePoint asked_at{};
    const std::optional<Value>& best() const { return answered ? answer : before; }
  };
  template <typename Value>
  using QuestionRef = std::shared_ptr<Question<Value>>;

 public:
  static constexpr std::uint32_t kNobody = 65534;
  /// Bytes of a text that is sent, at most.
  static constexpr std::size_t kTextBytes = 256;
  /// How long an answer is believed, as nfsidmap(8) does by default.
  static constexpr Duration kKeep = std::chrono::seconds(600);
  /// How long it is believed that there is no such user. That is also what a user database says
  /// that is not there yet at boot, or away for a moment.
  static constexpr Duration kKeepUnknown = std::chrono::seconds(60);
  /// How long a user database that does not answer is waited for, by whoever asks first and those
  /// who come meanwhile. Then the answer of last
  /// time will do, or nobody, or the number; one that comes later is for the next operation.
  static constexpr Duration kPatience = std::chrono::seconds(10);

  /// `environment` outlives this. `service` and `domain` are asked on other threads, several at
  /// once.
  explicit IdNames(ClientEnvironment& environment,
                   std::unique_ptr<NameService> service = make_system_name_service(),
                   std::function<std::string()> domain = system_idmap_domain);
  ~IdNames() { stop(); }
  IdNames(const IdNames&) = delete;
  IdNames& operator=(const IdNames&) = delete;

  /// Ids that a reply has left open; they stay in place until they are settled or forgotten.
  class Open {
    friend class IdNames;
    QuestionRef<std::uint32_t> question;
    std::uint32_t* id = nullptr;
    bool had_answer = false;
  };
  using OpenIds = std::vector<Open>;

  // --- of a reply; none of these blocks or waits ---
  /// *id is the last answer or kNobody while `owner` is not known, and left open.
  void uid(std::string_view owner, std::uint32_t* id) { find_id(kUser, owner, id); }
  void gid(std::string_view group, std::uint32_t* id) { find_id(kGroup, group, id); }
  bool any_open() const { return !open_.empty(); }
  OpenIds take_open();
  /// Fills them in. `old_will_do`: does not wait where there is an answer that has merely grown
  /// old, which is asked for again all the same. EINTR: cancelled. EIO: stopped.
  Task<Result<void>> settle(OpenIds& open, bool old_will_do, CancelToken* cancel);

  // --- of a request ---
  Task<Result<OwnerTexts>> texts(const SetAttributes& set, CancelToken* cancel);
  /// The server has answered NFS4ERR_BADOWNER; `by_name`: of the texts that were sent. True: it is
  /// worth another request.
  bool refused(bool by_name);

  /// Whatever waits here ends with EIO.
  void stop();

 private:
  enum Kind : unsigned { kUser, kGroup };
  /// What may block. Any thread.
  struct Host;
  template <typename Value>
  struct Kept {
    std::optional<Value> value;
    TimePoint until{};
    QuestionRef<Value> question;
  };
  using Ids = std::map<std::string, Kept<std::uint32_t>, std::less<>>;
  using Texts = std::map<std::uint32_t, Kept<std::string>>;
  /// A server may have no end of names. What does not fit for all the questions that are under way
  /// is nobody.
  static constexpr std::size_t kMostKnown = 4096;

  void find_id(Kind kind, std::string_view who, std::uint32_t* id);
  /// Null: *text is known.
  QuestionRef<std::string> find_text(Kind kind, std::uint32_t id, std::string* text);
  /// The row of `key`, a new one where there is none; null: there is no room.
  template <typename Table, typename Key>
  static typename Table::mapped_type* row(Table& table, const Key& key);
  template <typename Value, typename Table, typename Key>
  QuestionRef<Value> ask(Table& table, Kept<Value>& kept, const Key& key,
                         std::function<std::optional<Value>(Host&)> look_up);
  template <typename Value>
  Task<Result<void>> wait(const QuestionRef<Value>& question, CancelToken* cancel);
  template <typename Table>
  static void give_up(Table& table);

  ClientEnvironment& environment_;
  std::shared_ptr<Host> host_;
  Pauses pauses_;
  std::array<Ids, 2> ids_;      // by Kind
  std::array<Texts, 2> texts_;  // by Kind
  OpenIds open_;
  bool sends_names_ = false;
  bool stopped_ = false;
  std::shared_ptr<IdNames*> self_;  // goes with this: answers may come later
};

}  // namespace nfsrdma::nfs4
