// SPDX-License-Identifier: Apache-2.0
// CREATE. An exclusive create keeps the client's verifier in the times of the new file, as Linux's
// server does: a client that asks again, also after a restart, is told that it was its own. For
// that the name must never be there without the verifier, not even when the server is killed: the
// file is made without a name (O_TMPFILE), gets its times, and then its name.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "server/nfs3/new_object.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

namespace {

/// The verifier as two times. Seconds stay positive in 32 bits on every file system.
struct VerifierTimes {
  explicit VerifierTimes(const xdr::createverf3& verf)
      : mtime(load_be32(verf.data()) & 0x7fffffff),
        atime(load_be32(verf.data() + 4) & 0x7fffffff) {}
  std::uint32_t mtime;
  std::uint32_t atime;

  bool found_on(const struct stat& st) const {
    return st.st_mtim.tv_sec == mtime && st.st_atim.tv_sec == atime && st.st_size == 0 &&
           S_ISREG(st.st_mode);
  }
  xdr::sattr3 as_attributes() const {
    xdr::sattr3 values;
    values.atime = {xdr::time_how::SET_TO_CLIENT_TIME, {atime, 0}};
    values.mtime = {xdr::time_how::SET_TO_CLIENT_TIME, {mtime, 0}};
    return values;
  }
};

/// The name is taken. UNCHECKED: a regular file is good, cut to the size asked for.
int use_existing(CallContext& call, Resolved& directory, const xdr::CREATE3args& args,
                 Resolved* object) {
  if (args.how.mode == xdr::createmode3::GUARDED) return EEXIST;
  if (const int error = call.server().resolver.lookup(call.exported(), *directory.file,
                                                      args.where.name, object)) {
    return error;
  }
  if (args.how.mode == xdr::createmode3::EXCLUSIVE) {
    return VerifierTimes(args.how.verf).found_on(object->attributes) ? 0 : EEXIST;
  }
  if (!object->file->is_regular()) return EEXIST;
  if (!args.how.obj_attributes.size.set_it) return 0;
  xdr::sattr3 only_size;
  only_size.size = args.how.obj_attributes.size;
  if (const int error = set_attributes(call, *object, only_size)) return error;
  return ::fstat(object->file->path_fd(), &object->attributes) == 0 ? 0 : errno;
}

std::string link_to(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

/// O_EXCL, with `verifier` as its times from the first moment on. 0 or an errno: EEXIST;
/// EOPNOTSUPP where the file system has no unnamed files.
int make_exclusive(int directory, const char* name, const VerifierTimes& verifier,
                   std::uint32_t mode, UniqueFd* made) {
  struct stat taken;
  if (::fstatat(directory, name, &taken, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  UniqueFd fd(::openat(directory, ".", O_RDWR | O_TMPFILE | O_CLOEXEC | O_NONBLOCK, mode));
  if (!fd) return errno == EISDIR || errno == EINVAL ? EOPNOTSUPP : errno;
  const timespec times[2] = {{verifier.atime, 0}, {verifier.mtime, 0}};
  if (::futimens(fd.get(), times) != 0) return errno;
  if (::linkat(AT_FDCWD, link_to(fd.get()).c_str(), directory, name, AT_SYMLINK_FOLLOW) != 0) {
    return errno == EEXIST ? EEXIST : errno == EDQUOT || errno == ENOSPC ? errno : EOPNOTSUPP;
  }
  *made = std::move(fd);
  return 0;
}

/// Makes the file; 0 or an errno. *left: the attributes that are still to be set.
int make_file(Resolved& directory, const xdr::CREATE3args& args, std::uint32_t* mode,
              xdr::sattr3* left, UniqueFd* made) {
  const EntryName name(args.where.name);
  if (args.how.mode == xdr::createmode3::EXCLUSIVE) {
    const VerifierTimes verifier(args.how.verf);
    *mode = 0;
    const int error =
        make_exclusive(directory.file->path_fd(), name.c_str(), verifier, *mode, made);
    if (error != EOPNOTSUPP) return error;
    // Here the verifier comes after the name: a server killed in between leaves a file that the
    // client cannot recognise as its own.
    *left = verifier.as_attributes();
  } else {
    *left = args.how.obj_attributes;
    *mode = initial_mode(*left);
  }
  *made =
      UniqueFd(::openat(directory.file->path_fd(), name.c_str(),
                        O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, *mode));
  return *made ? 0 : errno;
}

int create_file(CallContext& call, Resolved& directory, const xdr::CREATE3args& args,
                Resolved* object) {
  std::uint32_t mode = 0;
  xdr::sattr3 left;
  UniqueFd fd;
  if (const int error = make_file(directory, args, &mode, &left, &fd)) {
    return error == EEXIST ? use_existing(call, directory, args, object) : error;
  }
  if (const int error = call.server().resolver.adopt_created(
          call.exported(), *directory.file, args.where.name, std::move(fd), object)) {
    return error;
  }
  if (const int error = set_initial_attributes(call, *object, left, mode)) return error;
  return ::fstat(object->file->path_fd(), &object->attributes) == 0 ? 0 : errno;
}

}  // namespace

Outcome create(ServerContext& server, Request& request, xdr::Decoder& decoder,
               xdr::Encoder& result) {
  xdr::CREATE3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  return make_object<xdr::CREATE3res>(
      server, request, args.where, result,
      [&](CallContext& call, Resolved& directory, Resolved& object) {
        return create_file(call, directory, args, &object);
      });
}

}  // namespace nfsrdma::nfs3
