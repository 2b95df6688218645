/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/client_state.h - where a client on Linux keeps what it must not lose: a folder.
 *
 *     lock            held by the process that uses the folder, with its number
 *     owner           whose state it is, in words
 *     file-T-N        a file of table T and number N: length and SHA-256 in a head, then bytes
 *     log-N           an append-only log, bytes as they came
 *
 * Carries out the STOREs of a client node (client/persist.h) and reads back what they left. A file
 * is written under another name, synced and renamed, so that there is the old one or the new one.
 * Appends are not synced: they survive the process at once, a power loss when the kernel has got
 * round to them. STOREs happen at once, in the order in which they were given, and are not undone
 * when a later one of the same step fails; the client's order allows that.
 *
 * What lies there is not trusted: at the start each file is read whole, and one that is cut off,
 * damaged, or not ours is said so once and left aside, as if there were none; links are not
 * followed. A full disk, or one that fails, is said once, and the client goes on without; when
 * writing works again that is said, too. */
#ifndef ELV_PORTS_POSIX_CLIENT_STATE_H
#define ELV_PORTS_POSIX_CLIENT_STATE_H

#include "common/port.h"
#include "common/sha256.h"

#define ELV_CLIENT_STATE_HEAD_LEN 64u

/* What a file's head says. */
struct elv_client_state_head {
    uint32_t table;
    uint64_t number, len;
    uint8_t sum[ELV_SHA256_LEN]; /* SHA-256 of what follows */
};

void elv_client_state_head_encode(const struct elv_client_state_head *h,
                                  uint8_t out[ELV_CLIENT_STATE_HEAD_LEN]);
/* ELV_ERR_SHORT: cut off; ELV_ERR_VERSION: written by newer software; ELV_ERR_FORMAT: no such head.
 */
enum elv_err elv_client_state_head_decode(struct elv_bytes in, struct elv_client_state_head *h);

struct elv_client_state_cfg {
    const char *path;  /* of the folder; made when it is not there, for its owner only */
    const char *owner; /* whose state it must be, or is from now on; read by open only; NULL: any */
    /* Told about what is not as it should be: `what` is an event's name, snake_case; `name` a file
     * in the folder, or empty; `why` a reason. */
    void *tell_self;
    void (*tell)(void *tell_self, const char *what, const char *name, const char *why);
    struct elv_sink sink; /* STORED events go there */
};

struct elv_client_state;

/* ELV_ERR_AUTH: it is somebody else's; ELV_ERR_BUSY: another process uses the folder, `*holder`
 * (may be NULL) if it is known; ELV_ERR_IO: errno says why; ELV_ERR_ARG: the path is too long;
 * ELV_ERR_MEMORY. */
enum elv_err elv_client_state_open(const struct elv_client_state_cfg *cfg,
                                   struct elv_client_state **out, long *holder);
void elv_client_state_close(struct elv_client_state *s); /* may be NULL */

/* On the node's thread. */
struct elv_store elv_client_state_store(struct elv_client_state *s);
/* Any thread, while nothing that is read is being stored. There are no records. */
struct elv_disk elv_client_state_disk(struct elv_client_state *s);

#endif
