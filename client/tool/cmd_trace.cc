// SPDX-License-Identifier: Apache-2.0
// nfs-rdma trace: one line for each call that a server answers, as they go by.
#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <ctime>

#include "client/status_source.h"
#include "client/tool/commands.h"
#include "client/tool/control.h"
#include "client/tool/format.h"
#include "client/tool/trace_text.h"
#include "rpcrdma/base/json_writer.h"

namespace nfsrdma::tool {

namespace {

std::string time_text(std::uint64_t microseconds) {
  const auto whole = static_cast<std::time_t>(microseconds / 1'000'000);
  std::tm local{};
  ::localtime_r(&whole, &local);
  char text[16];
  std::strftime(text, sizeof text, "%H:%M:%S", &local);
  return fmt::format("{}.{:06}", text, microseconds % 1'000'000);
}

std::string request_of(const Arguments& arguments) {
  JsonWriter json;
  json.begin_object();
  json.field("request", "trace");
  if (arguments.has("client")) json.field("client", arguments.get<std::string>("client"));
  if (arguments.has("operation")) json.field("operation", arguments.get<std::string>("operation"));
  if (arguments.has("fabric")) json.field("fabric", arguments.get<std::string>("fabric"));
  json.field("slower_than_us",
             static_cast<std::uint64_t>(arguments.get<double>("slower-than") * 1000));
  json.field("errors", arguments.has("errors"));
  json.end_object();
  return json.take();
}

}  // namespace

std::string trace_head() {
  return fmt::format("{:<15} {:<21} {:<6} {:>8} {:>7} {:>7} {:>7} {:>7} {:>9} {:<8} {}\n", "TIME",
                     "CLIENT", "OVER", "US", "RECEIVE", "WAIT", "RUN", "COMMIT", "BYTES", "STATUS",
                     "OPERATION");
}

std::string trace_text(const JsonValue& call) {
  if (const std::uint64_t lost = call["lost"].count(); lost > 0) {
    return fmt::format("... {} calls were not seen: too many to tell\n", lost);
  }
  return fmt::format("{:<15} {:<21} {:<6} {:>8} {:>7} {:>7} {:>7} {:>7} {:>9} {:<8} {} {}\n",
                     time_text(call["time_us"].count()), call["peer"].text(), call["fabric"].text(),
                     call["total_us"].count(), call["receive_us"].count(), call["wait_us"].count(),
                     call["run_us"].count(), call["commit_us"].count(),
                     call["request_bytes"].count() + call["reply_bytes"].count(),
                     call["status"].text(), call["program"].text(), call["operations"].text());
}

int run_trace(const Words& words) {
  Arguments arguments(
      "trace",
      "[--client ADDRESS] [--operation NAME] [--fabric F] [--slower-than MS] [--errors] [--count "
      "N] "
      "[--server SOCKET] [--json]",
      "One line for each call that the server answers from now on, until Ctrl-C: how long it "
      "took,\n"
      "of that until its message and what its Read chunks brought were there (receive), until it\n"
      "ran (wait), in the procedure (run) and for stable storage (commit), in microseconds; the\n"
      "bytes of call and reply. No names and no data of files.");
  namespace po = boost::program_options;
  add_server_option(arguments);
  arguments.add()("client", po::value<std::string>()->value_name("ADDRESS"),
                  "only calls from there")(
      "operation", po::value<std::string>()->value_name("NAME"),
      "only that procedure (READ), or COMPOUNDs with that operation")(
      "fabric", po::value<std::string>()->value_name("F"), "only over iwarp, verbs or tcp")(
      "slower-than", po::value<double>()->value_name("MS")->default_value(0, "0"),
      "only calls that took at least so many milliseconds")(
      "errors", "only calls answered with a status that is not OK")(
      "count", po::value<std::uint64_t>()->value_name("N")->default_value(0),
      "end after so many; 0: never")("json", "a JSON object on each line");
  if (auto code = arguments.parse(words, 0, 0)) return *code;
  if (!(arguments.get<double>("slower-than") >= 0 && arguments.get<double>("slower-than") <= 1e9)) {
    return arguments.usage_error("--slower-than: expected 0 to 1000000000 milliseconds");
  }
  std::string why;
  ControlLines lines;
  if (!lines.open(server_socket(arguments), request_of(arguments), &why).ok()) {
    complain("trace", why);
    return kExitFailure;
  }
  const bool as_json = arguments.has("json");
  const std::uint64_t count = arguments.get<std::uint64_t>("count");
  if (!as_json) std::fputs(trace_head().c_str(), stdout);
  std::fflush(stdout);
  for (std::uint64_t seen = 0; count == 0 || seen < count; ++seen) {
    const std::optional<std::string> line = lines.next();
    if (!line) {
      complain("trace", "the server is gone");
      return kExitFailure;
    }
    const std::optional<JsonValue> call = JsonValue::parse(*line);
    if (call && !(*call)["error"].text().empty()) {
      complain("trace", (*call)["error"].text());
      return kExitFailure;
    }
    std::fputs(as_json || !call ? (*line + "\n").c_str() : trace_text(*call).c_str(), stdout);
    std::fflush(stdout);
    if (std::ferror(stdout) != 0) return kExitFailure;  // nobody reads it any more
  }
  return kExitOk;
}

}  // namespace nfsrdma::tool
