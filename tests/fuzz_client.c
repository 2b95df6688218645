/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a server answers, a client node keeps its promises: it never returns more actions than
 * it said, has one piece of work at a time, ends at most once and only without work, and does not
 * spin. The input is a list of turns: what is done to the oldest request that is out. */
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "common/assert.h"
#include "common/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 64, CHUNK_VALUES = 96 * 3 + 3, TURNS_MAX = 400, BLOCK = 1 << 16 };

struct asked {
    uint32_t id;
    struct elv_request request;
};

static struct {
    struct elv_client client;
    struct elv_node node;
    struct asked out[OUT_MAX]; /* oldest first */
    uint32_t n_out;
    struct elv_compute work;
    uint32_t work_id;
    bool cancelled, ended;
    elv_time_us now;
    struct elv_manifest manifest;
    struct elv_model model;
    struct elv_ticket ticket;
} f;

static _Alignas(ELV_ARENA_ALIGN) uint8_t block[BLOCK];

/* A trainer of two slices that adds one hundredth to each weight. */
static float *weights;
static struct elv_train_result result;
static uint32_t slices;

static enum elv_err begin(void *self, const struct elv_task *task, float *w)
{
    (void)self, (void)task;
    weights = w;
    slices = 0;
    result = (struct elv_train_result){.samples = 3, .seen = 3, .steps = 2};
    return ELV_OK;
}

static enum elv_err evaluate(void *self, const struct elv_task *task, const float *w)
{
    (void)self, (void)task, (void)w;
    weights = NULL;
    slices = 0;
    result = (struct elv_train_result){.eval = {.n = 1, .loss = 1}};
    return ELV_OK;
}

static enum elv_err run(void *self, uint32_t steps)
{
    (void)self, (void)steps;
    for (uint32_t i = 0; weights != NULL && i < f.model.n_params; i++)
        weights[i] += 0.01f;
    return slices++ == 0 ? ELV_ERR_BUSY : ELV_OK;
}

static const struct elv_train_result *get_result(const void *self)
{
    (void)self;
    return &result;
}

static void abort_work(void *self) { (void)self; }

static struct elv_text text(const char *s) { return (struct elv_text){s, strlen(s)}; }

static void make_run(void)
{
    static const char input[] = "1x8x12", layers[] = "dense 3";
    f.manifest = (struct elv_manifest){
        .wire_min = 1,
        .wire_max = 1,
        .seed = 7,
        .job = text("fuzz"),
        .input = text(input),
        .layers = text(layers),
        .loss = ELV_LOSS_SOFTMAX_XENT,
        .optimizer = ELV_OPT_SGD,
        .scale = 1,
        .std = 1,
        .arithmetic = ELV_ARITHMETIC_REFERENCE,
        .up = {{.id = ELV_CODEC_Q8}}, /* tickets may ask for f32, too */
        .n_up = 1,
        .down = {.id = ELV_CODEC_Q8},
        .holdout = 0.1f,
        .bound = 8,
        .weight_max = 10,
    };
    const struct elv_model_text parts = {.input = {(const uint8_t *)input, strlen(input)},
                                         .layers = {(const uint8_t *)layers, strlen(layers)}};
    ELV_ASSERT(elv_model_parse(&f.model, parts, NULL) == ELV_OK);
    ELV_ASSERT(f.model.n_params == CHUNK_VALUES);
    f.manifest.n_params = f.model.n_shared;
    memcpy(f.manifest.fingerprint, f.model.fingerprint, sizeof f.manifest.fingerprint);
}

static size_t chunk_of(const struct elv_request *r, uint8_t *out)
{
    static const float zeros[CHUNK_VALUES];
    const struct elv_codec *codec =
        elv_codec_by_id(r->op == ELV_OP_STEP_CHUNK ? ELV_CODEC_Q8 : ELV_CODEC_F32);
    const struct elv_codec_arg arg = {0};
    uint8_t payload[ELV_CHUNK_PAYLOAD_MAX];
    size_t len;
    struct elv_chunk c = {.kind = r->op == ELV_OP_STEP_CHUNK ? ELV_BODY_STEP : ELV_BODY_MODEL,
                          .codec = codec->id,
                          .index = r->chunk,
                          .first = codec->first_of(r->chunk)};
    if (c.first >= CHUNK_VALUES)
        return 0;
    for (int i = 0; i < 8; i++)
        c.tag[i] = (uint8_t)(r->digest >> (56 - 8 * i));
    codec->encode(zeros, CHUNK_VALUES, c.first, c.index, &arg, payload, sizeof payload, &len,
                  &c.count);
    c.payload = (struct elv_bytes){payload, len};
    elv_chunk_encode(&c, out, ELV_CHUNK_MAX, &len);
    return len;
}

/* A body of zeros, which changes nothing and so leads to any version. */
static struct elv_body_ref zeros_ref(enum elv_op op, uint8_t codec)
{
    struct elv_body_ref ref = {.codec = codec};
    struct elv_body_digest digest;
    elv_body_digest_init(&digest);
    for (;; ref.n_chunks++) {
        uint8_t bytes[ELV_CHUNK_MAX], hash[ELV_CHUNK_HASH_LEN];
        const struct elv_request r = {.op = op, .chunk = ref.n_chunks};
        const size_t len = chunk_of(&r, bytes);
        if (len == 0)
            break;
        elv_chunk_hash((struct elv_bytes){bytes, len}, hash);
        elv_body_digest_add(&digest, hash);
    }
    elv_body_digest_final(&digest, ref.digest);
    return ref;
}

/* Assignments go up; the second byte of a turn picks the kind and the way to the model. */
static size_t ticket_of(uint8_t how, uint8_t *out)
{
    static float initial[CHUNK_VALUES];
    uint8_t bytes[ELV_MANIFEST_MAX], sum[ELV_SHA256_LEN];
    size_t len = 0;
    struct elv_ticket *t = &f.ticket;
    elv_manifest_encode(&f.manifest, bytes, sizeof bytes, &len);
    elv_sha256(bytes, len, sum);
    memcpy(t->manifest, sum, sizeof t->manifest);
    t->what = (enum elv_what)(how & 3);
    t->poll_ms = 100;
    t->window = 1 + (how >> 6);
    t->assignment += how >> 2 & 1 || t->assignment == 0;
    t->version = how >> 3 & 3;
    t->batch = 1;
    t->local_steps = 1;
    t->up.id = how >> 7 & 1 ? ELV_CODEC_F32 : ELV_CODEC_Q8;
    t->full = zeros_ref(ELV_OP_MODEL_CHUNK, ELV_CODEC_F32);
    t->n_steps = how >> 5 & 1 ? 0 : t->version;
    for (uint32_t i = 0; i < t->n_steps; i++)
        t->step[i] = zeros_ref(ELV_OP_STEP_CHUNK, ELV_CODEC_Q8);
    elv_model_init_params(&f.model, f.manifest.seed, initial);
    if (how >> 5 & 1) /* then in full */
        memset(initial, 0, sizeof initial);
    elv_sha256_f32(initial, CHUNK_VALUES, t->model);
    elv_ticket_encode(t, out, ELV_MSG_MAX, &len);
    return len;
}

/* What a good server would say. */
static size_t usual(const struct elv_request *r, uint8_t how, uint8_t *out)
{
    size_t len = 0;
    const struct elv_joined joined = {.client = 1, .wire = 1, .window = 4, .codec = ELV_CODEC_F32};
    const struct elv_progress progress = {.missing = {.first = how % 4u}, .window = 1 + how % 40u};
    const struct elv_verdict verdict = {.decision = how % 3 == 2 ? ELV_MISSING : ELV_ACCEPTED,
                                        .missing = {.first = how % 5u}};
    switch (r->op) {
    case ELV_OP_MANIFEST:
        elv_manifest_encode(&f.manifest, out, ELV_MANIFEST_MAX, &len);
        break;
    case ELV_OP_JOIN:
        elv_joined_encode(&joined, out, ELV_MSG_MAX, &len);
        break;
    case ELV_OP_TICKET:
        return ticket_of(how, out);
    case ELV_OP_MODEL_CHUNK:
    case ELV_OP_STEP_CHUNK:
        return chunk_of(r, out);
    case ELV_OP_UPDATE_CHUNK:
        elv_progress_encode(&progress, out, ELV_MSG_MAX, &len);
        break;
    case ELV_OP_COMMIT:
        elv_verdict_encode(&verdict, out, ELV_MSG_MAX, &len);
        break;
    default:
        break;
    }
    return len;
}

static void forget(uint32_t id)
{
    for (uint32_t i = 0; i < f.n_out; i++)
        if (f.out[i].id == id) {
            f.n_out--;
            memmove(&f.out[i], &f.out[i + 1], (f.n_out - i) * sizeof f.out[0]);
            return;
        }
}

static void act(const struct elv_action *a)
{
    switch (a->kind) {
    case ELV_DO_SEND:
        ELV_ASSERT(a->id != 0 && a->request.body.len <= ELV_CHUNK_MAX);
        if (f.n_out == OUT_MAX)
            forget(f.out[0].id); /* lost */
        f.out[f.n_out++] = (struct asked){.id = a->id, .request = a->request};
        break;
    case ELV_DO_FORGET:
        forget(a->id);
        break;
    case ELV_DO_COMPUTE:
        ELV_ASSERT(f.work_id == 0);
        f.work = a->compute;
        f.work_id = a->id;
        f.cancelled = false;
        break;
    case ELV_DO_CANCEL:
        ELV_ASSERT(f.work_id == a->id && !f.cancelled);
        f.cancelled = true;
        break;
    case ELV_DO_END:
        ELV_ASSERT(!f.ended && f.work_id == 0);
        f.ended = true;
        break;
    default:
        ELV_ASSERT(a->kind == ELV_DO_RELINK);
    }
}

static void event(struct elv_event ev)
{
    static struct elv_action slots[32];
    struct elv_actions out = {.at = slots, .cap = f.node.actions_max};
    ELV_ASSERT(f.node.actions_max <= 32);
    ev.now = f.now;
    f.node.step(f.node.self, &ev, &out);
    ELV_ASSERT(out.n <= out.cap);
    for (uint32_t i = 0; i < out.n; i++)
        act(&out.at[i]);
}

static void work(bool some)
{
    enum elv_err err = ELV_ERR_CANCELLED;
    for (int i = 0; !f.cancelled && (i == 0 || err == ELV_ERR_BUSY); i++) {
        err = f.node.run(f.node.self, &f.work, 1);
        if (some && err == ELV_ERR_BUSY)
            return; /* to be continued, unless it is cancelled */
    }
    const uint32_t id = f.work_id;
    f.work_id = 0;
    event((struct elv_event){.kind = ELV_EV_COMPUTED, .id = id, .err = err});
}

struct turn {
    uint8_t kind, how, at, value;
};

static void answer(const struct turn *t, const uint8_t *raw, size_t raw_len)
{
    if (f.n_out == 0)
        return;
    const struct asked a = f.out[(t->kind >> 3) % f.n_out];
    if (!a.request.observe)
        forget(a.id);
    uint8_t bytes[ELV_MANIFEST_MAX];
    size_t len = usual(&a.request, t->how, bytes);
    uint8_t code = ELV_CODE_CONTENT;
    if ((t->kind & 7) == 1 && len > 0)
        bytes[(t->at * 7u) % len] ^= t->value;
    if ((t->kind & 7) == 2) { /* a refusal, of any kind */
        const struct elv_refusal no = {.reason = (enum elv_reason)(1 + t->value % 40),
                                       .retry_ms = t->at * 10u};
        elv_refusal_encode(&no, bytes, ELV_MSG_MAX, &len);
        code = t->how;
    }
    if ((t->kind & 7) == 3) {
        len = raw_len < 64 ? raw_len : 64;
        memcpy(bytes, raw, len);
    }
    uint8_t *exact = malloc(len + 1);
    memcpy(exact, bytes, len);
    event((struct elv_event){.kind = ELV_EV_RESPONSE,
                             .id = a.id,
                             .response = {.code = code, .max_age_s = t->at, .body = {exact, len}}});
    free(exact);
}

/* Nothing happens until the node's own deadline. */
static void wait(void)
{
    for (int i = 0; !f.ended; i++) {
        const elv_time_us at = f.node.deadline(f.node.self);
        if (at == ELV_NEVER || (i > 0 && at > f.now))
            return;
        f.now = at > f.now ? at : f.now;
        event((struct elv_event){.kind = ELV_EV_TICK});
        ELV_ASSERT(i < 200);
    }
}

static void take(const struct turn *t, const uint8_t *raw, size_t raw_len)
{
    switch (t->kind & 7) {
    case 4:
        if (f.n_out > 0)
            event((struct elv_event){.kind = ELV_EV_NO_ANSWER,
                                     .id = f.out[0].id,
                                     .err = t->how & 1 ? ELV_ERR_AUTH : ELV_ERR_IO});
        break;
    case 5:
        wait();
        break;
    case 6:
        if (f.work_id != 0)
            work(t->how & 1);
        break;
    case 7:
        if (t->how == 0xFF)
            event((struct elv_event){.kind = ELV_EV_STOP});
        break;
    default:
        answer(t, raw, raw_len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    memset(&f, 0, sizeof f);
    make_run();
    const struct elv_client_cfg cfg = {
        .trainer = {.begin = begin,
                    .evaluate = evaluate,
                    .run = run,
                    .result = get_result,
                    .abort = abort_work},
        .boot = 1,
        .duty = data[0] & 1 ? 50 : 100,
        .observe = data[0] & 2,
        .leave_on_stop = data[0] & 4,
        .window = 8,
    };
    const size_t len = data[0] & 8 ? 8192 : sizeof block;
    ELV_ASSERT(elv_client_init(&f.client, &cfg, block, len) == ELV_OK);
    f.node = elv_client_node(&f.client);
    event((struct elv_event){.kind = ELV_EV_TICK});
    for (size_t i = 1; i + 4 <= size && i < 4 * TURNS_MAX && !f.ended; i += 4) {
        const struct turn t = {data[i], data[i + 1], data[i + 2], data[i + 3]};
        take(&t, data + i, size - i);
        f.now += 1000;
    }
    return 0;
}
