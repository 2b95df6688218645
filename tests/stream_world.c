/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/stream_world.h"

#include <string.h>

#include "common/assert.h"

struct told told;

static void on_open(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r)
{
    (void)state, (void)cfg, (void)r;
    told.opens++;
}

static void on_join(void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c,
                    elv_time_us now)
{
    (void)state, (void)cfg, (void)c, (void)now;
    told.joins++;
}

static void on_leave(void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c,
                     elv_time_us now)
{
    (void)state, (void)cfg, (void)c, (void)now;
    told.leaves++;
}

static void on_commit(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_commit *c,
                      elv_time_us now)
{
    (void)state, (void)cfg, (void)now;
    told.commits++;
    told.commit = *c;
}

static struct elv_sync_grant on_pull(void *state, const struct elv_sync_cfg *cfg,
                                     const struct elv_sync_round *r, struct elv_sync_client c,
                                     elv_time_us now)
{
    (void)state, (void)cfg, (void)r, (void)c, (void)now;
    told.pulls++;
    if (told.reject_ms > 0)
        return (struct elv_sync_grant){ELV_SYNC_REJECT, told.reject_ms};
    return (struct elv_sync_grant){told.hold ? ELV_SYNC_HOLD : ELV_SYNC_START, 0};
}

static bool next(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                 struct elv_sync_client *c, elv_time_us now)
{
    (void)state, (void)cfg, (void)r, (void)now;
    if (told.n_next == 0)
        return false;
    c->row = told.next[--told.n_next];
    return true;
}

static uint32_t room(const void *state, const struct elv_sync_cfg *cfg,
                     const struct elv_sync_round *r)
{
    (void)state, (void)cfg;
    return told.room > r->n_waiting ? told.room - r->n_waiting : 0;
}

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    (void)state, (void)cfg, (void)r, (void)now;
    told.n_updates++;
    told.update = *u;
    return (struct elv_sync_worth){.counts = told.factor > 0, .weight = told.factor};
}

static enum elv_sync_commit_when should_commit(const void *state, const struct elv_sync_cfg *cfg,
                                               const struct elv_sync_round *r, elv_time_us now)
{
    (void)state, (void)cfg, (void)now;
    if (told.enough > 0 && r->n_got >= told.enough)
        return ELV_SYNC_MUST;
    return told.may && r->n_got > 0 ? ELV_SYNC_MAY : ELV_SYNC_NO;
}

static struct elv_sync_scale scale(const void *state, const struct elv_sync_cfg *cfg,
                                   const struct elv_sync_round *r)
{
    (void)state, (void)cfg, (void)r;
    return told.scale;
}

const struct elv_sync streaming = {
    .name = "streaming",
    .flow = ELV_SYNC_STREAM,
    .on_open = on_open,
    .on_join = on_join,
    .on_leave = on_leave,
    .on_commit = on_commit,
    .on_pull = on_pull,
    .next = next,
    .on_update = on_update,
    .should_commit = should_commit,
    .scale = scale,
};

const struct elv_sync roomy = {
    .name = "roomy",
    .flow = ELV_SYNC_STREAM,
    .room = room,
    .on_update = on_update,
    .should_commit = should_commit,
};

void stream_init(struct world *w)
{
    told = (struct told){.factor = 1.0, .scale = {.step = 1.0}};
    world_init(w);
    w->cfg.sync = &streaming;
    world_set(w, "job", "rounds", "100");
    world_set(w, "select", "min_clients", "1");
}

uint32_t stream_work(struct world *w, uint32_t peer, struct elv_ticket *t)
{
    /* The first one may only start it. */
    for (int i = 0; i < 2; i++) {
        const bool answered = world_ticket(w, peer, t);
        ELV_ASSERT(answered);
        if (t->what == ELV_WHAT_TRAIN)
            return t->assignment;
    }
    ELV_ASSERT(t->what == ELV_WHAT_TRAIN);
    return 0;
}

void stream_encode(struct world *w, struct upload *u, uint32_t peer, const struct elv_ticket *t)
{
    static float v[4096];
    world_update(w, peer, t, v);
    world_encode(w, u, peer, t, v, t->assignment * 1000);
}

bool stream_deliver(struct world *w, uint32_t peer, const struct elv_ticket *t)
{
    static struct upload u;
    stream_encode(w, &u, peer, t);
    for (uint32_t i = 0; i < u.n_chunks && !w->disk.dead; i++)
        world_put(w, &u, i);
    return !w->disk.dead && world_verdict(world_commit(w, &u), NULL) == ELV_ACCEPTED;
}

struct world_reply *stream_model_chunk(struct world *w, uint32_t peer,
                                       const struct elv_body_ref *body, uint32_t i)
{
    return world_ask(w, peer,
                     &(struct elv_request){.op = ELV_OP_MODEL_CHUNK,
                                           .digest = elv_digest_key(body->digest),
                                           .chunk = i});
}
