// SPDX-License-Identifier: Apache-2.0
// CookieCircle: does a server lead whoever reads a directory in a circle? Each page is asked for
// with the cookie that the one before ended on; one that ends where an earlier page did is followed
// by the same pages for ever.
//
// It takes no memory for each page: one cookie is kept, and replaced after 1, 2, 4, 8 ... pages
// (Brent), so that at some time it is on the circle, and kept for long enough to come round again.
// That takes a few times the pages that there are.
#pragma once

#include <cstdint>

namespace nfsrdma {

class CookieCircle {
 public:
  /// `begin`: where the reading begins.
  explicit CookieCircle(std::uint64_t begin = 0) : last_(begin), kept_(begin) {}

  /// A page came, to which last() led, and ends on `cookie` with more behind it. True: a circle.
  bool closes(std::uint64_t cookie) {
    if (cookie == last_ || cookie == kept_) return true;
    last_ = cookie;
    if (++pages_ == until_) {
      kept_ = cookie;
      pages_ = 0;
      until_ *= 2;
    }
    return false;
  }
  std::uint64_t last() const { return last_; }

 private:
  std::uint64_t last_;
  std::uint64_t kept_;
  std::uint64_t pages_ = 0;  // since it was kept
  std::uint64_t until_ = 1;
};

}  // namespace nfsrdma
