// SPDX-License-Identifier: Apache-2.0
// What the subcommands that talk to a running server share: --server, asking, complaining.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "client/status_source.h"
#include "client/tool/arguments.h"
#include "rpcrdma/base/json_value.h"

namespace nfsrdma::tool {

/// Adds --server SOCKET.
void add_server_option(Arguments& arguments);
/// That of the option, or this machine's: where rdma.conf says that it is, or the default one of
/// root or of a server that the caller runs himself.
std::string server_socket(const Arguments& arguments);

struct ServerAnswer {
  std::string text;  // the document
  JsonValue value;
};
/// What a server or a mount has answered. Nothing when it is none, or says that it is an error;
/// then that was said, for `command`.
std::optional<JsonValue> parse_answer(const std::string& command, const std::string& text);
/// The same, and *why instead of saying it.
std::optional<JsonValue> parse_answer(const std::string& text, std::string* why);
/// The document that a server answers `request` with. Nothing when there is none or it says that it
/// is an error; then that was said, for `command`.
/// `patience`: how long the server may take.
std::optional<ServerAnswer> ask_server(const std::string& command, const std::string& socket,
                                       std::string_view request,
                                       std::chrono::milliseconds patience = kStatusPatience);
/// Of what the server does before it answers: asks the name service, opens directories.
inline constexpr std::chrono::milliseconds kWorkPatience{60'000};

/// What it means that there was no answer for so long.
const char* silence_text(std::chrono::milliseconds patience);

/// A request with one more member, `name`: {"request":"evict","client":"192.0.2.7"}.
std::string request_text(std::string_view request, std::string_view name, std::string_view value);

/// Of a report on the exports: were they read, and is all that was served served still?
int exit_code_of(const JsonValue& report);

}  // namespace nfsrdma::tool
