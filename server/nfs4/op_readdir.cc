// SPDX-License-Identifier: Apache-2.0
// READDIR (RFC 8881 18.23). Cookies are the kernel's own (server/files/directory_reader.h), so
// there is nothing that a cookie verifier could verify: it is always zero.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "rpcrdma/base/unique_fd.h"
#include "server/files/directory_reader.h"
#include "server/nfs4/object_facts.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/places.h"
#include "server/nfs4/status.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::fattr4_number;
using enum xdr::nfsstat4;

namespace {

using Writer = xdr::DirectoryWriter<xdr::AttributedEntry4>;

/// As long as other operations take, so many entries may take.
constexpr std::uint32_t kEntriesPerUnit = 16;
/// Longer listings of larger directories always run on a worker (as in server/nfs3).
constexpr std::size_t kShortListing = 32 << 10;
constexpr off_t kSmallDirectory = 8 << 10;
constexpr std::size_t kMostListing = std::size_t{1} << 20;
/// About how many times as long as the kernel's an entry with attributes is.
constexpr std::size_t kGrowth = 5;

/// For holders of write delegations that do not say how large their files are, one READDIR waits so
/// often.
constexpr int kMostWaits = 4;

/// One READDIR: what its entries have in common.
struct Lister {
  Compound& compound;
  const xdr::READDIR4args& args;
  AttributeScratch scratch;
  nfsstat4 failed = NFS4_OK;
  int waits = 0;

  /// Asks another client that has a write delegation of the file, if one does. Of files whose
  /// holders do not answer, entries tell what the server sees: GETATTR would be NFS4ERR_DELAY, but
  /// one file shall not hold up the others.
  void ask_holder(const struct stat& seen, AttributeFacts* facts) {
    Delegations& delegations = compound.state().delegations;
    if (!S_ISREG(seen.st_mode) || !holder_knows(args.attr_request) || !delegations.any_writer() ||
        waits >= kMostWaits) {
      return;
    }
    const auto answer = delegations.holder_attributes.ask(file_key(seen.st_dev, seen.st_ino),
                                                          compound.speaker(), compound.may_block());
    using Kind = HolderAttributes::Answer::Kind;
    if (answer.kind == Kind::kWouldBlock) compound.retry(Outcome::kWouldBlock);
    if (answer.kind == Kind::kLater) ++waits;
    if (answer.kind == Kind::kKnown) add_holder(compound, seen.st_dev, seen.st_ino, answer, facts);
  }

  /// The entry's attributes, or why there are none. False: READDIR as a whole fails or waits.
  bool describe(const AttributeFacts& facts, nfsstat4 status, std::uint64_t fileid,
                xdr::FileAttributes4* out) {
    if (compound.is_retry()) {
      failed = NFS4ERR_DELAY;
      return false;
    }
    if (status == NFS4_OK) {
      const int error = fill_attributes(facts, args.attr_request, compound.state().owner_names(),
                                        compound.may_block(), scratch, out);
      if (error == 0) return true;
      if (error == EAGAIN && !compound.may_block()) {
        failed = compound.retry(Outcome::kWouldBlock);
        return false;
      }
      status = status_of_errno(error);
    }
    if (fill_entry_error(args.attr_request, status, fileid, out)) return true;
    failed = status;
    return false;
  }
};

nfsstat4 list_pseudo(Lister& lister, Writer& writer, bool* eof) {
  Compound& compound = lister.compound;
  View view(compound);
  bool full = false;
  const auto listed = view.fs().list(
      compound.current.node, lister.args.cookie, view.allow(), [&](const PseudoFs::Entry& found) {
        xdr::AttributedEntry4 entry;
        entry.cookie = found.cookie;
        entry.name = found.name;
        CurrentHandle handle;
        AttributeFacts facts;
        nfsstat4 status = view.go_to(found.place, NFS4ERR_NOENT, &handle);
        FileCall call(compound.server(), compound.request());
        if (status == NFS4_OK) {
          status = facts_of(compound, call, handle, lister.args.attr_request, &facts);
        }
        if (!lister.describe(facts, status, found.fileid, &entry.attrs)) return false;
        full = !writer.try_add(entry);
        return !full;
      });
  if (listed == PseudoFs::Listing::kWouldBlock) return compound.retry(Outcome::kWouldBlock);
  if (compound.is_retry()) return NFS4ERR_DELAY;
  if (lister.failed != NFS4_OK) return lister.failed;
  *eof = !full && listed == PseudoFs::Listing::kEnd;
  return NFS4_OK;
}

/// None when another object has that name by now.
UniqueFd descriptor_of(const Resolved& directory, const DirectoryEntry& entry) {
  UniqueFd fd(::openat(directory.file->path_fd(), entry.name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat st;
  if (fd && (::fstat(fd.get(), &st) != 0 || st.st_ino != entry.inode)) fd.reset();
  return fd;
}

/// The directory itself has been removed, when the kernel finds it no more.
nfsstat4 status_of_listing(int error) {
  return status_of_errno(error == ENOENT ? ESTALE : error);
}

/// Is what a client asks for that of the object behind a mount point? If not, the directory that it
/// is mounted on answers, without going there.
bool asks_beyond_mounts(const xdr::bitmap4& requested) {
  return !requested
              .without(xdr::bitmap4::of(
                  {FATTR4_RDATTR_ERROR, FATTR4_LEASE_TIME, FATTR4_MOUNTED_ON_FILEID}))
              .empty();
}

/// Is a directory of these attributes that of some export?
bool is_exported(const Export& listed, const struct stat& attributes) {
  return S_ISDIR(attributes.st_mode) &&
         listed.snapshot->find_at(attributes.st_dev, attributes.st_ino, 0) != nullptr;
}

/// Back into the directory's export, as the caller: after what may have gone to another, or may
/// have brought this thread newer exports.
nfsstat4 go_back(Compound& compound, FileCall& call) {
  const int error = call.admit(compound.current.parts, Use::kLook);
  return call.would_block() ? compound.retry(Outcome::kWouldBlock) : status_of_errno(error);
}

/// An entry that is a mount point or another export's directory, as LOOKUP would find it. Its
/// attributes refer to `handle`. *gone: it is not there any more. False: READDIR as a whole fails
/// or waits.
bool describe_crossed(Lister& lister, FileCall& call, const DirectoryEntry& found,
                      CurrentHandle& handle, bool* gone, xdr::AttributedEntry4* entry) {
  Compound& compound = lister.compound;
  AttributeFacts facts;
  FileCall inner(compound.server(), compound.request());
  View view(compound);
  nfsstat4 status = go_back(compound, call);
  if (status == NFS4_OK) status = view.find(call, compound.current, entry->name, &handle);
  if (status == NFS4_OK) {
    status = facts_of(compound, inner, handle, lister.args.attr_request, &facts);
  }
  // Of the whole: an entry cannot be asked for again.
  if (status == NFS4ERR_DELAY) {
    lister.failed = status;
    return false;
  }
  *gone = status == NFS4ERR_NOENT;
  if (!*gone && !lister.describe(facts, status, found.inode, &entry->attrs)) return false;
  lister.failed = go_back(compound, call);
  return lister.failed == NFS4_OK;
}

nfsstat4 list_real(Lister& lister, FileCall& call, Writer& writer, bool* eof) {
  Compound& compound = lister.compound;
  Resolved& directory = compound.current.object;
  DirectoryReader reader(call, directory);
  const std::size_t chunk = lister.args.maxcount / kGrowth;
  if (const int error = reader.open(lister.args.cookie, chunk)) {
    return error == EINVAL ? NFS4ERR_BAD_COOKIE : status_of_listing(error);
  }
  AttributeFacts facts = common_facts(compound);
  if (lister.args.attr_request.has(FATTR4_FS_LOCATIONS)) {
    nfsstat4 status = find_locations(compound, call, compound.current, &facts);
    if (status == NFS4_OK) status = go_back(compound, call);
    if (status != NFS4_OK) return status;
  }
  const bool beyond_mounts = asks_beyond_mounts(lister.args.attr_request);
  const bool by_descriptor = need_descriptor(lister.args.attr_request);
  CurrentHandle elsewhere;
  DirectoryEntry found;
  int error = 0;
  auto next = reader.next(&found, &error);
  for (; next == DirectoryReader::Next::kEntry; next = reader.next(&found, &error)) {
    xdr::AttributedEntry4 entry;
    entry.cookie = found.cookie;
    entry.name = found.name;
    if (entry.name == "." || entry.name == "..") {
      reader.take();
      continue;
    }
    FileHandle handle;
    ChangeCounter& changes = compound.server().change_counter;
    const auto moment = changes.now(directory.file->device(), found.inode);
    const int peeked =
        call.server().resolver.peek(call.exported(), *directory.file, found.name, found.inode,
                                    &handle, &facts.attributes, &facts.fsid);
    if (peeked == ENOENT) {  // gone meanwhile
      reader.take();
      continue;
    }
    if (peeked == 0) {
      facts.change = changes.value(facts.attributes, moment);
      lister.ask_holder(facts.attributes, &facts);
    }
    UniqueFd path_fd;
    if (by_descriptor && peeked == 0) path_fd = descriptor_of(directory, found);
    facts.path_fd = path_fd.get();
    facts.handle = handle.bytes();
    facts.mounted_on_fileid = found.inode;
    const bool crossed =
        peeked == EXDEV || (peeked == 0 && is_exported(call.exported(), facts.attributes));
    bool gone = false;
    if (crossed && beyond_mounts) {
      if (!describe_crossed(lister, call, found, elsewhere, &gone, &entry)) return lister.failed;
    } else if (!lister.describe(facts, crossed ? NFS4_OK : status_of_errno(peeked), found.inode,
                                &entry.attrs)) {
      return lister.failed;
    }
    if (gone) {
      reader.take();
      continue;
    }
    if (!writer.try_add(entry)) break;
    reader.take();
  }
  // An error behind some entries shows again when the client asks for the rest.
  if (next == DirectoryReader::Next::kError && writer.count() == 0) return status_of_listing(error);
  *eof = next == DirectoryReader::Next::kEnd;
  return NFS4_OK;
}

nfsstat4 check(const xdr::READDIR4args& args, std::uint32_t minor_version) {
  // 1 and 2 are kept for "." and "..", which have no entries.
  if (args.cookie == 1 || args.cookie == 2) return NFS4ERR_BAD_COOKIE;
  if (args.cookie != 0 && args.cookieverf != xdr::verifier4{}) return NFS4ERR_NOT_SAME;
  return check_requested(args.attr_request, minor_version);
}

}  // namespace

nfsstat4 readdir(Compound& compound, const xdr::READDIR4args& args, xdr::Encoder& result) {
  if (const nfsstat4 bad = check(args, compound.minor_version()); bad != NFS4_OK) return bad;
  FileCall call(compound.server(), compound.request());
  const bool pseudo = compound.current.kind == CurrentHandle::Kind::kPseudo;
  if (!pseudo) {
    const nfsstat4 status = compound.enter_directory(call, compound.current, Use::kLook);
    if (status == NFS4ERR_SYMLINK) return NFS4ERR_NOTDIR;
    if (status != NFS4_OK) return status;
    const bool is_long = args.maxcount > kShortListing &&
                         compound.current.object.attributes.st_size > kSmallDirectory;
    if (!compound.have_room(std::min<std::size_t>(args.maxcount, kMostListing) + 8)) {
      return compound.retry(Outcome::kNeedRoom);
    }
    if (is_long && !compound.may_block()) return compound.retry(Outcome::kWouldBlock);
  }
  xdr::DirectoryLimits limits = xdr::directory_limits(args);
  const std::size_t left = std::min(compound.room_left(), result.room());
  limits.result_bytes = std::min(limits.result_bytes, left < 4 ? 0 : left - 4);
  Writer writer(result, limits);
  if (!writer.start({})) return NFS4ERR_TOOSMALL;
  Lister lister{compound, args, {}};
  bool eof = false;
  const nfsstat4 status =
      pseudo ? list_pseudo(lister, writer, &eof) : list_real(lister, call, writer, &eof);
  if (status != NFS4_OK) return status;
  if (writer.count() == 0 && !eof) return NFS4ERR_TOOSMALL;
  compound.request().work_units = 1 + static_cast<std::uint32_t>(writer.count()) / kEntriesPerUnit;
  writer.finish(eof);
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
