/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/wire_samples.h"

#include <stdlib.h>
#include <string.h>

#include "common/codec.h"

#define CODEC(type)                                                                                \
    static enum elv_err type##_encode(const union wire_msg *m, uint8_t *out, size_t cap,           \
                                      size_t *len)                                                 \
    {                                                                                              \
        return elv_##type##_encode(&m->type, out, cap, len);                                       \
    }                                                                                              \
    static enum elv_err type##_decode(struct elv_bytes in, union wire_msg *m)                      \
    {                                                                                              \
        return elv_##type##_decode(in, &m->type);                                                  \
    }
CODEC(manifest)
CODEC(join)
CODEC(joined)
CODEC(refusal)
CODEC(ticket)
CODEC(progress)
CODEC(commit)
CODEC(verdict)

#define ROW(type)                                                                                  \
    {                                                                                              \
#type, type##_encode, type##_decode                                                        \
    }
const struct wire_codec wire_codecs[WIRE_CODECS] = {
    [MANIFEST] = ROW(manifest), [JOIN] = ROW(join),       [JOINED] = ROW(joined),
    [REFUSAL] = ROW(refusal),   [TICKET] = ROW(ticket),   [PROGRESS] = ROW(progress),
    [COMMIT] = ROW(commit),     [VERDICT] = ROW(verdict),
};

static struct elv_text text(const char *s) { return (struct elv_text){.at = s, .len = strlen(s)}; }

/* Bytes that show where they belong: start, start + 1, ... */
static void count_up(uint8_t *out, size_t len, unsigned start)
{
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)(start + i);
}

static void manifest(union wire_msg *m)
{
    m->manifest = (struct elv_manifest){
        .wire_min = 1,
        .wire_max = 1,
        .seed = 0x0123456789ABCDEF,
        .job = text("fashion"),
        .input = text("1x28x28"),
        .layers = text("conv 8 5x5 relu, maxpool 2, dense 10"),
        .n_params = 11738,
        .loss = ELV_LOSS_SOFTMAX_XENT,
        .optimizer = ELV_OPT_SGD,
        .momentum = 0.9f,
        .weight_decay = 0.0005f,
        .scale = 1.0f / 255,
        .mean = 0.286f,
        .std = 0.353f,
        .partition = text("dirichlet 0.5"),
        .holdout = 0.125f,
        .arithmetic = ELV_ARITHMETIC_FAST,
        .up = {{.id = ELV_CODEC_Q8}, {.id = ELV_CODEC_F32}},
        .n_up = 2,
        .down = {.id = ELV_CODEC_F32},
        .deflate = true,
        .bound = 8,
        .clip = 0,
        .weight_max = 100000,
    };
    count_up(m->manifest.run, sizeof m->manifest.run, 0x10);
    count_up(m->manifest.fingerprint, sizeof m->manifest.fingerprint, 0x40);
}

static void manifest_proximal(union wire_msg *m)
{
    manifest(m);
    m->manifest.proximal = 0.01f;
}

static void manifest_feedback(union wire_msg *m)
{
    manifest(m);
    m->manifest.feedback = ELV_FEEDBACK_F16;
    m->manifest.feedback_age = 1;
    m->manifest.momentum_correction = 0.9f;
}

static void join(union wire_msg *m)
{
    m->join = (struct elv_join){
        .wire_min = 1,
        .wire_max = 1,
        .software = text("elver/0.1.0"),
        .boot = 0xFEDCBA9876543210,
        .memory = 48u << 10,
        .speed = 250,
        .samples = 600,
        .codecs = {ELV_CODEC_Q8, ELV_CODEC_F32},
        .n_codecs = 2,
    };
    count_up(m->join.manifest, sizeof m->join.manifest, 0xA0);
}

static void joined(union wire_msg *m)
{
    m->joined = (struct elv_joined){
        .client = 7, .wire = 1, .window = 16, .jitter_ms = 2500, .codec = ELV_CODEC_Q8};
}

static void refusal(union wire_msg *m)
{
    m->refusal = (struct elv_refusal){.reason = ELV_REASON_FULL, .retry_ms = 30000};
}

static void body(struct elv_body_ref *b, unsigned start, uint32_t n_chunks, uint8_t codec)
{
    count_up(b->digest, sizeof b->digest, start);
    b->n_chunks = n_chunks;
    b->codec = codec;
}

static void ticket_train(union wire_msg *m)
{
    m->ticket = (struct elv_ticket){
        .what = ELV_WHAT_TRAIN,
        .poll_ms = 5000,
        .window = 32,
        .assignment = 12,
        .round = 5,
        .version = 4,
        .n_steps = 2,
        .local_epochs = 1,
        .batch = 32,
        .learning_rate = 0.05f,
        .up = {.id = ELV_CODEC_Q8},
        .deadline_ms = 28750,
    };
    count_up(m->ticket.manifest, sizeof m->ticket.manifest, 0xA0);
    count_up(m->ticket.model, sizeof m->ticket.model, 0x60);
    body(&m->ticket.full, 0x80, 47, ELV_CODEC_F32);
    body(&m->ticket.step[0], 0x90, 12, ELV_CODEC_Q8);
    body(&m->ticket.step[1], 0xB0, 12, ELV_CODEC_Q8);
}

static void ticket_evaluate(union wire_msg *m)
{
    ticket_train(m);
    m->ticket.what = ELV_WHAT_EVALUATE;
    m->ticket.version = 0;
    m->ticket.full = (struct elv_body_ref){0};
    m->ticket.n_steps = 0;
    memset(m->ticket.step, 0, sizeof m->ticket.step);
    m->ticket.local_epochs = 0;
    m->ticket.batch = 0;
    m->ticket.learning_rate = 0;
    m->ticket.up = (struct elv_codec_choice){0};
}

static void ticket_wait(union wire_msg *m)
{
    m->ticket = (struct elv_ticket){.what = ELV_WHAT_WAIT, .poll_ms = 1500, .window = 8};
    count_up(m->ticket.manifest, sizeof m->ticket.manifest, 0xA0);
}

static void ticket_wait_newest(union wire_msg *m)
{
    ticket_wait(m);
    m->ticket.newest = 300;
}

static void ticket_stop(union wire_msg *m)
{
    ticket_wait(m);
    m->ticket.what = ELV_WHAT_STOP;
}

static void progress(union wire_msg *m)
{
    m->progress = (struct elv_progress){.missing = {.first = 300}, .window = 24};
    m->progress.missing.have[0] = 0xFE;
    m->progress.missing.have[2] = 0x01;
}

static void progress_complete(union wire_msg *m)
{
    m->progress = (struct elv_progress){.missing = {.first = 312}, .window = 24};
}

static void commit_done(union wire_msg *m)
{
    m->commit = (struct elv_commit){
        .status = ELV_STATUS_DONE,
        .nonce = 0x1122334455667788,
        .samples = 600,
        .seen = 1200,
        .steps = 38,
        .loss_sum = 1234.56789,
        .n_chunks = 12,
        .compute_ms = 5300,
        .eval = {.n = 60,
                 .loss = 40.5,
                 .n_classes = 3,
                 .support = {10, 20, 30},
                 .predicted = {15, 15, 30},
                 .correct = {9, 14, 28}},
        .user = {{text("joules"), 17.25}, {text("top5"), 59}},
        .n_user = 2,
    };
    count_up(m->commit.digest, sizeof m->commit.digest, 0xC0);
}

static void commit_evaluated(union wire_msg *m)
{
    m->commit = (struct elv_commit){
        .status = ELV_STATUS_DONE,
        .nonce = 1,
        .samples = 600,
        .compute_ms = 80,
        .eval = {.n = 60, .loss = 33.25},
    };
}

static void commit_declined(union wire_msg *m)
{
    m->commit = (struct elv_commit){
        .status = ELV_STATUS_DECLINED, .reason = ELV_REASON_BUSY, .nonce = 2, .samples = 600};
}

static void verdict_accepted(union wire_msg *m)
{
    m->verdict = (struct elv_verdict){.decision = ELV_ACCEPTED};
}

static void verdict_missing(union wire_msg *m)
{
    m->verdict = (struct elv_verdict){.decision = ELV_MISSING, .missing = {.first = 3}};
    m->verdict.missing.have[0] = 0x02;
}

static void verdict_refused(union wire_msg *m)
{
    m->verdict = (struct elv_verdict){.decision = ELV_REFUSED, .reason = ELV_REASON_ROUND_CLOSED};
}

/* Codes a few values as the chunk that starts at `first`, with the seed 1. */
static void coded_with(struct elv_chunk *c, uint8_t *payload, struct elv_codec_choice choice,
                       const float *v, uint32_t n)
{
    const struct elv_codec *codec = elv_codec_by_id(choice.id);
    struct elv_codec_arg arg = {.seed = 1, .param = choice.param};
    struct elv_codec_plan plan;
    elv_codec_plan(codec, &plan, v, n, &arg);
    c->codec = choice.id;
    if (codec->encode(v, n, 0, c->index, &arg, payload, ELV_CHUNK_PAYLOAD_MAX, &c->payload.len,
                      &c->count) != ELV_OK)
        abort();
    c->payload.at = payload;
}

static void coded(struct elv_chunk *c, uint8_t *payload, uint8_t codec, const float *v, uint32_t n)
{
    coded_with(c, payload, (struct elv_codec_choice){.id = codec}, v, n);
}

static void chunk_model_f32(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    static const float v[] = {0.0f, 1.0f, -2.5f, 0.1f};
    *c = (struct elv_chunk){.kind = ELV_BODY_MODEL, .index = 0, .first = 0};
    count_up(c->tag, sizeof c->tag, 0x80);
    coded(c, payload, ELV_CODEC_F32, v, 4);
}

static void chunk_step_q8(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    static const float v[] = {1.27f, -1.27f, 0.005f, 0.015f, 0.0f, -0.64f};
    *c = (struct elv_chunk){.kind = ELV_BODY_STEP, .index = 2, .first = 1992};
    count_up(c->tag, sizeof c->tag, 0x90);
    coded(c, payload, ELV_CODEC_Q8, v, 6);
}

static void chunk_update_full(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    float v[1000];
    for (int i = 0; i < 1000; i++)
        v[i] = (float)((i * 37) % 255 - 127) / 128.0f;
    *c = (struct elv_chunk){.kind = ELV_BODY_UPDATE, .index = 1, .first = 996};
    count_up(c->tag, sizeof c->tag, 0x88);
    coded(c, payload, ELV_CODEC_Q8, v, 1000);
}

/* A whole block, and one of 20 coordinates padded to 32. */
static void chunk_update_rotate(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    float v[276];
    for (int i = 0; i < 276; i++)
        v[i] = (float)((i * 37) % 255 - 127) / 128.0f;
    *c = (struct elv_chunk){.kind = ELV_BODY_UPDATE, .index = 0, .first = 0};
    count_up(c->tag, sizeof c->tag, 0x88);
    coded_with(c, payload, (struct elv_codec_choice){.id = ELV_CODEC_ROTATE, .param = -2}, v, 276);
}

/* Raw deflate of 5 zero bytes: what zlib writes for q8 of one zero. */
static void chunk_update_deflated(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    static const uint8_t deflated[] = {0x63, 0x60, 0x00, 0x02, 0x00};
    memcpy(payload, deflated, sizeof deflated);
    *c = (struct elv_chunk){.kind = ELV_BODY_UPDATE,
                            .codec = ELV_CODEC_Q8,
                            .flags = ELV_CHUNK_DEFLATED,
                            .index = 0,
                            .first = 0,
                            .count = 1,
                            .payload = {.at = payload, .len = sizeof deflated}};
    count_up(c->tag, sizeof c->tag, 0x88);
}

/* A whole chunk and one value more. */
static void dense(struct elv_chunk *c, uint8_t *payload, struct elv_codec_choice choice,
                  uint32_t each)
{
    float v[8000];
    for (uint32_t i = 0; i <= each; i++)
        v[i] = (float)((int32_t)(i * i % 1009) - 504) / 100.0f;
    *c = (struct elv_chunk){.kind = ELV_BODY_UPDATE, .index = 1, .first = each};
    count_up(c->tag, sizeof c->tag, 0x88);
    coded_with(c, payload, choice, v, each + 1);
}

static void chunk_update_q8_stochastic(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    dense(c, payload, (struct elv_codec_choice){ELV_CODEC_Q8, -1.0f}, 996);
}

static void chunk_update_f16(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    dense(c, payload, (struct elv_codec_choice){.id = ELV_CODEC_F16}, 500);
}

static void chunk_step_f16(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    static const float v[] = {1.0f,     -2.0f,      0.1f,       65504.0f, 1e6f,  -1e6f, 6e-5f,
                              0x1p-24f, 0x1.8p-24f, 0x1.8p-25f, 0x1p-25f, -0.0f, 0.0f};
    *c = (struct elv_chunk){.kind = ELV_BODY_STEP, .index = 2, .first = 1000};
    count_up(c->tag, sizeof c->tag, 0x90);
    coded(c, payload, ELV_CODEC_F16, v, 13);
}

static void chunk_update_q4(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    dense(c, payload, (struct elv_codec_choice){.id = ELV_CODEC_Q4}, 1992);
}

static void chunk_update_q4_stochastic(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    dense(c, payload, (struct elv_codec_choice){ELV_CODEC_Q4, -1.0f}, 1992);
}

/* An odd number of values. */
static void chunk_step_q4(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    static const float v[] = {0.07f, -0.07f, 0.005f, 0.015f, 0.0f, -0.03f, 0.02f};
    *c = (struct elv_chunk){.kind = ELV_BODY_STEP, .index = 2, .first = 3984};
    count_up(c->tag, sizeof c->tag, 0x90);
    coded(c, payload, ELV_CODEC_Q4, v, 7);
}

static void chunk_update_sign(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    dense(c, payload, (struct elv_codec_choice){.id = ELV_CODEC_SIGN}, 7968);
}

static void chunk_step_sign(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    static const float v[] = {-1, 2, -3, 4, 5, 6, 7, -8, -9, 0.0f, -0.0f};
    *c = (struct elv_chunk){.kind = ELV_BODY_STEP, .index = 2, .first = 15936};
    count_up(c->tag, sizeof c->tag, 0x90);
    coded(c, payload, ELV_CODEC_SIGN, v, 11);
}

/* More coordinates than 16 bits count. Scattered ones are Rice coded, those in clusters are range
 * coded. */
static void sparse(struct elv_chunk *c, uint8_t *payload, struct elv_codec_choice choice,
                   bool clusters)
{
    enum { N = 70000 };
    static float v[N];
    uint32_t x = 1;
    for (uint32_t i = 0; i < N; i++) {
        x = x * 1664525u + 1013904223u;
        v[i] = !clusters || i % 700 < 14 ? (float)((int32_t)x >> 8) * 0x1p-24f : 0.0f;
    }
    *c = (struct elv_chunk){.kind = ELV_BODY_UPDATE, .index = 0, .first = 0};
    count_up(c->tag, sizeof c->tag, 0x88);
    coded_with(c, payload, choice, v, N);
}

static void chunk_update_ternary(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    sparse(c, payload, (struct elv_codec_choice){ELV_CODEC_TERNARY, 0.01f}, false);
}

static void chunk_update_ternary_range(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    sparse(c, payload, (struct elv_codec_choice){ELV_CODEC_TERNARY, 0.01f}, true);
}

static void chunk_update_topk(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    sparse(c, payload, (struct elv_codec_choice){ELV_CODEC_TOPK, 0.05f}, false);
}

static void chunk_update_topk_range(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    sparse(c, payload, (struct elv_codec_choice){ELV_CODEC_TOPK, 0.01f}, true);
}

static void chunk_step_ternary(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX])
{
    static const float v[] = {0, 0, 0, 0, 0, 2.0f, 0.5f, -0.25f, 1, 1.0f, -3.0f, 0};
    *c = (struct elv_chunk){.kind = ELV_BODY_STEP, .index = 2, .first = 159000};
    count_up(c->tag, sizeof c->tag, 0x90);
    coded_with(c, payload, (struct elv_codec_choice){ELV_CODEC_TERNARY, 0.25f}, v, 12);
}

const struct wire_sample wire_samples[] = {
    {"manifest.cbor", MANIFEST, manifest, NULL},
    {"manifest-proximal.cbor", MANIFEST, manifest_proximal, NULL},
    {"manifest-feedback.cbor", MANIFEST, manifest_feedback, NULL},
    {"join.cbor", JOIN, join, NULL},
    {"joined.cbor", JOINED, joined, NULL},
    {"refusal.cbor", REFUSAL, refusal, NULL},
    {"ticket-train.cbor", TICKET, ticket_train, NULL},
    {"ticket-evaluate.cbor", TICKET, ticket_evaluate, NULL},
    {"ticket-wait.cbor", TICKET, ticket_wait, NULL},
    {"ticket-wait-newest.cbor", TICKET, ticket_wait_newest, NULL},
    {"ticket-stop.cbor", TICKET, ticket_stop, NULL},
    {"progress.cbor", PROGRESS, progress, NULL},
    {"progress-complete.cbor", PROGRESS, progress_complete, NULL},
    {"commit-done.cbor", COMMIT, commit_done, NULL},
    {"commit-evaluated.cbor", COMMIT, commit_evaluated, NULL},
    {"commit-declined.cbor", COMMIT, commit_declined, NULL},
    {"verdict-accepted.cbor", VERDICT, verdict_accepted, NULL},
    {"verdict-missing.cbor", VERDICT, verdict_missing, NULL},
    {"verdict-refused.cbor", VERDICT, verdict_refused, NULL},
    {"model-f32.chunk", -1, NULL, chunk_model_f32},
    {"step-q8.chunk", -1, NULL, chunk_step_q8},
    {"update-q8.chunk", -1, NULL, chunk_update_full},
    {"update-q8-deflated.chunk", -1, NULL, chunk_update_deflated},
    {"update-q8-stochastic.chunk", -1, NULL, chunk_update_q8_stochastic},
    {"update-f16.chunk", -1, NULL, chunk_update_f16},
    {"step-f16.chunk", -1, NULL, chunk_step_f16},
    {"update-q4.chunk", -1, NULL, chunk_update_q4},
    {"update-q4-stochastic.chunk", -1, NULL, chunk_update_q4_stochastic},
    {"step-q4.chunk", -1, NULL, chunk_step_q4},
    {"update-sign.chunk", -1, NULL, chunk_update_sign},
    {"step-sign.chunk", -1, NULL, chunk_step_sign},
    {"update-rotate.chunk", -1, NULL, chunk_update_rotate},
    {"update-ternary.chunk", -1, NULL, chunk_update_ternary},
    {"update-ternary-range.chunk", -1, NULL, chunk_update_ternary_range},
    {"update-topk.chunk", -1, NULL, chunk_update_topk},
    {"update-topk-range.chunk", -1, NULL, chunk_update_topk_range},
    {"step-ternary.chunk", -1, NULL, chunk_step_ternary},
};
const size_t wire_samples_n = sizeof wire_samples / sizeof wire_samples[0];

size_t wire_sample_bytes(const struct wire_sample *s, uint8_t *out)
{
    size_t len;
    enum elv_err err;
    if (s->codec >= 0) {
        union wire_msg m;
        memset(&m, 0, sizeof m);
        s->fill(&m);
        err = wire_codecs[s->codec].encode(&m, out, ELV_MANIFEST_MAX, &len);
    } else {
        struct elv_chunk c;
        uint8_t payload[ELV_CHUNK_PAYLOAD_MAX];
        s->fill_chunk(&c, payload);
        err = elv_chunk_encode(&c, out, ELV_CHUNK_MAX, &len);
    }
    if (err != ELV_OK)
        abort();
    return len;
}
