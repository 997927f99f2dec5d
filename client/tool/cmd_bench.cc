// SPDX-License-Identifier: Apache-2.0
// nfs-rdma bench: the options, and the result as a table or as JSON.
#include <fmt/format.h>

#include <cstdio>

#include "client/default_fabrics.h"
#include "client/library/loop_driver.h"
#include "client/mount_url.h"
#include "client/rpc_client.h"
#include "client/tool/arguments.h"
#include "client/tool/bench.h"
#include "client/tool/commands.h"
#include "client/tool/format.h"
#include "rpcrdma/base/json_writer.h"

namespace nfsrdma::tool {
namespace {

namespace po = boost::program_options;

std::optional<Load> parse_load(const std::string& text) {
  if (text == "read") return Load::kRead;
  if (text == "write") return Load::kWrite;
  if (text == "randread") return Load::kRandRead;
  if (text == "randwrite") return Load::kRandWrite;
  if (text == "null") return Load::kNull;
  if (text == "getattr") return Load::kGetattr;
  if (text == "meta") return Load::kMeta;
  return std::nullopt;
}

/// An error text, or nothing and *options filled in.
std::string read_options(const Arguments& arguments, BenchOptions* options) {
  std::optional<Load> load = parse_load(arguments.get<std::string>("rw"));
  if (!load) {
    return "--rw " + arguments.get<std::string>("rw") +
           ": expected read, write, randread, randwrite, null, getattr or meta";
  }
  options->load = *load;
  const bool random = *load == Load::kRandRead || *load == Load::kRandWrite;
  options->block_bytes = random ? 4096 : 1 << 20;
  if (arguments.has("block")) {
    std::optional<std::uint64_t> block = parse_bytes(arguments.get<std::string>("block"));
    if (!block || *block == 0 || *block > (64u << 20)) {
      return "--block " + arguments.get<std::string>("block") + ": expected 1 to 64M";
    }
    options->block_bytes = *block;
  }
  const char* size_option = arguments.has("size") ? "size" : "file-size";
  if (arguments.has(size_option)) {
    std::optional<std::uint64_t> size = parse_bytes(arguments.get<std::string>(size_option));
    if (!size || *size < options->block_bytes) {
      return std::string("--") + size_option + " " + arguments.get<std::string>(size_option) +
             ": expected a number of bytes, at least one block (k, M, G behind it)";
    }
    options->file_bytes = *size;
  }
  options->depth = arguments.get<std::uint32_t>("depth");
  options->connections = arguments.get<std::uint32_t>("connections");
  options->seconds = arguments.get<double>("time");
  options->stable = arguments.has("stable");
  options->overwrite = arguments.has("overwrite");
  if (options->depth == 0 || options->depth > 4096) return "--depth: expected 1 to 4096";
  if (options->connections == 0 || options->connections > 1024) {
    return "--connections: expected 1 to 1024";
  }
  if (!(options->seconds > 0 && options->seconds <= 86400)) {
    return "--time: expected seconds, up to 86400";
  }
  return "";
}

double microseconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1000;
}

void print_json(const Arguments& arguments, const BenchOptions& options, const BenchResult& r) {
  JsonWriter json;
  json.begin_object();
  json.field("url", arguments.operands()[0]);
  json.field("rw", arguments.get<std::string>("rw"));
  json.field("block", options.block_bytes);
  json.field("size", r.file_bytes);
  json.field("depth", options.depth);
  json.field("connections", options.connections);
  json.field("fabric", r.connections.empty() ? "none" : transport_name(r.connections[0].transport));
  json.field("seconds", r.seconds);
  json.field("operations", r.operations);
  json.field("bytes", r.bytes);
  json.field("bytes_per_second", static_cast<double>(r.bytes) / r.seconds);
  json.field("ops_per_second", static_cast<double>(r.operations) / r.seconds);
  json.key("latency_us");
  json.begin_object();
  json.field("min", microseconds(r.latency.least()));
  json.field("mean", r.latency.mean() / 1000);
  json.field("p50", microseconds(r.latency.percentile(0.5)));
  json.field("p99", microseconds(r.latency.percentile(0.99)));
  json.field("p999", microseconds(r.latency.percentile(0.999)));
  json.field("max", microseconds(r.latency.most()));
  json.end_object();
  json.field("cpu_seconds", r.cpu_seconds);
  json.field("commit_seconds", r.commit_seconds);
  json.field("errors", r.errors);
  if (!r.connections.empty()) {
    json.field("fallback_reason", r.connections[0].fallback_reason);
  }
  json.end_object();
  std::printf("%s\n", json.text().c_str());
}

void print_table(const Arguments& arguments, const BenchOptions& options, const BenchResult& r) {
  const std::string& what = arguments.get<std::string>("rw");
  say("{} over {}, {} connection{}, depth {}, {:.1f} s\n", what,
      r.connections.empty() ? "none" : transport_name(r.connections[0].transport),
      options.connections, options.connections == 1 ? "" : "s", options.depth, r.seconds);
  if (r.file_bytes < options.file_bytes) {
    say("  size          {}, all that the file has, instead of {}\n",
        bytes_text(static_cast<double>(r.file_bytes)),
        bytes_text(static_cast<double>(options.file_bytes)));
  }
  if (r.bytes != 0) {
    say("  throughput    {}/s\n", bytes_text(static_cast<double>(r.bytes) / r.seconds));
  }
  say("  operations    {:.0f}/s\n", static_cast<double>(r.operations) / r.seconds);
  say("  latency       p50 {:.1f} us, p99 {:.1f} us, p99.9 {:.1f} us\n",
      microseconds(r.latency.percentile(0.5)), microseconds(r.latency.percentile(0.99)),
      microseconds(r.latency.percentile(0.999)));
  say("  client CPU    {:.2f} s ({:.0f} % of a core)\n", r.cpu_seconds,
      r.cpu_seconds / r.seconds * 100);
  if (r.commit_seconds > 0) {
    say("  COMMIT        {:.2f} s, behind the time measured\n", r.commit_seconds);
  }
  say("  errors        {}\n", r.errors);
  if (!r.connections.empty() && !r.connections[0].fallback_reason.empty()) {
    say("  not faster because: {}\n", r.connections[0].fallback_reason);
  }
}

void describe_options(Arguments& arguments) {
  arguments.add()("rw", po::value<std::string>()->default_value("read")->value_name("LOAD"),
                  "read, write, randread, randwrite, null, getattr or meta")(
      "size", po::value<std::string>()->value_name("S"),
      "size of the file (1G); of one that is there and shorter, all of it is read")(
      "file-size", po::value<std::string>()->value_name("S"), "the same")(
      "block", po::value<std::string>()->value_name("B"),
      "bytes per operation (1M; 4k when random)")(
      "depth", po::value<std::uint32_t>()->default_value(8)->value_name("D"),
      "operations under way per connection")(
      "connections", po::value<std::uint32_t>()->default_value(1)->value_name("N"),
      "connections to the server, each with its own depth")(
      "time", po::value<double>()->default_value(10, "10")->value_name("T"), "seconds")(
      "overwrite", "write to a file that bench has not made, or make it longer")(
      "stable", "writes are FILE_SYNC, else UNSTABLE with one COMMIT at the end")(
      "json", "one JSON object");
}

}  // namespace

int run_bench(const Words& words) {
  Arguments arguments(
      "bench",
      "URL [--rw LOAD] [--size S] [--block B] [--depth D] [--connections N] "
      "[--time T] [--overwrite] [--json]",
      "Measures a server. URL names a file, which is made when it is missing, or a\n"
      "directory to make one in. A file with data that bench has not written is\n"
      "read only, unless --overwrite is given.");
  describe_options(arguments);
  if (auto code = arguments.parse(words, 1, 1)) return *code;
  BenchOptions options;
  if (std::string wrong = read_options(arguments, &options); !wrong.empty()) {
    return arguments.usage_error(wrong);
  }
  std::string detail;
  MountSettings settings;
  if (!parse_mount_url(arguments.operands()[0], &settings, &detail)) {
    return arguments.usage_error(detail);
  }
  if (!resolve_host(settings, &detail).ok()) {
    complain("bench", detail);
    return kExitFailure;
  }
  auto driver = LoopDriver::create();
  if (!driver.ok()) {
    complain("bench", driver.error().message());
    return kExitFailure;
  }
  BenchResult result;
  Result<void> done =
      (*driver)->run(run_load((*driver)->loop(), default_fabrics(settings.require_crc), settings,
                              options, &result, &detail));
  if (!done.ok()) {
    complain("bench", detail.empty() ? done.error().message() : detail);
    return kExitFailure;
  }
  arguments.has("json") ? print_json(arguments, options, result)
                        : print_table(arguments, options, result);
  if (result.errors != 0) complain("bench", "first error: " + result.first_error);
  return result.errors == 0 ? kExitOk : kExitFailure;
}

}  // namespace nfsrdma::tool
