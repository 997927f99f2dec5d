// SPDX-License-Identifier: Apache-2.0
// IdNames: owners of files are texts in NFSv4 (RFC 8881, section 5.9): "1000", or "name@domain"
// from servers that map ids.
//
// Received: names are looked up in this machine's user database, the domain left aside, and
// remembered. What nobody here knows is 65534 (nobody).
// Sent: numbers, as Linux's client does with AUTH_SYS. When the server takes none
// (NFS4ERR_BADOWNER), names from then on, as Linux's client again; who has no name stays a number.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "config/user_names.h"

namespace nfsrdma::nfs4 {

class IdNames {
 public:
  static constexpr std::uint32_t kNobody = 65534;
  /// Bytes of a text that is sent, at most.
  static constexpr std::size_t kTextBytes = 256;

  /// `domain` is asked for once, before the first name is sent; it may block.
  explicit IdNames(std::unique_ptr<NameService> service = make_system_name_service(),
                   std::function<std::string()> domain = system_idmap_domain)
      : service_(std::move(service)), domain_of_host_(std::move(domain)) {}

  // May read the user database, once for each name or number.
  std::uint32_t uid(std::string_view owner);
  std::uint32_t gid(std::string_view group);
  /// What stands for an id in a request.
  std::string owner(std::uint32_t uid);
  std::string group(std::uint32_t gid);

  bool sends_names() const { return sends_names_; }
  /// The server has answered NFS4ERR_BADOWNER; `by_name`: sends_names() when the request was made.
  /// True: it is worth another request.
  bool refused(bool by_name);

 private:
  using Ids = std::map<std::string, std::uint32_t, std::less<>>;
  using Texts = std::map<std::uint32_t, std::string>;
  /// A server may have no end of names.
  static constexpr std::size_t kMostKnown = 4096;

  template <typename LookUp>
  static std::uint32_t id_of(std::string_view text, Ids& known, LookUp look_up);
  template <typename LookUp>
  std::string text_of(std::uint32_t id, Texts& known, LookUp look_up);

  std::unique_ptr<NameService> service_;
  std::function<std::string()> domain_of_host_;
  bool sends_names_ = false;
  std::string domain_;
  Ids users_;
  Ids groups_;
  Texts user_texts_;
  Texts group_texts_;
};

}  // namespace nfsrdma::nfs4
