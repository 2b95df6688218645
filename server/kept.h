/* SPDX-License-Identifier: Apache-2.0 */
/* server/kept.h - the published version, and those before it that somebody still works on.
 *
 * In a stream clients train from different versions at the same time. The newest is in memory
 * (broadcast.h); of the others this table holds what clients must be told of them, and their values
 * are read from their files. At most ELV_KEPT_MAX may have work based on them: beyond that, the
 * work on the oldest is over. */
#ifndef ELV_SERVER_KEPT_H
#define ELV_SERVER_KEPT_H

#include "../common/port.h"
#include "ledger.h"

#define ELV_KEPT_MAX 64u
#define ELV_KEPT_CAP (ELV_KEPT_MAX + 8u) /* some are on their way out */

struct elv_kept {
    uint32_t version;
    uint32_t n_offers;  /* pieces of work based on it */
    uint32_t n_used;    /* updates of the open round based on it, where their models are mixed */
    bool expired;       /* work on it is over */
    uint64_t counted;   /* updates that had counted, ever, when it was published */
    double rate;        /* learning rate */
    uint64_t values_at; /* offset of its values in its file; 0: not known yet */
    uint8_t model[32];
    struct elv_body_ref full;
};

struct elv_kepts { /* in rising order of version; the last is the newest */
    struct elv_kept at[ELV_KEPT_CAP];
    uint32_t n;
};

/* NULL: it is not kept. */
struct elv_kept *elv_kept_find(struct elv_kepts *k, uint32_t version);
/* By the key of its full body's digest; as above. */
struct elv_kept *elv_kept_find_body(struct elv_kepts *k, uint64_t digest);
const struct elv_kept *elv_kept_newest(const struct elv_kepts *k); /* there is one */
/* One that is older than the newest, and that nobody works on. False: there is none. */
bool elv_kept_is_idle(const struct elv_kepts *k, const struct elv_kept *v);
/* There is room for one more, once those that are idle are gone. */
bool elv_kept_has_room(const struct elv_kepts *k);
/* A newer version. There is room. Too many in use: the oldest's work is over. */
void elv_kept_add(struct elv_kepts *k, const struct elv_kept *v);
void elv_kept_remove(struct elv_kepts *k, struct elv_kept *v);

/* Reads `n` values from coordinate `first` on, as little-endian f32. */
enum elv_err elv_kept_read(struct elv_kept *v, const struct elv_disk *disk, uint32_t first,
                           uint32_t n, uint8_t *out);

#endif
