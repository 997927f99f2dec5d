// SPDX-License-Identifier: Apache-2.0
// Our NFSv3 values as the oracle's. Generated names: ::READ3args and the like.
#pragma once

#include "nfs3_oracle.h"
#include "tests/property/oracle/convert.h"
#include "xdr/nfs3.h"
#include "xdr/nfsacl3.h"

namespace nfsrdma::oracle {

// clang-format off
ORACLE_BEGIN(nfs_fh3) ORACLE_OPAQUE(data, from.data) ORACLE_END
ORACLE_2(nfstime3, seconds, nseconds)
ORACLE_2(specdata3, specdata1, specdata2)
ORACLE_BEGIN(fattr3)
  ORACLE_FIELD(type) ORACLE_FIELD(mode) ORACLE_FIELD(nlink) ORACLE_FIELD(uid) ORACLE_FIELD(gid)
  ORACLE_FIELD(size) ORACLE_FIELD(used) ORACLE_FIELD(rdev) ORACLE_FIELD(fsid) ORACLE_FIELD(fileid)
  ORACLE_FIELD(atime) ORACLE_FIELD(mtime) ORACLE_FIELD(ctime)
ORACLE_END
ORACLE_UNION(post_op_attr, attributes_follow, from.attributes_follow, attributes)
ORACLE_3(wcc_attr, size, mtime, ctime)
ORACLE_UNION(pre_op_attr, attributes_follow, from.attributes_follow, attributes)
ORACLE_2(wcc_data, before, after)
ORACLE_UNION(post_op_fh3, handle_follows, from.handle_follows, handle)
ORACLE_UNION(set_mode3, set_it, from.set_it, mode)
ORACLE_UNION(set_uid3, set_it, from.set_it, uid)
ORACLE_UNION(set_gid3, set_it, from.set_it, gid)
ORACLE_UNION(set_size3, set_it, from.set_it, size)
ORACLE_UNION(set_atime, set_it, from.set_it == xdr::time_how::SET_TO_CLIENT_TIME, atime)
ORACLE_UNION(set_mtime, set_it, from.set_it == xdr::time_how::SET_TO_CLIENT_TIME, mtime)
ORACLE_BEGIN(sattr3)
  ORACLE_FIELD(mode) ORACLE_FIELD(uid) ORACLE_FIELD(gid) ORACLE_FIELD(size)
  ORACLE_FIELD(atime) ORACLE_FIELD(mtime)
ORACLE_END
ORACLE_2(diropargs3, dir, name)

// Arguments
ORACLE_1(GETATTR3args, object)
ORACLE_UNION(sattrguard3, check, from.check, obj_ctime)
ORACLE_3(SETATTR3args, object, new_attributes, guard)
ORACLE_1(LOOKUP3args, what)
ORACLE_2(ACCESS3args, object, access)
ORACLE_1(READLINK3args, symlink)
ORACLE_3(READ3args, file, offset, count)
ORACLE_BEGIN(WRITE3args)
  ORACLE_FIELD(file) ORACLE_FIELD(offset) ORACLE_FIELD(count) ORACLE_FIELD(stable)
  ORACLE_OPAQUE(data, from.data.bytes)
ORACLE_END
ORACLE_BEGIN(createhow3)
  ORACLE_FIELD(mode)
  if (from.mode == xdr::createmode3::EXCLUSIVE) {
    ORACLE_ARM(createhow3, verf)
  } else {
    ORACLE_ARM(createhow3, obj_attributes)
  }
ORACLE_END
ORACLE_2(CREATE3args, where, how)
ORACLE_2(MKDIR3args, where, attributes)
ORACLE_BEGIN(symlinkdata3)
  ORACLE_FIELD(symlink_attributes) ORACLE_OPAQUE(symlink_data, from.symlink_data.bytes)
ORACLE_END
ORACLE_2(SYMLINK3args, where, symlink)
ORACLE_2(devicedata3, dev_attributes, spec)
ORACLE_BEGIN(mknoddata3)
  ORACLE_FIELD(type)
  switch (from.type) {
    case xdr::ftype3::NF3CHR:
    case xdr::ftype3::NF3BLK:
      ORACLE_ARM(mknoddata3, device)
      break;
    case xdr::ftype3::NF3SOCK:
    case xdr::ftype3::NF3FIFO:
      ORACLE_ARM(mknoddata3, pipe_attributes)
      break;
    default:
      break;
  }
ORACLE_END
ORACLE_2(MKNOD3args, where, what)
ORACLE_1(REMOVE3args, object)
ORACLE_1(RMDIR3args, object)
ORACLE_2(RENAME3args, from, to)
ORACLE_2(LINK3args, file, link)
ORACLE_4(READDIR3args, dir, cookie, cookieverf, count)
ORACLE_5(READDIRPLUS3args, dir, cookie, cookieverf, dircount, maxcount)
ORACLE_1(FSSTAT3args, fsroot)
ORACLE_1(FSINFO3args, fsroot)
ORACLE_1(PATHCONF3args, object)
ORACLE_3(COMMIT3args, file, offset, count)

// Results
ORACLE_1(GETATTR3resok, obj_attributes)
ORACLE_1(SETATTR3resok, obj_wcc)
ORACLE_1(SETATTR3resfail, obj_wcc)
ORACLE_3(LOOKUP3resok, object, obj_attributes, dir_attributes)
ORACLE_1(LOOKUP3resfail, dir_attributes)
ORACLE_2(ACCESS3resok, obj_attributes, access)
ORACLE_1(ACCESS3resfail, obj_attributes)
ORACLE_BEGIN(READLINK3resok)
  ORACLE_FIELD(symlink_attributes) ORACLE_OPAQUE(data, from.data.bytes)
ORACLE_END
ORACLE_1(READLINK3resfail, symlink_attributes)
ORACLE_BEGIN(READ3resok)
  ORACLE_FIELD(file_attributes) ORACLE_FIELD(count) ORACLE_FIELD(eof)
  ORACLE_OPAQUE(data, from.data.bytes)
ORACLE_END
ORACLE_1(READ3resfail, file_attributes)
ORACLE_4(WRITE3resok, file_wcc, count, committed, verf)
ORACLE_1(WRITE3resfail, file_wcc)
ORACLE_3(CREATE3resok, obj, obj_attributes, dir_wcc)
ORACLE_1(CREATE3resfail, dir_wcc)
ORACLE_3(MKDIR3resok, obj, obj_attributes, dir_wcc)
ORACLE_1(MKDIR3resfail, dir_wcc)
ORACLE_3(SYMLINK3resok, obj, obj_attributes, dir_wcc)
ORACLE_1(SYMLINK3resfail, dir_wcc)
ORACLE_3(MKNOD3resok, obj, obj_attributes, dir_wcc)
ORACLE_1(MKNOD3resfail, dir_wcc)
ORACLE_1(REMOVE3resok, dir_wcc)
ORACLE_1(REMOVE3resfail, dir_wcc)
ORACLE_1(RMDIR3resok, dir_wcc)
ORACLE_1(RMDIR3resfail, dir_wcc)
ORACLE_2(RENAME3resok, fromdir_wcc, todir_wcc)
ORACLE_2(RENAME3resfail, fromdir_wcc, todir_wcc)
ORACLE_2(LINK3resok, file_attributes, linkdir_wcc)
ORACLE_2(LINK3resfail, file_attributes, linkdir_wcc)
ORACLE_3(entry3, fileid, name, cookie)
ORACLE_2(dirlist3, entries, eof)
ORACLE_3(READDIR3resok, dir_attributes, cookieverf, reply)
ORACLE_1(READDIR3resfail, dir_attributes)
ORACLE_5(entryplus3, fileid, name, cookie, name_attributes, name_handle)
ORACLE_2(dirlistplus3, entries, eof)
ORACLE_3(READDIRPLUS3resok, dir_attributes, cookieverf, reply)
ORACLE_1(READDIRPLUS3resfail, dir_attributes)
ORACLE_BEGIN(FSSTAT3resok)
  ORACLE_FIELD(obj_attributes) ORACLE_FIELD(tbytes) ORACLE_FIELD(fbytes) ORACLE_FIELD(abytes)
  ORACLE_FIELD(tfiles) ORACLE_FIELD(ffiles) ORACLE_FIELD(afiles) ORACLE_FIELD(invarsec)
ORACLE_END
ORACLE_1(FSSTAT3resfail, obj_attributes)
ORACLE_BEGIN(FSINFO3resok)
  ORACLE_FIELD(obj_attributes) ORACLE_FIELD(rtmax) ORACLE_FIELD(rtpref) ORACLE_FIELD(rtmult)
  ORACLE_FIELD(wtmax) ORACLE_FIELD(wtpref) ORACLE_FIELD(wtmult) ORACLE_FIELD(dtpref)
  ORACLE_FIELD(maxfilesize) ORACLE_FIELD(time_delta) ORACLE_FIELD(properties)
ORACLE_END
ORACLE_1(FSINFO3resfail, obj_attributes)
ORACLE_BEGIN(PATHCONF3resok)
  ORACLE_FIELD(obj_attributes) ORACLE_FIELD(linkmax) ORACLE_FIELD(name_max) ORACLE_FIELD(no_trunc)
  ORACLE_FIELD(chown_restricted) ORACLE_FIELD(case_insensitive) ORACLE_FIELD(case_preserving)
ORACLE_END
ORACLE_1(PATHCONF3resfail, obj_attributes)
ORACLE_2(COMMIT3resok, file_wcc, verf)
ORACLE_1(COMMIT3resfail, file_wcc)

#define ORACLE_RESULT(name)                                    \
  ORACLE_BEGIN(name##3res)                                     \
  ORACLE_FIELD(status)                                         \
  if (from.status == xdr::nfsstat3::NFS3_OK) {                 \
    ORACLE_ARM(name##3res, resok)                              \
  } else {                                                     \
    ORACLE_ARM(name##3res, resfail)                            \
  }                                                            \
  ORACLE_END
ORACLE_UNION(GETATTR3res, status, from.status == xdr::nfsstat3::NFS3_OK, resok)
ORACLE_RESULT(SETATTR) ORACLE_RESULT(LOOKUP) ORACLE_RESULT(ACCESS) ORACLE_RESULT(READLINK)
ORACLE_RESULT(READ) ORACLE_RESULT(WRITE) ORACLE_RESULT(CREATE) ORACLE_RESULT(MKDIR)
ORACLE_RESULT(SYMLINK) ORACLE_RESULT(MKNOD) ORACLE_RESULT(REMOVE) ORACLE_RESULT(RMDIR)
ORACLE_RESULT(RENAME) ORACLE_RESULT(LINK) ORACLE_RESULT(READDIR) ORACLE_RESULT(READDIRPLUS)
ORACLE_RESULT(FSSTAT) ORACLE_RESULT(FSINFO) ORACLE_RESULT(PATHCONF) ORACLE_RESULT(COMMIT)

// NFSACL
ORACLE_3(aclent, type, id, perm)
ORACLE_BEGIN(secattr)
  ORACLE_FIELD(mask) ORACLE_FIELD(aclcnt) ORACLE_ARRAY(aclents)
  ORACLE_FIELD(dfaclcnt) ORACLE_ARRAY(dfaclents)
ORACLE_END
ORACLE_2(GETACL3args, fh, mask)
ORACLE_2(GETACL3resok, attr, acl)
ORACLE_1(GETACL3resfail, attr)
ORACLE_2(SETACL3args, fh, acl)
ORACLE_1(SETACL3resok, attr)
ORACLE_1(SETACL3resfail, attr)
ORACLE_RESULT(GETACL)
ORACLE_RESULT(SETACL)
// clang-format on

}  // namespace nfsrdma::oracle
