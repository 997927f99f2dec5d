/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface against a real server: libnfsrdma_c URL. Built as C and linked with the shared
 * library, so that header and symbols are what users get. */
#include "nfsrdma/client_c.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define EXPECT(condition)                                               \
  do {                                                                  \
    if (!(condition)) {                                                 \
      fprintf(stderr, "libnfsrdma_c.c:%d: %s\n", __LINE__, #condition); \
      ++failures;                                                       \
    }                                                                   \
  } while (0)

static void files(nfsrdma_mount* mount) {
  const char text[] = "written through C";
  char back[64];
  struct stat st;
  nfsrdma_file* file = NULL;
  EXPECT(nfsrdma_open(mount, "c-file", O_RDWR | O_CREAT | O_TRUNC, 0600, &file) == 0);
  if (file == NULL) return;
  EXPECT(nfsrdma_pwrite(file, text, sizeof text, 5) == (ssize_t)sizeof text);
  EXPECT(nfsrdma_fsync(file) == 0);
  EXPECT(nfsrdma_pread(file, back, sizeof back, 5) == (ssize_t)sizeof text);
  EXPECT(memcmp(back, text, sizeof text) == 0);
  EXPECT(nfsrdma_fstat(file, &st) == 0 && st.st_size == (off_t)sizeof text + 5);
  EXPECT(nfsrdma_ftruncate(file, 1) == 0);
  EXPECT(nfsrdma_close(file) == 0);
  EXPECT(nfsrdma_stat(mount, "c-file", &st) == 0 && st.st_size == 1);
  EXPECT(nfsrdma_open(mount, "none", O_RDONLY, 0, &file) == -ENOENT);
  EXPECT(nfsrdma_write_file(mount, "c-file", text, sizeof text, 0600) == 0);
  EXPECT(nfsrdma_open(mount, "c-file", O_RDONLY, 0, &file) == 0);
  EXPECT(nfsrdma_pread(file, back, sizeof back, 0) == (ssize_t)sizeof text);
  EXPECT(memcmp(back, text, sizeof text) == 0);
  EXPECT(nfsrdma_close(file) == 0);
  EXPECT(nfsrdma_write_file(mount, "none/x", text, sizeof text, 0600) == -ENOENT);
  EXPECT(nfsrdma_write_file(mount, "c-file", NULL, 0, 0600) == 0);
}

static const char* version; /* that it was mounted with */

static void locks_and_space(nfsrdma_mount* mount) {
  nfsrdma_file* one = NULL;
  nfsrdma_file* two = NULL;
  EXPECT(nfsrdma_open(mount, "c-locks", O_RDWR | O_CREAT, 0600, &one) == 0);
  EXPECT(nfsrdma_open(mount, "c-locks", O_RDWR, 0, &two) == 0);
  int exclusive = 0;
  uint64_t offset = 0, length = 0;
  EXPECT(nfsrdma_lock(one, 1, 10, 10, 0) == 0);
  EXPECT(nfsrdma_lock(two, 0, 19, 0, 100) == -EAGAIN);
  EXPECT(nfsrdma_test_lock(two, 0, 0, 0, &exclusive, &offset, &length) == 1);
  EXPECT(exclusive == 1 && offset == 10 && length == 10);
  EXPECT(nfsrdma_test_lock(two, 1, 20, 0, NULL, NULL, NULL) == 0);
  EXPECT(nfsrdma_unlock(one, 0, 0) == 0);
  EXPECT(nfsrdma_lock(two, 0, 19, 0, -1) == 0);
  uint64_t found = 0;
  EXPECT(nfsrdma_pwrite(one, "data", 4, 65536) == 4);
  const int sought = nfsrdma_seek_data(one, 0, &found);
  if (strcmp(version, "4.2") != 0) {
    EXPECT(sought == -ENOSYS);
  } else {
    EXPECT(sought == 0 && found == 65536);
    EXPECT(nfsrdma_seek_hole(one, 0, &found) == 0 && found == 0);
    nfsrdma_file* copy = NULL;
    EXPECT(nfsrdma_open(mount, "c-copy", O_RDWR | O_CREAT, 0600, &copy) == 0);
    EXPECT(nfsrdma_copy_range(one, 65536, copy, 0, 4, &found) == 0 && found == 4);
    EXPECT(nfsrdma_close(copy) == 0 && nfsrdma_unlink(mount, "c-copy") == 0);
    EXPECT(nfsrdma_allocate(one, 0, 131072) == 0);
    EXPECT(nfsrdma_deallocate(one, 65536, 65536) == 0);
  }
  EXPECT(nfsrdma_close(one) == 0 && nfsrdma_close(two) == 0);
  EXPECT(nfsrdma_unlink(mount, "c-locks") == 0);
}

static void denials(nfsrdma_mount* mount) {
  nfsrdma_file *one = NULL, *two = NULL;
  const int both = NFSRDMA_DENY_READ | NFSRDMA_DENY_WRITE;
  const int opened = nfsrdma_open_deny(mount, "c-denied", O_RDWR | O_CREAT, 0600, both, &one);
  EXPECT(nfsrdma_open_deny(mount, "c-denied", O_RDWR, 0600, 4, &two) == -EINVAL);
  if (strcmp(version, "3") == 0) {
    EXPECT(opened == -EOPNOTSUPP);
    return;
  }
  EXPECT(opened == 0);
  EXPECT(nfsrdma_pwrite(one, "data", 4, 0) == 4);
  EXPECT(nfsrdma_open(mount, "c-denied", O_RDONLY, 0, &two) == -EACCES);
  EXPECT(nfsrdma_close(one) == 0);
  EXPECT(nfsrdma_open_deny(mount, "c-denied", O_RDONLY, 0, NFSRDMA_DENY_WRITE, &two) == 0);
  EXPECT(nfsrdma_close(two) == 0 && nfsrdma_unlink(mount, "c-denied") == 0);
}

static void names(nfsrdma_mount* mount) {
  char target[8];
  const char* name = NULL;
  uint64_t fileid = 0;
  struct stat st;
  int entries = 0;
  nfsrdma_dir* dir = NULL;
  EXPECT(nfsrdma_mkdir(mount, "c-dir", 0700) == 0);
  EXPECT(nfsrdma_rename(mount, "c-file", "c-dir/file") == 0);
  EXPECT(nfsrdma_link(mount, "c-dir/file", "c-dir/second") == 0);
  EXPECT(nfsrdma_symlink(mount, "long-target", "c-dir/soft") == 0);
  EXPECT(nfsrdma_readlink(mount, "c-dir/soft", target, sizeof target) == 11);
  EXPECT(strcmp(target, "long-ta") == 0);
  EXPECT(nfsrdma_lstat(mount, "c-dir/soft", &st) == 0 && S_ISLNK(st.st_mode));
  EXPECT(nfsrdma_opendir(mount, "c-dir", 1, &dir) == 0);
  while (dir != NULL && nfsrdma_readdir(dir, &name, &fileid, &st) == 1) {
    ++entries;
    EXPECT(name[0] != 0 && fileid != 0 && st.st_mode != 0);
  }
  nfsrdma_closedir(dir);
  EXPECT(entries == 3);
  EXPECT(nfsrdma_unlink(mount, "c-dir/soft") == 0);
  EXPECT(nfsrdma_unlink(mount, "c-dir/second") == 0);
  EXPECT(nfsrdma_rmdir(mount, "c-dir") == -ENOTEMPTY);
}

static void attributes(nfsrdma_mount* mount) {
  struct timespec times[2] = {{1000000000, 0}, {1100000000, 0}};
  struct nfsrdma_fs_info sizes;
  struct stat st;
  EXPECT(nfsrdma_chmod(mount, "c-dir/file", 0644) == 0);
  EXPECT(nfsrdma_chown(mount, "c-dir/file", (uid_t)-1, (gid_t)-1) == 0);
  EXPECT(nfsrdma_lchown(mount, "c-dir/file", (uid_t)-1, (gid_t)-1) == 0);
  EXPECT(nfsrdma_truncate(mount, "c-dir/file", 77) == 0);
  EXPECT(nfsrdma_utimens(mount, "c-dir/file", times) == 0);
  EXPECT(nfsrdma_stat(mount, "c-dir/file", &st) == 0);
  EXPECT(st.st_size == 77 && (st.st_mode & 07777) == 0644 && st.st_mtime == 1100000000);
  EXPECT(nfsrdma_utimens(mount, "c-dir/file", NULL) == 0);
  EXPECT(nfsrdma_statfs(mount, "", &sizes) == 0 && sizes.read_size > 0);
  EXPECT(nfsrdma_transport(mount) != NULL);
}

int main(int argc, char** argv) {
  char detail[256];
  nfsrdma_mount* mount = NULL;
  if (argc != 3) {
    fprintf(stderr, "usage: libnfsrdma_c URL VERSION\n");
    return 2;
  }
  version = argv[2];
  EXPECT(nfsrdma_mount_url("nfs://", &mount, detail, sizeof detail) == -EINVAL);
  EXPECT(strlen(detail) > 0);
  if (nfsrdma_mount_url(argv[1], &mount, detail, sizeof detail) != 0) {
    fprintf(stderr, "%s\n", detail);
    return 1;
  }
  files(mount);
  locks_and_space(mount);
  denials(mount);
  names(mount);
  attributes(mount);
  EXPECT(nfsrdma_unlink(mount, "c-dir/file") == 0);
  EXPECT(nfsrdma_rmdir(mount, "c-dir") == 0);
  nfsrdma_unmount(mount);
  return failures == 0 ? 0 : 1;
}
