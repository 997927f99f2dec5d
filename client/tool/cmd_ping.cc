// SPDX-License-Identifier: Apache-2.0
// nfs-rdma ping: NULL calls, one after the other. Needs no export, so it tells whether the server
// and the transport are there at all.
#include <fmt/format.h>

#include <cstdio>

#include "client/async_mount.h"
#include "client/default_fabrics.h"
#include "client/library/loop_driver.h"
#include "client/mount_url.h"
#include "client/nfs3/call.h"
#include "client/tool/arguments.h"
#include "client/tool/commands.h"
#include "client/tool/format.h"
#include "client/tool/histogram.h"
#include "client/tool/mounted_server.h"
#include "rpcrdma/base/json_writer.h"

namespace nfsrdma::tool {
namespace {

struct PingResult {
  Histogram latency;
  std::uint64_t lost = 0;
  ConnectionInfo connection;
};

Task<Result<void>> ping(RpcClient& rpc, const OpContext& op, std::uint32_t count, Duration interval,
                        PingResult* result, std::string* detail) {
  NFSRDMA_CO_CHECK_OK(co_await rpc.connect(detail));
  const xdr::Void none;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i > 0 && interval > Duration::zero()) co_await rpc.sleep(interval, nullptr);
    const auto before = std::chrono::steady_clock::now();
    auto answer = co_await nfs3::call<xdr::Void>(rpc, op, xdr::nfsproc3::NFSPROC3_NULL, none);
    const auto took = std::chrono::steady_clock::now() - before;
    if (!answer.ok()) {
      *detail = answer.error().message();
      ++result->lost;
      continue;
    }
    result->latency.add(static_cast<std::uint64_t>(std::chrono::nanoseconds(took).count()));
  }
  if (!rpc.connections().empty()) result->connection = rpc.connections().front();
  co_await rpc.yield();
  if (result->latency.count() == 0) co_return Error{Errc::kTimedOut, ETIMEDOUT, "ping"};
  co_return Result<void>();
}

void print_result(const std::string& place, const PingResult& r) {
  auto us = [](double ns) { return ns / 1000; };
  say("{}: {} answers, {} lost, over {} ({})\n", place, r.latency.count(), r.lost,
      transport_name(r.connection.transport), r.connection.peer.text());
  say("latency min/avg/p50/p99/max = {:.1f}/{:.1f}/{:.1f}/{:.1f}/{:.1f} us\n",
      us(static_cast<double>(r.latency.least())), us(r.latency.mean()),
      us(static_cast<double>(r.latency.percentile(0.5))),
      us(static_cast<double>(r.latency.percentile(0.99))),
      us(static_cast<double>(r.latency.most())));
  if (!r.connection.fallback_reason.empty()) {
    say("not faster because: {}\n", r.connection.fallback_reason);
  }
}

void print_json(const PingResult& r) {
  auto us = [](double ns) { return ns / 1000; };
  JsonWriter json;
  json.begin_object();
  json.field("answers", r.latency.count());
  json.field("lost", r.lost);
  json.field("fabric", transport_name(r.connection.transport));
  json.field("peer", r.connection.peer.text());
  json.field("fallback_reason", r.connection.fallback_reason);
  json.key("latency_us");
  json.begin_object();
  json.field("min", us(static_cast<double>(r.latency.least())));
  json.field("avg", us(r.latency.mean()));
  json.field("p50", us(static_cast<double>(r.latency.percentile(0.5))));
  json.field("p99", us(static_cast<double>(r.latency.percentile(0.99))));
  json.field("max", us(static_cast<double>(r.latency.most())));
  json.end_object();
  json.end_object();
  std::printf("%s\n", json.text().c_str());
}

}  // namespace

int run_ping(const Words& words) {
  namespace po = boost::program_options;
  Arguments arguments(
      "ping", "[-c COUNT] [-i MILLISECONDS] [--json] URL|DIRECTORY",
      "Measures the latency of empty calls to a server, or to that of a mount; needs no export.");
  arguments.add()("count,c", po::value<std::uint32_t>()->default_value(100)->value_name("N"),
                  "calls to make")("interval,i",
                                   po::value<std::uint32_t>()->default_value(0)->value_name("MS"),
                                   "milliseconds between them")("json", "one JSON object");
  if (auto code = arguments.parse(words, 1, 1)) return *code;
  std::string detail;
  MountSettings settings;
  std::string place = arguments.operands()[0];
  if (looks_like_url(place)) {
    if (!parse_mount_url(place, &settings, &detail)) return arguments.usage_error(detail);
  } else if (!settings_of_mount(place, &settings, &place, &detail)) {
    complain("ping", detail + "; ping takes a URL, or a directory of such a mount");
    return kExitFailure;
  }
  settings.soft = true;
  settings.timeo = std::chrono::seconds(5);
  settings.connections = 1;
  if (!resolve_host(settings, &detail).ok()) {
    complain("ping", detail);
    return kExitFailure;
  }
  auto driver = LoopDriver::create();
  if (!driver.ok()) {
    complain("ping", driver.error().message());
    return kExitFailure;
  }
  OpContext op;
  op.identity = settings.identity;
  PingResult result;
  std::unique_ptr<RpcClient> rpc =
      make_rpc_client((*driver)->loop(), default_fabrics(settings.require_crc), settings);
  Result<void> done = (*driver)->run(
      ping(*rpc, op, arguments.get<std::uint32_t>("count"),
           std::chrono::milliseconds(arguments.get<std::uint32_t>("interval")), &result, &detail));
  rpc.reset();
  if (!done.ok()) {
    complain("ping", detail.empty() ? done.error().message() : detail);
    return kExitFailure;
  }
  arguments.has("json") ? print_json(result) : print_result(place, result);
  return result.lost == 0 ? kExitOk : kExitFailure;
}

}  // namespace nfsrdma::tool
