/* SPDX-License-Identifier: Apache-2.0 */
/* client/link.h - notices that the server has gone quiet.
 *
 * A server that restarted has lost every association without a word, and a device behind a NAT
 * learns nothing either: the only sign is that answers stay away. While something is asked and
 * nothing is heard for long enough, the client opens a new association beside the old one. */
#ifndef ELV_CLIENT_LINK_H
#define ELV_CLIENT_LINK_H

#include "backoff.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_QUIET_MIN_US 2000000

struct elv_link {            /* all zero to begin */
    bool asking;             /* something is unanswered */
    uint32_t n_relinks;      /* since the server was last heard */
    elv_time_us quiet_since; /* meaningful while asking */
    elv_time_us limit;       /* how long it may stay quiet; fixed when the silence began */
};

/* A request goes out; `rto` is what an answer may take. */
void elv_link_asked(struct elv_link *l, elv_time_us now, elv_time_us rto, struct elv_rng *rng);
/* An answer came. */
void elv_link_heard(struct elv_link *l, elv_time_us now, elv_time_us rto, struct elv_rng *rng);
/* The device slept for `us`: it could not hear anything. */
void elv_link_slept(struct elv_link *l, elv_time_us us);
/* Nothing is unanswered now. */
void elv_link_idle(struct elv_link *l);

/* When to open a new association if nothing is heard before, or ELV_NEVER. */
elv_time_us elv_link_deadline(const struct elv_link *l);
/* A new association is being opened: the silence is measured anew, with twice the patience. */
void elv_link_renewed(struct elv_link *l, elv_time_us now, elv_time_us rto, struct elv_rng *rng);

#ifdef __cplusplus
}
#endif
#endif
