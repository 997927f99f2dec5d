// SPDX-License-Identifier: Apache-2.0
// FileCall: one call, or one operation of a COMPOUND, on its way to a file: who calls, which export
// it is about, what must stay open until the reply is out. Lives on the stack of the procedure.
//
// Functions in server/files/ do to files what several NFS versions want; they return 0 or an errno
// and know no wire types. "As the caller" means: after FileCall::admit() or resolve(), on the same
// thread.
#pragma once

#include "server/procedure.h"
#include "server/server_context.h"

namespace nfsrdma {

/// What is going to be done with an object.
enum class Use : std::uint8_t {
  kLook,
  kChange,  // EROFS where the export is read-only
  kPass,    // on the way to somewhere else: also a caller whose flavour is not served, as nobody
};

// Beside the errnos, from numbers that the kernel keeps to itself:
inline constexpr int kBadHandle = 521;  // no handle of ours: NFS3ERR_BADHANDLE, NFS4ERR_BADHANDLE
inline constexpr int kNoSuchAttribute =
    524;  // the file system has none: NFS3ERR_NOTSUPP, NFS4ERR_ATTRNOTSUPP
inline constexpr int kWrongFlavor = 525;  // not in sec=: NFS3ERR_ACCES, NFS4ERR_WRONGSEC
inline constexpr int kNoIdentity = 526;   // the kernel refused the caller's identity: SERVERFAULT
inline constexpr int kMovedAway = 527;    // another server has the export now: NFS4ERR_MOVED

class FileCall {
 public:
  FileCall(ServerContext& server, Request& request) : server_(server), request_(request) {}

  /// May the call's client use the export of that handle? From then on the thread acts as the
  /// (squashed) caller. 0, ESTALE, EACCES, EROFS, kWrongFlavor or kNoIdentity; EAGAIN with
  /// would_block(): nothing was done, to be run again where it may block.
  int admit(const HandleParts& parts, Use use);
  /// The same, and the object that `handle` names with fresh attributes. Also kBadHandle.
  int resolve(ByteSpan handle, Use use, Resolved* object);
  bool would_block() const { return would_block_; }
  /// Was it let pass with a flavour that the export does not serve?
  bool wrong_flavor() const { return wrong_flavor_; }

  /// Before names or attributes of a regular file are changed: 0, or EAGAIN while a client of NFSv4
  /// holds the promise that they stay as they are. It is asked to give that up.
  int may_change(dev_t device, ino_t inode);
  int may_change(const FileEntry& file) { return may_change(file.device(), file.inode()); }
  /// The same for what `name` is, if anything.
  int may_change(const Resolved& directory, const char* name);

  /// Before and after the data of a file is used, or what attributes say of it: 0, or EAGAIN while
  /// another client has a write delegation of it, and is asked to give that up. After it, for who
  /// was promised the file meanwhile.
  int may_use(const FileEntry& file);
  /// The same of who wants only the attributes. Those are seen by way of every entry of the file,
  /// of which there are several when it is in several exports; its data only by the one that has
  /// the lease.
  int may_see(const FileEntry& file);

  /// After admit():
  const Export& exported() const { return *export_; }
  const ExportAccess& access() const { return access_; }
  const CallerIdentity& caller() const { return *caller_; }
  ServerContext& server() { return server_; }
  Request& request() { return request_; }

  /// The reply shall wait until the object's changes are on stable storage. The object stays open
  /// until then, and `object` is left without it. Where it cannot be opened (links, devices, what
  /// somebody has a lease on) its whole file system is synced, unless its directory's sync covers
  /// it. False, and nothing changed, when the reply waits for Request::kMaxDurable others already,
  /// which no procedure of NFSv3 reaches.
  bool wait_for(Resolved& object);
  /// The same of what calls before this one have written (COMMIT).
  bool wait_for_written(Resolved& file);
  /// What wait_for() would have synced: a descriptor as CommitJob has them. 0 or an errno.
  int sync_fd(FileEntry& file, int* fd);
  /// The same, when the export is `sync`, for a change of names or attributes.
  bool wait_for_metadata(Resolved& object) { return !syncs_metadata() || wait_for(object); }
  bool syncs_metadata() const { return access_.sync && server_.sync_names(); }

 private:
  ServerContext& server_;
  Request& request_;
  const Export* export_ = nullptr;
  ExportAccess access_;
  const CallerIdentity* caller_ = nullptr;
  bool would_block_ = false;
  bool wrong_flavor_ = false;
};

}  // namespace nfsrdma
