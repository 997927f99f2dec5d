// SPDX-License-Identifier: Apache-2.0
#include "client/tool/control.h"

#include <filesystem>

#include "config/config.h"
#include "config/default_paths.h"
#include "rpcrdma/base/json_writer.h"

namespace nfsrdma::tool {

void add_server_option(Arguments& arguments) {
  namespace po = boost::program_options;
  arguments.add()("server", po::value<std::string>()->value_name("SOCKET"),
                  "control socket of the nfs-rdmad (this machine's)");
}

std::string server_socket(const Arguments& arguments) {
  if (arguments.has("server")) return arguments.get<std::string>("server");
  std::error_code unknown;
  const auto is_there = [&unknown](const std::string& path) {
    return std::filesystem::exists(path, unknown);
  };
  // A server of the caller's own comes before that of the system.
  std::string own = default_control_socket();
  if (own != kSystemControlSocket && is_there(own)) return own;
  if (is_there(kDefaultConfigFile)) {
    std::string configured = read_config_file(kDefaultConfigFile).config.control_socket;
    if (configured.starts_with('/')) return configured;
  }
  // Members of the socket's group may ask it, too.
  return is_there(kSystemControlSocket) ? kSystemControlSocket : own;
}

std::optional<JsonValue> parse_answer(const std::string& text, std::string* why) {
  if (text.empty()) {
    *why = "there was no answer; is whoever was asked ending?";
    return std::nullopt;
  }
  std::optional<JsonValue> value = JsonValue::parse(text);
  if (!value || value->kind() != JsonValue::Kind::kObject) {
    *why = "the answer is no JSON document";
    return std::nullopt;
  }
  if (const std::string& error = (*value)["error"].text(); !error.empty()) {
    *why = error;
    return std::nullopt;
  }
  return value;
}

std::optional<JsonValue> parse_answer(const std::string& command, const std::string& text) {
  std::string why;
  std::optional<JsonValue> value = parse_answer(text, &why);
  if (!value) complain(command, why);
  return value;
}

const char* silence_text(std::chrono::milliseconds patience) {
  // Work is done on threads of its own: all else is served meanwhile.
  if (patience < kWorkPatience) return kSilence;
  return "a file system or the name service does not answer; the server goes on with it, see its "
         "log";
}

std::optional<ServerAnswer> ask_server(const std::string& command, const std::string& socket,
                                       std::string_view request,
                                       std::chrono::milliseconds patience) {
  std::string why;
  Result<std::string> text = ask_control(socket, request, &why, patience, silence_text(patience));
  if (!text.ok()) {
    complain(command, why);
    return std::nullopt;
  }
  std::optional<JsonValue> value = parse_answer(command, *text);
  if (!value) return std::nullopt;
  return ServerAnswer{std::move(*text), std::move(*value)};
}

std::string request_text(std::string_view request, std::string_view name, std::string_view value) {
  JsonWriter json;
  json.begin_object();
  json.field("request", request);
  json.field(name, value);
  json.end_object();
  return json.take();
}

int exit_code_of(const JsonValue& report) {
  return report["done"].truth() && report["left_out"].items().empty() ? kExitOk : kExitFailure;
}

}  // namespace nfsrdma::tool
