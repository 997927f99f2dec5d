/* SPDX-License-Identifier: Apache-2.0 */
/* libnfsrdma for C: the blocking interface of client.h, which see for units, paths and threads.
 *
 * Errors: functions return 0 (or a count) on success and a negative errno on failure.
 * Ownership: what a function gives out through a pointer is given back to the function named beside
 * it. Strings are UTF-8 or whatever bytes the server has, ended by a zero byte. */
#ifndef NFSRDMA_CLIENT_C_H
#define NFSRDMA_CLIENT_C_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with the interface; functions are only ever added. 2: nfsrdma_write_file(), locks, holes,
 * space and copies. 3: nfsrdma_open_deny(). */
#define NFSRDMA_C_API_VERSION 3

typedef struct nfsrdma_mount nfsrdma_mount;
typedef struct nfsrdma_file nfsrdma_file;
typedef struct nfsrdma_dir nfsrdma_dir;

/* The library's version, "0.1.0". */
const char* nfsrdma_version(void);

/* Mounts `url` into *mount; give it back to nfsrdma_unmount() when all its files are closed. On an
 * error up to detail_size bytes of explanation go into detail (may be NULL). */
int nfsrdma_mount_url(const char* url, nfsrdma_mount** mount, char* detail, size_t detail_size);
void nfsrdma_unmount(nfsrdma_mount* mount);

int nfsrdma_stat(nfsrdma_mount* mount, const char* path, struct stat* out);
int nfsrdma_lstat(nfsrdma_mount* mount, const char* path, struct stat* out);

/* *file goes back to nfsrdma_close(). */
int nfsrdma_open(nfsrdma_mount* mount, const char* path, int flags, mode_t mode,
                 nfsrdma_file** file);
/* The same with what others are denied while it is open, as Mount::open() of client.h: 0, or
 * NFSRDMA_DENY_READ and NFSRDMA_DENY_WRITE. -EINVAL: other bits. */
#define NFSRDMA_DENY_READ 1
#define NFSRDMA_DENY_WRITE 2
int nfsrdma_open_deny(nfsrdma_mount* mount, const char* path, int flags, mode_t mode, int deny,
                      nfsrdma_file** file);
/* Frees `file` also when it fails; then written data was lost. */
int nfsrdma_close(nfsrdma_file* file);
/* -EINVAL: `offset` is a negative off_t; -EFBIG: data would lie behind 2^63 - 1. */
ssize_t nfsrdma_pread(nfsrdma_file* file, void* buffer, size_t size, uint64_t offset);
ssize_t nfsrdma_pwrite(nfsrdma_file* file, const void* data, size_t size, uint64_t offset);
int nfsrdma_fsync(nfsrdma_file* file);
int nfsrdma_fstat(nfsrdma_file* file, struct stat* out);
int nfsrdma_ftruncate(nfsrdma_file* file, uint64_t size);

/* Byte-range locks, as File::lock() and so on of client.h: `exclusive` 0 is a shared lock, `length`
 * 0 reaches to the end of the file; wait_ms 0: does not wait, negative: for ever. */
int nfsrdma_lock(nfsrdma_file* file, int exclusive, uint64_t offset, uint64_t length,
                 int64_t wait_ms);
int nfsrdma_unlock(nfsrdma_file* file, uint64_t offset, uint64_t length);
/* 0: such a lock would be granted. 1: *exclusive, *offset and *length (each may be NULL) are one
 * that would be in its way. */
int nfsrdma_test_lock(nfsrdma_file* file, int wanted_exclusive, uint64_t wanted_offset,
                      uint64_t wanted_length, int* exclusive, uint64_t* offset, uint64_t* length);

/* NFSv4.2; -ENOSYS before. As File::seek() and so on of client.h. */
int nfsrdma_seek_data(nfsrdma_file* file, uint64_t offset, uint64_t* found);
int nfsrdma_seek_hole(nfsrdma_file* file, uint64_t offset, uint64_t* found);
int nfsrdma_allocate(nfsrdma_file* file, uint64_t offset, uint64_t length);
int nfsrdma_deallocate(nfsrdma_file* file, uint64_t offset, uint64_t length);
/* *copied: bytes, 0 at the end of `from`. */
int nfsrdma_copy_range(nfsrdma_file* from, uint64_t offset, nfsrdma_file* to, uint64_t to_offset,
                       uint64_t length, uint64_t* copied);

/* Makes `path` a file with these `size` bytes and nothing else, on stable storage: open with
 * O_WRONLY | O_CREAT | O_TRUNC, pwrite and close in one call, and a small file (up to 64 KiB) in
 * one request to servers of NFSv4.1 and later. `data` is used during the call only; `mode` is that
 * of a new file. On an error the file may be there, empty or with some of the data. */
int nfsrdma_write_file(nfsrdma_mount* mount, const char* path, const void* data, size_t size,
                       mode_t mode);

/* Reads a whole directory (with attributes when `plus`); *dir goes back to nfsrdma_closedir(). */
int nfsrdma_opendir(nfsrdma_mount* mount, const char* path, int plus, nfsrdma_dir** dir);
/* The next entry: 1 and *name (valid until closedir), 0 at the end. *fileid and *attributes may be
 * NULL; attributes->st_mode is 0 when the server gave none. */
int nfsrdma_readdir(nfsrdma_dir* dir, const char** name, uint64_t* fileid, struct stat* attributes);
void nfsrdma_closedir(nfsrdma_dir* dir);

int nfsrdma_rename(nfsrdma_mount* mount, const char* from, const char* to);
int nfsrdma_unlink(nfsrdma_mount* mount, const char* path);
int nfsrdma_mkdir(nfsrdma_mount* mount, const char* path, mode_t mode);
int nfsrdma_rmdir(nfsrdma_mount* mount, const char* path);
int nfsrdma_symlink(nfsrdma_mount* mount, const char* target, const char* path);
int nfsrdma_link(nfsrdma_mount* mount, const char* existing, const char* path);
/* Returns the length of the target; at most size - 1 bytes of it and a zero byte are stored. */
ssize_t nfsrdma_readlink(nfsrdma_mount* mount, const char* path, char* buffer, size_t size);
int nfsrdma_truncate(nfsrdma_mount* mount, const char* path, uint64_t size);
int nfsrdma_chmod(nfsrdma_mount* mount, const char* path, mode_t mode);
int nfsrdma_chown(nfsrdma_mount* mount, const char* path, uid_t uid, gid_t gid);
int nfsrdma_lchown(nfsrdma_mount* mount, const char* path, uid_t uid, gid_t gid);
/* As utimensat(2): times[0] access, times[1] modification, UTIME_NOW and UTIME_OMIT work, NULL is
 * now for both. */
int nfsrdma_utimens(nfsrdma_mount* mount, const char* path, const struct timespec times[2]);

struct nfsrdma_fs_info {
  uint64_t total_bytes, free_bytes, available_bytes;
  uint64_t total_files, free_files, available_files;
  uint32_t read_size, write_size, name_max;
};
int nfsrdma_statfs(nfsrdma_mount* mount, const char* path, struct nfsrdma_fs_info* out);

/* "verbs", "iwarp" or "tcp" of the first connection, NULL when there is none. The text is never
 * freed. */
const char* nfsrdma_transport(nfsrdma_mount* mount);

#ifdef __cplusplus
}
#endif

#endif
