// SPDX-License-Identifier: Apache-2.0
// libfuse's low-level interface, one version for all files.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
