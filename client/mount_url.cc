// SPDX-License-Identifier: Apache-2.0
#include "client/mount_url.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "rpcrdma/private_data.h"

namespace nfsrdma {
namespace {

constexpr std::string_view kScheme = "nfs://";
constexpr std::string_view kForm = "nfs://host[:port]/path?option=value";

using Parsed = std::optional<std::string>;  // an error, or nothing

std::string quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

template <typename T>
Parsed set_number(std::string_view key, std::string_view text, T low, T high, T* out) {
  std::optional<std::uint64_t> value = number<std::uint64_t>(text);
  if (!value || *value < low || *value > high) {
    return std::string(key) + "=" + std::string(text) + ": expected a number from " +
           std::to_string(low) + " to " + std::to_string(high);
  }
  *out = static_cast<T>(*value);
  return {};
}

/// Bytes, with k or m behind them if need be.
Parsed set_size(std::string_view key, std::string_view text, std::uint32_t* out) {
  std::string_view digits = text;
  std::uint64_t unit = 1;
  if (!digits.empty() && (digits.back() == 'k' || digits.back() == 'K')) unit = 1024;
  if (!digits.empty() && (digits.back() == 'm' || digits.back() == 'M')) unit = 1024 * 1024;
  if (unit != 1) digits.remove_suffix(1);
  std::optional<std::uint64_t> value = number<std::uint64_t>(digits);
  constexpr std::uint64_t kLargest = 16u << 20;
  if (!value || *value > kLargest || *value * unit < 1024 || *value * unit > kLargest) {
    return std::string(key) + "=" + std::string(text) + ": expected a size from 1k to 16m";
  }
  *out = static_cast<std::uint32_t>(*value * unit);
  return {};
}

/// The largest RDMA Send.
Parsed set_inline(std::string_view value, MountSettings* s) {
  std::uint32_t size = 0;
  if (set_size("inline", value, &size) || size > 65536) {
    return "inline=" + std::string(value) + ": expected a size from 1k to 64k";
  }
  s->inline_bytes = valid_inline_size(size);
  return {};
}

Parsed set_proto(std::string_view value, MountSettings* s) {
  if (value == "auto") {
    s->proto = ProtoChoice::kAuto;
  } else if (value == "rdma") {
    s->proto = ProtoChoice::kRdma;
  } else if (value == "tcp") {
    s->proto = ProtoChoice::kTcp;
  } else {
    return "proto=" + std::string(value) + ": expected rdma, tcp or auto";
  }
  return {};
}

Parsed set_fabric(std::string_view value, MountSettings* s) {
  if (value == "auto") {
    s->fabric = FabricChoice::kAuto;
  } else if (value == "verbs") {
    s->fabric = FabricChoice::kVerbs;
  } else if (value == "iwarp") {
    s->fabric = FabricChoice::kIwarp;
  } else {
    return "fabric=" + std::string(value) + ": expected auto, verbs or iwarp";
  }
  return {};
}

Parsed set_crc(std::string_view value, MountSettings* s) {
  if (value != "auto" && value != "require") {
    return "crc=" + std::string(value) + ": expected auto or require";
  }
  s->require_crc = value == "require";
  return {};
}

Parsed set_flag(std::string_view key, std::string_view value) {
  if (value.empty()) return {};
  return std::string(key) + "=" + std::string(value) + ": takes no value";
}

/// `port`: that of the protocol which the whole URL is about.
Parsed set_option(std::string_view key, std::string_view value, MountSettings* s,
                  std::uint16_t* port) {
  if (key == "proto") return set_proto(value, s);
  if (key == "fabric") return set_fabric(value, s);
  if (key == "crc") return set_crc(value, s);
  if (key == "vers" || key == "nfsvers" || key == "version") {
    std::string wrong = parse_nfs_version(value, &s->version);
    if (wrong.empty()) return {};
    return std::string(key) + "=" + std::string(value) + ": " + wrong;
  }
  if (key == "port") return set_number<std::uint16_t>(key, value, 1, 65535, port);
  if (key == "tcpport") return set_number<std::uint16_t>(key, value, 1, 65535, &s->tcp_port);
  if (key == "mountport") return set_number<std::uint16_t>(key, value, 1, 65535, &s->mount_port);
  if (key == "uid") {
    // The groups of this process are not those of somebody else.
    s->identity.set_groups({});
    return set_number<std::uint32_t>(key, value, 0, UINT32_MAX, &s->identity.uid);
  }
  if (key == "gid") return set_number<std::uint32_t>(key, value, 0, UINT32_MAX, &s->identity.gid);
  if (key == "rsize") return set_size(key, value, &s->rsize);
  if (key == "wsize") return set_size(key, value, &s->wsize);
  if (key == "retrans") return set_number<std::uint32_t>(key, value, 0, 1000, &s->retrans);
  if (key == "nconnect") return set_number<std::uint32_t>(key, value, 1, 16, &s->connections);
  if (key == "credits") return set_number<std::uint32_t>(key, value, 1, 1024, &s->credits);
  if (key == "inline") return set_inline(value, s);
  if (key == "timeo") {
    std::uint32_t deciseconds = 0;
    Parsed error = set_number<std::uint32_t>(key, value, 1, 36000, &deciseconds);
    s->timeo = std::chrono::milliseconds(100) * deciseconds;
    return error;
  }
  if (key == "soft" || key == "hard") {
    s->soft = key == "soft";
    return set_flag(key, value);
  }
  return "unknown option " + quoted(key) +
         "; known are proto, fabric, crc, vers, port, tcpport, mountport, uid, gid, rsize, wsize, "
         "timeo, retrans, soft, hard, nconnect, credits, inline";
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

/// "host", "host:port", "[v6]", "[v6]:port".
Parsed parse_authority(std::string_view text, MountSettings* s, std::uint16_t* port) {
  std::string_view host = text, rest;
  if (!text.empty() && text.front() == '[') {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return quoted(text) + ": ']' is missing";
    host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
  } else if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    if (text.find(':', colon + 1) != std::string_view::npos) {
      return quoted(text) + ": put an IPv6 address in brackets, as in nfs://[2001:db8::1]/path";
    }
    host = text.substr(0, colon);
    rest = text.substr(colon);
  }
  if (host.empty()) return "the host is missing; expected " + std::string(kForm);
  s->host = std::string(host);
  if (rest.empty()) return {};
  if (rest.front() != ':') return quoted(text) + ": expected :port behind ]";
  return set_number<std::uint16_t>("port", rest.substr(1), 1, 65535, port);
}

}  // namespace

bool looks_like_url(std::string_view text) {
  const std::size_t colon = text.find("://");
  return colon != std::string_view::npos && text.find('/') == colon + 1;
}

bool parse_mount_url(std::string_view url, MountSettings* settings, std::string* error) {
  auto fail = [error, whole = url](const std::string& what) {
    *error = std::string(whole) + ": " + what;
    return false;
  };
  if (url.substr(0, kScheme.size()) != kScheme) return fail("expected " + std::string(kForm));
  url.remove_prefix(kScheme.size());
  std::string_view query;
  if (const std::size_t mark = url.find('?'); mark != std::string_view::npos) {
    query = url.substr(mark + 1);
    url = url.substr(0, mark);
  }
  const std::size_t slash = url.find('/');
  std::uint16_t port = 0;
  if (Parsed wrong = parse_authority(url.substr(0, slash), settings, &port)) return fail(*wrong);
  std::optional<std::string> path =
      percent_decoded(slash == std::string_view::npos ? std::string_view("/") : url.substr(slash));
  if (!path) return fail("a % in the path needs two hexadecimal digits behind it, not 00");
  settings->path = std::move(*path);
  bool tcp_port_given = false;
  std::uint16_t port_option = 0;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view item = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (item.empty()) continue;
    const std::size_t equals = item.find('=');
    tcp_port_given |= item.substr(0, equals) == "tcpport";
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1);
    if (Parsed wrong = set_option(item.substr(0, equals), value, settings, &port_option))
      return fail(*wrong);
  }
  if (settings->proto == ProtoChoice::kTcp && settings->fabric != FabricChoice::kAuto) {
    return fail("proto=tcp uses no fabric; leave fabric= out");
  }
  if (port != 0 && port_option != 0 && port != port_option) {
    return fail("port=" + std::to_string(port_option) + ": the host has another port behind it");
  }
  if (port == 0) port = port_option;
  if (port != 0) {
    // The port belongs to the protocol that was asked for; tcpport= says what TCP uses.
    if (settings->proto == ProtoChoice::kTcp && !tcp_port_given) settings->tcp_port = port;
    settings->rdma_port = port;
  }
  return true;
}

}  // namespace nfsrdma
