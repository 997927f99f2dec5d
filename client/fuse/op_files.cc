// SPDX-License-Identifier: Apache-2.0
// FUSE operations on open files.
#include <fcntl.h>

#include <cerrno>

#include "client/fuse/fuse_operations.h"

namespace nfsrdma {
namespace {

// Reads up to this size get memory of their own instead of a block of the pool.
constexpr std::size_t kSmallRead = std::size_t{64} << 10;

std::uint64_t to_fh(OpenFile* file) {
  return reinterpret_cast<std::uintptr_t>(file);
}

/// A request for a program's own memory (O_DIRECT), where others are for pages of the kernel: it
/// says for whom.
bool past_pages(const fuse_file_info& info) {
  return info.lock_owner != 0;
}

}  // namespace

/// The file for an open with O_CREAT whose name was absent a moment ago.
Task<int> FuseOperations::make_file(Request& request, NodeRef parent, std::string name, mode_t mode,
                                    int flags, NodeRef* node, bool* keep_cache) {
  const RequestContext context = request.context();
  if (const int error = co_await mask_mode(request, parent, &mode)) co_return error;
  SetAttributes set;
  set.mode = mode & 07777;
  const CreateMode how = flags & O_EXCL ? CreateMode::kExclusive : CreateMode::kGuarded;
  const std::uint32_t open_for = rights_for(flags) & (access_bits::kRead | access_bits::kModify);
  auto maker = [&](Remote& remote) {
    return remote.create_open(context, parent->handle, name, how, set, open_for);
  };
  co_return co_await fs.make_open(context, parent, name, maker, flags, node, keep_cache);
}

Task<void> FuseOperations::create(fuse_req_t raw, fuse_ino_t parent, std::string name, mode_t mode,
                                  fuse_file_info info) {
  Request request(*this, raw);
  NodeRef directory = fs.nodes.find(parent);
  if (directory == nullptr) co_return request.error(ESTALE);
  NodeRef node;
  bool keep_cache = true;
  const int error =
      co_await make_file(request, directory, std::move(name), mode, info.flags, &node, &keep_cache);
  if (error != 0) co_return request.error(error);
  OpenFile* file = new OpenFile{node, request.caller(), info.flags};
  info.fh = to_fh(file);
  info.keep_cache = keep_cache;
  const fuse_entry_param entry = entry_of(*node, *directory);
  fs.nodes.reference(node);
  if (request.created(entry, info)) co_return;
  fs.nodes.forget(node->id, 1);
  delete file;
  fs.close(node, request.caller(), info.flags);
}

Task<void> FuseOperations::open(fuse_req_t raw, fuse_ino_t ino, fuse_file_info info) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) co_return request.error(ESTALE);
  bool keep_cache = true;
  const int error = co_await fs.open(request.context(), node, info.flags, &keep_cache);
  if (error != 0) co_return request.error(error);
  OpenFile* file = new OpenFile{node, request.caller(), info.flags};
  info.fh = to_fh(file);
  info.keep_cache = keep_cache;
  if (request.opened(info)) co_return;
  delete file;
  fs.close(node, request.caller(), info.flags);
}

Task<void> FuseOperations::read(fuse_req_t raw, OpenFile* file, std::size_t size,
                                std::uint64_t offset, fuse_file_info info) {
  Request request(*this, raw);
  NodeRef node = file->node;
  if (!past_pages(info)) node->read_into_pages = true;
  const bool large = size > kSmallRead && size <= BlockPool::block_bytes();
  BlockRef block = large ? blocks.take() : std::make_shared<DataBlock>(size);
  std::size_t count = 0;
  RequestContext context = request.as(file->caller);
  context.answer = &request;
  const int error =
      co_await fs.read(context, node, offset, MutableByteSpan(block->data(), size), &count);
  if (request.answered()) co_return;
  if (error != 0) co_return request.error(error);
  request.data(block->data(), count);
}

Task<void> FuseOperations::write(fuse_req_t raw, OpenFile* file, ByteSpan data,
                                 std::uint64_t offset, fuse_file_info info, BlockRef block) {
  Request request(*this, raw);
  NodeRef node = file->node;
  FileWriter& writer = fs.writer_of(*node);
  const RequestContext context = request.as(file->caller);
  const bool through =
      !info.writepage && (fs.options.synchronous || (info.flags & (O_DIRECT | O_DSYNC)) != 0);
  int error = 0;
  if ((info.flags & O_APPEND) != 0 && !info.writepage) {
    error = co_await fs.append_offset(context, node, &offset);
    if (error != 0) co_return request.error(error);
  }
  if (through) {
    error = co_await writer.write_through(context, node, offset, data, block);
    if (past_pages(info)) co_await fs.drop_read_pages(context, node);
  } else {
    error = co_await writer.write(context, node, offset, data, block);
    // Written back from a mapping: the kernel forgets the page afterwards, and no close need
    // follow.
    if (error == 0 && info.writepage) {
      error = co_await writer.settle(context, node, offset, data.size());
    }
  }
  if (error != 0) co_return request.error(error);
  request.written(data.size());
}

Task<void> FuseOperations::flush(fuse_req_t raw, OpenFile* file, LockOwnerId owner) {
  Request request(*this, raw);
  NodeRef node = file->node;
  const RequestContext context = request.as(file->caller);
  std::erase(file->lockers, owner);
  // Who was killed does not wait for the server; data and unlocking go on their way all the same.
  const bool unwritten = file->writes() && node->writer != nullptr && !node->writer->idle();
  if (unwritten || FileSystem::may_hold_locks(*node, owner)) watch(request.interrupt());
  int error = co_await fs.write_out_at_close(context, node, file->writes(), &file->errors_told);
  // Closing any descriptor of a file lets go of all locks that the process has on it (fcntl(2)).
  const int kept = co_await fs.let_go(context, node, owner);
  if (error == 0) error = kept;
  request.error(error);
}

Task<void> FuseOperations::fsync(fuse_req_t raw, OpenFile* file) {
  Request request(*this, raw);
  const NodeRef node = file->node;
  if (node->writer != nullptr && !node->writer->idle()) watch(request.interrupt());
  const int error = co_await fs.write_out(request.as(file->caller), node, &file->errors_told);
  request.error(error);
}

void FuseOperations::release(fuse_req_t raw, OpenFile* file) {
  NodeRef node = file->node;
  for (const LockOwnerId owner : file->lockers)
    fs.let_go_behind(node, file->caller, owner);
  // Before any request behind it in the queue: an unlink must not find the file still open.
  fs.close(node, file->caller, file->flags);
  delete file;
  ::fuse_reply_err(raw, 0);
}

}  // namespace nfsrdma
