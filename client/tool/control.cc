// SPDX-License-Identifier: Apache-2.0
#include "client/tool/control.h"

#include "client/status_source.h"
#include "config/default_paths.h"
#include "rpcrdma/base/json_writer.h"

namespace nfsrdma::tool {

void add_server_option(Arguments& arguments) {
  namespace po = boost::program_options;
  arguments.add()("server", po::value<std::string>()->value_name("SOCKET"),
                  "control socket of the nfs-rdmad (this machine's)");
}

std::string server_socket(const Arguments& arguments) {
  return arguments.has("server") ? arguments.get<std::string>("server") : default_control_socket();
}

std::optional<ServerAnswer> ask_server(const std::string& command, const std::string& socket,
                                       std::string_view request) {
  std::string why;
  Result<std::string> text = ask_control(socket, request, &why);
  if (!text.ok()) {
    complain(command, why);
    return std::nullopt;
  }
  std::optional<JsonValue> value = JsonValue::parse(*text);
  if (!value || value->kind() != JsonValue::Kind::kObject) {
    complain(command, "the answer is no JSON document");
    return std::nullopt;
  }
  if (const std::string& error = (*value)["error"].text(); !error.empty()) {
    complain(command, error);
    return std::nullopt;
  }
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

}  // namespace nfsrdma::tool
