// SPDX-License-Identifier: Apache-2.0
// What `nfs-rdma doctor` finds: a CheckResult per check, made of Findings. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nfsrdma::doctor {

/// In order of gravity.
enum class Verdict : std::uint8_t {
  kSkipped,  // not looked at, for the reason given
  kOk,
  kNote,     // worth knowing, nothing wrong
  kWarning,  // works now, or works badly
  kProblem,  // keeps NFS over RDMA from working
};
/// "skipped", "ok", "note", "warning", "problem".
const char* verdict_name(Verdict verdict);

/// Lines for people: what to do, commands on lines of their own that can be pasted.
using Remedy = std::vector<std::string>;

struct Finding {
  Verdict verdict = Verdict::kOk;
  std::string seen;
  Remedy remedy{};
};

struct CheckResult {
  std::string id;    // of the table's row, which fills it in
  std::string area;  // the same
  std::vector<Finding> findings{};

  CheckResult& add(Verdict verdict, std::string seen, Remedy remedy = {}) {
    findings.push_back({verdict, std::move(seen), std::move(remedy)});
    return *this;
  }
  CheckResult& ok(std::string seen) { return add(Verdict::kOk, std::move(seen)); }
  CheckResult& note(std::string seen, Remedy remedy = {}) {
    return add(Verdict::kNote, std::move(seen), std::move(remedy));
  }
  CheckResult& warning(std::string seen, Remedy remedy) {
    return add(Verdict::kWarning, std::move(seen), std::move(remedy));
  }
  CheckResult& problem(std::string seen, Remedy remedy) {
    return add(Verdict::kProblem, std::move(seen), std::move(remedy));
  }
  CheckResult& skipped(std::string why, Remedy remedy = {}) {
    return add(Verdict::kSkipped, std::move(why), std::move(remedy));
  }

  /// The gravest of the findings; kSkipped when there are none.
  Verdict verdict() const;
};

}  // namespace nfsrdma::doctor
