// SPDX-License-Identifier: Apache-2.0
#include "server/files/access_rights.h"

#include <span>

namespace nfsrdma {

namespace {

constexpr std::uint32_t kAccessRead = 1, kAccessLookup = 2, kAccessModify = 4, kAccessExtend = 8,
                        kAccessDelete = 0x10, kAccessExecute = 0x20;
constexpr std::uint32_t kAccessXaread = 0x40, kAccessXawrite = 0x80, kAccessXalist = 0x100;

struct Need {
  std::uint32_t bit;
  std::uint8_t rights;
  bool changes;
};

constexpr Need kDirectory[] = {
    {kAccessRead, kRightRead, false},
    {kAccessLookup, kRightExecute, false},
    {kAccessModify, kRightWrite | kRightExecute, true},
    {kAccessExtend, kRightWrite | kRightExecute, true},
    {kAccessDelete, kRightWrite | kRightExecute, true},
    {kAccessXaread, kRightRead, false},
    {kAccessXawrite, kRightWrite, true},
    {kAccessXalist, kRightRead, false},
};
constexpr Need kOther[] = {
    {kAccessRead, kRightRead, false},   {kAccessModify, kRightWrite, true},
    {kAccessExtend, kRightWrite, true}, {kAccessExecute, kRightExecute, false},
    {kAccessXaread, kRightRead, false}, {kAccessXawrite, kRightWrite, true},
    {kAccessXalist, kRightRead, false},
};

std::span<const Need> needs_of(const FileEntry& file) {
  if (file.is_directory()) return kDirectory;
  return kOther;
}

}  // namespace

std::uint32_t access_granted(FileCall& call, const Resolved& object, std::uint32_t asked) {
  const bool read_only = call.access().read_only;
  const std::span<const Need> needs = needs_of(*object.file);
  std::uint8_t wanted = 0;
  for (const Need& need : needs) {
    if ((asked & need.bit) != 0 && !(need.changes && read_only)) wanted |= need.rights;
  }
  const std::uint8_t have =
      call.server().files.rights(*object.file, call.caller(), object.attributes, wanted);
  std::uint32_t granted = 0;
  for (const Need& need : needs) {
    const bool ok = (have & need.rights) == need.rights && !(need.changes && read_only);
    if ((asked & need.bit) != 0 && ok) granted |= need.bit;
  }
  return granted;
}

std::uint32_t access_supported(const FileEntry& file) {
  std::uint32_t bits = 0;
  for (const Need& need : needs_of(file))
    bits |= need.bit;
  return bits;
}

}  // namespace nfsrdma
