// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/acl_attribute.h"

#include <array>
#include <string_view>

namespace nfsrdma::nfs4 {

namespace {

using Who = Ace::Who;
using Answer = OwnerNames::Answer;
using xdr::nfsstat4;
using enum xdr::nfsstat4;

constexpr std::string_view kOwner = "OWNER@";
constexpr std::string_view kOwningGroup = "GROUP@";
constexpr std::string_view kEveryone = "EVERYONE@";

nfsstat4 decode_who(const xdr::nfsace4& from, OwnerNames& names, bool may_block, Ace* ace) {
  if (from.who.empty()) return NFS4ERR_INVAL;
  // These mean the same with ACE4_IDENTIFIER_GROUP and without.
  if (from.who == kOwner) {
    ace->who = Who::kOwner;
    return NFS4_OK;
  }
  if (from.who == kOwningGroup) {
    ace->who = Who::kOwningGroup;
    return NFS4_OK;
  }
  if (from.who == kEveryone) {
    ace->who = Who::kEveryone;
    return NFS4_OK;
  }
  const bool group = (from.flag & xdr::ACE4_IDENTIFIER_GROUP) != 0;
  ace->who = group ? Who::kGroup : Who::kUser;
  const Answer answer = group ? names.gid_of(from.who, may_block, &ace->id)
                              : names.uid_of(from.who, may_block, &ace->id);
  if (answer == Answer::kWouldBlock) return NFS4ERR_DELAY;
  return answer == Answer::kKnown ? NFS4_OK : NFS4ERR_BADOWNER;
}

Answer encode_who(const Ace& ace, OwnerNames& names, bool may_block, OwnerNames::Text room,
                  std::string_view* who) {
  switch (ace.who) {
    case Who::kOwner:
      *who = kOwner;
      break;
    case Who::kOwningGroup:
      *who = kOwningGroup;
      break;
    case Who::kEveryone:
      *who = kEveryone;
      break;
    case Who::kUser:
      return names.user_text(ace.id, may_block, room, who);
    case Who::kGroup:
      return names.group_text(ace.id, may_block, room, who);
  }
  return Answer::kKnown;
}

}  // namespace

nfsstat4 decode_aces(const xdr::fattr4_acl& from, OwnerNames& names, bool may_block,
                     std::vector<Ace>* aces) {
  aces->clear();
  aces->reserve(from.aces.count);
  for (const xdr::nfsace4& each : from.aces) {
    Ace ace;
    ace.type = each.type;
    ace.flags = each.flag & ~xdr::ACE4_IDENTIFIER_GROUP;
    ace.mask = each.access_mask;
    const nfsstat4 status = decode_who(each, names, may_block, &ace);
    if (status != NFS4_OK) return status;
    aces->push_back(ace);
  }
  return NFS4_OK;
}

Answer encode_aces(std::span<const Ace> aces, OwnerNames& names, bool may_block,
                   std::vector<std::byte>& memory, xdr::fattr4_acl* out) {
  // type, flag, mask, length
  constexpr std::size_t kMostPerAce = 4 * 4 + OwnerNames::kTextBytes;
  memory.resize(aces.size() * kMostPerAce);
  xdr::Encoder encoder(memory);
  std::array<char, OwnerNames::kTextBytes> room;
  for (const Ace& ace : aces) {
    xdr::nfsace4 wire{ace.type, ace.flags, ace.mask, {}};
    if (ace.who == Who::kGroup) wire.flag |= xdr::ACE4_IDENTIFIER_GROUP;
    if (encode_who(ace, names, may_block, room, &wire.who) == Answer::kWouldBlock) {
      return Answer::kWouldBlock;
    }
    xdr::encode(encoder, wire);
  }
  out->aces.encoded = encoder.bytes();
  out->aces.count = static_cast<std::uint32_t>(aces.size());
  return Answer::kKnown;
}

}  // namespace nfsrdma::nfs4
