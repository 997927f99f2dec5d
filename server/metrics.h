// SPDX-License-Identifier: Apache-2.0
// What Prometheus is told of a server, as families of prometheus-cpp. Durations in seconds, sizes
// in bytes. nfs-rdmad(8) lists the families; the labels are bounded sets, never a client or a path.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "server/status_report.h"

namespace nfsrdma {

std::vector<prometheus::MetricFamily> make_metrics(const StatusInputs& inputs);

/// In the text format that Prometheus reads.
std::string metrics_text(const std::vector<prometheus::MetricFamily>& families);

}  // namespace nfsrdma
