/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/state_runs.h"

#include <string.h>

#include "common/assert.h"
#include "tests/stream_world.h"

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

/* Version 1 was made of three updates. In the open round client 1 counts twice; client 2 works on
 * version 1 and is half through its upload, in a log that has outlived a round; client 3 still
 * works on version 0. */
static void prepare_stream(struct world *w)
{
    stream_init(w);
    told.enough = 3;
    told.scale = (struct elv_sync_scale){.step = 0.5, .mixes = true};
    world_set(w, "job", "rounds", "3");
    world_set(w, "select", "min_clients", "3");
    world_set(w, "sync", "deadline", "3600s");
    world_set(w, "transfer", "up", "q8");
    world_set(w, "transfer", "down", "q8");
}

static void drive_stream(struct world *w)
{
    static struct upload u;
    struct elv_ticket t, slow;
    for (uint32_t peer = 1; peer <= 3; peer++)
        world_join(w, peer);
    stream_work(w, 3, &slow);
    for (uint32_t i = 0; i < 3; i++) {
        stream_work(w, i == 1 ? 2 : 1, &t);
        ELV_ASSERT(stream_deliver(w, i == 1 ? 2 : 1, &t));
    }
    ELV_ASSERT(elv_server_stats(w->s)->version == 1);
    stream_work(w, 2, &t);
    stream_encode(w, &u, 2, &t);
    world_put(w, &u, 1);
    for (uint32_t i = 0; i < 2; i++) {
        stream_work(w, 1, &t);
        told.factor = 0.5;
        ELV_ASSERT(stream_deliver(w, 1, &t));
    }
    world_advance(w, 3000000);
    told.factor = 1.0;
}

const struct state_run state_runs[] = {
    {"server-1/disk", prepare_rounds, drive_rounds},
    {"server-2/disk", prepare_stream, drive_stream},
};
const size_t state_runs_n = sizeof state_runs / sizeof state_runs[0];
