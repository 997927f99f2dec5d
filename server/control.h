// SPDX-License-Identifier: Apache-2.0
// ControlSocket: a unix stream socket on which `nfs-rdma status` and its like ask. One request per
// connection: a line, either a word (`status`) or a JSON object with "request":"status" and what
// else that request takes. The answer is one JSON document with a "version" member and a newline,
// then the connection is closed; what went wrong stands in its member "error". Requests that are
// answered as things happen (`trace`) have their connection kept open as a ControlStream.
//
// Who may open the socket (owner and group) may do all that it offers.
//
// On one loop's thread. Bounded: kMaxClients at a time, kMaxRequest bytes, kPatience for the
// request and for each piece of the answer, for streams what a slow reader leaves unread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/json_value.h"
#include "rpcrdma/base/socket_address.h"

namespace nfsrdma {

/// A connection that is written to as things happen. On the loop's thread.
class ControlStream {
 public:
  static constexpr std::size_t kMostUnread = std::size_t{4} << 20;

  virtual ~ControlStream() = default;
  /// False: the reader is gone, or leaves too much unread; then nothing of `bytes` is sent.
  virtual bool send(std::string_view bytes) = 0;
  virtual bool open() const = 0;
  /// Closes once all is sent.
  virtual void finish() = 0;
  /// Called once when the reader is gone, but not for finish(). Replaces the last one.
  virtual void on_gone(std::function<void()> gone) = 0;
};

class ControlSocket final : private FdWatcher {
 public:
  static constexpr std::size_t kMaxClients = 32;
  static constexpr std::size_t kMaxRequest = 16384;
  static constexpr std::chrono::seconds kPatience{10};

  /// Takes one document, now or later, on the loop's thread. Lasts longer than whoever asked.
  using Done = std::function<void(std::string json)>;
  using Answer = std::function<void(const JsonValue& request, Done done)>;
  using Stream = std::function<void(const JsonValue& request, std::shared_ptr<ControlStream>)>;

  /// Replaces a socket that nobody answers on; kRefused when another server does.
  static Result<std::unique_ptr<ControlSocket>> listen(EventLoop& loop, const std::string& path);
  /// On a TCP port, for answer_http() only: whoever comes may ask.
  static Result<std::unique_ptr<ControlSocket>> listen(EventLoop& loop,
                                                       const SocketAddress& address);
  /// Removes the socket.
  ~ControlSocket() override;
  /// Removes the socket already: nobody comes any more, who waits for an answer is turned away, and
  /// streams alone go on.
  void close_to_askers();

  /// What is done about requests of that name, which nothing was registered for before.
  void on(std::string name, Answer answer);
  void on_stream(std::string name, Stream stream);
  /// What is done about `GET PATH HTTP/1.x`, instead of all else: `done` gets the whole answer.
  using HttpAnswer = std::function<void(std::string_view path, Done done)>;
  void answer_http(HttpAnswer answer) { http_ = std::move(answer); }
  const std::string& path() const { return path_; }

 private:
  class Client;
  ControlSocket(EventLoop& loop, UniqueFd fd, std::string path);
  void on_fd_ready(std::uint32_t events) override;
  void watch();
  void stop_listening();
  void answer(const std::shared_ptr<Client>& client, std::string_view text);
  std::string names() const;
  void remove(Client& client);

  EventLoop& loop_;
  UniqueFd fd_;
  std::string path_;  // empty: a TCP port
  std::map<std::string, Answer, std::less<>> answers_;
  std::map<std::string, Stream, std::less<>> streams_;
  HttpAnswer http_;
  std::vector<std::shared_ptr<Client>> clients_;
  Timer retry_;  // armed: out of descriptors, nobody is accepted
};

/// The document that says why a request is not fulfilled.
std::string control_error(std::string_view what);

}  // namespace nfsrdma
