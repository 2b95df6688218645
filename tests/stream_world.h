/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stream_world.h - a policy that lets clients start and does as a test says, and what its
 * clients do. */
#ifndef ELV_TESTS_STREAM_WORLD_H
#define ELV_TESTS_STREAM_WORLD_H

#include "tests/server_world.h"

struct told {
    /* What it was told. */
    uint32_t joins, leaves, opens, pulls, n_updates, commits;
    struct elv_sync_update update;
    struct elv_sync_commit commit;
    /* What it answers. */
    uint32_t enough;    /* updates with which a version must be published; 0: never */
    bool may;           /* with one it may */
    bool hold;          /* nobody starts who asks */
    uint32_t reject_ms; /* or is sent away */
    uint32_t next[8], n_next;
    uint32_t room; /* of `roomy`: clients at work */
    double factor;
    struct elv_sync_scale scale;
};
extern struct told told;

extern const struct elv_sync streaming; /* lets start who asks, and whom it names */
extern const struct elv_sync roomy;     /* lets so many start */

/* As world_init, with a job of that policy. */
void stream_init(struct world *w);

/* The ticket with work that the peer gets; it must. Returns the assignment. */
uint32_t stream_work(struct world *w, uint32_t peer, struct elv_ticket *t);
void stream_encode(struct world *w, struct upload *u, uint32_t peer, const struct elv_ticket *t);
/* Chunks and commit for a ticket. True when the update was accepted. */
bool stream_deliver(struct world *w, uint32_t peer, const struct elv_ticket *t);
struct world_reply *stream_model_chunk(struct world *w, uint32_t peer,
                                       const struct elv_body_ref *body, uint32_t i);

#endif
