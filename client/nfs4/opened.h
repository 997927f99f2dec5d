// SPDX-License-Identifier: Apache-2.0
// What an OPEN gives, and what minor version 0 wants done behind it (RFC 7530, 16.16 to 16.18): the
// confirmation of an open-owner that the server has not heard of, and CLOSE as a COMPOUND of its
// own, because there is no current stateid.
#pragma once

#include <optional>

#include "client/nfs4/owner_sequence.h"
#include "client/nfs_types.h"

namespace nfsrdma::nfs4 {

struct Opened {
  explicit Opened(const xdr::OPEN4resok& result);

  xdr::stateid4 stateid;
  bool unconfirmed = false;
  std::optional<xdr::stateid4> delegation;  // that nobody has asked for
};

/// OPEN_CONFIRM and DELEGRETURN, where the OPEN wants them: what the server says to the former, and
/// only behind NFS4_OK can the open be used. An error: nobody knows. To be asked again then.
Task<Result<xdr::nfsstat4>> settle_open(Session& session, const OpContext& op,
                                        const FileHandle& file, OwnerSequence& owner,
                                        Opened& opened);
/// CLOSE: what the server says. An error is that of call().
Task<Result<xdr::nfsstat4>> close_open(Session& session, const OpContext& op,
                                       const FileHandle& file, OwnerSequence& owner,
                                       xdr::stateid4 stateid);

/// Both, again and again until they are answered or `op` is cancelled: soft mounts give calls up.
/// False: the server has refused several times, or it was cancelled; in minor version 0 also when
/// it knows nothing of the open, or not as we do.
Task<bool> close_for_good(Session& session, const OpContext& op, const FileHandle& file,
                          OwnerSequence& owner, Opened& opened);

}  // namespace nfsrdma::nfs4
