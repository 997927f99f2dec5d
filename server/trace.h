// SPDX-License-Identifier: Apache-2.0
// Trace: who watches calls go by (`nfs-rdma trace`), and what each of them wants to see. Shards
// take calls down only while anybody watches.
//
// On the accepting loop's thread. Make it after the shards and end it before them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/json_value.h"
#include "server/call_tap.h"
#include "server/control.h"
#include "server/procedure.h"

namespace nfsrdma {

class Shard;

/// Which calls somebody wants to see.
struct TraceFilter {
  std::string client;     // host address; empty: any
  std::string operation;  // procedure or, of a COMPOUND, one of its operations; upper case
  std::string fabric;     // "iwarp", "verbs", "tcp"
  std::uint64_t slower_than_ns = 0;
  bool only_errors = false;

  bool matches(const CallRecord& record) const;
  /// From a request's members client, operation, fabric, slower_than_us, errors. False with
  /// *problem.
  static bool parse(const JsonValue& request, TraceFilter* out, std::string* problem);
  /// Is `operation`, if there is one, what `programs` or COMPOUNDs have? False with *problem, which
  /// names the nearest.
  bool names_one_of(std::span<const ProgramTable> programs, std::string* problem) const;
};

class Trace {
 public:
  static constexpr std::size_t kMostWatchers = 8;

  /// `programs` outlive it.
  Trace(EventLoop& loop, std::span<const std::unique_ptr<Shard>> shards,
        std::span<const ProgramTable> programs)
      : loop_(loop), shards_(shards), programs_(programs) {}
  ~Trace();

  /// Sends a line of JSON for each call that `request` asks for until the reader goes.
  void watch(const JsonValue& request, std::shared_ptr<ControlStream> stream);

 private:
  struct Watcher {
    std::shared_ptr<ControlStream> stream;
    TraceFilter filter;
    std::uint64_t lost = 0;
  };
  void tap(bool on);
  void take(const CallBatch& batch);
  static void tell(Watcher& watcher, const CallRecord& record);
  void forget(const ControlStream* stream);

  EventLoop& loop_;
  std::span<const std::unique_ptr<Shard>> shards_;
  std::span<const ProgramTable> programs_;
  std::vector<Watcher> watchers_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace nfsrdma
