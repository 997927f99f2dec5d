// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or an Error. No exceptions cross our functions; <expected> is not available
// with clang 14 (design.md 4.1), so this is our own, kept to what we use.
//
//   Result<UniqueFd> open_it();
//   NFSRDMA_TRY(UniqueFd fd, open_it());      // declares fd, or returns the Error
//   NFSRDMA_CHECK_OK(flush());                // returns the Error, ignores the value
#pragma once

#include <new>
#include <type_traits>
#include <utility>

#include "rpcrdma/base/check.h"
#include "rpcrdma/base/error.h"

namespace nfsrdma {

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : ok_(true) { new (&value_) T(std::move(value)); }
  Result(Error error) : ok_(false) { new (&error_) Error(error); }
  // std::unique_ptr<Derived> into Result<std::unique_ptr<Base>> and the like.
  template <typename U>
  requires(std::is_convertible_v<U, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
           !std::is_same_v<std::remove_cvref_t<U>, Error> &&
           !std::is_same_v<std::remove_cvref_t<U>, Result>) Result(U&& value)
      : ok_(true) {
    new (&value_) T(std::forward<U>(value));
  }
  Result(Result&& other) noexcept : ok_(other.ok_) { take(other); }
  Result& operator=(Result&& other) noexcept {
    if (this != &other) {
      destroy();
      ok_ = other.ok_;
      take(other);
    }
    return *this;
  }
  ~Result() { destroy(); }

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }

  /// Only when ok().
  T& value() & {
    NFSRDMA_CHECK(ok_);
    return value_;
  }
  const T& value() const& {
    NFSRDMA_CHECK(ok_);
    return value_;
  }
  T&& value() && {
    NFSRDMA_CHECK(ok_);
    return std::move(value_);
  }
  T& operator*() & { return value(); }
  T* operator->() { return &value(); }

  /// Only when !ok().
  const Error& error() const {
    NFSRDMA_CHECK(!ok_);
    return error_;
  }

 private:
  void take(Result& other) {
    if (ok_) {
      new (&value_) T(std::move(other.value_));
    } else {
      new (&error_) Error(other.error_);
    }
  }
  void destroy() {
    if (ok_) value_.~T();
  }

  bool ok_;
  union {
    T value_;
    Error error_;
  };
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() : ok_(true) {}
  Result(Error error) : ok_(false), error_(error) {}
  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const {
    NFSRDMA_CHECK(!ok_);
    return error_;
  }

 private:
  bool ok_;
  Error error_;
};

#define NFSRDMA_CONCAT_INNER(a, b) a##b
#define NFSRDMA_CONCAT(a, b) NFSRDMA_CONCAT_INNER(a, b)

#define NFSRDMA_TRY(decl, expr) NFSRDMA_TRY_IMPL(NFSRDMA_CONCAT(try_result_, __LINE__), decl, expr)
#define NFSRDMA_TRY_IMPL(tmp, decl, expr) \
  auto tmp = (expr);                      \
  if (!tmp.ok()) return tmp.error();      \
  decl = std::move(tmp).value()

#define NFSRDMA_CHECK_OK(expr)                            \
  do {                                                    \
    if (auto check_result = (expr); !check_result.ok()) { \
      return check_result.error();                        \
    }                                                     \
  } while (0)

}  // namespace nfsrdma
