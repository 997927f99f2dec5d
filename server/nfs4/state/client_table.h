// SPDX-License-Identifier: Apache-2.0
// ClientTable: which clients there are, by the rules of EXCHANGE_ID, CREATE_SESSION and
// DESTROY_CLIENTID (RFC 8881 18.35, 18.36, 18.50) and of SETCLIENTID and SETCLIENTID_CONFIRM
// (RFC 7530 16.33, 16.34). An owner string has at most one confirmed client, whose state counts,
// and one unconfirmed, which a later call confirms or replaces. Both protocols share the names.
//
// Hosts that lock by NLM (NFSv3) are clients too, under names of their own.
//
// A client whose lease is over stays until somebody needs what it holds, as in Linux's server: the
// table tells, the caller decides.
//
// Pure: no I/O; time comes with the calls, ids and confirmations from a counter on top of `boot`.
// The caller serialises. A Client& holds until its client ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rpcrdma/base/clock.h"
#include "server/nfs4/state/slot_table.h"

namespace nfsrdma::nfs4 {

using ClientId = std::uint64_t;
using Verifier = std::array<std::byte, 8>;

/// client_owner4 and nfs_client_id4: who the client says it is, and in which of its lives.
struct ClientOwner {
  std::string id;
  Verifier verifier{};
};

struct Client {
  ClientId id = 0;
  ClientOwner owner;
  /// Who may speak for it: flavor and name, as the caller writes them.
  std::string principal;
  bool confirmed = false;
  bool has_sessions = false;  // minor version 1 and later: by EXCHANGE_ID
  bool locks_by_nlm = false;  // a host of NFSv3, which has no lease: add_host()
  TimePoint renewed;
  /// The caller's: its requests under way. Its lease is not over while there are any (RFC
  /// 8881 8.3).
  std::size_t running = 0;
  /// What the caller counts: sessions, opens, locks, delegations. 0: nothing is lost with it.
  std::size_t holds = 0;
  /// The caller's: in which minor version, and from where, it made itself known.
  std::uint32_t minor_version = 0;
  std::string address;
  /// The caller's: it is on stable storage.
  bool recorded = false;
  /// The caller's: that is so, or is being seen to. If the client ends meanwhile, the record has to
  /// go behind it.
  bool may_be_recorded = false;
  /// Exactly-once for CREATE_SESSION, on a slot of its own.
  SlotTable create_session{1};
  // Of minor version 0:
  Verifier confirm{};
  std::string callback;  // where the client wants to be called, as the caller writes it
  /// The caller's: a delegation was revoked. RENEW says so for a while, and until a place to be
  /// called at is named: not every client names one again (Linux's does not).
  bool lost_delegation = false;
  TimePoint told_until{};
  /// The table's: where it stands among those of its kind, by `renewed`.
  std::list<Client*>::iterator place;
};

class ClientTable {
 public:
  struct Limits {
    std::size_t clients = SIZE_MAX;  // confirmed or not
    Duration lease = std::chrono::seconds(90);
    /// How long what an expired client holds is kept for it while nobody wants it.
    Duration courtesy = std::chrono::hours(24);
    /// Hosts that lock by NLM under names of their own, at one address. All of them together have
    /// half of the clients: they do not expire while they hold anything.
    std::size_t hosts_per_address = 64;
  };
  /// `boot` differs each time the server starts: ids from before are stale.
  ClientTable(std::uint32_t boot, const Limits& limits) : limits_(limits), boot_(boot) {}

  enum class Status : std::uint8_t {
    kOk,
    kInUse,    // NFS4ERR_CLID_INUSE
    kNoEnt,    // NFS4ERR_NOENT
    kNotSame,  // NFS4ERR_NOT_SAME
    kPerm,     // NFS4ERR_PERM
    kStale,    // NFS4ERR_STALE_CLIENTID
    kBusy,     // NFS4ERR_CLIENTID_BUSY
    kInvalid,  // NFS4ERR_INVAL
    kFull,     // NFS4ERR_DELAY: as many clients as there may be, none of them expired
    kRetry,    // create_session(): as `verdict` says, nothing is to be run
  };
  /// What a call came to. `ended` are clients that are no more: the caller lets go of their state,
  /// whatever the status is.
  struct Answer {
    Status status = Status::kOk;
    Client* client = nullptr;  // unless it failed
    std::vector<std::unique_ptr<Client>> ended{};
    /// The last one of `ended` held something, and gave way for want of room.
    bool gave_way = false;
    SlotTable::Verdict verdict = SlotTable::Verdict::kNew;
  };

  /// `update`: EXCHGID4_FLAG_UPD_CONFIRMED_REC_A. The answer's client tells whether it is confirmed
  /// (EXCHGID4_FLAG_CONFIRMED_R), and create_session.next(0) is eir_sequenceid.
  Answer exchange_id(const ClientOwner& owner, const std::string& principal, bool update,
                     TimePoint now);
  /// Confirms `id`. When the status is kOk the caller makes the session, or fails to, and finishes
  /// slot 0 of client->create_session with what it answers, errors too, before its next call here.
  Answer create_session(ClientId id, SequenceId sequence, std::uint64_t fingerprint,
                        const std::string& principal, TimePoint now);
  Answer destroy_client_id(ClientId id);

  /// The answer's client has `id` and `confirm` for SETCLIENTID4resok.
  Answer set_client_id(const ClientOwner& owner, const std::string& principal,
                       const std::string& callback, TimePoint now);
  Answer set_client_id_confirm(ClientId id, const Verifier& confirm, const std::string& principal,
                               TimePoint now);

  /// A host that locks by NLM, called "ADDRESS NAME". It has no lease, so that it stays as long as
  /// it holds anything. No client of NFSv4 can have such a name.
  Answer add_host(const std::string& name, TimePoint now);
  /// Null when there is none of that name.
  Client* find_host(const std::string& name);
  /// Those whose names begin so.
  std::vector<Client*> hosts_with(const std::string& prefix);
  static constexpr std::string_view kHostPrefix = "\1nlm:";
  static std::string host_owner(const std::string& name) { return std::string(kHostPrefix) + name; }

  /// Confirmed; null when there is none.
  Client* find(ClientId id);
  /// Confirmed or not.
  const Client* find_any(ClientId id);
  /// Was that ID given since the server started, and is nobody's any more?
  bool is_gone(ClientId id) const;
  void renew(Client& client, TimePoint now);
  bool expired(const Client& client, TimePoint now) const {
    return client.running == 0 && !(client.locks_by_nlm && client.holds > 0) &&
           lease_over(client, now);
  }
  /// Confirmed ones that are expired, the longest first, `most` at most.
  std::vector<ClientId> longest_expired(std::size_t most, TimePoint now) const;
  /// Ends a confirmed client, such as an expired one that is in somebody's way.
  std::unique_ptr<Client> end(Client& client);
  /// Ends what is expired and holds nothing, or has been for too long, and what nobody confirmed
  /// within a lease.
  std::vector<std::unique_ptr<Client>> sweep(TimePoint now);
  std::size_t size() const { return confirmed_.size() + unconfirmed_.size(); }
  /// Of those that are confirmed, in no order.
  std::vector<ClientId> ids() const;
  /// Is there a client, confirmed or not, whose state could have that number (state_number.h)?
  bool may_own(std::uint64_t number) const;

 private:
  bool lease_over(const Client& client, TimePoint now) const {
    return now - client.renewed > limits_.lease;
  }
  /// By id. Of one owner, and of one id, there is at most one in each.
  using Table = std::unordered_map<ClientId, std::unique_ptr<Client>>;
  static Client* find(const Table& table, ClientId id);
  using Owners = std::map<std::string, ClientId>;
  /// As they are renewed, the last one at the end.
  using Queue = std::list<Client*>;
  static std::unique_ptr<Client> take(Table& table, Owners& by_owner, Queue& queue, Client& client);
  void drop_unconfirmed(Client& client);
  Client* confirmed_of(const std::string& owner);
  void drop_unconfirmed_of(const std::string& owner);
  bool make_room(Answer& answer, TimePoint now);
  Client* add_unconfirmed(const ClientOwner& owner, const std::string& principal, ClientId id,
                          TimePoint now);
  Client* confirm(Client& unconfirmed, Answer& answer);
  ClientId next_id() { return std::uint64_t{boot_} << 32 | ++last_number_; }

  const Limits limits_;
  const std::uint32_t boot_;
  std::uint32_t last_number_ = 0;
  std::uint64_t last_confirm_ = 0;
  std::size_t hosts_ = 0;  // that lock by NLM
  Table confirmed_, unconfirmed_;
  Owners confirmed_by_owner_, unconfirmed_by_owner_;
  Queue confirmed_queue_, unconfirmed_queue_;
};

}  // namespace nfsrdma::nfs4
