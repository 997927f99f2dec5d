// SPDX-License-Identifier: Apache-2.0
#include "server/nsm/monitored.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace nfsrdma::nsm {

namespace {

constexpr std::string_view kMagic = "nfs-rdma monitored hosts 1";
constexpr std::size_t kFields = 7;  // and an eighth one, the state

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename T>
bool read_number(std::string_view text, int base, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out, base);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_private(std::string_view hex, std::array<std::byte, xdr::kNsmPrivate>* out) {
  if (hex.size() != 2 * out->size()) return false;
  for (std::size_t i = 0; i < out->size(); ++i) {
    unsigned byte = 0;
    if (!read_number(hex.substr(2 * i, 2), 16, &byte)) return false;
    (*out)[i] = static_cast<std::byte>(byte);
  }
  return true;
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f; });
}

std::string to_text(const std::vector<Monitored>& all) {
  std::string text = fmt::format("{} {}\n", kMagic, all.size());
  for (const Monitored& one : all) {
    std::string hex;
    for (const std::byte byte : one.priv)
      hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
    text += fmt::format("{} {} {} {} {} {} {}", one.mon_name, one.my_name, one.my_prog, one.my_vers,
                        one.my_proc, hex, one.boot_id);
    if (one.state != 0) text += fmt::format(" {}", one.state);
    text += '\n';
  }
  return text;
}

std::optional<std::vector<Monitored>> from_text(std::string_view text) {
  std::vector<std::string_view> lines = split(text, '\n');
  std::size_t count = 0;
  if (!lines[0].starts_with(kMagic) ||
      !read_number(lines[0].substr(std::min(lines[0].size(), kMagic.size() + 1)), 10, &count) ||
      lines.size() != count + 2 || !lines.back().empty()) {
    return std::nullopt;
  }
  std::vector<Monitored> all;
  for (std::size_t i = 1; i <= count; ++i) {
    const auto fields = split(lines[i], ' ');
    Monitored one;
    const bool is_old = fields.size() == kFields + 1;
    if ((fields.size() != kFields && !is_old) || !is_plain_name(fields[0]) ||
        !is_plain_name(fields[1]) || !read_number(fields[2], 10, &one.my_prog) ||
        !read_number(fields[3], 10, &one.my_vers) || !read_number(fields[4], 10, &one.my_proc) ||
        !read_private(fields[5], &one.priv) ||
        (is_old && !read_number(fields[7], 10, &one.state))) {
      return std::nullopt;
    }
    one.mon_name = fields[0];
    one.my_name = fields[1];
    one.boot_id = fields[6];
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace nfsrdma::nsm
