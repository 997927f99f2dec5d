// SPDX-License-Identifier: Apache-2.0
// MemoryRemote: an NFS server in memory behind the Remote seam, for tests of the FUSE layer's
// rules. Calls are counted; answers can be held back and released in any order; a restart loses
// unstable data. Foreign changes are made by its own functions, as if by another client.
#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/fuse/remote.h"

namespace nfsrdma {

class MemoryRemote final : public Remote {
 public:
  struct Object {
    FileHandle handle;
    Attributes attributes;
    std::string data, stable_data, text;
    std::map<std::string, std::shared_ptr<Object>> names;
    std::map<std::string, std::string> xattrs;
    std::string acl;
    PosixAcls posix_acls;
    ByteRangeLocks locks;
    bool held = false;                              // locked or open since the last close()
    std::map<std::uint32_t, std::uint32_t> denied;  // uid: rights that ACCESS refuses
  };
  using ObjectRef = std::shared_ptr<Object>;

  MemoryRemote() : root_(make_object(FileType::kDirectory, 0755)) {}

  // --- what tests do to it ---
  ObjectRef root_object() { return root_; }
  ObjectRef add_file(const std::string& name, const std::string& data = {}) {
    ObjectRef file = make_object(FileType::kRegular, 0644);
    file->data = file->stable_data = data;
    file->attributes.size = data.size();
    root_->names[name] = file;
    touch(*root_);
    return file;
  }
  /// As another client.
  void write_elsewhere(Object& file, const std::string& data) {
    file.data = file.stable_data = data;
    file.attributes.size = data.size();
    touch(file);
  }
  ObjectRef add_directory(Object& parent, const std::string& name) {
    ObjectRef directory = make_object(FileType::kDirectory, 0755);
    parent.names[name] = directory;
    touch(parent);
    return directory;
  }
  ObjectRef add_file_in(Object& parent, const std::string& name, const std::string& data) {
    ObjectRef file = add_file(name, data);
    root_->names.erase(name);
    parent.names[name] = file;
    touch(parent);
    return file;
  }
  /// rm -r by another client. With `known` the server still answers for the directory, as one does
  /// that holds it open; else its handle is stale.
  void remove_elsewhere(Object& parent, const std::string& name, bool known) {
    ObjectRef gone = parent.names.at(name);
    parent.names.erase(name);
    touch(parent);
    while (!gone->names.empty())
      remove_elsewhere(*gone, gone->names.begin()->first, known);
    gone->attributes.nlink = 0;
    touch(*gone);
    if (known) lingering_.push_back(gone);
  }
  void restart() {
    ++boot_;
    for (auto& weak : all_) {
      if (ObjectRef object = weak.lock()) {
        if (object->data != object->stable_data) touch(*object);
        object->data = object->stable_data;
        object->attributes.size = object->data.size();
      }
    }
  }
  /// Answers wait until release() from now on: all, or those to calls of this name.
  void hold(const std::string& alone = {}) {
    holding_ = true;
    held_alone_ = alone;
  }
  void release() {
    holding_ = false;
    held_.wake_all();
  }
  std::map<std::string, Referral> referrals;  // what these names are, in whatever directory
  /// Is on another server from now on: referrals[""] says where.
  void move_away(std::uint64_t fsid) { moved_.insert(fsid); }
  void move_away_alone(const std::vector<FileHandle>& files) {
    moved_files_.insert(files.begin(), files.end());
  }
  void come_back(std::uint64_t fsid) { moved_.erase(fsid); }
  /// All that there is, and root_object() or not.
  void number_file_system(std::uint64_t fsid) {
    for (auto& weak : all_)
      if (ObjectRef object = weak.lock()) object->attributes.fsid = fsid;
  }
  std::optional<Error> renames_end_with;  // though they are done
  int fail_getattrs_with = 0;
  int fail_writes_with = 0;
  int fail_commits_with = 0;
  int fail_copies_with = 0;
  std::size_t short_reads = SIZE_MAX;  // as if files ended there
  int fail_listings_with = 0;
  std::uint64_t directory_verifier = 0;  // cookies with another one are not known
  std::uint64_t names_per_page = 1 << 20;
  bool posix_acls = false;
  int fail_acls_with = 0;
  PosixAclChange last_acl_change;
  bool keeps_open = false;          // from open() to close(), and tells of it in the log
  bool delegates = false;           // to whoever asks
  std::uint64_t may_keep_back = 0;  // with a write delegation
  std::unordered_map<FileHandle, DelegationKind, FileHandleHash> delegated;
  std::unordered_map<FileHandle, DelegationKind, FileHandleHash> recalled;  // and not back yet
  DelegationHolder* holder = nullptr;
  std::map<std::string, int> calls;
  std::vector<std::string> log;  // names and writers of changes, in order

  const FileHandle& root() const override { return root_->handle; }
  std::uint32_t read_size() const override { return 1 << 20; }
  std::uint32_t write_size() const override { return write_size_; }
  void set_write_size(std::uint32_t bytes) { write_size_ = bytes; }

  Task<Result<Attributes>> getattr(RequestContext context, const FileHandle& file) override {
    if (co_await ended(context, "getattr")) co_return failure(EINTR);
    if (fail_getattrs_with != 0) co_return failure(fail_getattrs_with);
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    co_return object->attributes;
  }
  Task<Result<Wcc>> setattr(RequestContext, const FileHandle& file,
                            const SetAttributes& set) override {
    co_await count("setattr");
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    expect_no_recall_of_our_own(*object);
    Wcc wcc;
    begin(wcc, *object);
    if (set.mode) object->attributes.mode = *set.mode;
    if (set.size) {
      object->data.resize(*set.size);
      object->stable_data = object->data;
      object->attributes.size = *set.size;
    }
    if (set.size) {
      touch(*object);
    } else {
      touch_attributes(*object);
    }
    if (set.mtime && !set.mtime->server_now) object->attributes.mtime = set.mtime->value;
    finish(wcc, *object);
    co_return wcc;
  }
  Task<Result<LookupResult>> lookup(RequestContext context, const FileHandle& directory,
                                    const std::string& name,
                                    MaybeAttributes* directory_attributes) override {
    if (co_await ended(context, "lookup")) co_return failure(EINTR);
    ObjectRef object = find(directory);
    if (object == nullptr) co_return failure(ESTALE);
    if (directory_attributes != nullptr) *directory_attributes = object->attributes;
    if (referrals.count(name) != 0) co_return kReferralMet;
    auto it = object->names.find(name);
    if (it == object->names.end()) co_return failure(ENOENT);
    co_return LookupResult{it->second->handle, it->second->attributes, object->attributes};
  }
  Task<Result<Referral>> referral(RequestContext, const FileHandle&,
                                  const std::string& name) override {
    co_await count("referral");
    const auto it = referrals.find(name);
    if (it == referrals.end()) co_return failure(ENOENT);
    co_return it->second;
  }
  Task<Result<AccessResult>> access(RequestContext context, const FileHandle& file,
                                    std::uint32_t wanted) override {
    if (co_await ended(context, "access")) co_return failure(EINTR);
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    const auto denied = object->denied.find(context.caller->uid);
    const std::uint32_t no = denied == object->denied.end() ? 0 : denied->second;
    co_return AccessResult{wanted & ~no, object->attributes};
  }
  void set_delegation_holder(DelegationHolder* its) override { holder = its; }
  bool may_be_delegated() const override { return delegates; }
  DelegationKind delegation(const FileHandle& file) override {
    const auto it = delegated.find(file);
    return it == delegated.end() ? DelegationKind::kNone : it->second;
  }
  std::uint64_t kept_back_limit(const FileHandle&) const override { return may_keep_back; }
  Task<Result<AccessResult>> open(RequestContext context, const FileHandle& file,
                                  std::uint32_t wanted, OpenFor how) override {
    if (how.delegation) ++calls["ask"];
    if (how.delegation && by_name) {
      EXPECT_NE(context.place, nullptr);
      if (context.place != nullptr) place_of_open = context.place->name;
    }
    auto answer = co_await access(context, file, wanted);
    if (answer.ok() && keeps_open) keep_open(file, "open");
    const bool writes = (how.access & access_bits::kModify) != 0;
    if (answer.ok() && delegates && how.delegation) {
      delegated[file] = writes ? DelegationKind::kWrite : DelegationKind::kRead;
    }
    co_return answer;
  }
  bool open_already(RequestContext, const FileHandle& file, std::uint32_t access) override {
    if (!keeps_open) return true;
    const bool writes = (access & access_bits::kModify) != 0;
    if (delegation(file) < (writes ? DelegationKind::kWrite : DelegationKind::kRead)) return false;
    keep_open(file, "note open");
    return true;
  }
  void narrow_open(RequestContext context, const FileHandle&, std::uint32_t access) override {
    if (!keeps_open) return;
    log.push_back("narrow " + std::to_string(context.caller->uid) + " to " +
                  std::to_string(access));
  }
  Task<Result<CreateResult>> create_open(RequestContext context, const FileHandle& directory,
                                         const std::string& name, CreateMode mode,
                                         const SetAttributes& set, std::uint32_t) override {
    auto answer = co_await create(context, directory, name, mode, set);
    if (answer.ok() && keeps_open) keep_open(answer->handle, "open new");
    co_return answer;
  }
  Task<void> give_back(const FileHandle& file) override {
    const ObjectRef object = find(file);
    log.push_back("give back " + (object == nullptr ? "" : object->stable_data));
    co_await count("give back");
    delegated.erase(file);
    recalled.erase(file);
  }
  Task<void> give_way(const FileHandle& file) override {
    if (!has_read_delegation(file)) co_return;
    log.emplace_back("give way");
    ++calls["give way"];
    delegated.erase(file);
    recalled.erase(file);
  }
  class Moved final : public MovedState {
   public:
    std::vector<FileHandle> open;
  };
  std::unique_ptr<MovedState> hand_over(const WhichFiles& which) override {
    auto moved = std::make_unique<Moved>();
    for (auto& weak : all_) {
      const ObjectRef object = weak.lock();
      if (object == nullptr || !which(object->handle)) continue;
      if (std::exchange(object->held, false)) moved->open.push_back(object->handle);
      if (delegated.erase(object->handle) > 0) holder->give_up(object->handle);
    }
    log.push_back("hand over " + std::to_string(moved->open.size()));
    return moved;
  }
  void take_over(std::unique_ptr<MovedState> state) override {
    for (const FileHandle& file : dynamic_cast<const Moved&>(*state).open)
      keep_open(file, "take over");
  }
  /// As the client's table does.
  void recall(const Object& file) {
    recalled[file.handle] = delegation(file.handle);
    delegated.erase(file.handle);
    holder->give_up(file.handle);
  }
  Task<Result<std::string>> readlink(RequestContext, const FileHandle& link) override {
    co_await count("readlink");
    ObjectRef object = find(link);
    if (object == nullptr) co_return failure(ESTALE);
    co_return object->text;
  }
  Task<Result<ReadResult>> read(RequestContext, const FileHandle& file, std::uint64_t offset,
                                MutableByteSpan into) override {
    co_await count("read");
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    ReadResult result;
    const std::size_t end = std::min(object->data.size(), short_reads);
    if (offset < end) {
      result.count = std::min<std::size_t>(into.size(), end - offset);
      std::memcpy(into.data(), object->data.data() + offset, result.count);
    }
    result.eof = offset + result.count >= end;
    result.attributes = object->attributes;
    co_return result;
  }
  Task<Result<WriteResult>> write(RequestContext context, const FileHandle& file,
                                  std::uint64_t offset, ByteSpan data,
                                  Stability stability) override {
    log.push_back("write " + std::to_string(offset) + "+" + std::to_string(data.size()) + " as " +
                  std::to_string(context.caller->uid) +
                  (stability == Stability::kFileSync ? " sync" : ""));
    co_await count("write");
    if (fail_writes_with != 0) co_return failure(fail_writes_with);
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    EXPECT_FALSE(has_read_delegation(file)) << "it would keep the data waiting";
    WriteResult result;
    begin(result.wcc, *object);
    if (object->data.size() < offset + data.size()) object->data.resize(offset + data.size());
    object->data.replace(offset, data.size(), std::string(as_text(data)));
    if (stability == Stability::kFileSync) object->stable_data = object->data;
    object->attributes.size = object->data.size();
    touch(*object);
    result.count = data.size();
    result.stability = stability;
    result.verifier = boot_;
    finish(result.wcc, *object);
    co_return result;
  }
  Task<Result<CommitResult>> commit(RequestContext, const FileHandle& file) override {
    co_await count("commit");
    if (fail_commits_with != 0) co_return failure(fail_commits_with);
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    object->stable_data = object->data;
    CommitResult result;
    result.verifier = boot_;
    begin(result.wcc, *object);
    finish(result.wcc, *object);
    co_return result;
  }
  Task<Result<CreateResult>> create(RequestContext, const FileHandle& directory,
                                    const std::string& name, CreateMode mode,
                                    const SetAttributes& set) override {
    co_await count("create");
    ObjectRef parent = find(directory);
    if (parent == nullptr) co_return failure(ESTALE);
    if (parent->attributes.nlink == 0) co_return failure(ENOENT);
    if (parent->names.count(name) != 0 && mode != CreateMode::kUnchecked) {
      co_return failure(EEXIST);
    }
    co_return made(*parent, name, make_object(FileType::kRegular, set.mode.value_or(0)));
  }
  Task<Result<CreateResult>> mkdir(RequestContext, const FileHandle& directory,
                                   const std::string& name, const SetAttributes& set) override {
    co_await count("mkdir");
    ObjectRef parent = find(directory);
    if (parent == nullptr) co_return failure(ESTALE);
    co_return made(*parent, name, make_object(FileType::kDirectory, set.mode.value_or(0)));
  }
  Task<Result<CreateResult>> symlink(RequestContext, const FileHandle& directory,
                                     const std::string& name, const std::string& text) override {
    co_await count("symlink");
    ObjectRef parent = find(directory);
    if (parent == nullptr) co_return failure(ESTALE);
    ObjectRef link = make_object(FileType::kSymlink, 0777);
    link->text = text;
    co_return made(*parent, name, link);
  }
  Task<Result<CreateResult>> mknod(RequestContext, const FileHandle& directory,
                                   const std::string& name, FileType type, std::uint32_t,
                                   std::uint32_t, const SetAttributes& set) override {
    co_await count("mknod");
    ObjectRef parent = find(directory);
    if (parent == nullptr) co_return failure(ESTALE);
    co_return made(*parent, name, make_object(type, set.mode.value_or(0)));
  }
  Task<Result<RemoveResult>> remove(RequestContext, const FileHandle& directory,
                                    const std::string& name, const FileHandle*) override {
    log.push_back("remove " + name);
    expect_no_recall_of_our_own(directory, name);
    co_await count("remove");
    co_return take_away(directory, name);
  }
  Task<Result<RemoveResult>> rmdir(RequestContext, const FileHandle& directory,
                                   const std::string& name, const FileHandle*) override {
    co_await count("rmdir");
    ObjectRef parent = find(directory);
    if (parent == nullptr) co_return failure(ESTALE);
    auto it = parent->names.find(name);
    if (it != parent->names.end() && !it->second->names.empty()) co_return failure(ENOTEMPTY);
    co_return take_away(directory, name);
  }
  Task<Result<RenameResult>> rename(RequestContext, const FileHandle& from_directory,
                                    const std::string& from, const FileHandle& to_directory,
                                    const std::string& to, const FileHandle*) override {
    log.push_back("rename " + from + " " + to);
    expect_no_recall_of_our_own(from_directory, from);
    expect_no_recall_of_our_own(to_directory, to);
    co_await count("rename");
    ObjectRef source = find(from_directory), target = find(to_directory);
    if (source == nullptr || target == nullptr) co_return failure(ESTALE);
    auto it = source->names.find(from);
    if (it == source->names.end()) co_return failure(ENOENT);
    RenameResult result;
    begin(result.from_directory, *source);
    begin(result.to_directory, *target);
    ObjectRef moved = it->second;
    source->names.erase(it);
    target->names[to] = moved;
    touch(*source);
    if (source != target) touch(*target);
    touch_attributes(*moved);  // most file systems do
    if (renames_end_with) co_return *renames_end_with;
    finish(result.from_directory, *source);
    finish(result.to_directory, *target);
    co_return result;
  }
  Task<Result<LinkResult>> link(RequestContext, const FileHandle& file, const FileHandle& directory,
                                const std::string& name) override {
    log.push_back("link " + name);
    co_await count("link");
    if (no_links) co_return failure(ENOTSUP);
    ObjectRef object = find(file), parent = find(directory);
    if (object == nullptr || parent == nullptr) co_return failure(ESTALE);
    expect_no_recall_of_our_own(*object);
    LinkResult result;
    begin(result.directory, *parent);
    parent->names[name] = object;
    ++object->attributes.nlink;
    touch(*parent);
    result.attributes = object->attributes;
    finish(result.directory, *parent);
    co_return result;
  }
  Task<Result<DirectoryPage>> readdir(RequestContext, const FileHandle& directory,
                                      std::uint64_t cookie, std::uint64_t verifier, bool plus,
                                      DirectoryVisitor& visitor) override {
    co_await count("readdir");
    if (fail_listings_with != 0) co_return failure(fail_listings_with);
    ObjectRef parent = find(directory);
    if (parent == nullptr) co_return failure(ESTALE);
    if (cookie != 0 && verifier != directory_verifier) co_return failure(EINVAL);
    DirectoryPage page;
    page.verifier = directory_verifier;
    page.directory = parent->attributes;
    std::uint64_t position = 0;
    for (const auto& [name, object] : parent->names) {
      if (++position <= cookie) continue;
      if (position > cookie + names_per_page) co_return page;
      DirectoryEntry entry;
      entry.name = name;
      entry.cookie = position;
      entry.fileid = object->attributes.fileid;
      if (plus) {
        entry.attributes = &object->attributes;
        entry.handle = &object->handle;
      }
      visitor.on_entry(entry);
    }
    page.eof = true;
    co_return page;
  }
  Task<Result<FsStat>> fsstat(RequestContext context, const FileHandle&) override {
    if (co_await ended(context, "fsstat")) co_return failure(EINTR);
    FsStat space;
    space.total_bytes = 4096 * 1000;
    co_return space;
  }

  Task<Result<std::uint64_t>> seek(RequestContext, const FileHandle& file, std::uint64_t offset,
                                   SeekFor what) override {
    co_await count("seek");
    if (before_version_42) co_return not_spoken();
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    if (offset >= object->data.size()) co_return failure(ENXIO);
    // Each NUL is a hole.
    const char nul = '\0';
    const std::size_t found = what == SeekFor::kHole ? object->data.find(nul, offset)
                                                     : object->data.find_first_not_of(nul, offset);
    if (found != std::string::npos) co_return found;
    if (what == SeekFor::kData) co_return failure(ENXIO);
    co_return object->data.size();
  }
  Task<Result<Wcc>> allocate(RequestContext, const FileHandle& file, std::uint64_t offset,
                             std::uint64_t length) override {
    co_await count("allocate");
    co_return change_space(file, offset, length, true);
  }
  Task<Result<Wcc>> deallocate(RequestContext, const FileHandle& file, std::uint64_t offset,
                               std::uint64_t length) override {
    co_await count("deallocate");
    co_return change_space(file, offset, length, false);
  }
  Task<Result<CopyResult>> copy(RequestContext, const FileHandle& from, std::uint64_t from_offset,
                                const FileHandle& to, std::uint64_t to_offset,
                                std::uint64_t wanted) override {
    log.push_back("copy " + std::to_string(wanted));
    co_await count("copy");
    if (before_version_42) co_return not_spoken();
    if (fail_copies_with != 0) co_return failure(fail_copies_with);
    ObjectRef source = find(from), target = find(to);
    if (source == nullptr || target == nullptr) co_return failure(ESTALE);
    if (wanted > source->data.size() || from_offset > source->data.size() - wanted) {
      co_return failure(EINVAL);
    }
    CopyResult result;
    begin(result.wcc, *target);
    const std::string bytes = source->data.substr(from_offset, std::min(wanted, most_of_a_copy));
    if (target->data.size() < to_offset + bytes.size()) {
      target->data.resize(to_offset + bytes.size());
    }
    target->data.replace(to_offset, bytes.size(), bytes);
    target->stable_data = target->data;
    target->attributes.size = target->data.size();
    touch(*target);
    result.count = bytes.size();
    finish(result.wcc, *target);
    co_return result;
  }

  bool has_xattrs() const override { return !before_version_42; }
  Task<Result<std::string>> get_xattr(RequestContext, const FileHandle& file,
                                      const std::string& name) override {
    co_await count("get_xattr");
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    const auto found = object->xattrs.find(name);
    if (found == object->xattrs.end()) co_return failure(ENODATA);
    co_return found->second;
  }
  Task<Result<Wcc>> set_xattr(RequestContext, const FileHandle& file, const std::string& name,
                              ByteSpan value, XattrThere there) override {
    co_await count("set_xattr");
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    const bool known = object->xattrs.count(name) != 0;
    if (known && there == XattrThere::kNo) co_return failure(EEXIST);
    if (!known && there == XattrThere::kYes) co_return failure(ENODATA);
    Wcc wcc;
    if (is_version_4) wcc.change = {true, *object->attributes.change, 0};
    object->xattrs[name] = std::string(as_text(value));
    touch_attributes(*object);
    finish(wcc, *object);
    co_return wcc;
  }
  Task<Result<std::vector<std::string>>> list_xattrs(RequestContext,
                                                     const FileHandle& file) override {
    co_await count("list_xattrs");
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    std::vector<std::string> names;
    for (const auto& [name, value] : object->xattrs)
      names.push_back(name);
    co_return names;
  }
  Task<Result<Wcc>> remove_xattr(RequestContext, const FileHandle& file,
                                 const std::string& name) override {
    co_await count("remove_xattr");
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    Wcc wcc;
    if (is_version_4) wcc.change = {true, *object->attributes.change, 0};
    if (object->xattrs.erase(name) == 0) co_return failure(ENODATA);
    touch_attributes(*object);
    finish(wcc, *object);
    co_return wcc;
  }
  bool has_acls() const override { return is_version_4; }
  Task<Result<bool>> acls_in(RequestContext, const FileHandle&, std::uint64_t) override {
    co_await count("acls_in");
    co_return acls;
  }
  Task<Result<std::string>> get_acl(RequestContext, const FileHandle& file) override {
    co_await count("get_acl");
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    co_return object->acl;
  }
  Task<Result<Wcc>> set_acl(RequestContext, const FileHandle& file, ByteSpan acl) override {
    log.emplace_back("set_acl");
    co_await count("set_acl");
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    if (!acls) co_return failure(EOPNOTSUPP);
    object->acl = as_text(acl);
    touch_attributes(*object);
    Wcc wcc;
    wcc.after = object->attributes;
    co_return wcc;
  }

  bool has_posix_acls() const override { return posix_acls; }
  Task<Result<FoundPosixAcls>> get_posix_acls(RequestContext, const FileHandle& file, bool access,
                                              bool initial) override {
    co_await count("get_posix_acls");
    if (fail_acls_with != 0) co_return failure(fail_acls_with);
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    FoundPosixAcls found;
    if (access) found.access = object->posix_acls.access;
    if (initial) found.initial = object->posix_acls.initial;
    found.attributes = object->attributes;
    co_return found;
  }
  Task<Result<Wcc>> set_posix_acl(RequestContext, const FileHandle& file,
                                  const PosixAclChange& change) override {
    log.emplace_back("set_posix_acl");
    co_await count("set_posix_acl");
    if (fail_acls_with != 0) co_return failure(fail_acls_with);
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    if (change.initial) {
      object->posix_acls.initial = change.acl;
    } else {
      const mode_t mode = object->attributes.mode;
      object->posix_acls.access = change.acl.value_or(PosixAcl::of_mode(mode));
      object->attributes.mode = (mode & ~mode_t{0777}) | object->posix_acls.access.mode();
    }
    last_acl_change = change;
    touch_attributes(*object);
    Wcc wcc;
    wcc.after = object->attributes;
    co_return wcc;
  }

  bool has_locks() const override { return is_version_4; }
  bool opens_by_name() const override { return by_name; }
  Task<Result<void>> lock(RequestContext context, const FileHandle& file, const FileLock& wanted,
                          LockWait wait, std::uint32_t) override {
    place_of_lock = context.place == nullptr ? "" : context.place->name;
    log.push_back(std::string("lock ") + (wanted.kind == LockKind::kWrite ? "write" : "read") +
                  (wait == LockWait::kYes ? " wait" : ""));
    co_await count("lock");
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    object->held = true;
    while (object->locks.lock(wanted.owner, wanted.kind, wanted.range) !=
           ByteRangeLocks::Outcome::kDone) {
      if (wait == LockWait::kNo) co_return failure(EAGAIN);
      co_await unlocked_.wait();
    }
    co_return Result<void>();
  }
  Task<Result<void>> unlock(RequestContext, const FileHandle& file, const FileLock& what) override {
    log.emplace_back("unlock");
    co_await count("unlock");
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    object->locks.unlock(what.owner, what.range);
    unlocked_.wake_all();
    co_return Result<void>();
  }
  Task<Result<std::optional<LockHolder>>> test_lock(RequestContext, const FileHandle& file,
                                                    const FileLock& wanted) override {
    co_await count("test_lock");
    ObjectRef object = find(file);
    if (object == nullptr) co_return failure(ESTALE);
    const auto* held = object->locks.conflict(wanted.owner, wanted.kind, wanted.range);
    if (held == nullptr) co_return std::optional<LockHolder>();
    const bool ours = held->owner < first_foreign_owner;
    co_return std::optional(LockHolder{{held->owner, held->kind, held->range}, ours});
  }
  std::vector<LockOwnerId> lock_owners_in_the_way(const FileHandle& file,
                                                  const FileLock& wanted) const override {
    const ObjectRef object = find(file);
    if (object == nullptr) return {};
    std::vector<LockOwnerId> owners = owners_in_the_way(object->locks, wanted);
    std::erase_if(owners, [](LockOwnerId owner) { return owner >= first_foreign_owner; });
    return owners;
  }
  void close(const FileHandle& file) override {
    log.emplace_back("close");
    if (ObjectRef object = find(file)) {
      object->locks = {};
      object->held = false;
    }
  }
  bool holds(const FileHandle& file) const override {
    const ObjectRef object = find(file);
    return object != nullptr && object->held;
  }
  /// Those who wait for locks look again.
  void wake_lockers() { unlocked_.wake_all(); }
  /// Owners from here on are another client's.
  static constexpr LockOwnerId first_foreign_owner = 1000;

  bool no_links = false;
  bool before_version_42 = false;
  bool acls = true;  // with version 4
  bool changes_are_atomic = true;
  bool clock_stands = false;  // times do not tell changes apart
  bool by_name = false;       // as version 4.0
  std::string place_of_lock;  // of the last one
  std::string place_of_open;  // the same, that asks for a delegation
  /// Objects have change attributes; there is no weak cache consistency data but for directories.
  void speak_version_4() {
    is_version_4 = true;
    for (auto& weak : all_) {
      if (ObjectRef object = weak.lock()) touch_attributes(*object);
    }
  }
  std::uint64_t most_of_a_copy = UINT64_MAX;

 private:
  /// Lets a call that is held back look whether it was cancelled.
  struct Waker final : Cancellable {
    explicit Waker(WaitList& its_list) : list(its_list) {}
    void on_cancel() override { list.wake_all(); }
    WaitList& list;
  };
  Task<void> count(const char* name) {
    ++calls[name];
    while (holds_back(name))
      co_await held_.wait();
  }
  bool holds_back(const char* name) const {
    return holding_ && (held_alone_.empty() || held_alone_ == name);
  }
  /// count() of a call that its caller may end: true then.
  Task<bool> ended(RequestContext context, const char* name) {
    ++calls[name];
    Waker waker(held_);
    const std::shared_ptr<CancelToken> token =
        context.interrupt != nullptr ? context.interrupt->token : nullptr;
    if (token != nullptr) token->enlist(waker);
    while (holds_back(name) && !(token != nullptr && token->cancelled()))
      co_await held_.wait();
    co_return holds_back(name);
  }
  /// The server of version 4.0 knows of a change that carries no stateid of ours only that somebody
  /// makes it.
  void expect_no_recall_of_our_own(const Object& object) {
    const bool in_the_way = by_name && delegation(object.handle) != DelegationKind::kNone;
    EXPECT_FALSE(in_the_way);
  }
  bool has_read_delegation(const FileHandle& file) {
    const auto leaving = recalled.find(file);
    return delegation(file) == DelegationKind::kRead ||
           (leaving != recalled.end() && leaving->second == DelegationKind::kRead);
  }
  void expect_no_recall_of_our_own(const FileHandle& directory, const std::string& name) {
    const ObjectRef parent = find(directory);
    if (parent == nullptr || !parent->names.contains(name)) return;
    expect_no_recall_of_our_own(*parent->names[name]);
  }
  void keep_open(const FileHandle& file, const char* how) {
    log.emplace_back(how);
    if (ObjectRef object = find(file)) object->held = true;
  }
  WaitList unlocked_;
  Error failure(int number) const {
    if (number == ESTALE && met_moved_) return kMovedAway;
    return Error{Errc::kRefused, number, "memory"};
  }
  static Error not_spoken() { return Error{Errc::kUnsupported, ENOSYS, "memory"}; }
  Result<Wcc> change_space(const FileHandle& file, std::uint64_t offset, std::uint64_t length,
                           bool taken) {
    if (before_version_42) return not_spoken();
    ObjectRef object = find(file);
    if (object == nullptr) return failure(ESTALE);
    Wcc wcc;
    begin(wcc, *object);
    std::string& data = object->data;
    if (taken) {
      data.resize(std::max<std::size_t>(data.size(), offset + length));
    } else if (offset < data.size()) {
      const std::size_t count = std::min<std::size_t>(length, data.size() - offset);
      data.replace(offset, count, count, '\0');
    }
    object->stable_data = data;
    object->attributes.size = data.size();
    touch(*object);
    finish(wcc, *object);
    return wcc;
  }
  void begin(Wcc& wcc, const Object& object) const {
    if (!is_version_4) {
      wcc.before = {object.attributes.size, object.attributes.mtime, object.attributes.ctime};
    } else if (object.attributes.type == FileType::kDirectory) {
      wcc.change = {changes_are_atomic, *object.attributes.change, 0};
    }
  }
  static void finish(Wcc& wcc, const Object& object) {
    wcc.after = object.attributes;
    if (wcc.change) wcc.change->after = *object.attributes.change;
  }
  void touch(Object& object) {
    object.attributes.mtime = tick();
    touch_attributes(object);
  }
  void touch_attributes(Object& object) {
    object.attributes.ctime = tick();
    if (is_version_4) object.attributes.change = ++last_change_;
  }
  timespec tick() {
    if (!clock_stands) ++clock_;
    return {1'700'000'000 + clock_, 0};
  }
  ObjectRef make_object(FileType type, std::uint32_t mode) {
    ObjectRef object = std::make_shared<Object>();
    const std::uint64_t number = ++last_fileid_;
    object->handle = FileHandle(std::as_bytes(std::span(&number, 1)));
    object->attributes.type = type;
    object->attributes.mode = mode;
    object->attributes.nlink = 1;
    object->attributes.fileid = number;
    touch(*object);
    all_.push_back(object);
    return object;
  }
  /// Like a file system without open-by-handle of removed files: no name, no object.
  ObjectRef find(const FileHandle& handle) const {
    met_moved_ = false;
    for (auto& weak : all_) {
      ObjectRef object = weak.lock();
      if (object == nullptr || !(object->handle == handle)) continue;
      met_moved_ = moved_.contains(object->attributes.fsid) || moved_files_.contains(handle);
      return met_moved_ ? nullptr : object;
    }
    return nullptr;
  }
  CreateResult made(Object& parent, const std::string& name, const ObjectRef& object) {
    CreateResult result;
    begin(result.directory, parent);
    parent.names[name] = object;
    touch(parent);
    result.handle = object->handle;
    result.attributes = object->attributes;
    finish(result.directory, parent);
    return result;
  }
  Result<RemoveResult> take_away(const FileHandle& directory, const std::string& name) {
    ObjectRef parent = find(directory);
    if (parent == nullptr) return failure(ESTALE);
    if (parent->names.count(name) == 0) return failure(ENOENT);
    RemoveResult result;
    begin(result.directory, *parent);
    parent->names.erase(name);
    touch(*parent);
    finish(result.directory, *parent);
    return result;
  }

  std::uint32_t write_size_ = 1 << 20;
  std::int64_t clock_ = 0;
  bool is_version_4 = false;
  std::uint64_t last_change_ = 0;
  std::uint64_t last_fileid_ = 0;
  std::uint64_t boot_ = 1;
  bool holding_ = false;
  std::string held_alone_;
  WaitList held_;
  std::vector<std::weak_ptr<Object>> all_;
  std::set<std::uint64_t> moved_;  // file systems
  std::unordered_set<FileHandle, FileHandleHash> moved_files_;
  mutable bool met_moved_ = false;  // by the last find()
  std::vector<ObjectRef> lingering_;
  ObjectRef root_;
};

}  // namespace nfsrdma
