// SPDX-License-Identifier: Apache-2.0
// The options of mount.nfs-rdma: nfs(5)'s spellings, the generic ones that mount(8) and fstab pass
// on, and a few of our own. Parsing knows nothing of networks: text in, MountOptions out, or one
// line that says what is wrong.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/nfs_version.h"

namespace nfsrdma {

enum class MountProto : std::uint8_t { kAuto, kRdma, kTcp };
enum class MountFamily : std::uint8_t { kAny, kV4, kV6 };
enum class MountFabric : std::uint8_t { kAuto, kVerbs, kIwarp };
/// What happens to a call that the server does not answer in time: nfs(5) hard, soft, softerr.
enum class MountRecovery : std::uint8_t { kHard, kSoft, kSoftErr };
enum class LookupCache : std::uint8_t { kAll, kPositive, kNone };

struct MountOptions {
  // --- where and how to connect ---
  MountProto proto = MountProto::kAuto;
  MountFamily family = MountFamily::kAny;
  MountFabric fabric = MountFabric::kAuto;
  bool require_crc = false;      // iWARP
  bool for_version_3 = false;    // an option was given that only version 3 has a use for
  bool reserved_port = true;     // TCP from a port below 1024, for those who may
  bool callbacks = true;         // of version 4.0: false where clientaddr= is 0.0.0.0 or ::
  bool mount_proto_tcp = false;  // mountproto=tcp; else MOUNT goes the way of NFS
  bool discover_trunks = false;  // trunkdiscovery: ask the server for its other addresses
  std::uint16_t port = 0;        // as given; 0: not given
  std::uint16_t tcp_port = 0;    // as given; 0: not given
  std::uint16_t mount_port = 0;
  std::uint16_t callback_port = 0;  // of version 4.0; 0: any
  NfsVersion version = kBestVersion;
  /// minorversion=; finish_mount_options() puts it into `version`, in whatever order they came.
  std::optional<std::uint32_t> minor_version;
  unsigned connections = 1;
  std::uint32_t credits = 0;       // of each connection; 0: the usual number
  std::uint32_t inline_bytes = 0;  // RDMA; 0: the usual size
  unsigned shards = 0;             // threads; 0: by the number of processors
  unsigned max_connect = 0;        // addresses in use, the first one included; 0: the usual number
  std::string client_address;      // clientaddr=; "": where the connection begins

  // --- calls ---
  std::uint32_t rsize = 0;  // 0: as large as both sides can
  std::uint32_t wsize = 0;
  unsigned retransmissions = 2;
  MountRecovery recovery = MountRecovery::kHard;
  bool background = false;
  std::chrono::milliseconds timeout{60'000};  // timeo=
  std::chrono::minutes retry{-1};  // how long the mount command tries; negative: by fg/bg

  // --- caching ---
  std::chrono::seconds acregmin{3}, acregmax{60}, acdirmin{30}, acdirmax{60};
  bool attribute_cache = true;     // ac / noac
  bool close_to_open = true;       // cto / nocto
  bool soft_revalidation = false;  // softreval / nosoftreval
  LookupCache lookup_cache = LookupCache::kAll;
  bool readdirplus = true;
  bool synchronous = false;  // sync (implied by noac)
  bool posix_acls = true;    // acl / noacl: of version 3
  bool referrals = true;     // are followed: referrals / noreferrals

  // --- locks ---
  bool local_posix_locks = false;  // local_lock=posix, all
  bool local_flock = false;        // local_lock=flock, all
  std::optional<bool> lock;        // lock and nolock, which finish_mount_options() puts first

  // --- mount(2) ---
  bool read_only = false;
  bool suid = true, exec = true;
  bool dev = false;          // the kernel asks nobody who opens a device file on a FUSE mount
  bool allow_other = false;  // mounts of root are open to all in any case
  std::vector<std::string> vfs_flags;         // noatime, nodiratime ... as spelled
  std::map<std::string, std::string> labels;  // SELinux: context, fscontext ...; without quotes

  bool remount = false;            // of a mount that is there
  bool names_fuse = false;         // options that FUSE mounts show: of use at a remount alone
  std::vector<std::string> given;  // all words, in their order, but for comments (x-...)

  /// Accepted, but the user should know something: one line each.
  std::vector<std::string> notices;

  /// The ports with defaults filled in: RDMA 20049, TCP 2049; with proto=tcp, `port=` means TCP.
  std::uint16_t rdma_port() const;
  std::uint16_t effective_tcp_port() const;
  /// Takes back what the kernel's client ignores by that version, too. With what was, in one line.
  std::string leave_out_of(std::uint32_t major);
  /// The labels as options for the kernel: in quotes, since commas may stand in them.
  std::vector<std::string> label_words() const;
  /// "rw,vers=3,proto=auto,...", for -v and logs.
  std::string text() const;
};

/// Applies a comma-separated list (what one -o carries) to *options. False with one line in *error.
/// `sloppy`: unknown options become notices.
bool parse_mount_options(std::string_view list, bool sloppy, MountOptions* options,
                         std::string* error);
/// Checks options against each other, once all are in. False with one line in *error.
bool finish_mount_options(MountOptions* options, std::string* error);
/// "server:/path", "192.0.2.1:/path", "[2001:db8::1]:/path".
struct MountSource {
  std::string host;
  std::string path;
};
bool parse_mount_source(std::string_view text, MountSource* source, std::string* error);

}  // namespace nfsrdma
