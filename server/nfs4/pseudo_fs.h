// SPDX-License-Identifier: Apache-2.0
// PseudoFs: the directories from which NFSv4 clients find their way to the exports (RFC 7530 7,
// RFC 8881 7.3), and the way back. Pure: made from the exports' paths, asked with "may this client
// use that export".
//
// Every component of every export's path is a node, those that are exports themselves too: to a
// client that may not use /srv but /srv/data, /srv is a directory with nothing but "data" in it.
// A client sees a name when an export at or below it is allowed, and reaches the export where it is
// allowed itself.
//
// The root that a client gets (PUTROOTFH) is the first of these that is allowed:
//   - the export with fsid=0, wherever it lies; exports below its directory are then reached
//     through it, and those elsewhere not at all, as with Linux's server;
//   - the export "/", through which all others are reached;
//   - the node "/".
//
// Exports inside exports are found by looking a name up in the file system of the outer one: where
// that leads to the directory of an inner one that is allowed, the client goes over to it.
// is_inside() says which those are; LOOKUPP goes back with above_export().
//
// Ids of nodes, and cookies, are hashes of paths: the same after a restart and whatever else is
// exported. Immutable; for any thread. Returned references and views last as long as the PseudoFs.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace nfsrdma::nfs4 {

struct PseudoExport {
  std::uint64_t id = 0;  // Export::id
  std::string path;      // absolute, without trailing slashes
  bool is_root = false;  // fsid=0; of several the first counts
};

/// What a name service may have to be asked for.
enum class Allowed : std::uint8_t { kNo, kYes, kWouldBlock };

class PseudoFs {
 public:
  using NodeId = std::uint64_t;
  /// May the client use the export with that id?
  using Allow = std::function<Allowed(std::uint64_t export_id)>;

  /// `change`: of the directories, larger than that of what was exported before (the time of the
  /// exports' reload in nanoseconds: restarts count as well, then).
  PseudoFs(std::span<const PseudoExport> exports, std::uint64_t change);
  PseudoFs(PseudoFs&&) = default;
  PseudoFs& operator=(PseudoFs&&) = delete;

  /// Where a step leads.
  struct Place {
    enum class Kind : std::uint8_t {
      kNothing,     // NFS4ERR_NOENT
      kWouldBlock,  // `allow` has to be asked where it may block
      kNode,
      kExport,  // `path` in the export, without slashes at the ends; "": its own directory
    };
    Kind kind = Kind::kNothing;
    NodeId node = 0;
    std::uint64_t export_id = 0;
    std::string_view path{};
  };

  Place root(const Allow& allow) const;
  /// LOOKUP in a node. kNothing also for ".", ".." and what the client may not see.
  Place lookup(NodeId node, std::string_view name, const Allow& allow) const;
  /// LOOKUPP of a node: a node always; kNothing at the root.
  Place parent(NodeId node) const;
  /// LOOKUPP of an export's own directory: the directory of that name, in the innermost export
  /// around it that is allowed, else the node. kNothing for what root() gives, and for exports that
  /// are not below it.
  Place above_export(std::uint64_t export_id, const Allow& allow) const;

  /// Is there such a node, and may the client see it? kNothing: NFS4ERR_STALE. kNode when it is.
  Place find(NodeId node, const Allow& allow) const;

  struct Entry {
    std::string_view name;
    Place place;               // kNode or kExport
    std::uint64_t cookie = 0;  // at least 3, RFC 8881 18.23.3; at most 2^63 - 1
    /// mounted_on_fileid (RFC 8881 5.8.2.23), and the fileid of nodes.
    std::uint64_t fileid = 0;
  };
  enum class Listing : std::uint8_t { kEnd, kStopped, kWouldBlock };
  /// READDIR: calls `entry` for each child that the client may see, in the order of their cookies,
  /// from the first one behind `cookie` on (0: all), until it returns false. kWouldBlock: start
  /// over.
  Listing list(NodeId node, std::uint64_t cookie, const Allow& allow,
               const std::function<bool(const Entry&)>& entry) const;

  /// Does the export `inner` lie below the directory of `outer`, at any depth? No for unknown ids.
  bool is_inside(std::uint64_t inner, std::uint64_t outer) const;

  /// The export's path as the client finds it below what root() gives, absolute; "/" for that
  /// itself. Of exports elsewhere, and while kWouldBlock, their path on the server.
  std::string_view path_from_root(std::uint64_t export_id, const Allow& allow) const;

  /// mounted_on_fileid of an export's own directory; nothing where it is the root (then it is its
  /// fileid) or not known.
  std::optional<std::uint64_t> mounted_on_fileid(std::uint64_t export_id, const Allow& allow) const;

  /// Attributes of a node: a directory of root's, 0755, that nobody can write to. st_ino is the
  /// node id, st_dev 0; all times are that of `change`. Its fsid is 0:0, its change attribute
  /// change().
  struct stat attributes(NodeId node) const;
  std::uint64_t change() const { return change_; }

  static constexpr NodeId kNoNode = 0;

 private:
  struct Node {
    NodeId id = 0;
    std::string path;  // "/" or without trailing slash
    std::string name;  // its last component
    std::size_t parent = 0;
    std::optional<std::size_t> exported;  // index of exports_
    std::vector<std::size_t> children;    // by cookie
  };
  struct ExportPlace {
    std::uint64_t id = 0;
    std::size_t node = 0;
  };

  static std::uint64_t cookie_of(const Node& node) { return node.id; }
  std::size_t make_node(std::string_view path);
  const Node* node_of(NodeId id) const;
  const ExportPlace* export_of(std::uint64_t id) const;
  /// What a client gets for a node: its export, the node or nothing.
  Place place_of(const Node& node, const Allow& allow) const;
  /// Is any export at or below the node allowed?
  Allowed visible(const Node& node, const Allow& allow) const;

  std::uint64_t change_;
  std::vector<Node> nodes_;  // the first is "/"
  std::vector<ExportPlace> exports_;
  std::optional<std::size_t> root_export_;  // fsid=0
  std::unordered_map<NodeId, std::size_t> by_id_;
  std::unordered_map<std::string, std::size_t> by_path_;
  std::unordered_map<std::uint64_t, std::size_t> by_export_;
};

}  // namespace nfsrdma::nfs4
