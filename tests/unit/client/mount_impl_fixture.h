// SPDX-License-Identifier: Apache-2.0
// MountedFixture as the library's mount: for its operations by path.
#pragma once

#include "client/library/mount_impl.h"
#include "tests/unit/client/mounted_fixture.h"

namespace nfsrdma {

class MountImplFixture : public MountedFixture {
 protected:
  MountImplFixture()
      : impl_(std::make_shared<client::Mount::Impl>(std::move(LoopDriver::create()).value(),
                                                    MountSettings())) {
    impl_->mount = std::move(mount_);
    impl_->tree = std::make_unique<PathTree>(*impl_->mount, "");
    impl_->opens = std::make_unique<OpenFiles>(*impl_->mount, impl_->op);
  }
  ~MountImplFixture() override {
    impl_->opens.reset();
    impl_->tree.reset();
    mount_ = std::move(impl_->mount);
  }

  std::shared_ptr<client::Mount::Impl> impl_;
};

}  // namespace nfsrdma
