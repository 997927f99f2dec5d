// SPDX-License-Identifier: Apache-2.0
#include "client/doctor/check.h"

#include <algorithm>

namespace nfsrdma::doctor {

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSkipped:
      return "skipped";
    case Verdict::kOk:
      return "ok";
    case Verdict::kNote:
      return "note";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kProblem:
      break;
  }
  return "problem";
}

Verdict CheckResult::verdict() const {
  Verdict worst = Verdict::kSkipped;
  for (const Finding& finding : findings)
    worst = std::max(worst, finding.verdict);
  return worst;
}

}  // namespace nfsrdma::doctor
