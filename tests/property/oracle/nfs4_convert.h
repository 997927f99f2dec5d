// SPDX-License-Identifier: Apache-2.0
// Our NFSv4 values as the oracle's. Generated names: ::READ4args and the like. Include xdr/nfs4.h
// first: libtirpc's headers make macros of some of its names.
#pragma once

#include "nfs4_oracle.h"
#include "tests/property/oracle/convert.h"
#include "tests/property/oracle/nfs4_prelude.h"

namespace nfsrdma::oracle {

inline void convert(Arena& arena, const xdr::bitmap4& from, ::bitmap4& to) {
  to.bitmap4_len = from.used_words();
  to.bitmap4_val = arena.make_array<unsigned int>(to.bitmap4_len);
  for (unsigned int i = 0; i < to.bitmap4_len; ++i)
    to.bitmap4_val[i] = from.words[i];
}

#define ORACLE_STATUS(type)                                                               \
  inline void convert(Arena& arena, const xdr::Nfs4Result<xdr::Void>& from, ::type& to) { \
    ORACLE_FIELD(status)                                                                  \
  }
#define ORACLE_RESULT4(type)                                          \
  ORACLE_BEGIN(type)                                                  \
  ORACLE_FIELD(status)                                                \
  if (from.status == xdr::nfsstat4::NFS4_OK) ORACLE_ARM(type, resok4) \
  ORACLE_END

// clang-format off
// Shared types
ORACLE_BEGIN(nfs_fh4) ORACLE_OPAQUE(data, from.data) ORACLE_END
ORACLE_2(nfstime4, seconds, nseconds)
ORACLE_2(stateid4, seqid, other)
ORACLE_2(fsid4, major, minor)
ORACLE_2(specdata4, specdata1, specdata2)
ORACLE_3(change_info4, atomic, before, after)
ORACLE_BEGIN(state_owner4) ORACLE_FIELD(clientid) ORACLE_OPAQUE(owner, from.owner) ORACLE_END
ORACLE_2(netaddr4, na_r_netid, na_r_addr)
ORACLE_1(component4, name)
ORACLE_BEGIN(fattr4) ORACLE_FIELD(attrmask) ORACLE_OPAQUE(attr_vals, from.attr_vals) ORACLE_END

// ACLs
ORACLE_4(nfsace4, type, flag, access_mask, who)
ORACLE_BEGIN(fattr4_acl) ORACLE_ARRAY(aces) ORACLE_END
ORACLE_BEGIN(nfsacl41) ORACLE_FIELD(na41_flag) ORACLE_ARRAY(na41_aces) ORACLE_END

// Attributes of more than one word
ORACLE_BEGIN(fattr4_layout_types) ORACLE_ARRAY(types) ORACLE_END
ORACLE_BEGIN(settime4)
  ORACLE_FIELD(set_it)
  if (from.set_it == xdr::time_how4::SET_TO_CLIENT_TIME4) {
    ORACLE_ARM(settime4, time)
  }
ORACLE_END
ORACLE_BEGIN(pathname4) ORACLE_ARRAY(components) ORACLE_END
ORACLE_BEGIN(fs_location4) ORACLE_ARRAY(server) ORACLE_FIELD(rootpath) ORACLE_END
ORACLE_BEGIN(fs_locations4) ORACLE_FIELD(fs_root) ORACLE_ARRAY(locations) ORACLE_END
ORACLE_2(change_policy4, cp_major, cp_minor)
ORACLE_2(mode_masked4, mm_value_to_set, mm_mask_bits)
ORACLE_2(mode_umask4, mu_mode, mu_umask)
ORACLE_5(open_arguments4, oa_share_access, oa_share_deny, oa_share_access_want, oa_open_claim,
         oa_create_mode)
ORACLE_6(fs4_status, fss_absent, fss_type, fss_source, fss_current, fss_age, fss_version)
ORACLE_2(labelformat_spec4, lfs_lfs, lfs_pi)
ORACLE_BEGIN(sec_label4) ORACLE_FIELD(slai_lfs) ORACLE_OPAQUE(slai_data, from.slai_data) ORACLE_END

// The head of COMPOUND
ORACLE_3(COMPOUND4args, tag, minorversion, argarray_len)
ORACLE_3(COMPOUND4res, status, tag, resarray_len)

// Handles
ORACLE_1(ACCESS4args, access)
ORACLE_2(ACCESS4resok, supported, access)
ORACLE_RESULT4(ACCESS4res)
ORACLE_1(GETFH4resok, object)
ORACLE_RESULT4(GETFH4res)
ORACLE_1(LOOKUP4args, objname)
ORACLE_STATUS(LOOKUP4res)
ORACLE_STATUS(LOOKUPP4res)
ORACLE_1(OPENATTR4args, createdir)
ORACLE_STATUS(OPENATTR4res)
ORACLE_1(PUTFH4args, object)
ORACLE_STATUS(PUTFH4res)
ORACLE_STATUS(PUTPUBFH4res)
ORACLE_STATUS(PUTROOTFH4res)
ORACLE_STATUS(RESTOREFH4res)
ORACLE_STATUS(SAVEFH4res)

// Attributes
ORACLE_1(GETATTR4args, attr_request)
ORACLE_1(GETATTR4resok, obj_attributes)
ORACLE_RESULT4(GETATTR4res)
ORACLE_2(SETATTR4args, stateid, obj_attributes)
ORACLE_2(SETATTR4res, status, attrsset)
ORACLE_1(VERIFY4args, obj_attributes)
ORACLE_STATUS(VERIFY4res)
ORACLE_1(NVERIFY4args, obj_attributes)
ORACLE_STATUS(NVERIFY4res)

// Names
ORACLE_BEGIN(createtype4)
  ORACLE_FIELD(type)
  if (from.type == xdr::nfs_ftype4::NF4LNK) {
    ORACLE_ARM_OPAQUE(createtype4, linkdata, from.linkdata.bytes)
  } else if (from.type == xdr::nfs_ftype4::NF4BLK || from.type == xdr::nfs_ftype4::NF4CHR) {
    ORACLE_ARM(createtype4, devdata)
  }
ORACLE_END
ORACLE_3(CREATE4args, objtype, objname, createattrs)
ORACLE_2(CREATE4resok, cinfo, attrset)
ORACLE_RESULT4(CREATE4res)
ORACLE_1(LINK4args, newname)
ORACLE_1(LINK4resok, cinfo)
ORACLE_RESULT4(LINK4res)
ORACLE_BEGIN(READLINK4resok) ORACLE_OPAQUE(link, from.link.bytes) ORACLE_END
ORACLE_RESULT4(READLINK4res)
ORACLE_1(REMOVE4args, target)
ORACLE_1(REMOVE4resok, cinfo)
ORACLE_RESULT4(REMOVE4res)
ORACLE_2(RENAME4args, oldname, newname)
ORACLE_2(RENAME4resok, source_cinfo, target_cinfo)
ORACLE_RESULT4(RENAME4res)

// Security of a name
ORACLE_1(SECINFO4args, name)
ORACLE_BEGIN(sec_oid4) ORACLE_OPAQUE(oid, from.oid) ORACLE_END
ORACLE_3(rpcsec_gss_info, oid, qop, service)
ORACLE_BEGIN(secinfo4)
  ORACLE_FIELD(flavor)
  if (static_cast<unsigned>(from.flavor) == 6) {
    ORACLE_ARM(secinfo4, flavor_info)
  }
ORACLE_END
ORACLE_BEGIN(SECINFO4resok) ORACLE_ARRAY(flavors) ORACLE_END
ORACLE_RESULT4(SECINFO4res)
ORACLE_1(SECINFO_NO_NAME4args, style)

// Directories
ORACLE_5(READDIR4args, cookie, cookieverf, dircount, maxcount, attr_request)
ORACLE_3(entry4, cookie, name, attrs)
ORACLE_2(dirlist4, entries, eof)
ORACLE_2(READDIR4resok, cookieverf, reply)
ORACLE_RESULT4(READDIR4res)

// Reading and writing
ORACLE_3(READ4args, stateid, offset, count)
ORACLE_BEGIN(READ4resok) ORACLE_FIELD(eof) ORACLE_OPAQUE(data, from.data.bytes) ORACLE_END
ORACLE_RESULT4(READ4res)
ORACLE_BEGIN(WRITE4args)
  ORACLE_FIELD(stateid) ORACLE_FIELD(offset) ORACLE_FIELD(stable)
  ORACLE_OPAQUE(data, from.data.bytes)
ORACLE_END
ORACLE_3(WRITE4resok, count, committed, writeverf)
ORACLE_RESULT4(WRITE4res)
ORACLE_2(COMMIT4args, offset, count)
ORACLE_1(COMMIT4resok, writeverf)
ORACLE_RESULT4(COMMIT4res)

// Delegations
ORACLE_2(nfs_modified_limit4, num_blocks, bytes_per_block)
ORACLE_BEGIN(nfs_space_limit4)
  ORACLE_FIELD(limitby)
  if (from.limitby == xdr::limit_by4::NFS_LIMIT_SIZE) {
    ORACLE_ARM(nfs_space_limit4, filesize)
  } else {
    ORACLE_ARM(nfs_space_limit4, mod_blocks)
  }
ORACLE_END
ORACLE_3(open_read_delegation4, stateid, recall, permissions)
ORACLE_4(open_write_delegation4, stateid, recall, space_limit, permissions)
ORACLE_BEGIN(open_none_delegation4)
  ORACLE_FIELD(ond_why)
  if (from.ond_why == xdr::why_no_delegation4::WND4_CONTENTION) {
    ORACLE_ARM(open_none_delegation4, ond_server_will_push_deleg)
  } else if (from.ond_why == xdr::why_no_delegation4::WND4_RESOURCE) {
    ORACLE_ARM(open_none_delegation4, ond_server_will_signal_avail)
  }
ORACLE_END
ORACLE_BEGIN(open_delegation4)
  ORACLE_FIELD(delegation_type)
  if (from.delegation_type == xdr::open_delegation_type4::OPEN_DELEGATE_READ) {
    ORACLE_ARM(open_delegation4, read)
  } else if (from.delegation_type == xdr::open_delegation_type4::OPEN_DELEGATE_WRITE) {
    ORACLE_ARM(open_delegation4, write)
  } else if (from.delegation_type == xdr::open_delegation_type4::OPEN_DELEGATE_NONE_EXT) {
    ORACLE_ARM(open_delegation4, od_whynone)
  }
ORACLE_END
ORACLE_1(DELEGPURGE4args, clientid)
ORACLE_STATUS(DELEGPURGE4res)
ORACLE_1(DELEGRETURN4args, deleg_stateid)
ORACLE_STATUS(DELEGRETURN4res)
ORACLE_BEGIN(deleg_claim4)
  ORACLE_FIELD(dc_claim)
  if (from.dc_claim == xdr::deleg_claim_type4::CLAIM_PREVIOUS) {
    ORACLE_ARM(deleg_claim4, dc_delegate_type)
  }
ORACLE_END
ORACLE_2(WANT_DELEGATION4args, wda_want, wda_claim)
ORACLE_RESULT4(WANT_DELEGATION4res)
ORACLE_6(GET_DIR_DELEGATION4args, gdda_signal_deleg_avail, gdda_notification_types,
         gdda_child_attr_delay, gdda_dir_attr_delay, gdda_child_attributes, gdda_dir_attributes)
ORACLE_5(GET_DIR_DELEGATION4resok, gddr_cookieverf, gddr_stateid, gddr_notification,
         gddr_child_attributes, gddr_dir_attributes)
ORACLE_BEGIN(GET_DIR_DELEGATION4res_non_fatal)
  ORACLE_FIELD(gddrnf_status)
  if (from.gddrnf_status == xdr::gddrnf4_status::GDD4_OK) {
    ORACLE_ARM(GET_DIR_DELEGATION4res_non_fatal, gddrnf_resok4)
  } else {
    ORACLE_ARM(GET_DIR_DELEGATION4res_non_fatal, gddrnf_will_signal_deleg_avail)
  }
ORACLE_END
ORACLE_RESULT4(GET_DIR_DELEGATION4res)

// OPEN and CLOSE
ORACLE_2(creatverfattr, cva_verf, cva_attrs)
ORACLE_BEGIN(createhow4)
  ORACLE_FIELD(mode)
  if (from.mode == xdr::createmode4::UNCHECKED4 || from.mode == xdr::createmode4::GUARDED4) {
    ORACLE_ARM(createhow4, createattrs)
  } else if (from.mode == xdr::createmode4::EXCLUSIVE4) {
    ORACLE_ARM(createhow4, createverf)
  } else {
    ORACLE_ARM(createhow4, ch_createboth)
  }
ORACLE_END
ORACLE_BEGIN(openflag4)
  ORACLE_FIELD(opentype)
  if (from.opentype == xdr::opentype4::OPEN4_CREATE) {
    ORACLE_ARM(openflag4, how)
  }
ORACLE_END
ORACLE_2(open_claim_delegate_cur4, delegate_stateid, file)
ORACLE_BEGIN(open_claim4)
  ORACLE_FIELD(claim)
  if (from.claim == xdr::open_claim_type4::CLAIM_NULL) {
    ORACLE_ARM(open_claim4, file)
  } else if (from.claim == xdr::open_claim_type4::CLAIM_PREVIOUS) {
    ORACLE_ARM(open_claim4, delegate_type)
  } else if (from.claim == xdr::open_claim_type4::CLAIM_DELEGATE_CUR) {
    ORACLE_ARM(open_claim4, delegate_cur_info)
  } else if (from.claim == xdr::open_claim_type4::CLAIM_DELEGATE_PREV) {
    ORACLE_ARM(open_claim4, file_delegate_prev)
  } else if (from.claim == xdr::open_claim_type4::CLAIM_DELEG_CUR_FH) {
    ORACLE_ARM(open_claim4, oc_delegate_stateid)
  }
ORACLE_END
ORACLE_6(OPEN4args, seqid, share_access, share_deny, owner, openhow, claim)
ORACLE_5(OPEN4resok, stateid, cinfo, rflags, attrset, delegation)
ORACLE_RESULT4(OPEN4res)
ORACLE_2(OPEN_CONFIRM4args, open_stateid, seqid)
ORACLE_1(OPEN_CONFIRM4resok, open_stateid)
ORACLE_RESULT4(OPEN_CONFIRM4res)
ORACLE_4(OPEN_DOWNGRADE4args, open_stateid, seqid, share_access, share_deny)
ORACLE_1(OPEN_DOWNGRADE4resok, open_stateid)
ORACLE_RESULT4(OPEN_DOWNGRADE4res)
ORACLE_2(CLOSE4args, seqid, open_stateid)
ORACLE_RESULT4(CLOSE4res)

// Locks
ORACLE_4(open_to_lock_owner4, open_seqid, open_stateid, lock_seqid, lock_owner)
ORACLE_2(exist_lock_owner4, lock_stateid, lock_seqid)
ORACLE_BEGIN(locker4)
  ORACLE_FIELD(new_lock_owner)
  if (from.new_lock_owner) {
    ORACLE_ARM(locker4, open_owner)
  } else {
    ORACLE_ARM(locker4, lock_owner)
  }
ORACLE_END
ORACLE_5(LOCK4args, locktype, reclaim, offset, length, locker)
ORACLE_4(LOCK4denied, offset, length, locktype, owner)
ORACLE_1(LOCK4resok, lock_stateid)
ORACLE_BEGIN(LOCK4res)
  ORACLE_FIELD(status)
  if (from.status == xdr::nfsstat4::NFS4_OK) {
    ORACLE_ARM(LOCK4res, resok4)
  } else if (from.status == xdr::nfsstat4::NFS4ERR_DENIED) {
    ORACLE_ARM(LOCK4res, denied)
  }
ORACLE_END
ORACLE_4(LOCKT4args, locktype, offset, length, owner)
ORACLE_BEGIN(LOCKT4res)
  ORACLE_FIELD(status)
  if (from.status == xdr::nfsstat4::NFS4ERR_DENIED) {
    ORACLE_ARM(LOCKT4res, denied)
  }
ORACLE_END
ORACLE_5(LOCKU4args, locktype, seqid, lock_stateid, offset, length)
ORACLE_RESULT4(LOCKU4res)
ORACLE_1(RELEASE_LOCKOWNER4args, lock_owner)
ORACLE_STATUS(RELEASE_LOCKOWNER4res)
// clang-format on

}  // namespace nfsrdma::oracle
