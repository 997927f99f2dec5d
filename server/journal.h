// SPDX-License-Identifier: Apache-2.0
// Log lines as entries of systemd's journal, with what they are about in fields of their own:
//   journalctl -u nfs-rdma NFS_RDMA_CLIENT=192.0.2.7
#pragma once

namespace nfsrdma {

/// Sends log lines to the journal when standard error leads there anyhow ($JOURNAL_STREAM names
/// that very socket); else nothing changes.
void log_to_journal();

}  // namespace nfsrdma
