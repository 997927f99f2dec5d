// SPDX-License-Identifier: Apache-2.0
#include "client/doctor/host_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

#include "config/config.h"
#include "config/default_paths.h"

namespace nfsrdma::doctor {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostText = 8 << 20;  // modules.dep is the largest
constexpr const char* kProgramDirs[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                        "/usr/bin",        "/sbin",          "/bin"};

/// All values of an option, "--fabric iwarp" or "--fabric=iwarp".
std::vector<std::string> values_of(const std::vector<std::string>& words, std::string_view option) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == option && i + 1 < words.size()) {
      values.push_back(words[i + 1]);
    } else if (word.starts_with(option) && word.substr(option.size()).starts_with('=')) {
      values.emplace_back(word.substr(option.size() + 1));
    }
  }
  return values;
}

/// Addresses between blanks or commas.
std::vector<SocketAddress> addresses_in(std::string text) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::vector<SocketAddress> addresses;
  for (const std::string& word : words_of(text)) {
    if (auto address = SocketAddress::parse(word, 0); address.ok()) addresses.push_back(*address);
  }
  return addresses;
}

/// The last "--port 2050" on the command line of a process.
void take_port(const std::vector<std::string>& words, std::string_view option,
               std::uint16_t* port) {
  for (const std::string& text : values_of(words, option)) {
    const auto value = text == "off" ? std::optional<std::uint64_t>(0) : number_of(text);
    if (value && *value <= 65535) *port = static_cast<std::uint16_t>(*value);
  }
}

bool says_something(const HostView& host, std::string_view file) {
  for (const std::string& line : lines_of(host.text(file))) {
    const std::string bare = trimmed(line);
    if (!bare.empty() && bare.front() != '#') return true;
  }
  return false;
}

/// The exports file and those of the directory beside it, as far as they are there.
std::vector<std::string> exports_files(const HostView& host, const std::string& file) {
  std::vector<std::string> files;
  if (host.exists(file)) files.push_back(file);
  const std::string folder = file + ".d";
  for (const std::string& name : host.names(folder)) {
    const bool counts = name.ends_with(".exports") && !name.starts_with('.');
    if (counts) files.push_back(fmt::format("{}/{}", folder, name));
  }
  return files;
}

}  // namespace

bool HostView::exists(std::string_view absolute) const {
  std::error_code ignored;
  return fs::exists(path(absolute), ignored);
}

std::optional<bool> HostView::exists_within(std::string_view absolute,
                                            std::chrono::milliseconds patience) const {
  auto found = std::make_shared<std::promise<bool>>();
  std::future<bool> answer = found->get_future();
  // It may hang until the process ends.
  try {
    std::thread([found, file = path(absolute)] {
      std::error_code ignored;
      found->set_value(fs::exists(file, ignored));
    }).detach();
  } catch (const std::system_error&) {
    return exists(absolute);
  }
  if (answer.wait_for(patience) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

std::string HostView::text(std::string_view absolute) const {
  std::ifstream file(path(absolute), std::ios::binary);
  std::string all;
  // Files of /proc and /sys have no size to go by.
  for (char buffer[4096]; file && all.size() < kMostText;) {
    file.read(buffer, sizeof buffer);
    all.append(buffer, static_cast<std::size_t>(file.gcount()));
  }
  return all;
}

std::string HostView::line(std::string_view absolute) const {
  const std::string all = text(absolute);
  return trimmed(std::string_view(all).substr(0, all.find('\n')));
}

std::vector<std::string> HostView::names(std::string_view absolute) const {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(path(absolute), error), end; !error && it != end;
       it.increment(error)) {
    found.push_back(it->path().filename().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string HostView::link_name(std::string_view absolute) const {
  std::error_code error;
  const fs::path target = fs::read_symlink(path(absolute), error);
  return error ? "" : target.filename().string();
}

std::string HostView::program(std::string_view name) const {
  for (const char* directory : kProgramDirs) {
    std::string candidate = std::string(directory) + "/" + std::string(name);
    if (::access(path(candidate).c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string> words_of(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  std::vector<std::string> words;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
    if (text.empty()) return words;
    const std::size_t end = std::min(text.find_first_of(kBlank), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(kBlank) - begin + 1));
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string all;
  for (const std::string& part : parts) {
    if (!all.empty()) all += between;
    all += part;
  }
  return all;
}

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:,@%+=";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string all = "'";
  for (char c : word)
    all += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return all + "'";
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

std::vector<Process> processes_named(const HostView& host, std::string_view name) {
  std::vector<Process> found;
  for (const std::string& pid : host.names("/proc")) {
    if (!number_of(pid)) continue;
    if (host.line("/proc/" + pid + "/comm") == name) found.push_back({pid, std::string(name)});
  }
  return found;
}

bool has_exports(const HostView& host, const std::string& file) {
  return !exports_files(host, file).empty();
}

bool LocalServer::loopback_only() const {
  return !listen.empty() && std::all_of(listen.begin(), listen.end(),
                                        [](const SocketAddress& a) { return a.is_loopback(); });
}

LocalServer local_server(const HostView& host) {
  LocalServer server;
  std::string exports = Config{}.exports_file;
  if (host.exists(kDefaultConfigFile)) {
    const ParsedConfig parsed = read_config_file(host.path(kDefaultConfigFile));
    if (parsed.ok()) {
      server.rdma_port = static_cast<std::uint16_t>(parsed.config.port);
      server.tcp_port = static_cast<std::uint16_t>(parsed.config.tcp_port);
      server.wants_rpcbind = parsed.config.rpcbind;
      server.nlm = parsed.config.nlm;
      server.fabric = parsed.config.fabric;
      server.listen = addresses_in(parsed.config.listen);
      exports = parsed.config.exports_file;
    }
  }
  const std::vector<std::string> files = exports_files(host, exports);
  const auto says = [&](const std::string& file) { return says_something(host, file); };
  server.configured = std::any_of(files.begin(), files.end(), says) ||
                      host.exists("/etc/systemd/system/multi-user.target.wants/nfs-rdma.service");
  const std::vector<Process> running = processes_named(host, "nfs-rdmad");
  if (running.empty()) return server;
  server.running = true;
  server.pid = running.front().pid;
  std::string command_line = host.text("/proc/" + server.pid + "/cmdline");
  std::replace(command_line.begin(), command_line.end(), '\0', '\n');
  const std::vector<std::string> words = lines_of(command_line);
  take_port(words, "--port", &server.rdma_port);
  take_port(words, "--tcp-port", &server.tcp_port);
  if (const auto fabrics = values_of(words, "--fabric"); !fabrics.empty()) {
    server.fabric = fabrics.back();
  }
  if (const auto listen = values_of(words, "--listen"); !listen.empty()) {
    server.listen = addresses_in(joined(listen));
  }
  return server;
}

}  // namespace nfsrdma::doctor
