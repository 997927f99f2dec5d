// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/request.h"

#include <cerrno>

#include "client/fuse/fuse_operations.h"

namespace nfsrdma {

Request::Request(FuseOperations& operations, fuse_req_t raw) : operations_(operations), raw_(raw) {
  const fuse_ctx* context = ::fuse_req_ctx(raw);
  caller_ =
      operations.callers.find(context->uid, context->gid, context->pid, operations.fs.loop.now());
  interrupt_.pid = context->pid;
  ::fuse_req_interrupt_func(raw, on_interrupt, this);
}

Request::~Request() {
  if (raw_ != nullptr && !answered_) error(EIO);
}

mode_t Request::umask() const {
  return ::fuse_req_ctx(raw_)->umask;
}

void Request::on_interrupt(fuse_req_t, void* self) {
  // libfuse holds locks here: acting on it waits for the end of the turn.
  Request* request = static_cast<Request*>(self);
  if (request->raw_ != nullptr) request->operations_.interrupted(request->interrupt_);
}

fuse_req_t Request::take() {
  return std::exchange(raw_, nullptr);
}

void Request::error(int number) {
  ::fuse_reply_err(take(), number);
}
void Request::none() {
  ::fuse_reply_none(take());
}
bool Request::entry(const fuse_entry_param& entry) {
  return ::fuse_reply_entry(take(), &entry) != -ENOENT;
}
bool Request::created(const fuse_entry_param& entry, const fuse_file_info& info) {
  return ::fuse_reply_create(take(), &entry, &info) != -ENOENT;
}
bool Request::opened(const fuse_file_info& info) {
  return ::fuse_reply_open(take(), &info) != -ENOENT;
}
void Request::attributes(const struct stat& attributes, double seconds) {
  ::fuse_reply_attr(take(), &attributes, seconds);
}
void Request::link_text(const std::string& text) {
  ::fuse_reply_readlink(take(), text.c_str());
}
void Request::data(const void* bytes, std::size_t size) {
  ::fuse_reply_buf(take(), static_cast<const char*>(bytes), size);
}
void Request::whole(ByteSpan data) {
  // libfuse answers from any thread. An interrupt that the main thread takes up meanwhile finds
  // the request still here, and what it would end over.
  ::fuse_reply_buf(raw_, reinterpret_cast<const char*>(data.data()), data.size());
  answered_ = true;
}
void Request::written(std::size_t count) {
  ::fuse_reply_write(take(), count);
}
void Request::sought(std::uint64_t offset) {
  ::fuse_reply_lseek(take(), static_cast<off_t>(offset));
}
void Request::lock(const struct flock& found) {
  ::fuse_reply_lock(take(), &found);
}
void Request::xattr_size(std::size_t size) {
  ::fuse_reply_xattr(take(), size);
}
void Request::space(const struct statvfs& space) {
  ::fuse_reply_statfs(take(), &space);
}

}  // namespace nfsrdma
