/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/file.h - small files, whole; locks; who may read a secret.
 *
 * Failures leave the cause in errno. Any thread may call; a lock belongs to the process. */
#ifndef ELV_PORTS_POSIX_FILE_H
#define ELV_PORTS_POSIX_FILE_H

#include <stdbool.h>

#include "common/cursor.h"

/* Replaces `path` with `data`, or leaves it untouched: after a crash the file holds the old bytes
 * or the new ones, never a mixture, and once this returns ELV_OK they are the new ones for good.
 * The file is readable by its owner only, whatever it was before. A symbolic link at `path` is
 * replaced, not followed. ELV_ERR_IO on any failure; ELV_ERR_ARG: the path is too long. */
enum elv_err elv_posix_save(const char *path, struct elv_bytes data);

/* The same for figures others may read and nobody misses after a crash: mode 0644, not synced, but
 * a reader sees the old content or the new, never a part. */
enum elv_err elv_posix_publish(const char *path, struct elv_bytes data);

/* Reads a whole file of at most `max` bytes into a block the caller frees; a zero follows the last
 * byte and is not counted. ELV_ERR_MISSING: no such file; ELV_ERR_FULL: it is longer than `max`;
 * ELV_ERR_MEMORY; ELV_ERR_IO: anything else, a directory included. */
enum elv_err elv_posix_load(const char *path, size_t max, uint8_t **out, size_t *len);

/* A file that holds secrets: the same, but refused with ELV_ERR_AUTH unless it belongs to this user
 * (or root) and nobody else may read or write it. The check is of the file that is read, so it
 * cannot be exchanged in between. */
enum elv_err elv_posix_load_private(const char *path, size_t max, uint8_t **out, size_t *len);

/* Overwrites bytes that were secret, in a way compilers do not leave out. */
void elv_posix_wipe(void *at, size_t len);

/* An advisory lock that ends with the process, however it ends. The file stays; it names the holder
 * by process number, for people. */
struct elv_lock {
    int fd; /* -1: not held */
};

/* Takes the lock at `path`, made if need be. ELV_ERR_BUSY: somebody else has it and `wait` is
 * false; `*holder` (may be NULL) is then the process named in the file, 0 if there is none.
 * ELV_ERR_IO: the file cannot be made or locked. */
enum elv_err elv_posix_lock(struct elv_lock *lock, const char *path, bool wait, long *holder);
void elv_posix_unlock(struct elv_lock *lock);

/* Whoever started this program may have closed its standard streams. The first files it opens would
 * take their place, and what is printed would land in them; so those that are closed become
 * /dev/null. To be called before anything is opened. ELV_ERR_IO. */
enum elv_err elv_posix_keep_streams(void);

/* May `n` (up to 64) more files be open at the same time? ELV_ERR_IO: no; it is better to know at
 * the start. */
enum elv_err elv_posix_spare_files(uint32_t n);

#endif
