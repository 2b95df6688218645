/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/client_world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec.h"

/* The trainer. */

static uint32_t mix(uint32_t h, uint32_t v)
{
    h = (h ^ v) * 2654435761u;
    return h ^ h >> 15;
}

static uint32_t samples(const void *self) { return ((const struct fake_trainer *)self)->samples; }

static enum elv_err prepare(void *self, const struct elv_manifest *m, const struct elv_model *model,
                            void *mem, size_t len)
{
    struct fake_trainer *t = self;
    (void)m, (void)mem;
    t->n_params = model->n_params;
    return len < 1024 ? ELV_ERR_SPACE : ELV_OK;
}

static size_t mem(void *self, const struct elv_manifest *m, const struct elv_model *model,
                  uint32_t batch)
{
    (void)self, (void)m, (void)model, (void)batch;
    return 1024;
}

static enum elv_err begin(void *self, const struct elv_task *task, float *weights)
{
    struct fake_trainer *t = self;
    if (t->begin_err != ELV_OK)
        return t->begin_err;
    t->task = *task;
    t->weights = weights;
    t->at = 0;
    t->n_steps = task->local_steps > 0 ? task->local_steps : task->local_epochs * t->steps;
    t->evaluating = false;
    t->n_begun++;
    t->result = (struct elv_train_result){.samples = t->samples};
    return ELV_OK;
}

static enum elv_err evaluate(void *self, const struct elv_task *task, const float *weights)
{
    struct fake_trainer *t = self;
    (void)weights;
    if (t->evaluate_err != ELV_OK)
        return t->evaluate_err;
    t->task = *task;
    t->evaluating = true;
    t->at = 0;
    t->n_steps = 3;
    t->n_evaluated++;
    t->result = (struct elv_train_result){.eval = {.n = 4,
                                                   .loss = 2.5,
                                                   .n_classes = 2,
                                                   .support = {1, 3},
                                                   .predicted = {2, 2},
                                                   .correct = {1, 2}}};
    if (t->odd_sums)
        t->result.eval.correct[0] = 9;
    return ELV_OK;
}

static void train_step(struct fake_trainer *t)
{
    uint32_t h = mix(mix(mix((uint32_t)t->task.seed, t->task.client), t->task.round), t->at);
    for (uint32_t i = 0; i < t->n_params; i++) {
        h = mix(h, i);
        t->weights[i] += t->size * ((float)(h >> 8) * 0x1p-23f - 1.0f);
    }
    if (t->nan_weight)
        t->weights[t->n_params / 2] = NAN;
    t->result.seen += t->task.batch;
    t->result.steps++;
    t->result.loss_sum += 1.5;
}

static enum elv_err run(void *self, uint32_t steps)
{
    struct fake_trainer *t = self;
    t->largest_slice = steps > t->largest_slice ? steps : t->largest_slice;
    if (t->run_err != ELV_OK && t->at > 0)
        return t->run_err;
    for (uint32_t i = 0; i < steps && t->at < t->n_steps; i++, t->at++)
        if (!t->evaluating)
            train_step(t);
    if (t->nan_loss)
        t->result.loss_sum = NAN;
    return t->at < t->n_steps ? ELV_ERR_BUSY : ELV_OK;
}

static const struct elv_train_result *result(const void *self)
{
    return &((const struct fake_trainer *)self)->result;
}

static void abort_work(void *self) { ((struct fake_trainer *)self)->n_aborted++; }

static struct elv_trainer trainer_of(struct fake_trainer *t)
{
    return (struct elv_trainer){.self = t,
                                .mem = mem,
                                .prepare = prepare,
                                .samples = samples,
                                .begin = begin,
                                .evaluate = evaluate,
                                .run = run,
                                .result = result,
                                .abort = abort_work};
}

/* The server's bodies. */

static void encode_body(struct body *b, enum elv_body_kind kind, uint8_t codec, const float *v,
                        uint32_t n)
{
    const struct elv_codec *c = elv_codec_by_id(codec);
    const struct elv_codec_arg arg = {0};
    struct elv_body_digest digest;
    elv_body_digest_init(&digest);
    memset(b, 0, sizeof *b);
    b->ref.codec = codec;
    for (uint32_t first = 0; first < n; b->ref.n_chunks++) {
        uint8_t payload[ELV_CHUNK_PAYLOAD_MAX], hash[ELV_CHUNK_HASH_LEN];
        size_t len;
        const uint32_t i = b->ref.n_chunks;
        struct elv_chunk k = {.kind = kind, .codec = codec, .index = i, .first = first};
        assert_in_range(i, 0, CHUNKS_MAX - 1);
        assert_int_equal(c->encode(v, n, first, i, &arg, payload, sizeof payload, &len, &k.count),
                         ELV_OK);
        k.payload = (struct elv_bytes){payload, len};
        assert_int_equal(elv_chunk_encode(&k, b->bytes[i], ELV_CHUNK_MAX, &b->len[i]), ELV_OK);
        elv_chunk_hash((struct elv_bytes){b->bytes[i], b->len[i]}, hash);
        elv_body_digest_add(&digest, hash);
        first += k.count;
    }
    elv_body_digest_final(&digest, b->ref.digest);
    for (uint32_t i = 0; i < b->ref.n_chunks; i++) /* the tag is no part of the hash */
        memcpy(b->bytes[i] + 16, b->ref.digest, ELV_CHUNK_TAG_LEN);
}

static void decode_body(const struct body *b, float *out)
{
    for (uint32_t i = 0; i < b->ref.n_chunks; i++) {
        struct elv_chunk k;
        assert_int_equal(elv_chunk_decode((struct elv_bytes){b->bytes[i], b->len[i]}, &k), ELV_OK);
        assert_int_equal(
            elv_codec_decode(elv_codec_by_id(k.codec), k.payload, k.count, out + k.first), ELV_OK);
    }
}

/* b(t) = b(t-1) + decode(encode(change)). */
static void make_versions(struct fake_server *s)
{
    static float flat[PARAMS_MAX], change[PARAMS_MAX];
    const uint32_t n = s->model.n_shared;
    elv_model_init_params(&s->model, s->manifest.seed, flat);
    elv_model_gather(&s->model, flat, 0, n, s->version[0]);
    for (uint32_t v = 0; v < VERSIONS; v++) {
        if (v > 0) {
            for (uint32_t i = 0; i < n; i++)
                change[i] = 0.01f * (float)((i * 31 + v * 17) % 101) - 0.5f;
            encode_body(&s->step[v], ELV_BODY_STEP, s->manifest.down.id, change, n);
            decode_body(&s->step[v], change);
            for (uint32_t i = 0; i < n; i++)
                s->version[v][i] = s->version[v - 1][i] + change[i];
        }
        encode_body(&s->full[v], ELV_BODY_MODEL, ELV_CODEC_F32, s->version[v], n);
    }
}

void server_encode_manifest(struct fake_server *s)
{
    uint8_t sum[ELV_SHA256_LEN];
    assert_int_equal(elv_manifest_encode(&s->manifest, s->manifest_bytes, sizeof s->manifest_bytes,
                                         &s->manifest_len),
                     ELV_OK);
    elv_sha256(s->manifest_bytes, s->manifest_len, sum);
    memcpy(s->ticket.manifest, sum, sizeof s->ticket.manifest);
}

static void clear_upload(struct fake_server *s)
{
    memset(&s->up, 0, sizeof s->up);
    memset(s->times, 0, sizeof s->times);
    s->n_up = 0;
}

void server_offer(struct fake_server *s, uint32_t assignment, uint32_t version)
{
    struct elv_ticket *t = &s->ticket;
    t->what = ELV_WHAT_TRAIN;
    t->assignment = assignment;
    t->round = assignment + 100;
    t->version = version;
    t->full = s->full[version].ref;
    t->n_steps = version < 3 ? version : 3;
    for (uint32_t i = 0; i < t->n_steps; i++)
        t->step[i] = s->step[version - i].ref;
    elv_sha256_f32(s->version[version], s->model.n_shared, t->model);
    clear_upload(s);
}

void server_update(const struct fake_server *s, float *out) { decode_body(&s->up, out); }

/* The server's answers. */

static void answer_missing(struct fake_server *s, uint32_t n_chunks, struct elv_missing *m)
{
    uint64_t words[ELV_BITMAP_WORDS(CHUNKS_MAX)];
    struct elv_bitmap have;
    elv_bitmap_init(&have, words, n_chunks);
    for (uint32_t i = 0; i < n_chunks; i++)
        if (s->times[i] > 0)
            elv_bitmap_set(&have, i);
    elv_missing_of(&have, m);
}

static void get_chunk(struct fake_server *s, const struct elv_request *r, const struct body *set,
                      struct message *out)
{
    for (uint32_t v = 0; v < VERSIONS; v++) {
        const uint64_t digest = elv_digest_key(set[v].ref.digest);
        if (digest != r->digest || r->chunk >= set[v].ref.n_chunks)
            continue;
        out->len = set[v].len[r->chunk];
        memcpy(out->body, set[v].bytes[r->chunk], out->len);
        const uint32_t n = s->asked[ELV_OP_MODEL_CHUNK] + s->asked[ELV_OP_STEP_CHUNK];
        if (s->garble_every > 0 && n % s->garble_every == 0) {
            if (n % 2 == 0)
                out->len -= 1 + n % 30; /* cut short */
            else
                out->body[16]++; /* of another body */
        }
        return;
    }
    out->code = ELV_CODE_NOT_FOUND;
}

static void put_chunk(struct fake_server *s, const struct elv_request *r, struct message *out)
{
    struct elv_chunk c;
    assert_int_equal(elv_chunk_decode(r->body, &c), ELV_OK);
    assert_int_equal(c.kind, ELV_BODY_UPDATE);
    assert_int_equal(c.index, r->chunk);
    assert_int_equal(c.codec, s->ticket.up.id);
    if (s->n_up == 0 || memcmp(c.tag, s->tag, sizeof s->tag) != 0)
        clear_upload(s); /* another attempt */
    memcpy(s->tag, c.tag, sizeof s->tag);
    s->n_up += s->times[c.index]++ == 0;
    s->n_chunk_puts++;
    memcpy(s->up.bytes[c.index], r->body.at, r->body.len);
    s->up.len[c.index] = r->body.len;
    struct elv_progress p = {.window = s->ticket.window};
    if (!s->lists_nothing)
        answer_missing(s, CHUNKS_MAX, &p.missing);
    assert_int_equal(elv_progress_encode(&p, out->body, ELV_MSG_MAX, &out->len), ELV_OK);
}

/* Whether what is there is what the commit says. */
static void check_upload(struct fake_server *s)
{
    struct elv_body_digest d;
    uint8_t hash[ELV_CHUNK_HASH_LEN];
    elv_body_digest_init(&d);
    for (uint32_t i = 0; i < s->commit.n_chunks; i++) {
        elv_chunk_hash((struct elv_bytes){s->up.bytes[i], s->up.len[i]}, hash);
        elv_body_digest_add(&d, hash);
    }
    elv_body_digest_final(&d, s->up.ref.digest);
    s->up.ref.n_chunks = s->commit.n_chunks;
    if (s->commit.n_chunks > 0)
        assert_memory_equal(s->up.ref.digest, s->commit.digest, sizeof s->commit.digest);
}

static void lose_some(struct fake_server *s)
{
    for (uint32_t i = 0; i < CHUNKS_MAX && s->lose_at_commit > 0; i += 2)
        if (s->times[i] > 0) {
            s->times[i] = 0;
            s->lose_at_commit--;
        }
    s->lose_at_commit = 0;
}

static void post_commit(struct fake_server *s, const struct elv_request *r, struct message *out)
{
    assert_int_equal(elv_commit_decode(r->body, &s->commit), ELV_OK);
    for (uint32_t i = 0; i < s->commit.n_user; i++)
        s->commit.user[i].name.at = NULL; /* the message is gone soon */
    s->n_commits++;
    lose_some(s);
    struct elv_verdict v = s->verdict;
    answer_missing(s, s->commit.n_chunks, &v.missing);
    if (v.decision == 0 && v.missing.first < s->commit.n_chunks) {
        v.decision = ELV_MISSING;
    } else {
        check_upload(s);
        v.decision = v.decision == 0 ? ELV_ACCEPTED : v.decision;
        s->n_decided++;
        s->last_decided = r->assignment;
        s->last_verdict = v;
        if (s->wait_when_decided)
            s->ticket.what = ELV_WHAT_WAIT;
    }
    assert_int_equal(elv_verdict_encode(&v, out->body, ELV_MSG_MAX, &out->len), ELV_OK);
}

static void refuse(struct message *out, uint8_t code, enum elv_reason reason, uint32_t retry_ms)
{
    const struct elv_refusal f = {.reason = reason, .retry_ms = retry_ms};
    out->code = code;
    if (reason != ELV_REASON_NONE)
        assert_int_equal(elv_refusal_encode(&f, out->body, ELV_MSG_MAX, &out->len), ELV_OK);
}

static bool refused(struct fake_server *s, const struct elv_request *r, struct message *out)
{
    struct refusal_script *no = &s->refuse[r->op];
    if (no->code != 0 && no->times > 0) {
        no->times -= no->times != UINT32_MAX;
        refuse(out, no->code, no->reason, no->retry_ms);
        return true;
    }
    if (r->op == ELV_OP_COMMIT && s->last_decided != 0 && r->assignment == s->last_decided) {
        assert_int_equal(elv_verdict_encode(&s->last_verdict, out->body, ELV_MSG_MAX, &out->len),
                         ELV_OK);
        return true;
    }
    const bool about_work = r->op == ELV_OP_UPDATE_CHUNK || r->op == ELV_OP_COMMIT;
    if (!about_work || r->assignment == s->ticket.assignment)
        return false;
    refuse(out, ELV_CODE_CONFLICT, ELV_REASON_SUPERSEDED, 0);
    return true;
}

static void post_join(struct fake_server *s, const struct elv_request *r, struct message *out)
{
    const struct elv_joined j = {
        .client = 7, .wire = 1, .window = 16, .jitter_ms = 100, .codec = s->manifest.up[0].id};
    assert_int_equal(elv_join_decode(r->body, &s->join), ELV_OK);
    s->join.software.at = NULL;
    assert_int_equal(elv_joined_encode(&j, out->body, ELV_MSG_MAX, &out->len), ELV_OK);
}

static void answer(struct fake_server *s, const struct elv_request *r, struct message *out)
{
    s->asked[r->op]++;
    out->code = ELV_CODE_CONTENT;
    out->len = 0;
    if (refused(s, r, out) || (s->lie != NULL && s->lie(s, r, out)))
        return;
    switch (r->op) {
    case ELV_OP_MANIFEST:
        memcpy(out->body, s->manifest_bytes, s->manifest_len);
        out->len = s->manifest_len;
        break;
    case ELV_OP_JOIN:
        post_join(s, r, out);
        break;
    case ELV_OP_TICKET:
        assert_int_equal(elv_ticket_encode(&s->ticket, out->body, ELV_MSG_MAX, &out->len), ELV_OK);
        break;
    case ELV_OP_MODEL_CHUNK:
        get_chunk(s, r, s->full, out);
        break;
    case ELV_OP_STEP_CHUNK:
        get_chunk(s, r, s->step, out);
        break;
    case ELV_OP_UPDATE_CHUNK:
        put_chunk(s, r, out);
        break;
    case ELV_OP_COMMIT:
        post_commit(s, r, out);
        break;
    default:
        out->code = ELV_CODE_DELETED;
    }
}

/* The network. */

static struct message *enqueue(struct client_world *w)
{
    assert_in_range(w->n_queue, 0, QUEUE_MAX - 1);
    return &w->queue[w->n_queue++];
}

/* Copies of a message that arrive, and when after `w->now`; false: it is lost. */
static bool fate(struct client_world *w, uint32_t *copies, elv_time_us *late)
{
    *late = 0;
    const int f = w->fate == NULL ? 0 : w->fate(w->n_messages, late);
    w->n_messages++;
    *copies = f < 0 ? 0 : 1 + (uint32_t)f;
    return f >= 0 && !w->server.silent;
}

static void respond(struct client_world *w, uint32_t id, struct message *m, elv_time_us late)
{
    uint32_t copies;
    elv_time_us late_back;
    if (!fate(w, &copies, &late_back))
        return;
    for (uint32_t i = 0; i < copies; i++) {
        struct message *q = enqueue(w);
        *q = *m;
        q->id = id;
        q->at = w->now + 2 * w->delay_us + late + late_back + (elv_time_us)i * MS;
    }
}

/* A reliable request is repeated by the port every 100 ms, for two seconds. */
static void carry(struct client_world *w, const struct elv_action *a)
{
    static struct message m;
    uint32_t copies;
    elv_time_us late;
    for (uint32_t n = 0; n < (a->reliable ? 20u : 1u); n++) {
        const uint32_t before = w->n_queue;
        if (fate(w, &copies, &late)) {
            memset(&m, 0, sizeof m);
            for (uint32_t i = 0; i < copies; i++)
                answer(&w->server, &a->request, &m);
            respond(w, a->id, &m, late + n * 100 * MS);
        }
        if (w->n_queue > before)
            return;
    }
    if (a->reliable) {
        struct message *q = enqueue(w);
        *q = (struct message){.at = w->now + 2 * SEC, .id = a->id, .unanswered = true};
    }
}

static void forget(struct client_world *w, uint32_t id)
{
    w->n_forgets++;
    for (uint32_t i = 0; i < w->n_queue;)
        if (w->queue[i].id == id)
            w->queue[i] = w->queue[--w->n_queue];
        else
            i++;
    if (w->observed == id)
        w->observed = 0;
}

static void act(struct client_world *w, const struct elv_action *a)
{
    w->log = (w->log ^ a->kind ^ (uint64_t)a->id << 8 ^ (uint64_t)a->request.op << 40 ^
              (uint64_t)a->request.chunk << 44 ^ (uint64_t)w->now) *
             0x9E3779B97F4A7C15u;
    switch (a->kind) {
    case ELV_DO_SEND:
        if (a->request.op == ELV_OP_MANIFEST)
            assert_int_equal(w->work_id, 0); /* planning anew takes the memory that work holds */
        w->n_sends++;
        w->server.n_reliable += a->reliable;
        if (a->request.observe)
            w->observed = a->id;
        carry(w, a);
        break;
    case ELV_DO_FORGET:
        forget(w, a->id);
        break;
    case ELV_DO_RELINK:
        w->n_relinks++;
        break;
    case ELV_DO_COMPUTE:
        assert_int_equal(w->work_id, 0);
        w->work = a->compute;
        w->work_id = a->id;
        w->work_at = w->now + w->work_us;
        w->work_cancelled = false;
        w->n_computes++;
        break;
    case ELV_DO_CANCEL:
        assert_int_equal(w->work_id, a->id);
        assert_false(w->work_cancelled);
        w->work_cancelled = true;
        w->work_at = w->now + MS < w->work_at ? w->now + MS : w->work_at;
        w->n_cancels++;
        break;
    case ELV_DO_STORE:
        assert_non_null(w->disk);
        w->n_stores++;
        w->n_appends += a->store.kind == ELV_STORE_APPEND;
        if (!w->storing)
            w->store_at = w->now + w->store_us;
        w->storing = true;
        break;
    case ELV_DO_END:
        assert_false(w->ended);
        assert_int_equal(w->work_id, 0);
        w->ended = true;
        w->exit_code = a->id;
        break;
    default:
        fail_msg("a client has no such action: %d", (int)a->kind);
    }
}

void world_event(struct client_world *w, struct elv_event ev)
{
    static struct elv_action slots[128];
    struct elv_actions out = {.at = slots, .cap = w->node.actions_max};
    assert_in_range(w->node.actions_max, 1, 128);
    assert_false(w->ended);
    ev.now = w->now;
    w->node.step(w->node.self, &ev, &out);
    w->n_steps++;
    if (w->disk != NULL)
        fake_disk_submit(w->disk, out.at, out.n);
    for (uint32_t i = 0; i < out.n; i++)
        act(w, &out.at[i]);
}

static void finish_stores(struct client_world *w)
{
    struct elv_event ev;
    w->storing = false;
    fake_disk_flush(w->disk);
    while (!w->ended && fake_disk_next(w->disk, &ev))
        world_event(w, ev);
}

static void finish_work(struct client_world *w)
{
    enum elv_err err = w->node.run(w->node.self, &w->work, 1); /* some of it was done, at least */
    while (!w->work_cancelled && err == ELV_ERR_BUSY)
        err = w->node.run(w->node.self, &w->work, 5);
    if (w->work_cancelled)
        err = ELV_ERR_CANCELLED;
    const uint32_t id = w->work_id;
    w->work_id = 0;
    w->worked_us += w->work_us;
    world_event(w, (struct elv_event){.kind = ELV_EV_COMPUTED, .id = id, .err = err});
}

static void deliver(struct client_world *w, uint32_t i)
{
    static struct message m;
    m = w->queue[i];
    w->queue[i] = w->queue[--w->n_queue];
    struct elv_event ev = {.id = m.id};
    ev.kind = m.unanswered ? ELV_EV_NO_ANSWER : ELV_EV_RESPONSE;
    ev.err = m.err;
    uint8_t *body =
        malloc(m.len + 1); /* exactly as long as it is: a sanitizer sees one byte more */
    memcpy(body, m.body, m.len);
    ev.response = (struct elv_response){.code = m.code, .body = {body, m.len}};
    world_event(w, ev);
    memset(body, 0xA5, m.len); /* nothing of it may be remembered */
    free(body);
}

/* The first message to arrive; n_queue for none. */
static uint32_t first_message(const struct client_world *w)
{
    uint32_t first = w->n_queue;
    for (uint32_t i = 0; i < w->n_queue; i++)
        if (first == w->n_queue || w->queue[i].at < w->queue[first].at)
            first = i;
    return first;
}

static elv_time_us next_at(const struct client_world *w)
{
    if (w->ended)
        return ELV_NEVER;
    const uint32_t first = first_message(w);
    elv_time_us at = w->node.deadline(w->node.self);
    if (w->work_id != 0 && w->work_at < at)
        at = w->work_at;
    if (first < w->n_queue && w->queue[first].at < at)
        at = w->queue[first].at;
    if (w->storing && w->store_at < at)
        at = w->store_at;
    return at;
}

bool world_step(struct client_world *w)
{
    const elv_time_us at = next_at(w);
    if (at == ELV_NEVER)
        return false;
    w->now = at > w->now ? at : w->now;
    const uint32_t first = first_message(w);
    if (w->storing && w->store_at <= at)
        finish_stores(w);
    else if (first < w->n_queue && w->queue[first].at <= at)
        deliver(w, first);
    else if (w->work_id != 0 && w->work_at <= at)
        finish_work(w);
    else
        world_event(w, (struct elv_event){.kind = ELV_EV_TICK});
    return true;
}

void world_until(struct client_world *w, bool (*done)(const struct client_world *))
{
    const elv_time_us end = w->now + 3600LL * SEC;
    for (uint32_t i = 0; !done(w); i++) {
        assert_true(world_step(w) || done(w));
        assert_true(w->now < end);
        assert_in_range(i, 0, 1000000); /* it must not spin */
    }
}

void world_run(struct client_world *w, elv_time_us how_long)
{
    const elv_time_us end = w->now + how_long;
    for (uint32_t i = 0; next_at(w) <= end && world_step(w); i++)
        assert_in_range(i, 0, 1000000);
    w->now = end;
}

void world_notify(struct client_world *w)
{
    assert_int_not_equal(w->observed, 0);
    struct message *m = enqueue(w);
    *m = (struct message){.at = w->now + w->delay_us, .id = w->observed, .code = ELV_CODE_CONTENT};
    assert_int_equal(elv_ticket_encode(&w->server.ticket, m->body, ELV_MSG_MAX, &m->len), ELV_OK);
}

static struct elv_text text(const char *s) { return (struct elv_text){s, strlen(s)}; }

static void make_job(struct fake_server *s, const char *layers, uint8_t up, uint8_t down)
{
    struct elv_manifest *m = &s->manifest;
    static const char input[] = "1x16x16";
    *m = (struct elv_manifest){
        .wire_min = 1,
        .wire_max = 1,
        .run = {1, 2, 3},
        .seed = 42,
        .job = text("test"),
        .input = text(input),
        .layers = text(layers),
        .loss = ELV_LOSS_SOFTMAX_XENT,
        .optimizer = ELV_OPT_SGD,
        .scale = 1,
        .std = 1,
        .arithmetic = ELV_ARITHMETIC_REFERENCE,
        .up = {{.id = up}},
        .n_up = 1,
        .down = {.id = down},
        .bound = 8,
        .weight_max = 1000,
    };
    const struct elv_model_text parts = {.input = {(const uint8_t *)input, strlen(input)},
                                         .layers = {(const uint8_t *)layers, strlen(layers)}};
    assert_int_equal(elv_model_parse(&s->model, parts, NULL), ELV_OK);
    assert_in_range(s->model.n_params, 1, PARAMS_MAX);
    m->n_params = s->model.n_shared;
    memcpy(m->fingerprint, s->model.fingerprint, sizeof m->fingerprint);
}

void world_init(struct client_world *w, const char *layers, uint8_t up, uint8_t down)
{
    memset(w, 0, sizeof *w);
    struct fake_server *s = &w->server;
    make_job(s, layers, up, down);
    make_versions(s);
    s->ticket = (struct elv_ticket){.poll_ms = 500,
                                    .window = 16,
                                    .local_epochs = 2,
                                    .batch = 8,
                                    .learning_rate = 0.1f,
                                    .up = {.id = up},
                                    .deadline_ms = 60000};
    server_encode_manifest(s);
    server_offer(s, 1, 0);
    s->wait_when_decided = true;
    w->trainer = (struct fake_trainer){.samples = 40, .steps = 10, .size = 0.01f};
    w->cfg = (struct elv_client_cfg){.trainer = trainer_of(&w->trainer),
                                     .software = text("elver/test"),
                                     .boot = 0xB007,
                                     .jitter_seed = 5};
    w->delay_us = 20 * MS;
    w->work_us = 300 * MS;
    w->mem_len = ARENA;
}

void world_start(struct client_world *w)
{
    w->mem = aligned_alloc(ELV_ARENA_ALIGN, w->mem_len);
    assert_non_null(w->mem);
    assert_int_equal(elv_client_init(&w->client, &w->cfg, w->mem, w->mem_len), ELV_OK);
    w->node = elv_client_node(&w->client);
    world_event(w, (struct elv_event){.kind = ELV_EV_TICK});
}

void world_free(struct client_world *w)
{
    free(w->mem);
    w->mem = NULL;
}

void world_restart(struct client_world *w, uint64_t boot)
{
    free(w->mem);
    if (w->disk != NULL)
        fake_disk_crash(w->disk, false);
    w->storing = false;
    w->n_queue = w->work_id = w->observed = 0;
    w->cfg.boot = boot;
    w->cfg.jitter_seed++;
    world_start(w);
}

bool decided(const struct client_world *w)
{
    return w->server.n_decided > 0 && w->client.phase == ELV_CLIENT_IDLE && w->work_id == 0;
}

bool ended(const struct client_world *w) { return w->ended; }
