// SPDX-License-Identifier: Apache-2.0
#include "server/command_line.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "config/default_paths.h"

namespace nfsrdma {

namespace {

namespace po = boost::program_options;

/// Options of the command line that stand for a key of rdma.conf.
struct KeyOption {
  const char* name;
  const char* key;
  const char* argument;
  const char* help;
};
constexpr KeyOption kKeyOptions[] = {
    {"port", "NFSoRDMA_PORT", "N", "port of every RDMA fabric (20049)"},
    {"tcp-port", "NFSoRDMA_TCP_PORT", "N|off", "port of NFS and MOUNT over TCP (2049)"},
    {"fabric", "NFSoRDMA_FABRIC", "F", "auto, verbs, iwarp or none (auto)"},
    {"state-dir", "NFSoRDMA_STATE_DIR", "DIR", "where the file handle key is kept"},
    {"control", "NFSoRDMA_CONTROL", "SOCKET", "socket of nfs-rdma status"},
    {"log-level", "NFSoRDMA_LOG_LEVEL", "L", "error, warning, notice, info or debug (info)"},
};

po::options_description make_options() {
  po::options_description options("Options");
  auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  auto list = [](const char* name) {
    return po::value<std::vector<std::string>>()->composing()->value_name(name);
  };
  options.add_options()  //
      ("export,e", list("DIR[:OPTIONS]"),
       "export DIR; OPTIONS as in nfs-rdma.exports(5), "
       "default ro,root_squash; may be repeated")                           //
      ("exports", text("FILE"), "exports file (/etc/nfs-rdma.exports)")     //
      ("config", text("FILE"), "configuration file (/etc/rdma/rdma.conf)")  //
      ("listen", list("ADDR"), "numeric address to listen on; may be repeated (all)");
  for (const KeyOption& option : kKeyOptions) {
    options.add_options()(option.name, text(option.argument), option.help);
  }
  options.add_options()                                                                       //
      ("foreground,f", "stay in the foreground; print one line 'ready ...' when serving")     //
      ("check-config", "check configuration and exports, print what is in force, and exit")   //
      ("print-config", "print each key of rdma.conf with its value and origin, and exit")     //
      ("load-condition", "exit 0 unless NFSoRDMA_LOAD=no, which is told with exit status 1")  //
      ("version,V", "print the version and exit")                                             //
      ("help,h", "print this and exit");
  return options;
}

std::string one_line(const std::exception& error) {
  std::string text = error.what();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text + "; see nfs-rdmad --help";
}

/// A value on the command line that is wrong in itself.
void add_usage_problem(Settings& settings, std::string option, std::string message) {
  settings.usage_problems.push_back({std::move(option), 0, 0, std::move(message)});
}

void add_problem(Settings& settings, std::string where, std::string message) {
  settings.problems.push_back({std::move(where), 0, 0, std::move(message)});
}

void parse_listen(Settings& settings, std::string_view text) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(" \t,"));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty()) continue;
    auto address = SocketAddress::parse(word, 0);
    if (address.ok()) {
      // Once is enough; the second time our own listener would be in the way.
      if (std::ranges::find(settings.listen, address->text(), &SocketAddress::text) ==
          settings.listen.end()) {
        settings.listen.push_back(*address);
      }
    } else {
      // What the file says was checked when it was read.
      add_usage_problem(settings, "--listen",
                        fmt::format("'{}' is no numeric IPv4 or IPv6 address to listen on", word));
    }
  }
}

std::string absolute(const CommandLine& line, const std::string& path) {
  if (path.empty() || path.starts_with('/') || line.directory.empty()) return path;
  return line.directory + (line.directory.ends_with('/') ? "" : "/") + path;
}

void parse_exports_of(const CommandLine& line, Settings& settings) {
  for (const std::string& argument : line.exports) {
    ParsedExports parsed = parse_export_argument(argument);
    for (ConfigProblem& problem : parsed.problems)
      settings.problems.push_back(std::move(problem));
    for (ConfigProblem& notice : parsed.notices)
      settings.notices.push_back(std::move(notice));
    if (!parsed.ok()) continue;
    for (ExportEntry& entry : parsed.entries) {
      char real[PATH_MAX];
      struct stat st {};
      if (::realpath(absolute(line, entry.path).c_str(), real) == nullptr ||
          ::stat(real, &st) != 0) {
        add_problem(settings, "-e " + argument,
                    fmt::format("{}: {}", entry.path, std::strerror(errno)));
        continue;
      }
      if (!S_ISDIR(st.st_mode)) {
        add_problem(settings, "-e " + argument, fmt::format("{} is not a directory", entry.path));
        continue;
      }
      entry.path = real;
      settings.command_line_exports.push_back(std::move(entry));
    }
  }
}

/// rdma.conf, if there is one, with where each key was set.
void read_config(const CommandLine& line, Settings& settings) {
  const bool named = !line.config_file.empty();
  const std::string file = named ? absolute(line, line.config_file) : kDefaultConfigFile;
  if (!named && ::access(file.c_str(), F_OK) != 0) return;
  ParsedConfig parsed = read_config_file(file);
  for (const auto& [key, number] : parsed.lines)
    settings.origins[key] = fmt::format("{}:{}", file, number);
  settings.config = std::move(parsed.config);
  settings.problems = std::move(parsed.problems);
  settings.notices = std::move(parsed.notices);
}

/// Options that stand for keys. Problems are named by the option, not by the key.
void apply_overrides(const CommandLine& line, Settings& settings) {
  for (const auto& [key, value] : line.overrides) {
    const auto option = std::ranges::find(kKeyOptions, key, &KeyOption::key);
    const std::string name = fmt::format("--{}", option->name);
    std::string problem;
    if (set_option(settings.config, key, value, &problem)) {
      settings.origins[key] = name;
      continue;
    }
    const std::string prefix = key + ": ";
    if (problem.starts_with(prefix)) problem.erase(0, prefix.size());
    add_usage_problem(settings, name, problem);
  }
}

/// Where a key is set: "/etc/rdma/rdma.conf:7", "--port", "default".
std::string origin_of(const Settings& settings, const char* key) {
  const auto from = settings.origins.find(key);
  return from == settings.origins.end() ? "default" : from->second;
}

/// Each right in itself, and both together not.
void check_ports(Settings& settings) {
  const Config& config = settings.config;
  if (!ports_collide(config)) return;
  add_problem(
      settings, "",
      fmt::format("NFSoRDMA_PORT ({}) and NFSoRDMA_TCP_PORT ({}) are both {}: iWARP listens "
                  "on a TCP port of its own, set another for one of them",
                  origin_of(settings, "NFSoRDMA_PORT"), origin_of(settings, "NFSoRDMA_TCP_PORT"),
                  config.port));
}

}  // namespace

bool parse_command_line(int argc, const char* const* argv, CommandLine* out, std::string* problem) {
  po::variables_map values;
  try {
    const po::options_description options = make_options();
    // No guessing of shortened options: scripts would break when new ones come.
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const po::parsed_options parsed =
        po::command_line_parser(argc, argv).options(options).style(style).run();
    for (const po::option& option : parsed.options) {
      if (option.position_key < 0) continue;
      *problem =
          fmt::format("unexpected argument '{}'; see nfs-rdmad --help", option.value.front());
      return false;
    }
    po::store(parsed, values);
    po::notify(values);
  } catch (const po::error& error) {
    *problem = one_line(error);
    return false;
  }
  auto text = [&values](const char* name) {
    return values.count(name) != 0 ? values[name].as<std::string>() : std::string();
  };
  auto list = [&values](const char* name) {
    return values.count(name) != 0 ? values[name].as<std::vector<std::string>>()
                                   : std::vector<std::string>();
  };
  std::error_code unknown;
  out->directory = std::filesystem::current_path(unknown).string();
  out->help = values.count("help") != 0;
  out->version = values.count("version") != 0;
  out->foreground = values.count("foreground") != 0;
  out->check_config = values.count("check-config") != 0;
  out->print_config = values.count("print-config") != 0;
  out->load_condition = values.count("load-condition") != 0;
  out->config_file = text("config");
  out->exports_file = text("exports");
  out->exports = list("export");
  out->listen = list("listen");
  for (const KeyOption& option : kKeyOptions) {
    if (values.count(option.name) != 0) out->overrides.emplace_back(option.key, text(option.name));
  }
  return true;
}

std::string help_text() {
  std::ostringstream out;
  out << "Usage: nfs-rdmad [OPTIONS] [-e DIR[:OPTIONS]]...\n"
         "Serves directories by NFS versions 3, 4.0, 4.1 and 4.2 over RDMA and TCP.\n\n"
      << make_options() << "\nKeys of /etc/rdma/rdma.conf, with their defaults:\n";
  for (const OptionRow& row : option_rows()) {
    out << "  " << row.key << "=" << row.initial << "\n      " << row.help << " (" << row.expected
        << (row.when == TakesEffect::kAtReload ? "; a reload is enough" : "; at the next start")
        << ")\n";
  }
  out << "\nExamples:\n"
         "  nfs-rdmad --foreground -e /srv/data:rw\n"
         "  nfs-rdmad --foreground --port 21049 --tcp-port 22049 --listen 127.0.0.1 "
         "-e .:rw,insecure\n";
  return out.str();
}

Settings make_settings(const CommandLine& line) {
  Settings settings;
  read_config(line, settings);
  const std::string configured_exports = absolute(line, settings.config.exports_file);
  apply_overrides(line, settings);
  for (std::string* path : {&settings.config.state_dir, &settings.config.control_socket})
    *path = absolute(line, *path);
  if (line.listen.empty()) {
    parse_listen(settings, settings.config.listen);
  } else {
    for (const std::string& address : line.listen)
      parse_listen(settings, address);
    settings.config.listen = fmt::format("{}", fmt::join(line.listen, " "));
    settings.origins["NFSoRDMA_LISTEN"] = "--listen";
  }
  if (settings.config.state_dir.empty()) settings.config.state_dir = default_state_dir();
  if (settings.config.control_socket.empty()) {
    settings.config.control_socket = default_control_socket();
  }
  parse_exports_of(line, settings);
  if (!line.exports_file.empty()) {
    settings.exports_file = absolute(line, line.exports_file);
    settings.origins["NFSoRDMA_EXPORTS"] = "--exports";
  } else if (line.exports.empty() || configured_exports != Config().exports_file) {
    settings.exports_file = configured_exports;
  } else {
    settings.origins["NFSoRDMA_EXPORTS"] = "not read because of -e";
  }
  settings.config.exports_file = settings.exports_file;
  check_ports(settings);
  return settings;
}

std::string effective_config(const Settings& settings) {
  std::string out;
  for (const OptionRow& row : option_rows()) {
    const auto from = settings.origins.find(row.key);
    out +=
        fmt::format("{}  # {}\n", assignment_text(row.key, option_text(settings.config, row.key)),
                    from == settings.origins.end() ? "default" : from->second);
  }
  return out;
}

std::string load_refusal(const Settings& settings) {
  if (settings.config.load) return {};
  const auto from = settings.origins.find("NFSoRDMA_LOAD");
  return fmt::format("NFSoRDMA_LOAD=no in {}: not serving",
                     from == settings.origins.end() ? "the configuration" : from->second);
}

ParsedExports load_exports(const Settings& settings) {
  ParsedExports all;
  if (!settings.exports_file.empty()) all = read_exports_files(settings.exports_file);
  for (ConfigProblem& problem : all.problems) {
    if (problem.file == settings.exports_file && problem.line == 0 &&
        ::access(settings.exports_file.c_str(), F_OK) != 0 && errno == ENOENT) {
      problem.message += "; write it as in nfs-rdma.exports(5), or export a directory with -e";
    }
  }
  for (const ExportEntry& entry : settings.command_line_exports) {
    // The command line replaces what the file says about the same directory.
    std::erase_if(all.entries, [&](const ExportEntry& e) {
      return e.path == entry.path && e.file != entry.file;
    });
    all.entries.push_back(entry);
  }
  return all;
}

}  // namespace nfsrdma
