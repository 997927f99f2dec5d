// SPDX-License-Identifier: Apache-2.0
#include "server/release.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "rpcrdma/base/json_writer.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/base/mountinfo.h"
#include "rpcrdma/base/path_text.h"
#include "server/nfs4/server_state.h"
#include "server/nlm/lock_service.h"

namespace nfsrdma {

namespace {

/// Files that are taken down under one hold of the state's mutex.
constexpr std::size_t kFilesAtOnce = 256;
/// Calls that are under way have a file open for a moment longer.
constexpr int kTries = 20;
constexpr auto kBetweenTries = std::chrono::milliseconds(50);

struct Place {
  mode_t mode = 0;
  dev_t device = 0;
  ino_t inode = 0;
  int mount_id = -1;
  bool is_mount_root = false;
};

/// Asks the kernel for the root of a mount where that has no word for it (before Linux 5.8).
bool differs_from_above(const std::string& path, const Place& place) {
  struct stat above;
  if (::stat((path + "/..").c_str(), &above) != 0) return false;
  return above.st_dev != place.device || above.st_ino == place.inode;
}

/// 0 or an errno.
int look_at(int directory, const std::string& path, int flags, Place* place) {
  struct statx stx;
  const unsigned wanted = STATX_TYPE | STATX_INO | STATX_MNT_ID;
  if (::statx(directory, path.c_str(), flags | AT_NO_AUTOMOUNT, wanted, &stx) != 0) return errno;
  place->mode = stx.stx_mode;
  place->device = ::makedev(stx.stx_dev_major, stx.stx_dev_minor);
  place->inode = stx.stx_ino;
  if ((stx.stx_mask & STATX_MNT_ID) != 0) place->mount_id = static_cast<int>(stx.stx_mnt_id);
  place->is_mount_root = (stx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0
                             ? (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0
                             : S_ISDIR(place->mode) && differs_from_above(path, *place);
  return 0;
}

std::string above(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// The nearest mount point at or above `path`, which is there.
std::string mount_point_of(std::string path) {
  while (path != "/") {
    Place place;
    if (look_at(AT_FDCWD, path, 0, &place) == 0 && place.is_mount_root) break;
    path = above(path);
  }
  return path;
}

std::vector<std::string> mounted_below(const std::string& mount_point) {
  std::vector<std::string> out;
  std::ifstream info("/proc/self/mountinfo");
  for (std::string line; std::getline(info, line);) {
    std::string point = mount_point_in(line);
    if (point != mount_point && lies_in(point, mount_point)) out.push_back(std::move(point));
  }
  return out;
}

/// Takes from clients what they hold.
class Revocation {
 public:
  Revocation(nfs4::ServerState& state, const ReleaseTarget& target, FileScope* files)
      : state_(state), target_(target), files_(*files) {}

  void run() {
    nfs4::FileKey last;
    for (bool more = true; more;) {
      std::vector<FilePin> some;
      {
        std::lock_guard lock(state_.mutex);
        more =
            state_.visit_held(last, kFilesAtOnce, [&some](const nfs4::FileKey&, FileEntry& file) {
              some.push_back(FilePin::another(file));
              return true;
            });
      }
      if (some.empty()) break;
      last = nfs4::file_key(*some.back());
      for (const FilePin& file : some) {
        if (is_meant(*file)) revoke(*file);
      }
    }
  }

  std::size_t files() const { return revoked_; }
  /// Those who lost something, if they are there still.
  std::vector<Released::Client> clients() const {
    std::vector<Released::Client> out;
    std::lock_guard lock(state_.mutex);
    for (const auto& [id, lost] : lost_) {
      Released::Client& one = out.emplace_back();
      one.id = fmt::format("{:016x}", id);
      one.opens = lost.opens;
      one.locks = lost.locks;
      one.delegations = lost.delegations;
      const nfs4::Client* client = state_.clients.find(id);
      if (client == nullptr) continue;
      one.address = client->address;
      one.protocol = client->locks_by_nlm ? "NLM" : fmt::format("4.{}", client->minor_version);
    }
    return out;
  }

 private:
  bool is_meant(const FileEntry& file) {
    if (files_.has(file)) return true;
    if (!target_.whole || target_.mount_id < 0) return false;
    // A volume within, or a layer, with a device number of its own.
    Place place;
    if (look_at(file.path_fd(), "", AT_EMPTY_PATH, &place) != 0) return false;
    if (place.mount_id != target_.mount_id) return false;
    files_.devices.insert(file.device());
    return true;
  }

  void revoke(const FileEntry& file) {
    const nfs4::FileKey key = nfs4::file_key(file);
    {
      std::lock_guard lock(state_.mutex);
      if (state_.revoke_file(key, &lost_)) ++revoked_;
    }
    write_down();
    // Whatever the kernel has locked for them is free when a turn is over; where other hosts keep
    // the locks of a file, nobody waits for those.
    if (!state_.lock_mirror.has_at_hand(key)) return;
    const nfs4::LockMirror::Turn turn(state_.lock_mirror, file, true);
  }

  /// That they may not reclaim it, before it is anybody else's. Once for each client, mostly.
  void write_down() {
    if (!state_.any_ended()) return;
    const auto settled = state_.settle();
    if (settled.ok() || std::exchange(complained_, true)) return;
    log_warning(
        "who may not reclaim what is released is not written down, and until it is, files stay "
        "locked for local processes: {}",
        settled.error().message());
  }

  nfs4::ServerState& state_;
  const ReleaseTarget& target_;
  FileScope& files_;
  bool complained_ = false;
  std::map<nfs4::ClientId, nfs4::ServerState::Lost> lost_;
  std::size_t revoked_ = 0;
};

void take_from_clients(nfs4::ServerState& state, const ReleaseTarget& target, FileScope* files,
                       Released* out) {
  Revocation revocation(state, target, files);
  revocation.run();
  // What may have been opened meanwhile, by calls that were under way.
  revocation.run();
  out->files = revocation.files();
  out->clients = revocation.clients();
  out->copies = state.offloads.release(*files);
  state.take_released();
}

void look_at_exports(const ExportSnapshot& exports, const ReleaseTarget& target,
                     const FileScope& files, Released* out) {
  for (const auto& entry : exports.exports) {
    const bool by_that_mount =
        target.mount_id >= 0 && entry->top->mount_id == target.mount_id;  // a volume within
    if (by_that_mount || files.devices.contains(entry->top->device)) {
      out->exports.push_back(entry->path);
    } else if (entry->crossmnt && target.mount_point != entry->real_path &&
               lies_in(target.mount_point, entry->real_path)) {
      entry->forget_mounts(files.devices);
      out->reached_by.push_back(entry->path);
    }
  }
}

}  // namespace

std::optional<ReleaseTarget> find_release_target(const std::string& path, std::string* why) {
  if (path.empty() || path.front() != '/') {
    *why = "release needs the whole path of a file, or of a mounted file system";
    return std::nullopt;
  }
  ReleaseTarget target;
  Place place;
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved != nullptr) target.path = resolved;
  const int error = resolved == nullptr ? errno : look_at(AT_FDCWD, target.path, 0, &place);
  std::free(resolved);
  if (error != 0) {
    *why = path + ": " + std::strerror(error);
    return std::nullopt;
  }
  target.mount_point = mount_point_of(target.path);
  target.mount_id = place.mount_id;
  target.files.devices.insert(place.device);
  if (!S_ISDIR(place.mode)) {
    target.files.inode = place.inode;
    return target;
  }
  if (!place.is_mount_root) {
    *why = fmt::format(
        "{} is a directory of the file system that is mounted at {}: release that as a whole, or a "
        "single file",
        target.path, target.mount_point);
    return std::nullopt;
  }
  target.whole = true;
  return target;
}

Released release(ServerContext& server, const ReleaseTarget& target, const std::string& state_dir) {
  Released out;
  FileScope files = target.files;
  if (server.nfs4 != nullptr) take_from_clients(*server.nfs4, target, &files, &out);
  if (target.whole) {
    look_at_exports(server.exports.current(), target, files, &out);
    ExportTable::let_go();
    out.mounted_below = mounted_below(target.mount_point);
    Place place;
    out.has_state_directory =
        look_at(AT_FDCWD, state_dir, 0, &place) == 0 && files.devices.contains(place.device);
  }
  const bool is_served = !target.whole || !out.exports.empty() || !out.reached_by.empty();
  if (server.nlm != nullptr) server.nlm->release(files, !is_served);
  out.in_use = server.files.close(files);
  for (int i = 0; i < kTries && out.in_use != 0; ++i) {
    std::this_thread::sleep_for(kBetweenTries);
    if (server.nfs4 != nullptr) server.nfs4->take_released();
    out.in_use = server.files.close(files);
  }
  return out;
}

std::string release_document(const ReleaseTarget& target, const Released& released,
                             std::size_t silent_threads) {
  JsonWriter json;
  json.begin_object();
  json.field("version", 1);
  json.field("path", target.path);
  json.field("mount_point", target.mount_point);
  json.field("whole_file_system", target.whole);
  json.field("files", released.files);
  json.key("clients");
  json.begin_array();
  for (const Released::Client& client : released.clients) {
    json.begin_object();
    json.field("client", client.id);
    json.field("address", client.address);
    json.field("protocol", client.protocol);
    json.field("opens", client.opens);
    json.field("locks", client.locks);
    json.field("delegations", client.delegations);
    json.end_object();
  }
  json.end_array();
  json.field("copies", released.copies);
  json.list("exports", released.exports);
  json.list("reached_by", released.reached_by);
  json.list("mounted_below", released.mounted_below);
  json.field("files_in_use", released.in_use);
  json.field("has_state_directory", released.has_state_directory);
  json.field("silent_threads", silent_threads);
  json.end_object();
  return json.take();
}

}  // namespace nfsrdma
