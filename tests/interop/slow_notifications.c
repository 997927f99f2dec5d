/* SPDX-License-Identifier: Apache-2.0 */
/* To be loaded in front of libfuse (LD_PRELOAD) into a mount: what it tells the kernel to forget is
 * told late now and then, as by a thread that does not get a processor. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

struct fuse_session;
typedef int (*Notify)(struct fuse_session*, uint64_t, off_t, off_t);

int fuse_lowlevel_notify_inval_inode(struct fuse_session* session, uint64_t node, off_t offset,
                                     off_t length) {
  static _Thread_local unsigned seed;
  if (seed == 0) seed = (unsigned)getpid() ^ (unsigned)(uintptr_t)&seed;
  if (rand_r(&seed) % 2 != 0) usleep((useconds_t)(rand_r(&seed) % 4000));
  /* A function's address comes as one of data (dlsym(3)). */
  union {
    void* data;
    Notify function;
  } real = {dlsym(RTLD_NEXT, "fuse_lowlevel_notify_inval_inode")};
  return real.function(session, node, offset, length);
}
