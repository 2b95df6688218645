/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/server_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/codec.h"

void world_init(struct world *w)
{
    memset(w, 0, sizeof *w);
    elv_job_init(&w->job);
    world_set(w, "job", "name", "test");
    world_set(w, "job", "seed", "7");
    world_set(w, "job", "rounds", "3");
    world_set(w, "model", "input", "16x1x1");
    world_set(w, "model", "layers", "dense 60");
    world_set(w, "client", "local_epochs", "1");
    world_set(w, "client", "batch_size", "8");
    world_set(w, "client", "learning_rate", "0.1");
    world_set(w, "sync", "policy", "bsp");
    world_set(w, "sync", "deadline", "30s");
    world_set(w, "transfer", "up", "f32");
    world_set(w, "transfer", "down", "f32");
    fake_disk_init(&w->disk);
    w->replies = calloc(WORLD_REPLIES, sizeof *w->replies);
    ELV_ASSERT(w->replies != NULL);
    w->now = 1000;
}

void world_set(struct world *w, const char *section, const char *key, const char *value)
{
    char why[ELV_JOB_ERROR_MAX];
    const enum elv_err err = elv_job_set(&w->job, section, key, value, ELV_JOB_OVERRIDE, why);
    if (err != ELV_OK)
        fprintf(stderr, "%s\n", why);
    ELV_ASSERT(err == ELV_OK);
}

static void stop(struct world *w)
{
    free(w->s);
    free(w->block);
    free(w->out.at);
    w->s = NULL;
    w->block = NULL;
    w->out = (struct elv_actions){0};
    w->n_work = 0;
    w->ended = false;
}

enum elv_err world_try_start(struct world *w)
{
    stop(w);
    w->cfg.job = &w->job;
    w->cfg.disk = fake_disk_disk(&w->disk);
    memset(w->cfg.run, 0xAB, sizeof w->cfg.run);
    w->len = elv_server_mem(&w->cfg);
    if (w->len == 0)
        return ELV_ERR_ARG;
    w->block = aligned_alloc(ELV_ARENA_ALIGN, w->len);
    w->s = malloc(sizeof *w->s);
    ELV_ASSERT(w->s != NULL && w->block != NULL);
    const enum elv_err err = elv_server_init(w->s, &w->cfg, w->block, w->len);
    if (err != ELV_OK)
        return err;
    w->node = elv_server_node(w->s);
    w->out.cap = w->node.actions_max;
    w->out.at = calloc(w->out.cap, sizeof *w->out.at);
    w->seen_notes = 0;
    struct elv_event ev = {.kind = ELV_EV_TICK};
    world_event(w, &ev);
    world_settle(w);
    return ELV_OK;
}

void world_start(struct world *w)
{
    char why[ELV_JOB_ERROR_MAX];
    uint32_t line;
    enum elv_err err = elv_job_check(&w->job, why, &line);
    if (err != ELV_OK)
        fprintf(stderr, "%s\n", why);
    ELV_ASSERT(err == ELV_OK);
    err = world_try_start(w);
    ELV_ASSERT(err == ELV_OK);
}

void world_crash(struct world *w, bool power)
{
    fake_disk_crash(&w->disk, power);
    stop(w);
}

void world_free(struct world *w)
{
    stop(w);
    fake_disk_free(&w->disk);
    free(w->replies);
}

static void keep_reply(struct world *w, const struct elv_action *a)
{
    ELV_ASSERT(a->id > 0 && a->id < WORLD_REPLIES);
    struct world_reply *r = &w->replies[a->id];
    ELV_ASSERT(!r->there); /* one request, one reply */
    ELV_ASSERT(a->response.body.len <= sizeof r->body);
    r->there = true;
    r->code = a->response.code;
    r->max_age_s = a->response.max_age_s;
    r->len = a->response.body.len;
    if (r->len > 0)
        memcpy(r->body, a->response.body.at, r->len);
}

static void carry_out(struct world *w, const struct elv_action *a)
{
    switch (a->kind) {
    case ELV_DO_REPLY:
        keep_reply(w, a);
        break;
    case ELV_DO_COMPUTE:
        ELV_ASSERT(w->n_work < sizeof w->work / sizeof w->work[0]);
        w->work[w->n_work++] = *a;
        break;
    case ELV_DO_NOTIFY:
        ELV_ASSERT(w->n_notified < WORLD_NOTIFIED);
        w->notified[w->n_notified++] = a->peer;
        break;
    case ELV_DO_END:
        ELV_ASSERT(!w->ended);
        w->ended = true;
        w->exit_code = a->id;
        break;
    default:
        ELV_ASSERT(a->kind == ELV_DO_STORE);
    }
}

void world_event(struct world *w, struct elv_event *ev)
{
    ev->now = w->now;
    w->node.step(w->node.self, ev, &w->out);
    fake_disk_submit(&w->disk, w->out.at, w->out.n);
    for (uint32_t i = 0; i < w->out.n && !w->disk.dead; i++)
        carry_out(w, &w->out.at[i]);
    if (w->s->round.state == ELV_ROUND_OPEN) /* a round that is open will end */
        ELV_ASSERT(w->node.deadline(w->node.self) <= w->s->round.deadline);
}

static bool run_one(struct world *w)
{
    if (w->n_work == 0 || w->hold_computes)
        return false;
    uint32_t i = 0;
    while (i < w->n_work && w->work[i].compute.kind == w->hold_work)
        i++;
    if (i == w->n_work)
        return false;
    const struct elv_action a = w->work[i];
    memmove(w->work + i, w->work + i + 1, (--w->n_work - i) * sizeof w->work[0]);
    enum elv_err err;
    do
        err = w->node.run(w->node.self, &a.compute, w->budget ? w->budget : 1000);
    while (err == ELV_ERR_BUSY);
    struct elv_event ev = {.kind = ELV_EV_COMPUTED, .id = a.id, .err = err};
    world_event(w, &ev);
    return true;
}

static bool store_one(struct world *w)
{
    struct elv_event ev;
    if (!w->hold_stores)
        fake_disk_flush(&w->disk);
    if (!fake_disk_next(&w->disk, &ev))
        return false;
    world_event(w, &ev);
    return true;
}

static bool tick_one(struct world *w)
{
    if (w->node.deadline(w->node.self) > w->now)
        return false;
    struct elv_event ev = {.kind = ELV_EV_TICK};
    world_event(w, &ev);
    return true;
}

static bool halted(const struct world *w) { return w->halt_storing && w->s->version_store != 0; }

void world_settle(struct world *w)
{
    uint32_t turns = 0;
    while (!w->disk.dead && !halted(w) && (store_one(w) || run_one(w) || tick_one(w)))
        ELV_ASSERT(++turns < 100000); /* it must come to rest */
}

void world_advance(struct world *w, elv_time_us us)
{
    const elv_time_us until = w->now + us;
    world_settle(w);
    while (w->now < until && !w->disk.dead) {
        const elv_time_us next = w->node.deadline(w->node.self);
        w->now = next < until ? next : until;
        struct elv_event ev = {.kind = ELV_EV_TICK};
        world_event(w, &ev);
        world_settle(w);
    }
}

uint32_t world_send(struct world *w, uint32_t peer, const struct elv_request *r)
{
    w->last_request = w->last_request % (WORLD_REPLIES - 1) + 1;
    const uint32_t id = w->last_request;
    if (w->requests_left > 0 && --w->requests_left == 0)
        w->disk.dead = true; /* the process dies in the middle of it */
    w->replies[id].there = false;
    struct elv_event ev = {.kind = ELV_EV_REQUEST, .peer = peer, .id = id, .request = *r};
    if (w->disk.dead)
        return id;
    world_event(w, &ev);
    world_settle(w);
    return id;
}

struct world_reply *world_ask(struct world *w, uint32_t peer, const struct elv_request *r)
{
    return &w->replies[world_send(w, peer, r)];
}

bool world_refused(const struct world_reply *r, uint8_t code, enum elv_reason reason)
{
    struct elv_refusal refusal;
    return r->there && r->code == code &&
           elv_refusal_decode((struct elv_bytes){r->body, r->len}, &refusal) == ELV_OK &&
           refusal.reason == reason;
}

struct elv_join world_join_of(const struct world *w, uint32_t peer)
{
    struct elv_join join = {
        .wire_min = 1,
        .wire_max = 1,
        .software = {"elver/0.1.0", 11},
        .boot = 1000 + peer,
        .samples = 10 * peer,
    };
    for (size_t i = 0; i < elv_codec_count() && i < ELV_CODECS_MAX; i++)
        join.codecs[join.n_codecs++] = elv_codec_at(i)->id;
    memcpy(join.manifest, w->s->manifest_digest, sizeof join.manifest);
    return join;
}

struct world_reply *world_join_as(struct world *w, uint32_t peer, const struct elv_join *join)
{
    uint8_t body[ELV_MSG_MAX];
    size_t len = 0;
    const enum elv_err err = elv_join_encode(join, body, sizeof body, &len);
    ELV_ASSERT(err == ELV_OK);
    return world_ask(w, peer, &(struct elv_request){.op = ELV_OP_JOIN, .body = {body, len}});
}

void world_join(struct world *w, uint32_t peer)
{
    const struct elv_join join = world_join_of(w, peer);
    const struct world_reply *r = world_join_as(w, peer, &join);
    ELV_ASSERT(w->disk.dead || (r->there && elv_code_is_success(r->code)));
}

void world_leave(struct world *w, uint32_t peer)
{
    const struct world_reply *r = world_ask(w, peer, &(struct elv_request){.op = ELV_OP_LEAVE});
    ELV_ASSERT(r->there && r->code == ELV_CODE_DELETED);
}

bool world_ticket(struct world *w, uint32_t peer, struct elv_ticket *t)
{
    const struct world_reply *r = world_ask(w, peer, &(struct elv_request){.op = ELV_OP_TICKET});
    if (!r->there || r->code != ELV_CODE_CONTENT)
        return false;
    const enum elv_err err = elv_ticket_decode((struct elv_bytes){r->body, r->len}, t);
    ELV_ASSERT(err == ELV_OK);
    return true;
}

void world_update(const struct world *w, uint32_t peer, const struct elv_ticket *t, float *v)
{
    for (uint32_t i = 0; i < w->job.model.n_shared; i++)
        v[i] = (float)((peer * 7 + i * 3 + t->version * 5) % 23) / 64.0f - 0.17f;
}

void upload_seal(struct upload *u)
{
    struct elv_body_digest d;
    uint8_t hash[ELV_CHUNK_HASH_LEN];
    elv_body_digest_init(&d);
    for (uint32_t i = 0; i < u->n_chunks; i++) {
        elv_chunk_hash((struct elv_bytes){u->chunk[i], u->len[i]}, hash);
        elv_body_digest_add(&d, hash);
    }
    elv_body_digest_final(&d, u->commit.digest);
    u->commit.n_chunks = u->n_chunks;
}

void world_encode(const struct world *w, struct upload *u, uint32_t peer,
                  const struct elv_ticket *t, const float *v, uint64_t nonce)
{
    const struct elv_codec *codec = elv_codec_by_id(t->up.id);
    static struct elv_codec_plan plan;
    struct elv_codec_arg arg = {.seed = nonce, .param = t->up.param};
    elv_codec_plan(codec, &plan, v, w->job.model.n_shared, &arg);
    uint8_t payload[ELV_CHUNK_PAYLOAD_MAX];
    *u = (struct upload){
        .peer = peer, .assignment = t->assignment, .nonce = nonce, .codec = t->up.id};
    for (uint32_t first = 0; first < w->job.model.n_shared;) {
        struct elv_chunk c = {.kind = ELV_BODY_UPDATE,
                              .codec = u->codec,
                              .index = u->n_chunks,
                              .first = first,
                              .payload = {payload, 0}};
        for (unsigned i = 0; i < ELV_CHUNK_TAG_LEN; i++)
            c.tag[i] = (uint8_t)(nonce >> (8 * i));
        enum elv_err err = codec->encode(v, w->job.model.n_shared, first, c.index, &arg, payload,
                                         sizeof payload, &c.payload.len, &c.count);
        ELV_ASSERT(err == ELV_OK && u->n_chunks < 64);
        err = elv_chunk_encode(&c, u->chunk[c.index], ELV_CHUNK_MAX, &u->len[c.index]);
        ELV_ASSERT(err == ELV_OK);
        first += c.count;
        u->n_chunks++;
    }
    u->commit = (struct elv_commit){
        .status = ELV_STATUS_DONE,
        .nonce = nonce,
        .samples = 10 * peer,
        .seen = 10 * peer,
        .steps = 2,
        .loss_sum = 5.0 * peer,
    };
    upload_seal(u);
}

struct world_reply *world_put(struct world *w, const struct upload *u, uint32_t index)
{
    return world_ask(w, u->peer,
                     &(struct elv_request){.op = ELV_OP_UPDATE_CHUNK,
                                           .assignment = u->assignment,
                                           .chunk = index,
                                           .body = {u->chunk[index], u->len[index]}});
}

struct world_reply *world_commit(struct world *w, const struct upload *u)
{
    uint8_t body[ELV_MSG_MAX];
    size_t len = 0;
    const enum elv_err err = elv_commit_encode(&u->commit, body, sizeof body, &len);
    ELV_ASSERT(err == ELV_OK);
    return world_ask(w, u->peer,
                     &(struct elv_request){
                         .op = ELV_OP_COMMIT, .assignment = u->assignment, .body = {body, len}});
}

enum elv_decision world_verdict(const struct world_reply *r, enum elv_reason *reason)
{
    struct elv_verdict v;
    if (!r->there || r->code != ELV_CODE_CHANGED ||
        elv_verdict_decode((struct elv_bytes){r->body, r->len}, &v) != ELV_OK)
        return (enum elv_decision)0;
    if (reason)
        *reason = v.reason;
    return v.decision;
}

bool world_make(struct world *w, struct upload *u, uint32_t peer, uint64_t nonce)
{
    struct elv_ticket t;
    float v[4096];
    if (!world_ticket(w, peer, &t))
        return false;
    world_update(w, peer, &t, v);
    world_encode(w, u, peer, &t, v, nonce);
    return true;
}

bool world_attempt(struct world *w, uint32_t peer, uint32_t attempt)
{
    struct elv_ticket t;
    float v[4096];
    struct upload *u = malloc(sizeof *u);
    ELV_ASSERT(u != NULL);
    bool accepted = false;
    if (world_ticket(w, peer, &t) && t.what == ELV_WHAT_TRAIN) {
        world_update(w, peer, &t, v);
        world_encode(w, u, peer, &t, v, t.assignment * 1000 + attempt);
        for (uint32_t i = 0; i < u->n_chunks && !w->disk.dead; i++)
            world_put(w, u, i);
        if (!w->disk.dead)
            accepted = world_verdict(world_commit(w, u), NULL) == ELV_ACCEPTED;
    }
    free(u);
    return accepted;
}

void world_sums(struct elv_eval_sums *sums, uint32_t n, uint32_t right)
{
    *sums = (struct elv_eval_sums){.n = n, .loss = n, .n_classes = 2};
    sums->support[1] = n;
    sums->correct[1] = sums->predicted[1] = right;
    sums->predicted[0] = n - right;
}

static bool commit_alone(struct world *w, uint32_t peer, const struct elv_ticket *t,
                         struct elv_commit *commit)
{
    uint8_t body[ELV_MSG_MAX];
    size_t len = 0;
    commit->nonce = t->assignment;
    const enum elv_err err = elv_commit_encode(commit, body, sizeof body, &len);
    ELV_ASSERT(err == ELV_OK);
    const struct elv_request r = {
        .op = ELV_OP_COMMIT, .assignment = t->assignment, .body = {body, len}};
    return world_verdict(world_ask(w, peer, &r), NULL) == ELV_ACCEPTED;
}

bool world_evaluate(struct world *w, uint32_t peer, uint32_t n, uint32_t right)
{
    struct elv_ticket t;
    struct elv_commit commit = {.status = ELV_STATUS_DONE};
    world_sums(&commit.eval, n, right);
    return world_ticket(w, peer, &t) && t.what == ELV_WHAT_EVALUATE &&
           commit_alone(w, peer, &t, &commit);
}

bool world_decline(struct world *w, uint32_t peer, enum elv_status status, enum elv_reason reason)
{
    struct elv_ticket t;
    struct elv_commit commit = {.status = status, .reason = reason};
    return world_ticket(w, peer, &t) && t.assignment != 0 && commit_alone(w, peer, &t, &commit);
}

bool world_contribute(struct world *w, uint32_t peer) { return world_attempt(w, peer, 1); }

static float sum_of(const struct world *w)
{
    const float *b = w->s->eval_on;
    float sum = 0.0f;
    for (uint32_t i = 0; i < w->job.model.n_shared; i++)
        sum += b[i] * (float)(i % 7 + 1);
    return sum;
}

static void score_begin(void *self, const float *v)
{
    struct world *w = self;
    ELV_ASSERT(v == w->s->eval_on);
    w->scored = w->s->eval_version;
    w->scored_sum = sum_of(w);
    w->score_slices = 0;
}

static enum elv_err score_run(void *self, uint32_t budget)
{
    struct world *w = self;
    (void)budget;
    ELV_ASSERT(sum_of(w) == w->scored_sum);
    return ++w->score_slices < 3 ? ELV_ERR_BUSY : w->score_err;
}

static void score_sums(void *self, struct elv_eval_sums *out)
{
    const struct world *w = self;
    const uint32_t right = (uint32_t)(w->accuracy[w->scored] * 1000.0 + 0.5);
    *out = (struct elv_eval_sums){.n = 1000, .loss = 500.0, .n_classes = 2};
    out->support[0] = 1000;
    out->correct[0] = right;
    out->predicted[0] = right;
    out->predicted[1] = 1000 - right;
}

void world_add_scorer(struct world *w)
{
    w->scorer =
        (struct elv_scorer){.self = w, .begin = score_begin, .run = score_run, .sums = score_sums};
    w->cfg.scorer = &w->scorer;
}

uint32_t world_notes(struct world *w, enum elv_note_kind kind)
{
    const struct elv_note *note;
    uint32_t n = 0;
    while ((note = elv_note_next(&w->s->notes, &w->seen_notes)) != NULL)
        n += note->kind == kind;
    return n;
}
