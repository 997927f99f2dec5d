// SPDX-License-Identifier: Apache-2.0
#include "server/journal.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "rpcrdma/base/log.h"

namespace nfsrdma {

namespace {

void send_to_journal(int priority, std::string_view line, std::span<const LogField> fields) {
  std::vector<std::string> texts{fmt::format("MESSAGE={}", line),
                                 fmt::format("PRIORITY={}", priority),
                                 "SYSLOG_IDENTIFIER=nfs-rdmad"};
  for (const LogField& field : fields)
    texts.push_back(fmt::format("{}={}", field.name, field.value));
  std::vector<iovec> parts;
  for (std::string& text : texts)
    parts.push_back({text.data(), text.size()});
  ::sd_journal_sendv(parts.data(), static_cast<int>(parts.size()));
}

/// $JOURNAL_STREAM is "device:inode" (systemd.exec(5)); somebody may have redirected us since.
bool standard_error_is_the_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat st {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &st) != 0) return false;
  return fmt::format("{}:{}", st.st_dev, st.st_ino) == stream;
}

}  // namespace

void log_to_journal() {
  if (standard_error_is_the_journal()) set_log_sink(send_to_journal);
}

}  // namespace nfsrdma
