// SPDX-License-Identifier: Apache-2.0
// Opening by path, where others change the directory meanwhile.
#include <fcntl.h>

#include "tests/unit/client/mount_impl_fixture.h"

namespace nfsrdma {
namespace {

using xdr::nfsproc3;

class OpenPath : public MountImplFixture {
 protected:
  ~OpenPath() override { opened_.reset(); }

  /// What CREATE is asked for, of a name that was not there just before.
  xdr::CREATE3args create(int flags) {
    group_.spawn(keep(client::open_path(*impl_, "name", flags, 0644), &opened_));
    xdr::LOOKUP3res missing;
    missing.status = xdr::nfsstat3::NFS3ERR_NOENT;
    static_cast<void>(next_call<xdr::LOOKUP3args>(nfsproc3::NFSPROC3_LOOKUP));
    answer(missing);
    return next_call<xdr::CREATE3args>(nfsproc3::NFSPROC3_CREATE);
  }

  std::optional<Result<client::Opened>> opened_;
};

TEST_F(OpenPath, WhatAppearsMeanwhileIsCutAsWhatWasThere) {
  const auto how = create(O_WRONLY | O_CREAT | O_TRUNC).how;
  EXPECT_EQ(how.mode, xdr::createmode3::UNCHECKED);
  EXPECT_EQ(how.obj_attributes.size.set_it, true);
  EXPECT_EQ(how.obj_attributes.size.size, 0u);
}

TEST_F(OpenPath, AndNotByWhoDoesNotAskForThat) {
  EXPECT_FALSE(create(O_WRONLY | O_CREAT).how.obj_attributes.size.set_it);
}

}  // namespace
}  // namespace nfsrdma
