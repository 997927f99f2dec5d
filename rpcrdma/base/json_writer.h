// SPDX-License-Identifier: Apache-2.0
// JsonWriter: appends one JSON document (RFC 8259) to a string. Commas are its business, balance is
// the caller's. Text that is not UTF-8 (file names may be anything) comes out with U+FFFD in the
// places of the wrong bytes, so that the document is valid whatever goes in.
//
//   JsonWriter json;
//   json.begin_object();
//   json.field("version", 1);
//   json.key("connections");
//   json.begin_array();
//   ...
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace nfsrdma {

class JsonWriter {
 public:
  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name) {
    separate();
    quote(name);
    out_ += ':';
    after_key_ = true;
  }

  void value(std::string_view text) {
    separate();
    quote(text);
  }
  /// An array of texts.
  template <typename Texts>
  void list(std::string_view name, const Texts& texts) {
    key(name);
    begin_array();
    for (const auto& text : texts)
      value(std::string_view(text));
    end_array();
  }
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool b) {
    separate();
    out_ += b ? "true" : "false";
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>) void value(T n) {
    separate();
    out_ += std::to_string(n);
  }
  /// Not-a-number and infinities, which JSON does not know, become null.
  void value(double d) {
    separate();
    if (!std::isfinite(d)) {
      out_ += "null";
      return;
    }
    char text[40];
    std::snprintf(text, sizeof text, "%.10g", d);
    out_ += text;
  }
  void null() {
    separate();
    out_ += "null";
  }
  template <typename T>
  void field(std::string_view name, const T& v) {
    key(name);
    value(v);
  }

  const std::string& text() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void open(char c) {
    separate();
    out_ += c;
    first_ = true;
  }
  void close(char c) {
    out_ += c;
    first_ = false;
  }
  void separate() {
    if (!after_key_ && !first_) out_ += ',';
    after_key_ = false;
    first_ = false;
  }
  void quote(std::string_view text) {
    out_ += '"';
    while (!text.empty()) {
      const auto c = static_cast<unsigned char>(text.front());
      const std::size_t length = c < 0x80 ? 1 : utf8_length(text);
      if (length == 0) {
        out_ += "\xef\xbf\xbd";
        text.remove_prefix(1);
        continue;
      }
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += static_cast<char>(c);
      } else if (c < 0x20) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\u%04x", c);
        out_ += escape;
      } else {
        out_ += text.substr(0, length);
      }
      text.remove_prefix(length);
    }
    out_ += '"';
  }
  /// Bytes of the well-formed character of several bytes at the front; 0 when it is none.
  static std::size_t utf8_length(std::string_view text) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned c = at(0);
    const std::size_t n = c >= 0xc2 && c <= 0xdf   ? 2
                          : c >= 0xe0 && c <= 0xef ? 3
                          : c >= 0xf0 && c <= 0xf4 ? 4
                                                   : 0;
    if (n == 0 || text.size() < n) return 0;
    for (std::size_t i = 1; i < n; ++i) {
      if ((at(i) & 0xc0) != 0x80) return 0;
    }
    // Overlong forms, surrogates, and what lies beyond U+10FFFF.
    if ((c == 0xe0 && at(1) < 0xa0) || (c == 0xed && at(1) > 0x9f)) return 0;
    if ((c == 0xf0 && at(1) < 0x90) || (c == 0xf4 && at(1) > 0x8f)) return 0;
    return n;
  }

  std::string out_;
  bool first_ = true;
  bool after_key_ = false;
};

}  // namespace nfsrdma
