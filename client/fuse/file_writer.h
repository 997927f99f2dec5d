// SPDX-License-Identifier: Apache-2.0
// FileWriter: sends what WriteBehind keeps of one file. Application writes return at once; several
// WRITEs are under way at a time; fsync and close wait until everything is stable and report what
// went wrong since the last report.
//
// WriteBudget caps what all files of a mount hold together: above half of it the largest holders
// are committed, above all of it writers wait.
//
// Lifetimes: belongs to its Node; every task that it starts holds the Node.
#pragma once

#include <cstdint>
#include <memory>

#include "client/fuse/node.h"
#include "client/fuse/write_behind.h"

namespace nfsrdma {

class FileSystem;

/// A thirty-second of this machine's memory, from 64 MiB to 1 GiB. All of it is kept until the
/// server has it on stable storage, so a small budget makes every writer wait for the server's
/// disks.
std::uint64_t default_write_budget();

struct WriteBudget {
  std::uint64_t cap = 0;  // bytes; FileSystemOptions::write_budget
  std::uint64_t held = 0;
  std::uint64_t most = 0;  // held, since somebody asked last
  WaitList room;

  bool tight() const { return held > cap / 2; }
  bool full() const { return held > cap; }
};

class FileWriter : public ListNode<FileWriter> {
 public:
  /// WRITEs under way at a time for one file.
  static constexpr std::size_t kMostFlights = 32;
  /// Larger writes are taken over with their block, smaller ones copied and joined.
  static constexpr std::uint32_t kAdoptFrom = std::uint32_t{256} << 10;

  FileWriter(FileSystem& file_system, Node& node, std::uint32_t write_size);
  ~FileWriter();

  /// Takes data over and returns; waits only for room. `data` lies in `block`.
  Task<int> write(RequestContext context, NodeRef node, std::uint64_t offset, ByteSpan data,
                  BlockRef block);
  /// Writes past write-behind: stable when it returns (O_DIRECT, O_SYNC). EINTR: whoever waits is
  /// gone, and the WRITEs go on; flush() is behind them.
  Task<int> write_through(RequestContext context, NodeRef node, std::uint64_t offset, ByteSpan data,
                          BlockRef block);
  /// Until the server has everything; with `commit`, or when it may have lost some, until it is
  /// stable. What goes wrong with the data is kept for take_error(); EINTR leaves the data in
  /// place.
  Task<int> flush(RequestContext context, NodeRef node, bool commit);
  /// An error that the open file has not been told of, which this does. `told`: of how many it has
  /// been, from errors_told() on, when it was opened: what nobody was told of is its business, too.
  int take_error(std::uint64_t* told) {
    if (std::exchange(*told, errors_) == errors_) return 0;
    errors_told_ = errors_;
    return error_;
  }
  std::uint64_t errors_told() const { return errors_told_; }
  /// One that nobody has been told of.
  int lost() const { return errors_ == errors_told_ ? 0 : error_; }
  /// Like flush without commit, for reading back a range.
  Task<int> settle(RequestContext context, NodeRef node, std::uint64_t offset,
                   std::uint64_t length);
  /// The server may have lost what it has not made stable (WriteBehind::doubt()).
  void doubt() { behind_.doubt(); }
  /// Starts a flush that nobody waits for, unless one is under way.
  void write_back(NodeRef node);

  WriteBehind& data() { return behind_; }
  const WriteBehind& data() const { return behind_; }
  bool idle() const { return behind_.stable() && left_ == 0 && lost() == 0; }
  Node& node() { return node_; }

 private:
  Task<int> write_to_the_end(RequestContext context, NodeRef node, std::uint64_t offset,
                             ByteSpan data, BlockRef block, std::shared_ptr<bool> left);
  Task<int> wait_for_left(RequestContext context);
  /// Sends what there is to send: whole WRITEs, and for whoever flushes everything.
  void pump(const NodeRef& node);
  /// Something else than a call of this one will wake who waits for `changed_`.
  bool under_way() const { return flights_ > 0 || pumping_; }
  void end_draining();
  Task<void> send(NodeRef node, WriteBehind::FlightRef flight, Stability stable);
  Task<void> commit(NodeRef node);
  Task<void> write_back_task(NodeRef node);
  Task<int> drain(RequestContext context, NodeRef node, bool commit);
  void data_lost(int error);
  void account(const NodeRef& node);
  /// Commits when the mount holds much, so that room comes before anybody has to wait for it.
  void relieve(const NodeRef& node);

  FileSystem& fs_;
  Node& node_;
  WriteBehind behind_;
  NodeRef keep_;  // our own node, while there is data
  CallerRef last_writer_;
  WaitList changed_;
  std::uint64_t accounted_ = 0;
  std::size_t flights_ = 0;
  unsigned left_ = 0;      // writes through under way whose callers are gone
  unsigned draining_ = 0;  // flushes under way: short pieces are sent too
  bool holding_ = false;   // a flush does not come to an end: new writes wait
  bool pumping_ = false;
  bool committing_ = false;
  bool writing_back_ = false;
  int error_ = 0;  // the first one since an open file was told of one
  std::uint64_t errors_ = 0;
  std::uint64_t errors_told_ = 0;  // of them, to any
};

}  // namespace nfsrdma
