// SPDX-License-Identifier: Apache-2.0
// A small JSON reader (RFC 8259) for control requests and status documents. Its recursion is
// bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nfsrdma {

class JsonValue {
 public:
  enum class Kind : std::uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

  /// Nothing when `text` is not one JSON value.
  static std::optional<JsonValue> parse(std::string_view text);

  Kind kind() const { return kind_; }
  /// The member, or a null value.
  const JsonValue& operator[](std::string_view name) const;
  const std::vector<JsonValue>& items() const { return items_; }
  const std::string& text() const { return text_; }
  double number() const { return number_; }
  /// A whole number as it stands; of others the part before the point, what is too large as the
  /// largest, what is negative as 0.
  std::uint64_t count() const { return count_; }
  bool truth() const { return kind_ == Kind::kBool && number_ != 0; }

 private:
  friend class JsonParser;
  Kind kind_ = Kind::kNull;
  double number_ = 0;
  std::uint64_t count_ = 0;
  std::string text_;
  std::vector<JsonValue> items_;                            // of an array
  std::vector<std::pair<std::string, JsonValue>> members_;  // of an object
};

}  // namespace nfsrdma
