// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/json_value.h"

#include <charconv>
#include <limits>

namespace nfsrdma {

/// Recursive descent with a bound on depth.
class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : text_(text) {}

  bool document(JsonValue* out) {
    if (!value(out, 0)) return false;
    skip_space();
    return at_ == text_.size();
  }

 private:
  static constexpr int kMaxDepth = 64;

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }

  bool value(JsonValue* out, int depth) {
    skip_space();
    if (at_ >= text_.size() || depth > kMaxDepth) return false;
    switch (text_[at_]) {
      case '{':
        return object(out, depth);
      case '[':
        return array(out, depth);
      case '"':
        out->kind_ = JsonValue::Kind::kString;
        return string(&out->text_);
      case 't':
      case 'f':
        out->kind_ = JsonValue::Kind::kBool;
        out->number_ = text_[at_] == 't' ? 1 : 0;
        return word(text_[at_] == 't' ? "true" : "false");
      case 'n':
        return word("null");
      default:
        return number(out);
    }
  }

  bool number(JsonValue* out) {
    out->kind_ = JsonValue::Kind::kNumber;
    const char* begin = text_.data() + at_;
    auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), out->number_);
    if (error != std::errc()) return false;
    out->count_ = count_of(begin, end, out->number_);
    at_ += static_cast<std::size_t>(end - begin);
    return true;
  }
  /// Above 2^53 a double does not have each whole number.
  static std::uint64_t count_of(const char* begin, const char* end, double number) {
    constexpr double kBeyond = 18446744073709551616.0;  // 2^64
    std::uint64_t whole = 0;
    const auto [rest, error] = std::from_chars(begin, end, whole);
    if (error == std::errc() && rest == end) return whole;
    if (number >= kBeyond) return std::numeric_limits<std::uint64_t>::max();
    return number > 0 ? static_cast<std::uint64_t>(number) : 0;
  }

  bool object(JsonValue* out, int depth) {
    out->kind_ = JsonValue::Kind::kObject;
    ++at_;
    if (take('}')) return true;
    do {
      skip_space();
      std::pair<std::string, JsonValue> member;
      if (at_ >= text_.size() || text_[at_] != '"' || !string(&member.first) || !take(':') ||
          !value(&member.second, depth + 1)) {
        return false;
      }
      out->members_.push_back(std::move(member));
    } while (take(','));
    return take('}');
  }

  bool array(JsonValue* out, int depth) {
    out->kind_ = JsonValue::Kind::kArray;
    ++at_;
    if (take(']')) return true;
    do {
      if (!value(&out->items_.emplace_back(), depth + 1)) return false;
    } while (take(','));
    return take(']');
  }

  bool string(std::string* out) {
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c != '\\') {
        *out += c;
        continue;
      }
      if (++at_ >= text_.size() || !escape(out)) return false;
    }
    return false;
  }

  bool escape(std::string* out) {
    switch (text_[at_]) {
      case 'n':
        *out += '\n';
        return true;
      case 't':
        *out += '\t';
        return true;
      case 'r':
        *out += '\r';
        return true;
      case 'b':
        *out += '\b';
        return true;
      case 'f':
        *out += '\f';
        return true;
      case 'u':
        return unicode(out);
      default:
        *out += text_[at_];
        return true;
    }
  }

  bool unicode(std::string* out) {
    unsigned code = 0;
    if (at_ + 4 >= text_.size()) return false;
    auto [end, error] = std::from_chars(text_.data() + at_ + 1, text_.data() + at_ + 5, code, 16);
    if (error != std::errc() || end != text_.data() + at_ + 5) return false;
    at_ += 4;
    if (code < 0x80) {
      *out += static_cast<char>(code);
    } else if (code < 0x800) {
      *out += static_cast<char>(0xc0 | code >> 6);
      *out += static_cast<char>(0x80 | (code & 0x3f));
    } else {
      *out += static_cast<char>(0xe0 | code >> 12);
      *out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
      *out += static_cast<char>(0x80 | (code & 0x3f));
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<JsonValue> JsonValue::parse(std::string_view text) {
  JsonValue value;
  if (!JsonParser(text).document(&value)) return std::nullopt;
  return value;
}

const JsonValue& JsonValue::operator[](std::string_view name) const {
  static const JsonValue kNone;
  for (const auto& [key, value] : members_) {
    if (key == name) return value;
  }
  return kNone;
}

}  // namespace nfsrdma
