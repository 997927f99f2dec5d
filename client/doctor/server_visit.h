// SPDX-License-Identifier: Apache-2.0
// ServerVisit: one run of the checks against a server. What several checks need (addresses, the
// route, the answers to NULL) is found by the first that wants it, so that each can run alone. All
// that goes over the network goes through Network, which tests replace.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/doctor/check.h"
#include "client/doctor/host_view.h"
#include "client/mount_settings.h"
#include "rpcrdma/connection_info.h"

namespace nfsrdma::doctor {

/// The answer of a name service.
struct Lookup {
  enum class How : std::uint8_t { kFound, kUnknown, kTimedOut } how = How::kUnknown;
  std::vector<SocketAddress> addresses{};
  std::string error{};
};

/// How an attempt to connect to a TCP port ended.
struct Reached {
  enum class How : std::uint8_t { kOpen, kRefused, kTimedOut, kUnreachable } how = How::kTimedOut;
  std::string error{};  // of kUnreachable
};

/// Where packets to a server leave this host.
struct Route {
  SocketAddress local;
  std::string interface;
  bool by_gateway = false;
};

/// The answer to a NULL call over one transport, or why there was none.
struct NullAnswer {
  bool tried = true;  // false: this host cannot, for the reason in `error`
  bool answered = false;
  std::string error{};
  double milliseconds = 0;
  std::uint32_t nfs_version = 0;  // that was asked
  Reached reached{};              // the port, as far as TCP goes
  ConnectionInfo connection{};
};

/// A file written, read back and removed over one transport.
struct DataAnswer {
  bool done = false;  // everything went well, and the bytes were the same
  enum class Failed : std::uint8_t { kNothing, kMount, kCreate, kWrite, kRead, kDiffers, kRemove };
  Failed failed = Failed::kNothing;
  int error_number = 0;
  std::string error{};
  std::string file{};         // as the server has it
  bool left_behind = false;   // it could not be removed
  std::string nfs_version{};  // in force
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  // of what was read, when it was
  double write_ms = 0, read_ms = 0;
  ConnectionInfo connection{};  // counters of this file alone
  std::optional<double> skew;   // seconds that the server's clock is ahead of ours
  double skew_uncertainty = 0;
};

class Network {
 public:
  virtual ~Network() = default;
  virtual Lookup resolve(const std::string& host, std::chrono::milliseconds patience) = 0;
  /// "" when the address has no name, or nobody answers.
  virtual std::string reverse(const SocketAddress& address, std::chrono::milliseconds patience) = 0;
  virtual Reached reach(const SocketAddress& address, std::chrono::milliseconds patience) = 0;
  virtual std::optional<Route> route(const SocketAddress& address) = 0;
  virtual NullAnswer null_call(const MountSettings& settings, TransportKind kind,
                               std::chrono::milliseconds patience) = 0;
  virtual DataAnswer exchange(const MountSettings& settings, TransportKind kind,
                              std::chrono::milliseconds patience) = 0;
};
std::unique_ptr<Network> real_network();

inline constexpr std::array kTransports = {TransportKind::kIwarp, TransportKind::kVerbs,
                                           TransportKind::kTcp};

struct ServerVisit {
  const HostView& host;
  Network& network;
  MountSettings settings;                    // host, ports, path; look_up() fills in the addresses
  bool has_path = false;                     // settings.path is something that was asked for
  std::chrono::milliseconds patience{5000};  // for each step over the network
  /// `nfs-rdma doctor --json` of the other end, where it was given.
  std::string other_end{};
  std::string server{};  // as it was given, for commands that are proposed
  /// Row `transport` runs, and tells of a server that does not answer. Otherwise that is a problem
  /// of the row that sees it.
  bool transport_is_judged = true;

  // What was found:
  std::optional<Lookup> lookup{};
  bool lookup_is_told = false;  // a check has reported that there is no address
  bool route_is_known = false;
  std::optional<Route> route{};  // to the first address that has one
  std::string rdma_device{};     // that the route leads over; "" when none does
  std::array<std::optional<NullAnswer>, kTransports.size()> nulls{};
  std::array<std::optional<DataAnswer>, kTransports.size()> data{};

  bool wants(TransportKind kind) const;
};

/// The answer over one transport; all that are wanted are asked when the first is.
const NullAnswer& null_of(ServerVisit& visit, TransportKind kind);
/// Does the server answer over any RDMA fabric, over any transport at all?
bool any_rdma(ServerVisit& visit);
bool any_answer(ServerVisit& visit);
/// "on the server: ..." for a transport that nobody answers on.
std::vector<std::string> silence_remedy(const ServerVisit& visit, TransportKind kind);

// server_address.cc
/// Asks the name service, once.
const Lookup& look_up(ServerVisit& visit);
/// False: there is no address, and *result says so, as a problem where no check has done so yet.
bool has_address(ServerVisit& visit, CheckResult* result);
/// What is wrong with the name.
void tell_lookup(ServerVisit& visit, CheckResult* result);
/// The route to the first address that has one, and the RDMA device on that interface.
void find_route(ServerVisit& visit);
/// A command line of the doctor for this server with further options.
std::string doctor_command(const ServerVisit& visit, const std::string& options);

// check_server.cc
CheckResult check_dns(ServerVisit& visit);
CheckResult check_route(ServerVisit& visit);
CheckResult check_reach(ServerVisit& visit);
// check_gid_match.cc
CheckResult check_gid_match(ServerVisit& visit);
// check_end_to_end.cc
CheckResult check_null_iwarp(ServerVisit& visit);
CheckResult check_null_verbs(ServerVisit& visit);
CheckResult check_null_tcp(ServerVisit& visit);
CheckResult check_transport(ServerVisit& visit);
// check_data.cc
CheckResult check_data_iwarp(ServerVisit& visit);
CheckResult check_data_verbs(ServerVisit& visit);
CheckResult check_data_tcp(ServerVisit& visit);
CheckResult check_skew(ServerVisit& visit);

/// SERVER of the command line: host, host:port, host:/path or a URL. False with a line in *error.
bool parse_server(const std::string& text, MountSettings* settings, bool* has_path,
                  std::string* error);

}  // namespace nfsrdma::doctor
