// SPDX-License-Identifier: Apache-2.0
#include "client/tool/server_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "client/counted.h"
#include "client/tool/format.h"

namespace nfsrdma::tool {

namespace {

void add_latency(const JsonValue& pairs, LatencyCounts& out) {
  for (const JsonValue& pair : pairs.items()) {
    if (pair.items().size() != 2) continue;
    const JsonValue& end = pair.items()[0];
    const double us = end.kind() == JsonValue::Kind::kNumber
                          ? end.number()
                          : std::numeric_limits<double>::infinity();
    out[us] += pair.items()[1].count();
  }
}

/// What a connection had counted goes with it.
std::uint64_t grown(std::uint64_t before, std::uint64_t now) {
  return now >= before ? now - before : 0;
}

LatencyCounts grown(const LatencyCounts& before, const LatencyCounts& now) {
  LatencyCounts out;
  for (const auto& [end, count] : now) {
    const auto found = before.find(end);
    out[end] = grown(found == before.end() ? 0 : found->second, count);
  }
  return out;
}

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : ",") + word;
  return text;
}

void sort_by_calls(std::vector<ServerRates::Line>& lines) {
  std::ranges::stable_sort(lines, [](const auto& a, const auto& b) { return a.calls > b.calls; });
}

/// "812 us", "3.1 ms", "2.0 s"; "-" for none.
std::string latency_text(double us) {
  if (us <= 0) return "-";
  if (us == std::numeric_limits<double>::infinity()) return "> 17 s";
  if (us < 1000) return fmt::format("{:.0f} us", us);
  if (us < 1e6) return fmt::format("{:.1f} ms", us / 1e3);
  return fmt::format("{:.1f} s", us / 1e6);
}

std::string rate_text(double bytes) {
  return bytes < 1 ? "-" : bytes_text(bytes) + "/s";
}

/// Lines that fit on a screen.
class Screen {
 public:
  Screen(std::size_t columns, std::size_t rows) : columns_(columns), rows_(rows) {}
  std::size_t left() const { return rows_ - used_; }
  void line(std::string text) {
    if (used_ == rows_) return;
    if (text.size() > columns_) text.resize(columns_);
    text_ += text + "\n";
    ++used_;
  }
  std::string take() { return std::move(text_); }

 private:
  std::size_t columns_, rows_;
  std::size_t used_ = 0;
  std::string text_;
};

}  // namespace

double latency_percentile(const LatencyCounts& counts, double share) {
  std::uint64_t total = 0;
  for (const auto& [end, count] : counts)
    total += count;
  if (total == 0) return 0;
  std::uint64_t seen = 0;
  for (const auto& [end, count] : counts) {
    seen += count;
    if (static_cast<double>(seen) >= share * static_cast<double>(total)) return end;
  }
  return counts.rbegin()->first;
}

std::string host_of(const std::string& peer) {
  if (peer.starts_with('[')) return peer.substr(1, peer.find(']') - 1);
  return peer.substr(0, peer.rfind(':'));
}

ServerSample ServerSample::of(const JsonValue& document) {
  ServerSample out;
  out.version = document["server"].text();
  out.pid = document["pid"].count();
  out.uptime = document["uptime_seconds"].number();
  for (const JsonValue& row : document["operations"].items()) {
    Operation& operation =
        out.operations[{row["program"].text(), row["name"].text(), row["fabric"].text()}];
    operation.calls += row["calls"].count();
    operation.errors += row["errors"].count();
    add_latency(row["latency_us"], operation.latency);
  }
  for (const JsonValue& c : document["connections"].items()) {
    Client& client = out.clients[host_of(c["peer"].text())];
    client.fabrics.insert(c["fabric"].text());
    client.connections.insert(c["id"].count());
    client.calls += c["calls"].count();
    client.rdma_write_bytes += c["rdma_write_bytes"].count();
    client.rdma_read_bytes += c["rdma_read_bytes"].count();
    client.inline_bytes += c["inline_bytes"].count();
    client.credits += c["credits"].count();
    client.calls_in_progress += c["calls_in_progress"].count();
    add_latency(c["latency_us"], client.latency);
  }
  const JsonValue& totals = document["totals"];
  out.connections = totals["connections"].count();
  out.calls = totals["calls"].count();
  out.calls_in_progress = totals["calls_in_progress"].count();
  out.calls_waiting = totals["calls_waiting"].count();
  out.rdma_write_bytes = totals["rdma_write_bytes"].count();
  out.rdma_read_bytes = totals["rdma_read_bytes"].count();
  out.inline_bytes = totals["inline_bytes"].count();
  out.memory_in_use = document["memory"]["in_use"].count();
  out.memory_budget = document["memory"]["budget"].count();
  return out;
}

ServerRates ServerRates::between(const ServerSample& earlier, const ServerSample& now) {
  static const ServerSample kStart;
  // In containers each process may be the first.
  const bool same = earlier.pid == now.pid && now.uptime >= earlier.uptime;
  const ServerSample& before = same ? earlier : kStart;
  const double seconds = std::max(now.uptime - before.uptime, 1e-3);
  const auto rate = [seconds](std::uint64_t a, std::uint64_t b) {
    return static_cast<double>(grown(a, b)) / seconds;
  };
  ServerRates out;
  LatencyCounts all;
  for (const auto& [name, operation] : now.operations) {
    const auto found = before.operations.find(name);
    const ServerSample::Operation was =
        found == before.operations.end() ? ServerSample::Operation() : found->second;
    Line line;
    line.name = name.program + " " + name.name;
    line.fabrics = name.fabric;
    line.calls = rate(was.calls, operation.calls);
    if (line.calls <= 0) continue;
    line.errors = rate(was.errors, operation.errors);
    const LatencyCounts latency = grown(was.latency, operation.latency);
    line.p50_us = latency_percentile(latency, 0.50);
    line.p99_us = latency_percentile(latency, 0.99);
    out.operations.push_back(std::move(line));
  }
  for (const auto& [address, client] : now.clients) {
    const auto found = before.clients.find(address);
    const ServerSample::Client was =
        found == before.clients.end() ? ServerSample::Client() : found->second;
    Line line;
    line.name = address;
    line.fabrics = joined(client.fabrics);
    line.calls = rate(was.calls, client.calls);
    line.rdma_write_bytes = rate(was.rdma_write_bytes, client.rdma_write_bytes);
    line.rdma_read_bytes = rate(was.rdma_read_bytes, client.rdma_read_bytes);
    line.inline_bytes = rate(was.inline_bytes, client.inline_bytes);
    const LatencyCounts latency = grown(was.latency, client.latency);
    for (const auto& [end, count] : latency)
      all[end] += count;
    line.p50_us = latency_percentile(latency, 0.50);
    line.p99_us = latency_percentile(latency, 0.99);
    line.connections = client.connections.size();
    line.credits = client.credits;
    line.calls_in_progress = client.calls_in_progress;
    out.clients.push_back(std::move(line));
  }
  sort_by_calls(out.operations);
  sort_by_calls(out.clients);
  out.total.calls = rate(before.calls, now.calls);
  out.total.rdma_write_bytes = rate(before.rdma_write_bytes, now.rdma_write_bytes);
  out.total.rdma_read_bytes = rate(before.rdma_read_bytes, now.rdma_read_bytes);
  out.total.inline_bytes = rate(before.inline_bytes, now.inline_bytes);
  out.total.p50_us = latency_percentile(all, 0.50);
  out.total.p99_us = latency_percentile(all, 0.99);
  return out;
}

std::string top_text(const ServerSample& now, const ServerRates& rates, std::size_t columns,
                     std::size_t rows) {
  Screen screen(columns, rows);
  screen.line(fmt::format("nfs-rdmad {}  pid {}  up {}  {}, {}", now.version, now.pid,
                          duration_text(now.uptime), counted(now.clients.size(), "client"),
                          counted(now.connections, "connection")));
  screen.line(fmt::format(
      "calls {:.0f}/s  p50 {}  p99 {}  in progress {}  waiting {}  memory {} of {}",
      rates.total.calls, latency_text(rates.total.p50_us), latency_text(rates.total.p99_us),
      now.calls_in_progress, now.calls_waiting, bytes_text(static_cast<double>(now.memory_in_use)),
      bytes_text(static_cast<double>(now.memory_budget))));
  screen.line(
      fmt::format("RDMA Write {}  RDMA Read {}  inline {}", rate_text(rates.total.rdma_write_bytes),
                  rate_text(rates.total.rdma_read_bytes), rate_text(rates.total.inline_bytes)));
  screen.line("");
  screen.line(fmt::format("{:<28} {:<11} {:>4} {:>9} {:>8} {:>8} {:>12} {:>12} {:>12} {:>9}",
                          "CLIENT", "OVER", "CONN", "CALLS/S", "P50", "P99", "RDMA WRITE",
                          "RDMA READ", "INLINE", "CREDITS"));
  // Half of what is left, so that the operations have a place.
  const std::size_t most = std::max<std::size_t>(1, screen.left() / 2);
  for (std::size_t i = 0; i < rates.clients.size() && i < most; ++i) {
    const ServerRates::Line& c = rates.clients[i];
    screen.line(fmt::format("{:<28} {:<11} {:>4} {:>9.0f} {:>8} {:>8} {:>12} {:>12} {:>12} {:>9}",
                            c.name, c.fabrics, c.connections, c.calls, latency_text(c.p50_us),
                            latency_text(c.p99_us), rate_text(c.rdma_write_bytes),
                            rate_text(c.rdma_read_bytes), rate_text(c.inline_bytes),
                            fmt::format("{}/{}", c.calls_in_progress, c.credits)));
  }
  if (rates.clients.size() > most) {
    screen.line(fmt::format("... and {} more", rates.clients.size() - most));
  }
  screen.line("");
  screen.line(fmt::format("{:<28} {:<11} {:>14} {:>8} {:>8} {:>9}", "OPERATION", "OVER", "CALLS/S",
                          "P50", "P99", "ERRORS/S"));
  for (const ServerRates::Line& o : rates.operations) {
    screen.line(fmt::format("{:<28} {:<11} {:>14.0f} {:>8} {:>8} {:>9.0f}", o.name, o.fabrics,
                            o.calls, latency_text(o.p50_us), latency_text(o.p99_us), o.errors));
  }
  return screen.take();
}

}  // namespace nfsrdma::tool
