// SPDX-License-Identifier: Apache-2.0
// OwnerNames: uids and gids as the strings of owner and owner_group (RFC 7530 5.9, RFC 8881 5.9).
//
// Sent: decimal numbers, as Linux's server does with AUTH_SYS, unless NFSoRDMA_NFS4_OWNER_NAMES
// asks for "user@domain". An id without a name is sent as a number in either case.
// Taken, whatever is sent: decimal numbers without leading zeros; "user@domain" where the domain is
// ours (case does not matter) and this host's user database (nsswitch) has the user; and "nobody"
// without domain, the RFC's name for who has no identity. Everything else is NFS4ERR_BADOWNER.
//
// The user database may ask the network. Its answers, also that there is none, are kept for some
// minutes. Functions are for any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "config/user_names.h"

namespace nfsrdma::nfs4 {

class OwnerNames {
 public:
  struct Options {
    std::string domain;       // without "@"; "": no string with a domain is ours
    bool send_names = false;  // else numbers
    std::uint32_t nobody_uid = 65534;
    std::uint32_t nobody_gid = 65534;
    std::function<std::int64_t()> seconds;  // a clock that never goes back; none: the system's
  };
  explicit OwnerNames(Options options,
                      std::unique_ptr<NameService> service = make_system_name_service());

  enum class Answer : std::uint8_t {
    kKnown,
    kUnknown,     // NFS4ERR_BADOWNER
    kWouldBlock,  // only when !may_block: the name service has to be asked
  };
  /// What a client's string means.
  Answer uid_of(std::string_view who, bool may_block, std::uint32_t* uid);
  Answer gid_of(std::string_view who, bool may_block, std::uint32_t* gid);

  /// Room for any string that is sent: names that do not fit are sent as numbers.
  static constexpr std::size_t kTextBytes = 256;
  using Text = std::span<char, kTextBytes>;
  /// The string for an id, in `room` (and nowhere else: *text refers to it). Never kUnknown. With
  /// numbers it neither blocks nor locks.
  Answer user_text(std::uint32_t uid, bool may_block, Text room, std::string_view* text);
  Answer group_text(std::uint32_t gid, bool may_block, Text room, std::string_view* text);

 private:
  enum Kind : unsigned { kUser, kGroup };
  static constexpr std::int64_t kKeep = 300;        // seconds, of what is known
  static constexpr std::int64_t kKeepUnknown = 60;  // of what is not
  static constexpr std::size_t kMaxAnswers = 65536;
  template <typename Value>
  struct Kept {
    std::int64_t until = 0;
    std::optional<Value> value;
  };
  /// Lets a string_view look up a string.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  struct Answers {
    std::unordered_map<std::string, Kept<std::uint32_t>, Hash, std::equal_to<>> ids;
    std::unordered_map<std::uint32_t, Kept<std::string>> names;
  };

  Answer id_of(Kind kind, std::string_view who, bool may_block, std::uint32_t* id);
  Answer text_of(Kind kind, std::uint32_t id, bool may_block, Text room, std::string_view* text);

  const Options options_;
  const std::unique_ptr<NameService> service_;
  std::mutex mutex_;  // never held while the name service is asked
  Answers answers_[2];
};

}  // namespace nfsrdma::nfs4
