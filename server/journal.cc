// SPDX-License-Identifier: Apache-2.0
#include "server/journal.h"

#include <fmt/format.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

#include <string>
#include <vector>

#include "rpcrdma/base/log.h"

namespace nfsrdma {

namespace {

void send_to_journal(int priority, std::string_view line, std::span<const LogField> fields) {
  std::vector<std::string> texts{fmt::format("MESSAGE={}", line),
                                 fmt::format("PRIORITY={}", priority),
                                 "SYSLOG_IDENTIFIER=nfs-rdmad"};
  texts.reserve(texts.size() + fields.size());
  for (const LogField& field : fields)
    texts.push_back(fmt::format("{}={}", field.name, field.value));
  std::vector<iovec> parts;
  parts.reserve(texts.size());
  for (std::string& text : texts)
    parts.push_back({text.data(), text.size()});
  ::sd_journal_sendv(parts.data(), static_cast<int>(parts.size()));
}

}  // namespace

void log_to_journal() {
  if (standard_error_is_the_journal()) set_log_sink(send_to_journal);
}

}  // namespace nfsrdma
