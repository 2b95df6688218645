/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/state_runs.h"

#include <string.h>

#include "common/assert.h"

/* Three clients made version 1. Of version 2's round one has delivered, one is half through its
 * upload, and one has not been heard of. */
static void prepare_rounds(struct world *w)
{
    world_init(w);
    world_set(w, "job", "rounds", "3");
    world_set(w, "select", "min_clients", "3");
    world_set(w, "sync", "deadline", "3600s");
    world_set(w, "transfer", "up", "q8");
    world_set(w, "transfer", "down", "q8");
}

static void drive_rounds(struct world *w)
{
    static struct upload u;
    static float v[4096];
    struct elv_ticket t;
    for (uint32_t peer = 1; peer <= 3; peer++)
        world_join(w, peer);
    for (uint32_t peer = 1; peer <= 3; peer++)
        ELV_ASSERT(world_contribute(w, peer));
    ELV_ASSERT(elv_server_stats(w->s)->version == 1);
    ELV_ASSERT(world_contribute(w, 1));
    ELV_ASSERT(world_ticket(w, 2, &t));
    world_update(w, 2, &t, v);
    world_encode(w, &u, 2, &t, v, 5);
    world_put(w, &u, 1);
}

const struct state_run state_runs[] = {
    {"server-1/disk", prepare_rounds, drive_rounds},
};
const size_t state_runs_n = sizeof state_runs / sizeof state_runs[0];
