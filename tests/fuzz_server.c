/* SPDX-License-Identifier: Apache-2.0 */
/* A server, four peers and a disk, all driven by the input. Whatever happens: no assertion fails,
 * one request gets at most one answer, an open round has its deadline armed, a version is made of
 * as many updates as were accepted for it, an accepted commit stays accepted, and once the faults
 * stop the run comes to its end. */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "tests/server_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PEERS = 4, MADE = 64 };

struct run {
    struct world w;
    struct elv_rd in;
    struct elv_ticket ticket[PEERS + 1];
    struct upload u[PEERS + 1];
    struct upload accepted[MADE];
    uint32_t n_accepted;
    uint32_t version;
    uint32_t lives;
};

/* What is not f32 or q8: up and down. */
static const char *const others[8][2] = {
    {"ternary 0.05", "ternary 0.1"}, {"topk 0.05", "topk 0.1"},
    {"q4 stochastic", "q4"},         {"sign", "ternary 0.02"},
    {"rotate 2", "rotate 3"},        {"f16", "f16"},
    {"ternary 0.3", "sign"},         {"rotate 4 unbiased", "q8 stochastic"},
};

static void start(struct run *r)
{
    const enum elv_err err = world_try_start(&r->w);
    ELV_ASSERT(err == ELV_OK);
    ELV_ASSERT(elv_server_stats(r->w.s)->version >= r->version); /* versions only rise */
    r->lives++;
}

static void revive(struct run *r, bool power)
{
    world_crash(&r->w, power);
    r->w.disk.fail = 0;
    r->w.disk.drop_appends = false;
    r->w.disk.broken_log = 0; /* a restarted process opens it anew */
    start(r);
}

static void watch(struct run *r)
{
    const struct world *w = &r->w;
    if (w->s == NULL || w->disk.dead)
        return;
    ELV_ASSERT(elv_server_stats(w->s)->version >= r->version);
    r->version = elv_server_stats(w->s)->version;
    ELV_ASSERT(w->s->uploads.n_used <= w->s->uploads.n);
    const struct elv_round *round = &w->s->round;
    const uint32_t most = round->stream ? w->s->roster.cap : round->n_asked;
    ELV_ASSERT(round->n_got <= most);
    ELV_ASSERT(round->n_waiting <= most);
    ELV_ASSERT(w->s->kept.n >= 1 && w->s->kept.n <= ELV_KEPT_MAX + 1);
}

static void make_update(struct run *r, uint32_t peer)
{
    float v[1020];
    if (r->ticket[peer].what != ELV_WHAT_TRAIN)
        return;
    world_update(&r->w, peer, &r->ticket[peer], v);
    const uint8_t twist = elv_rd_u8(&r->in);
    if (twist > 250)
        v[twist] = 9.0f; /* beyond the bound */
    world_encode(&r->w, &r->u[peer], peer, &r->ticket[peer], v, twist % 5 + 1);
}

static void commit(struct run *r, uint32_t peer)
{
    struct upload *u = &r->u[peer];
    if (u->assignment == 0)
        return;
    const bool done = world_verdict(world_commit(&r->w, u), NULL) == ELV_ACCEPTED;
    if (done && r->n_accepted < MADE)
        r->accepted[r->n_accepted++] = *u;
}

static void spoil_chunk(struct run *r, uint32_t peer)
{
    struct upload *u = &r->u[peer];
    if (u->n_chunks > 0)
        u->chunk[0][elv_rd_u8(&r->in) % 64] ^= elv_rd_u8(&r->in);
}

static void raw_request(struct run *r, uint32_t peer)
{
    uint8_t body[64];
    struct elv_request q = {.op = (enum elv_op)(elv_rd_u8(&r->in) % 10),
                            .assignment = elv_rd_u8(&r->in),
                            .chunk = elv_rd_u8(&r->in) % 8u};
    const struct elv_bytes b = elv_rd_bytes(&r->in, elv_rd_u8(&r->in) % 64u);
    if (b.len > 0)
        memcpy(body, b.at, b.len);
    q.body = (struct elv_bytes){body, b.len};
    if (q.op != ELV_OP_LEAVE)
        world_ask(&r->w, peer, &q);
}

static void one_op(struct run *r)
{
    struct world *w = &r->w;
    const uint8_t op = elv_rd_u8(&r->in);
    const uint32_t peer = op / 16 % PEERS + 1;
    struct elv_event gone = {.kind = ELV_EV_GONE, .peer = peer};
    const struct elv_join join = world_join_of(w, peer);
    switch (op % 16) {
    case 0:
        world_join_as(w, peer, &join);
        break;
    case 1:
    case 2:
        world_ticket(w, peer, &r->ticket[peer]);
        break;
    case 3:
        make_update(r, peer);
        break;
    case 4:
    case 5:
    case 6:
        for (uint32_t i = 0; i < r->u[peer].n_chunks && r->u[peer].assignment; i++)
            if (op % 16 == 4 || elv_rd_u8(&r->in) % 4 > 0)
                world_put(w, &r->u[peer], i);
        break;
    case 7:
    case 8:
        commit(r, peer);
        break;
    case 9:
        world_advance(w, (elv_time_us)elv_rd_u8(&r->in) * 200000);
        break;
    case 10:
        w->hold_stores = !w->hold_stores;
        break;
    case 11:
        w->hold_computes = !w->hold_computes;
        break;
    case 12:
        w->disk.fail = elv_rd_u8(&r->in) % 3u;
        w->disk.drop_appends = elv_rd_u8(&r->in) % 16 == 0;
        break;
    case 13:
        revive(r, op / 128);
        break;
    case 14:
        if (op / 128)
            spoil_chunk(r, peer);
        else
            world_ask(w, peer, &(struct elv_request){.op = ELV_OP_LEAVE});
        break;
    default:
        if (op / 128) {
            raw_request(r, peer);
        } else {
            world_event(w, &gone);
            world_settle(w);
        }
    }
    watch(r);
}

/* What was acknowledged is what is remembered, if it is the last thing known of that client. */
static void check_accepted(struct run *r)
{
    for (uint32_t i = 0; i < r->n_accepted; i++) {
        const struct upload *u = &r->accepted[i];
        const uint32_t row = elv_roster_find(&r->w.s->roster, u->peer);
        ELV_ASSERT(row != ELV_ROW_NONE);
        const struct elv_rec_decision *d = &r->w.s->roster.rows[row].last;
        ELV_ASSERT(d->assignment >= u->assignment);
        if (d->assignment == u->assignment)
            ELV_ASSERT(world_verdict(world_commit(&r->w, u), NULL) == ELV_ACCEPTED);
    }
}

static void finish(struct run *r)
{
    struct world *w = &r->w;
    w->hold_stores = w->hold_computes = false;
    w->disk.fail = 0;
    w->disk.drop_appends = false;
    world_advance(w, 5000000);
    check_accepted(r);
    for (uint32_t turn = 0; turn < 40 && !w->ended; turn++) {
        for (uint32_t peer = 1; peer <= PEERS; peer++) {
            const struct elv_join join = world_join_of(w, peer);
            struct elv_ticket t;
            world_join_as(w, peer, &join);
            world_ticket(w, peer, &t); /* in a stream work is there only after it was asked for */
            world_attempt(w, peer, 1000 + turn);
        }
        world_advance(w, 31000000);
        watch(r);
    }
    ELV_ASSERT(w->ended);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run *r = calloc(1, sizeof *r);
    ELV_ASSERT(r != NULL);
    r->in = elv_rd_of((struct elv_bytes){data, size});
    const uint8_t how = elv_rd_u8(&r->in);
    world_init(&r->w);
    world_set(&r->w, "select", "min_clients", how & 1 ? "3" : "2");
    world_set(&r->w, "sync", "quorum", how & 2 ? "2" : "1");
    world_set(&r->w, "transfer", "up", how & 4 ? "q8" : "f32");
    world_set(&r->w, "transfer", "down", how & 8 ? "q8" : "f32");
    if (how & 128) {
        const char *const *codecs = others[elv_rd_u8(&r->in) % 8];
        world_set(&r->w, "transfer", "up", codecs[0]);
        world_set(&r->w, "transfer", "down", codecs[1]);
    }
    if ((how & 16) && !(how & 64)) {
        world_set(&r->w, "sync", "policy", "backup");
        world_set(&r->w, "sync", "k", "2");
    }
    if (how & 64)
        world_set(&r->w, "sync", "policy", how & 16 ? "fedasync" : "asp");
    r->w.cfg.limits.uploads_max = how & 32 ? 2 : 4;
    r->w.cfg.limits.clients_max = 6;
    world_start(&r->w);
    r->lives = 1;
    for (uint32_t i = 0; i < 200 && r->in.err == ELV_OK && r->in.left > 0; i++)
        one_op(r);
    finish(r);
    world_free(&r->w);
    free(r);
    return 0;
}
