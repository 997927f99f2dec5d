// SPDX-License-Identifier: Apache-2.0
// A storage for ClientRecords that stops or refuses where a test wants it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "server/nfs4/client_records.h"

namespace nfsrdma::nfs4::test {

using Owners = std::set<std::string>;

/// What outlives a life of the server.
struct Disk {
  std::optional<std::string> content;
  // The change to fail or to stop at, counted from 0; -1: none.
  int fatal_change = -1;
  int failures = 1;  // so many changes fail from there on
  std::function<void(Disk&, const std::string& before, std::string_view change, bool append)>
      at_end;
  int changes = 0;
};

class DiskStorage final : public RecordStorage {
 public:
  explicit DiskStorage(Disk& disk) : disk_(disk) {}
  const std::string& name() const override { return name_; }
  Result<std::optional<std::string>> read() override { return disk_.content; }
  Result<void> replace(std::string_view content) override { return change(content, false); }
  Result<void> append(std::string_view record) override { return change(record, true); }

 private:
  Result<void> change(std::string_view bytes, bool append) {
    EXPECT_FALSE(append && broken_) << "appended behind what is not known";
    const int number = disk_.changes++;
    const std::string before = disk_.content.value_or("");
    if (disk_.fatal_change >= 0 && number >= disk_.fatal_change &&
        number < disk_.fatal_change + disk_.failures) {
      broken_ = true;
      if (disk_.at_end) disk_.at_end(disk_, before, bytes, append);
      return Error{Errc::kSystem, EIO, "the disk"};
    }
    if (!append) broken_ = false;
    disk_.content = append ? before + std::string(bytes) : std::string(bytes);
    return {};
  }

  Disk& disk_;
  const std::string name_ = "the disk";
  bool broken_ = false;
};

inline std::unique_ptr<ClientRecords> start(Disk& disk, std::uint64_t clock = 0) {
  std::string why;
  auto records = ClientRecords::open(std::make_unique<DiskStorage>(disk), clock, &why);
  EXPECT_TRUE(records != nullptr || disk.fatal_change >= 0) << why;
  return records;
}

inline Owners left_on(Disk disk) {
  disk.fatal_change = -1;
  auto records = start(disk);
  return records == nullptr ? Owners{"UNREADABLE"} : records->before();
}

}  // namespace nfsrdma::nfs4::test
