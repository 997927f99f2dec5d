// SPDX-License-Identifier: Apache-2.0
#include "server/metrics_listener.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "config/endpoint.h"
#include "server/metrics.h"
#include "server/port_holder.h"

namespace nfsrdma {

namespace {

std::string http_answer(std::string_view status, const std::string& body) {
  return fmt::format(
      "HTTP/1.0 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, body.size(), body);
}

}  // namespace

std::function<void(ControlSocket::Done)> one_for_all(
    std::function<void(std::function<void(const std::string&)> tell)> make) {
  auto waiting = std::make_shared<std::vector<ControlSocket::Done>>();
  return [make = std::move(make), waiting](ControlSocket::Done done) {
    waiting->push_back(std::move(done));
    if (waiting->size() > 1) return;
    make([waiting](const std::string& answer) {
      // Whoever asks from now on gets a new one.
      for (const ControlSocket::Done& one : std::exchange(*waiting, {}))
        one(answer);
    });
  };
}

std::unique_ptr<ControlSocket> listen_for_metrics(EventLoop& loop, NfsServer& server,
                                                  const std::string& where, std::string* why) {
  SocketAddress address;
  const bool is_path = where.starts_with('/');
  if (!is_path && !parse_endpoint(where, &address)) {
    // What rdma.conf says was looked at as it was read.
    *why = fmt::format("NFSoRDMA_METRICS: '{}' is no address with a port", where);
    return nullptr;
  }
  auto socket = is_path ? ControlSocket::listen(loop, where) : ControlSocket::listen(loop, address);
  if (!socket.ok()) {
    *why =
        fmt::format("NFSoRDMA_METRICS: cannot listen on {}: {}", where, socket.error().message());
    if (!is_path && socket.error().sys == EADDRINUSE) {
      PortQuestion question;
      question.port = address.port();
      question.option.clear();
      question.key = "NFSoRDMA_METRICS";
      *why += "; " + port_holder(question);
    }
    return nullptr;
  }
  const auto scrape = one_for_all([&server](std::function<void(const std::string&)> tell) {
    server.collect(0, [tell = std::move(tell)](const StatusInputs& inputs) {
      tell(http_answer("200 OK", metrics_text(make_metrics(inputs))));
    });
  });
  (*socket)->answer_http([scrape](std::string_view path, ControlSocket::Done done) {
    // Parameters, which a scrape configuration may add, choose nothing.
    path = path.substr(0, path.find('?'));
    if (path != "/metrics") return done(http_answer("404 Not Found", "Only /metrics is here.\n"));
    scrape(std::move(done));
  });
  return std::move(*socket);
}

}  // namespace nfsrdma
