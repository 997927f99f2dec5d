// SPDX-License-Identifier: Apache-2.0
// The exports file: exports(5) syntax into plain values, without looking at the file system or at
// the name service. server/export_table.{h,cc} turns the result into something that answers
// questions.
//
//   /srv/data   192.0.2.0/24(rw,sync)  2001:db8::/32(ro)  *.example.org(ro)
//   /srv/build  build-host(rw,no_root_squash)
//   "/srv/with space"  -ro,insecure  *  192.0.2.7(rw)
//
// A file with any problem is refused as a whole: half a set of access rules is worse than the old
// set. Every problem of the file is reported, not only the first.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"
#include "rpcrdma/base/socket_address.h"

namespace nfsrdma {

/// Where a file system can be found: one PATH@HOST[+HOST] of refer= or replicas=.
struct FsLocation {
  std::string path;                  // absolute, without trailing slashes ("/" itself excepted)
  std::vector<std::string> servers;  // names or addresses, IPv6 ones without brackets

  bool operator==(const FsLocation&) const = default;
};

/// One option list, defaults as in exports(5).
struct ExportOptions {
  bool read_only = true;
  bool sync = true;         // async: namespace changes are not forced out before the answer
  bool secure = true;       // a client port below 1024 is asked for; TCP only, see the man page
  bool root_squash = true;  // uid and gid 0 become anonymous
  bool all_squash = false;  // everybody becomes anonymous
  std::uint32_t anon_uid = 65534;
  std::uint32_t anon_gid = 65534;
  bool crossmnt = false;  // file systems mounted below are part of the export
  bool nohide = false;
  bool subtree_check = false;
  bool write_delay = true;      // wdelay: accepted, the committer groups writes anyway
  bool insecure_locks = false;  // no_auth_nlm: NLM does not ask whether the caller may use the file
  bool no_readdirplus = false;  // version 3's READDIRPLUS is refused
  bool no_acl = false;          // NFSACL shows what the mode says, and sets nothing
  /// sec=: which flavours are served. Without it both are.
  bool serves_sys = true;
  bool serves_none = true;  // AUTH_NONE; whoever uses it is anonymous
  /// ro and rw of AUTH_NONE; `read_only` and the squashing above are those of AUTH_SYS.
  bool none_read_only = true;
  /// Only while something is mounted at `mountpoint_path` (or at the export itself, when empty).
  bool need_mountpoint = false;
  std::string mountpoint_path;
  /// "", a number as text ("0" for fsid=root too), or a UUID (hex digits and dashes).
  std::string fsid;
  /// Of refer= or replicas=, whichever came last; in order of preference.
  std::vector<FsLocation> locations;
  /// refer=: to NFSv4 clients the file system is not here, but at one of `locations`.
  bool referral = false;

  bool operator==(const ExportOptions&) const = default;
};

/// Who may use an export. Kinds in the order of precedence that exports(5) gives them, but that a
/// single address goes with the host names.
struct ExportClient {
  enum class Kind : std::uint8_t {
    kHost,      // a host name; `text`, lower case
    kNetwork,   // `address`/`prefix`; a single address is a network of full length
    kWildcard,  // a host name with * ? [...]; `text`, lower case
    kNetgroup,  // "@group"
    kEveryone,  // "*", or no host at all
  };
  Kind kind = Kind::kEveryone;
  std::string text = "*";  // as written (host names in lower case)
  /// IPv6 form; IPv4 networks are IPv4-mapped with 96 added to the prefix.
  std::array<std::uint8_t, 16> address{};
  std::uint8_t prefix = 0;
  ExportOptions options;
  std::string file;  // where it was said, as ExportEntry::file
  unsigned line = 0;
  unsigned column = 0;

  /// The order in which clients decide; smaller first. Of equal ones the first in the file does.
  unsigned rank() const;
  bool is_single_address() const { return kind == Kind::kNetwork && prefix == 128; }
  std::string_view netgroup() const { return std::string_view(text).substr(1); }  // kNetgroup
  /// Do both name the same hosts by the same kind? Networks may be written in several ways.
  bool is_same_as(const ExportClient& other) const;
  /// Of two networks: is all of `other` in this one?
  bool contains(const ExportClient& other) const;
  /// kNetwork and kEveryone: does `peer` (port ignored) belong to it? false for the name kinds.
  bool matches_address(const SocketAddress& peer) const;
  /// kHost and kWildcard: does the name `host` (lower case) belong to it? false for the others.
  bool matches_name(std::string_view host) const;
};

/// ExportEntry::file of what the command line exports.
inline constexpr std::string_view kCommandLineExport = "-e";

/// One path with everybody who may use it.
struct ExportEntry {
  std::string path;  // absolute, unescaped, in normal form
  std::vector<ExportClient> clients;
  std::string file;  // where it was said, for messages; kCommandLineExport for the command line
  unsigned line = 0;
};

struct ParsedExports {
  std::vector<ExportEntry> entries;
  ConfigProblems problems;  // not empty: do not use `entries`
  ConfigProblems notices;   // worth a log line, not wrong

  bool ok() const { return problems.empty(); }
};

/// `file` is only used in messages. Each path is there once: of several lines for it the clients
/// come together, as with exportfs(8), and of a client that is named again the first line counts.
ParsedExports parse_exports(std::string_view text, const std::string& file);
/// Reads and parses; a file that cannot be read or exceeds kMaxExportsFile is a problem.
ParsedExports read_exports_file(const std::string& file);
inline constexpr std::size_t kMaxExportsFile = 4u << 20;

/// `file`, and then the *.exports of the directory `file`.d in the order of versions (10 behind 9),
/// but those whose names begin with a dot; their clients come together as those of one file. Where
/// the directory has any, `file` need not be there.
ParsedExports read_exports_files(const std::string& file);

/// Where `client` is a network, and one of `before` that decides in its place has all of it: adds a
/// notice that says so.
void note_covered(std::span<const ExportClient> before, const ExportClient& client,
                  ConfigProblems* notices);

/// What file handles call the export: the fsid= of whichever client has one; empty: its path.
std::string fsid_of(const ExportEntry& entry);
/// An export has one fsid, whoever asks, and no other export has it: what is wrong with those.
ConfigProblems fsid_problems(const std::vector<ExportEntry>& entries);

/// An absolute path without "//", "." and "..", and without slashes at its end ("/" itself
/// excepted). The file system is not asked: ".." takes away what stands before it, be it a
/// symbolic link.
std::string normal_path(std::string_view path);

/// Puts `more` behind what `all` has, as parse_exports() does with lines.
void merge_exports(ParsedExports& all, ParsedExports more);

/// The command line's `-e DIR[:OPTIONS]`: what stands behind the last colon that is not part of
/// refer=, replicas= or sec= is an option list; the client is everyone. A directory with a colon in
/// its name is written with a colon at the end. Relative directories are taken as they are (the
/// caller makes them absolute).
ParsedExports parse_export_argument(std::string_view argument);

/// exports(5)'s host wildcards: *, ? and [a-z]. As there, * and ? match dots too. Both arguments in
/// lower case. Linear in practice; the work is bounded by pattern times name.
bool wildcard_matches(std::string_view pattern, std::string_view name);

}  // namespace nfsrdma
