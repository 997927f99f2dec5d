// SPDX-License-Identifier: Apache-2.0
#include "server/metrics_listener.h"

#include <fmt/format.h>

#include <charconv>

#include "server/metrics.h"

namespace nfsrdma {

namespace {

std::string http_answer(std::string_view status, const std::string& body) {
  return fmt::format(
      "HTTP/1.0 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, body.size(), body);
}

/// "127.0.0.1:9465" or "[::1]:9465".
bool parse_endpoint(std::string_view text, SocketAddress* address) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[') != host.ends_with(']')) return false;
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) return false;
  auto parsed = SocketAddress::parse(std::string(host), port);
  if (!parsed.ok()) return false;
  *address = *parsed;
  return true;
}

}  // namespace

std::unique_ptr<ControlSocket> listen_for_metrics(EventLoop& loop, NfsServer& server,
                                                  const std::string& where, std::string* why) {
  SocketAddress address;
  const bool is_path = where.starts_with('/');
  if (!is_path && !parse_endpoint(where, &address)) {
    *why = fmt::format(
        "NFSoRDMA_METRICS: '{}' is neither a numeric address with a port (127.0.0.1:9465) nor the "
        "path of a socket",
        where);
    return nullptr;
  }
  auto socket = is_path ? ControlSocket::listen(loop, where) : ControlSocket::listen(loop, address);
  if (!socket.ok()) {
    *why =
        fmt::format("NFSoRDMA_METRICS: cannot listen on {}: {}", where, socket.error().message());
    return nullptr;
  }
  (*socket)->answer_http([&server](std::string_view path, ControlSocket::Done done) {
    if (path != "/metrics") return done(http_answer("404 Not Found", "Only /metrics is here.\n"));
    server.collect(0, [done = std::move(done)](const StatusInputs& inputs) {
      done(http_answer("200 OK", metrics_text(make_metrics(inputs))));
    });
  });
  return std::move(*socket);
}

}  // namespace nfsrdma
