// SPDX-License-Identifier: Apache-2.0
// Request: one FUSE request while a coroutine works on it. Every request is answered exactly once:
// the replying functions may be called once, and a request that is dropped unanswered is
// answered with EIO. All on the main thread, but whole().
#pragma once

#include <string_view>

#include "client/fuse/fuse_api.h"
#include "client/fuse/remote.h"

namespace nfsrdma {

class FuseOperations;

class Request final : public ReadAnswer {
 public:
  Request(FuseOperations& operations, fuse_req_t raw);
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() override;

  const CallerRef& caller() const { return caller_; }
  /// As the process that asks.
  RequestContext context() { return {caller_, &interrupt_}; }
  /// As somebody else (the opener of a file), but given up when the asking process dies.
  RequestContext as(const CallerRef& caller) { return {caller, &interrupt_}; }
  Interrupt& interrupt() { return interrupt_; }
  fuse_req_t raw() const { return raw_; }
  /// Of the process that asks, when it makes something.
  mode_t umask() const;

  void error(int number);  // 0: done
  void none();
  /// False when the kernel no longer wants the answer: undo what it would have owned.
  bool entry(const fuse_entry_param& entry);
  bool created(const fuse_entry_param& entry, const fuse_file_info& info);
  bool opened(const fuse_file_info& info);
  void attributes(const struct stat& attributes, double seconds);
  void link_text(const std::string& text);
  void data(const void* bytes, std::size_t size);
  /// The same from the thread where the data arrived; the main thread learns of it when the read
  /// returns.
  void whole(ByteSpan data) override;
  bool answered() const { return answered_; }
  void written(std::size_t count);
  void sought(std::uint64_t offset);
  void lock(const struct flock& found);
  void xattr_size(std::size_t size);
  void space(const struct statvfs& space);

 private:
  static void on_interrupt(fuse_req_t raw, void* self);
  fuse_req_t take();

  FuseOperations& operations_;
  fuse_req_t raw_;
  CallerRef caller_;
  Interrupt interrupt_;
  bool answered_ = false;  // by whole()
};

}  // namespace nfsrdma
