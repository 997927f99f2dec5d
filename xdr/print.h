// SPDX-License-Identifier: Apache-2.0
// Text of wire values on one line, for logs and for test failures:
//   {status=NFS3_OK resok={file_attributes={attributes_follow=false} count=2 eof=true data=2:6869}}
// Long opaques and lists are cut short. It allocates: not for a data path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "xdr/archive.h"

namespace nfsrdma::xdr {

namespace detail {

class PrintArchive : public ArchiveBase<PrintArchive> {
 public:
  static constexpr std::size_t kShownBytes = 32;
  static constexpr std::size_t kShownElements = 16;

  explicit PrintArchive(std::string& text) : text_(text) {}

  void number(const char* name, std::uint64_t v) { field(name) += std::to_string(v); }
  void signed_number(const char* name, std::int64_t v) { field(name) += std::to_string(v); }
  void boolean(const char* name, bool v) { field(name) += v ? "true" : "false"; }
  template <typename E>
  void enumeration(const char* name, E v) {
    std::string_view known = enum_name(v);
    field(name) += known.empty() ? std::to_string(static_cast<std::uint32_t>(v)) : known;
  }
  template <typename E>
  void closed_enum(const char* name, E v) {
    enumeration(name, v);
  }
  void fixed_opaque(const char* name, std::span<const std::byte> v) { hex(field(name), v); }
  void opaque(const char* name, std::span<const std::byte> v, std::size_t) {
    std::string& text = field(name);
    text += std::to_string(v.size());
    text += ':';
    hex(text, v);
  }
  void string(const char* name, std::string_view v, std::size_t) { quoted(field(name), v); }
  void payload(const char* name, const Payload& v, std::size_t max) { opaque(name, v.bytes, max); }
  template <typename T>
  void list(const char* name, const EncodedList<T>& v, std::size_t) {
    elements(name, v, v.count);
  }
  template <typename T>
  void counted(const char* name, const EncodedArray<T>& v, std::size_t) {
    elements(name, v, v.count);
  }
  template <std::size_t N>
  void bitmap(const char* name, const Bitmap<N>& v) {
    field(name) += '[';
    v.for_each([this](std::uint32_t bit) { number("", bit); });
    if (v.beyond != 0) number("beyond", v.beyond);
    text_ += ']';
  }
  template <typename Body>
  void enclosed(const char* name, std::size_t, Body body) {
    field(name) += '{';
    body(*this);
    text_ += '}';
  }
  template <typename T, std::size_t N>
  void array(const char* name, const BoundedArray<T, N>& v) {
    field(name) += '[';
    for (const T& item : v.view())
      (*this)("", item);
    text_ += ']';
  }
  template <typename T>
  void object(const char* name, const T& v) {
    field(name) += '{';
    visit(*this, v);
    text_ += '}';
  }

 private:
  std::string& field(std::string_view name) {
    if (!text_.empty() && text_.back() != '{' && text_.back() != '[') text_ += ' ';
    if (!name.empty()) {
      text_ += name;
      text_ += '=';
    }
    return text_;
  }
  template <typename Elements>
  void elements(const char* name, const Elements& v, std::size_t count) {
    field(name) += '[';
    std::size_t shown = 0;
    for (const auto& item : v) {
      if (shown++ == kShownElements) {
        field("") += "... " + std::to_string(count) + " in all";
        break;
      }
      (*this)("", item);
    }
    text_ += ']';
  }
  static void hex_byte(std::string& text, unsigned byte) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  static void hex(std::string& text, std::span<const std::byte> v) {
    for (std::byte b : v.first(std::min(v.size(), kShownBytes)))
      hex_byte(text, unsigned(b));
    if (v.size() > kShownBytes) text += "...";
  }
  /// A peer's text must not reach a terminal or a log with control characters in it.
  static void quoted(std::string& text, std::string_view v) {
    text += '"';
    for (char c : v) {
      auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        text += '\\';
        text += c;
      } else if (byte < 0x20 || byte >= 0x7f) {
        text += "\\x";
        hex_byte(text, byte);
      } else {
        text += c;
      }
    }
    text += '"';
  }

  std::string& text_;
};

}  // namespace detail

template <typename T>
std::string print(const T& v) {
  std::string text;
  detail::PrintArchive archive(text);
  archive("", v);
  return text;
}

}  // namespace nfsrdma::xdr
