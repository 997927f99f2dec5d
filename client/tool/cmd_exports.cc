// SPDX-License-Identifier: Apache-2.0
// nfs-rdma exports: what a running server exports, and changes of that, as exportfs(8) does for the
// kernel's; and why a client gets what it gets.
#include <fmt/format.h>

#include <cstdio>

#include "client/tool/commands.h"
#include "client/tool/control.h"
#include "client/tool/exports_text.h"
#include "client/tool/format.h"
#include "config/export_text.h"
#include "config/exports_file.h"
#include "rpcrdma/base/json_writer.h"

namespace nfsrdma::tool {

bool split_client_path(const std::string& text, std::string* client, std::string* path) {
  const bool bracketed = text.starts_with('[');
  // Addresses and paths may have colons and slashes of their own: "2001:db8::/32:/srv".
  const std::size_t colon =
      bracketed ? text.find("]:/") == std::string::npos ? std::string::npos : text.find("]:/") + 1
                : text.rfind(":/");
  if (colon == std::string::npos || colon == 0) return false;
  *client = bracketed ? text.substr(1, colon - 2) : text.substr(0, colon);
  *path = text.substr(colon + 1);
  return !client->empty();
}

std::string export_line(const JsonValue& entry, const JsonValue& client) {
  return fmt::format("{}\t{}({}){}", escaped_path(entry["path"].text()), client["client"].text(),
                     client["options"].text(), client["temporary"].truth() ? "  # temporary" : "");
}

namespace {

std::string place_of(const JsonValue& rule) {
  const std::string& file = rule["file"].text();
  const bool in_file = rule["line"].count() != 0 && !rule["temporary"].truth();
  return in_file ? fmt::format("{}:{}", file, rule["line"].count()) : file;
}

std::string ids_text(const JsonValue& ids) {
  return fmt::format("{}:{}", ids["uid"].count(), ids["gid"].count());
}

}  // namespace

std::string explanation_text(const JsonValue& exported) {
  std::string out = fmt::format("  {}\n", exported["path"].text());
  for (const JsonValue& rule : exported["rules"].items()) {
    out += fmt::format("  {} {:<28} {:<8} {} ({})\n", rule["decides"].truth() ? "*" : " ",
                       rule["client"].text(), rule["matches"].truth() ? "matches" : "-",
                       rule["why"].text(), place_of(rule));
  }
  if (const std::string& why = exported["refused"].text(); !why.empty())
    return out + "    " + why + ": not exported to it\n";
  if (!exported["allowed"].truth()) return out + "    no rule matches: not exported to it\n";
  out += fmt::format("    gets {}({})\n", exported["client"].text(), exported["options"].text());
  const JsonValue& squash = exported["squash"];
  const char* separator = "    ";
  auto add = [&](const char* name, const char* who) {
    if (squash[name].kind() != JsonValue::Kind::kObject) return;
    out += fmt::format("{}{} becomes {}", separator, who, ids_text(squash[name]));
    separator = ", ";
  };
  add("root", "root");
  add("user_1000", "1000:1000");
  add("auth_none", "a caller with AUTH_NONE");
  out += "\n";
  if (exported["privileged_port_over_tcp"].truth())
    out += "    over TCP only from ports below 1024 (secure)\n";
  return out;
}

namespace {

/// --file: reads what the server would read, without asking it.
int check_file(const std::string& file) {
  const ParsedExports parsed = read_exports_files(file);
  for (const ConfigProblem& problem : parsed.problems)
    complain("exports", problem.text());
  for (const ConfigProblem& notice : parsed.notices)
    std::fprintf(stderr, "note: %s\n", notice.text().c_str());
  if (!parsed.ok()) return kExitFailure;
  for (const ExportEntry& entry : parsed.entries) {
    for (const ExportClient& client : entry.clients)
      say("{}\t{}({})\n", escaped_path(entry.path), client.text, options_text(client.options));
  }
  return kExitOk;
}

void print_list(const JsonValue& document) {
  for (const JsonValue& entry : document["exports"].items()) {
    for (const JsonValue& client : entry["clients"].items()) {
      say("{}{}\n", export_line(entry, client),
          entry["in_force"].truth() ? "" : "  # not in force");
    }
  }
  for (const JsonValue& problem : document["problems"].items())
    complain("exports", problem.text());
  if (document["exports"].items().empty()) std::fputs("nothing is exported\n", stderr);
}

/// What a change or reading the files again did.
void print_report(const JsonValue& document) {
  for (const JsonValue& line : document["changes"].items())
    say("{}\n", line.text());
  for (const JsonValue& notice : document["notices"].items())
    std::fprintf(stderr, "note: %s\n", notice.text().c_str());
  for (const JsonValue& problem : document["problems"].items())
    complain("exports", problem.text());
  if (!document["done"].truth()) {
    complain("exports", "there are mistakes; everything stays as it was");
  } else if (document["changes"].items().empty()) {
    std::puts("nothing changed");
  }
}

void print_explanation(const JsonValue& document) {
  for (const JsonValue& address : document["addresses"].items()) {
    say("{}\n", address["address"].text());
    for (const JsonValue& exported : address["exports"].items())
      say("{}", explanation_text(exported));
    if (address["exports"].items().empty()) std::puts("  nothing is exported");
  }
  for (const JsonValue& absent : document["not_in_force"].items())
    say("{}  # not in force: {}\n", absent["path"].text(), absent["why"].text());
}

/// One of the words behind `exports`, with what it takes.
struct Action {
  const char* name;
  std::size_t least, most;  // words behind it
};
constexpr Action kActions[] = {
    {"list", 0, 0}, {"add", 1, 1}, {"remove", 1, 1}, {"reread", 0, 0}, {"explain", 1, 2}};

/// The request of the command line; nothing when it is wrong, which was said.
std::optional<std::string> request_of(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.operands();
  const std::string name = words.empty() ? "list" : words[0];
  const Action* action = nullptr;
  for (const Action& each : kActions) {
    if (name == each.name) action = &each;
  }
  auto wrong = [&arguments](const std::string& what) {
    arguments.usage_error(what);
    return std::nullopt;
  };
  if (action == nullptr) return wrong(fmt::format("'{}' is none of its actions", name));
  const std::size_t given = words.empty() ? 0 : words.size() - 1;
  if (given < action->least) return wrong("an operand is missing");
  if (given > action->most) return wrong("one operand too many: '" + words.back() + "'");
  if (arguments.has("options") && name != "add") return wrong("-o belongs to add");
  JsonWriter json;
  json.begin_object();
  json.field("request", "exports");
  json.field("action", name);
  if (name == "explain") {
    json.field("client", words[1]);
    json.field("path", given > 1 ? words[2] : "");
  } else if (given == 1) {
    std::string client, path;
    if (!split_client_path(words[1], &client, &path))
      return wrong(fmt::format("'{}' is not CLIENT:/PATH", words[1]));
    json.field("client", client);
    json.field("path", path);
    if (arguments.has("options")) json.field("options", arguments.get<std::string>("options"));
  }
  json.end_object();
  return json.take();
}

}  // namespace

int run_exports(const Words& words) {
  namespace po = boost::program_options;
  Arguments arguments(
      "exports", "[--server SOCKET] [list | add | remove | reread | explain] ... | --file FILE",
      "  list                             what a running server exports, as lines of a file\n"
      "  add [-o OPTIONS] CLIENT:/PATH    export until the files are read again\n"
      "  remove CLIENT:/PATH              the opposite, for as long\n"
      "  reread                           read exports and configuration again\n"
      "  explain CLIENT [/PATH]           which rule is for a client, and why; what it gets\n"
      "An IPv6 address in front of :/PATH may stand in brackets. --file only checks a file, and\n"
      "what lies beside it in FILE.d, and shows what it exports.");
  add_server_option(arguments);
  arguments.add()("options,o", po::value<std::string>()->value_name("OPTIONS"),
                  "of what is added, as in nfs-rdma.exports(5)")(
      "file", po::value<std::string>()->value_name("FILE"), "check that file, ask no server")(
      "json", "the answer as a document");
  if (auto code = arguments.parse(words, 0, 3)) return *code;
  if (arguments.has("file")) {
    if (!arguments.operands().empty())
      return arguments.usage_error("--file stands alone: '" + arguments.operands()[0] + "'");
    for (const char* other : {"json", "options", "server"}) {
      if (arguments.has(other))
        return arguments.usage_error(std::string("--file stands alone: --") + other);
    }
    return check_file(arguments.get<std::string>("file"));
  }
  const std::optional<std::string> request = request_of(arguments);
  if (!request) return kExitUsage;
  const auto answer = ask_server("exports", server_socket(arguments), *request, kWorkPatience);
  if (!answer) return kExitFailure;
  const std::string action = arguments.operands().empty() ? "list" : arguments.operands()[0];
  const bool report = action != "list" && action != "explain";
  if (arguments.has("json")) {
    std::fputs(answer->text.c_str(), stdout);
    return report ? exit_code_of(answer->value) : kExitOk;
  }
  if (report) {
    print_report(answer->value);
    return exit_code_of(answer->value);
  }
  if (action == "list") {
    print_list(answer->value);
  } else {
    print_explanation(answer->value);
  }
  return kExitOk;
}

}  // namespace nfsrdma::tool
