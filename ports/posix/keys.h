/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/keys.h - the server's key table as a file: loading, following and changing it.
 *
 * A server opens the file, looks for changes every two seconds and tells when a device's newer key
 * was used; the tool that makes keys changes the file. Both change it under a lock beside it
 * (PATH.lock) and replace it whole, keeping comments. The file must be readable by its owner only.
 * One thread; separate tables are independent. */
#ifndef ELV_PORTS_POSIX_KEYS_H
#define ELV_PORTS_POSIX_KEYS_H

#include <sys/types.h>

#include "ports/posix/keytable.h"

#define ELV_KEYS_PATH_MAX 1024u
#define ELV_KEYS_CHECK_US 2000000 /* how often to look */

struct elv_keys {
    char path[ELV_KEYS_PATH_MAX];
    struct elv_keytable table;
    bool retired; /* in memory, but not yet in the file */

    /* Which file it was, when it was last looked at. */
    dev_t device;
    ino_t inode;
    off_t len;
    int64_t changed_ns;
};

/* ELV_ERR_MISSING: no file; ELV_ERR_AUTH: others may read it; ELV_ERR_FORMAT: `e` has the line;
 * ELV_ERR_FULL; ELV_ERR_MEMORY; ELV_ERR_IO. */
enum elv_err elv_keys_open(struct elv_keys *k, const char *path, struct elv_key_error *e);
void elv_keys_free(struct elv_keys *k);

/* Takes a changed file and calls `gone` for devices that may no longer connect; writes retired keys
 * to the file. Cheap when nothing changed. `*changed` (may be NULL): a new table is in use, and
 * pointers into the old one are not valid any more. On failure the old table stays; the same file
 * is not complained about twice. */
enum elv_err elv_keys_check(struct elv_keys *k, bool *changed, void *ctx,
                            void (*gone)(void *ctx, uint32_t number), struct elv_key_error *e);

/* A handshake with this identity succeeded: earlier keys of the device end now, and leave the file
 * at the next check. Unknown identities are ignored. */
void elv_keys_used(struct elv_keys *k, const char *identity, size_t len);

enum elv_key_edit { ELV_KEY_KEEP, ELV_KEY_CHANGED, ELV_KEY_REMOVE };

struct elv_key_change {
    void *ctx;
    /* Asked for each key in the order of the file; may write to `key` and answer CHANGED. NULL:
     * keep all. */
    enum elv_key_edit (*edit)(void *ctx, struct elv_key *key);
    /* Called once after the last `edit`, before `add` is read. NULL: nothing is to be done. */
    void (*edited)(void *ctx);
    const struct elv_key *add; /* appended */
    uint32_t n_add;
};

/* Changes the file, made if it is missing. What comes out must be a valid table: if not,
 * ELV_ERR_FORMAT and the file stays as it was. ELV_ERR_BUSY: somebody else is changing it and
 * `wait` is false. Other errors as for open. */
enum elv_err elv_keys_change(const char *path, const struct elv_key_change *change, bool wait,
                             struct elv_key_error *e);

#endif
