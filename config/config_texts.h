// SPDX-License-Identifier: Apache-2.0
// What people read of rdma.conf's keys, made of options.def: the sample file, and the entries of
// rdma.conf(5). Both are kept in the tree, where packages and readers find them; a test makes them
// anew and compares (tests/unit/config/config_texts_test.cc, which also writes them).
#pragma once

#include <string>
#include <string_view>

namespace nfsrdma {

/// config/files/rdma.conf
std::string sample_config();

/// man/rdma.conf.5 of man/rdma.conf.5.in. A line "@KEY" of that becomes a key's entry: what is
/// allowed and the help text, then the lines up to the next entry, which say more in mdoc(7), then
/// range, reload and default. What is missing or unknown is in *problem.
std::string config_page(std::string_view page, std::string* problem);

}  // namespace nfsrdma
