/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/codec.h"
#include "tests/hostile_body.h"

enum { CHUNKS_MAX = HOSTILE_CHUNKS_MAX, PER_CHUNK = 250 };

void put_tag(uint8_t *chunk, uint64_t nonce)
{
    for (unsigned i = 0; i < ELV_CHUNK_TAG_LEN; i++)
        chunk[16 + i] = (uint8_t)(nonce >> (8 * i));
}

void put_u32(uint8_t *at, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (8 * i));
}

void put_f32(uint8_t *at, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_u32(at, bits);
}

static uint8_t *value_at(struct body *b, uint32_t chunk, uint32_t i)
{
    return b->bytes[chunk] + ELV_CHUNK_HEAD_LEN + 4 * (size_t)i;
}

static void make_body(struct hostile *h, struct body *b)
{
    b->nonce = ++h->nonce;
    b->n = 0;
    for (uint32_t first = 0; first < h->n_params && b->n < CHUNKS_MAX; b->n++) {
        uint8_t *at = b->bytes[b->n];
        const uint32_t left = h->n_params - first;
        const uint32_t count = left < PER_CHUNK ? left : PER_CHUNK;
        memset(at, 0, ELV_CHUNK_HEAD_LEN);
        at[0] = ELV_BODY_UPDATE;
        at[1] = ELV_CODEC_F32;
        put_u32(at + 4, b->n);
        put_u32(at + 8, first);
        put_u32(at + 12, count);
        put_tag(at, b->nonce);
        for (uint32_t i = 0; i < count; i++)
            put_f32(value_at(b, b->n, i), 1e-6f * (float)(i % 7));
        b->len[b->n] = ELV_CHUNK_HEAD_LEN + 4 * (size_t)count;
        first += count;
    }
}

void put_chunk(struct hostile *h, struct elv_bytes chunk, uint32_t index, struct answer *a)
{
    net_ask(&(struct ask){.code = ELV_PUT,
                          .path = path_of(h, "/u/%u/%u", (unsigned)h->ticket.assignment,
                                          (unsigned)index),
                          .body = chunk,
                          .format = 42},
            a);
}

static bool put_body(struct hostile *h, const struct body *b)
{
    struct answer a;
    bool ok = true;
    for (uint32_t i = 0; i < b->n; i++) {
        put_chunk(h, (struct elv_bytes){b->bytes[i], b->len[i]}, i, &a);
        ok = ok && a.came && a.code == ELV_CODE_CHANGED;
    }
    return ok;
}

static struct elv_commit commit_of(const struct body *b)
{
    struct elv_commit c = {.status = ELV_STATUS_DONE,
                           .nonce = b->nonce,
                           .samples = 20,
                           .seen = 20,
                           .steps = 2,
                           .loss_sum = 20,
                           .n_chunks = b->n};
    struct elv_body_digest d;
    uint8_t hash[ELV_CHUNK_HASH_LEN];
    elv_body_digest_init(&d);
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->len[i] <= ELV_CHUNK_MAX && b->len[i] > ELV_CHUNK_HEAD_LEN)
            elv_chunk_hash((struct elv_bytes){b->bytes[i], b->len[i]}, hash);
        elv_body_digest_add(&d, hash);
    }
    elv_body_digest_final(&d, c.digest);
    return c;
}

static void send_commit(struct hostile *h, const struct elv_commit *c, struct answer *a)
{
    uint8_t out[ELV_MSG_MAX];
    size_t len = 0;
    check(h, "a commit to send", elv_commit_encode(c, out, sizeof out, &len) == ELV_OK);
    ask_for(path_of(h, "/u/%u", (unsigned)h->ticket.assignment), ELV_POST,
            (struct elv_bytes){out, len}, a);
}

static void expect_verdict(struct hostile *h, const char *what, const struct answer *a,
                           enum elv_decision decision, enum elv_reason reason)
{
    struct elv_verdict v = {0};
    const bool read = a->came && a->code == ELV_CODE_CHANGED &&
                      elv_verdict_decode((struct elv_bytes){a->body, a->len}, &v) == ELV_OK;
    h->n_checks++;
    if (read && v.decision == decision && v.reason == reason)
        return;
    h->n_bad++;
    fprintf(stderr, "hostile: %s: answered %u.%02u, verdict %u %s %s, not %u %s\n", what,
            a->code >> 5, a->code & 31u, (unsigned)v.decision, elv_reason_text(v.reason),
            elv_reason_text(a->reason), (unsigned)decision, elv_reason_text(reason));
}

void decline(struct hostile *h)
{
    struct answer a;
    send_commit(h,
                &(struct elv_commit){
                    .status = ELV_STATUS_DECLINED, .reason = ELV_REASON_BUSY, .nonce = ++h->nonce},
                &a);
}

struct elv_verdict try_body(struct hostile *h, const struct body *b)
{
    struct answer a;
    struct elv_verdict v = {0};
    const struct elv_commit c = commit_of(b);
    check(h, "sending an update", put_body(h, b));
    send_commit(h, &c, &a);
    if (!a.came || a.code != ELV_CODE_CHANGED ||
        elv_verdict_decode((struct elv_bytes){a.body, a.len}, &v) != ELV_OK)
        v = (struct elv_verdict){.reason = a.reason};
    return v;
}

void commit_body(struct hostile *h, const char *what, const struct body *b,
                 enum elv_decision decision, enum elv_reason reason)
{
    struct answer a;
    const struct elv_commit c = commit_of(b);
    check(h, what, put_body(h, b));
    send_commit(h, &c, &a);
    expect_verdict(h, what, &a, decision, reason);
}

/* Chunks that are refused one by one. */

struct wrong_chunk {
    const char *what;
    uint32_t at; /* which byte of the chunk ... */
    uint32_t len;
    uint32_t value; /* ... becomes what */
    uint8_t code;
    enum elv_reason reason;
};

static void bad_chunk_fields(struct hostile *h)
{
    static const struct wrong_chunk rows[] = {
        {"no kind", 0, 1, 0, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"a model", 0, 1, 1, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"a step", 0, 1, 2, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"an unknown kind", 0, 1, 255, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"no codec", 1, 1, 0, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"another codec", 1, 1, 2, ELV_CODE_BAD_REQUEST, ELV_REASON_CODEC},
        {"an unknown codec", 1, 1, 200, ELV_CODE_BAD_REQUEST, ELV_REASON_CODEC},
        {"an unknown flag", 2, 1, 2, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"the highest flag", 3, 1, 128, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"another index than the path's", 4, 4, 2, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"index 0 that starts later", 4, 4, 0, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"a later index that starts at 0", 8, 4, 0, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"a start past the end", 8, 4, 1u << 30, ELV_CODE_BAD_REQUEST, ELV_REASON_WRONG_SHAPE},
        {"a range that wraps", 8, 4, 4294967290u, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"no coordinates", 12, 4, 0, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"all coordinates there are", 12, 4, 4294967295u, ELV_CODE_BAD_REQUEST,
         ELV_REASON_MALFORMED},
        {"more coordinates than left", 12, 4, 2000, ELV_CODE_BAD_REQUEST, ELV_REASON_WRONG_SHAPE},
    };
    struct body b;
    struct answer a;
    make_body(h, &b);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t bad[ELV_CHUNK_MAX];
        memcpy(bad, b.bytes[1], b.len[1]);
        for (uint32_t k = 0; k < rows[i].len; k++)
            bad[rows[i].at + k] = (uint8_t)(rows[i].value >> (8 * k));
        put_chunk(h, (struct elv_bytes){bad, b.len[1]}, 1, &a);
        expect(h, rows[i].what, &a, rows[i].code, rows[i].reason);
    }
    uint8_t far[ELV_CHUNK_MAX];
    memcpy(far, b.bytes[1], b.len[1]);
    put_u32(far + 4, 700); /* an index past any this model could have */
    put_u32(far + 8, 750);
    put_u32(far + 12, 1);
    put_chunk(h, (struct elv_bytes){far, 28}, 700, &a);
    expect(h, "an index past the end", &a, ELV_CODE_BAD_REQUEST, ELV_REASON_WRONG_SHAPE);
}

static void bad_chunk_lengths(struct hostile *h)
{
    struct body b;
    struct answer a;
    make_body(h, &b);
    for (size_t len = 0; len <= ELV_CHUNK_HEAD_LEN; len += len < 20 ? 5 : 1) {
        put_chunk(h, (struct elv_bytes){b.bytes[0], len}, 0, &a);
        expect(h, "a chunk without a payload", &a, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED);
    }
    uint8_t big[HOSTILE_BODY_MAX] = {0};
    memcpy(big, b.bytes[0], b.len[0]);
    put_chunk(h, (struct elv_bytes){big, ELV_CHUNK_MAX + 1}, 0, &a);
    expect(h, "a chunk a byte too long", &a, ELV_CODE_TOO_LARGE, ELV_REASON_MALFORMED);
}

/* Chunks of two attempts never make one body. */
static void splice(struct hostile *h)
{
    struct body a, b;
    struct answer got;
    struct elv_verdict v = {0};
    make_body(h, &a);
    make_body(h, &b);
    check(h, "one attempt", put_body(h, &a));
    check(h, "one attempt again", put_body(h, &a));
    put_chunk(h, (struct elv_bytes){b.bytes[1], b.len[1]}, 1, &got);
    expect(h, "a chunk of the next attempt", &got, ELV_CODE_CHANGED, ELV_REASON_NONE);
    put_chunk(h, (struct elv_bytes){a.bytes[0], a.len[0]}, 0, &got);
    expect(h, "a chunk of the attempt before", &got, ELV_CODE_CONFLICT, ELV_REASON_SUPERSEDED);
    struct elv_commit c = commit_of(&a);
    send_commit(h, &c, &got);
    expect(h, "committing the attempt before", &got, ELV_CODE_CONFLICT, ELV_REASON_SUPERSEDED);
    c = commit_of(&b);
    send_commit(h, &c, &got);
    check(h, "what is missing of the next one",
          got.came && elv_verdict_decode((struct elv_bytes){got.body, got.len}, &v) == ELV_OK &&
              v.decision == ELV_MISSING && v.missing.first == 0);
    for (uint32_t i = 0; i < 60; i++) { /* starts over until its share of the log is used up */
        make_body(h, &b);
        (void)put_body(h, &b);
    }
    put_chunk(h, (struct elv_bytes){b.bytes[1], b.len[1]}, 1, &got);
    make_body(h, &b);
    put_chunk(h, (struct elv_bytes){b.bytes[1], b.len[1]}, 1, &got);
    expect(h, "starting over for ever", &got, ELV_CODE_TOO_LARGE, ELV_REASON_QUOTA);
}

void bad_chunks(struct hostile *h)
{
    if (!take_work(h))
        return;
    bad_chunk_fields(h);
    bad_chunk_lengths(h);
    splice(h);
    decline(h);

    struct body b;
    if (!take_work(h))
        return;
    make_body(h, &b);
    put_u32(b.bytes[2] + 8, 2 * PER_CHUNK - 3);
    commit_body(h, "overlapping chunks", &b, ELV_REFUSED, ELV_REASON_WRONG_SHAPE);
    if (!take_work(h))
        return;
    make_body(h, &b);
    put_u32(b.bytes[2] + 8, 2 * PER_CHUNK + 3);
    commit_body(h, "a gap between chunks", &b, ELV_REFUSED, ELV_REASON_WRONG_SHAPE);
    if (!take_work(h))
        return;
    make_body(h, &b);
    b.n--;
    commit_body(h, "the last chunk left out", &b, ELV_REFUSED, ELV_REASON_WRONG_SHAPE);
    if (!take_work(h))
        return;
    make_body(h, &b);
    b.len[0] -= 4; /* says 250, has 249 */
    commit_body(h, "a value too few", &b, ELV_REFUSED, ELV_REASON_MALFORMED);
}

void bad_values(struct hostile *h)
{
    static const struct {
        const char *what;
        float value;
        enum elv_reason reason;
    } rows[] = {
        {"not a number", NAN, ELV_REASON_NOT_FINITE},
        {"infinity", INFINITY, ELV_REASON_NOT_FINITE},
        {"minus infinity", -INFINITY, ELV_REASON_NOT_FINITE},
        {"the largest number", 3.4e38f, ELV_REASON_OUT_OF_RANGE},
        {"just beyond the bound", -8.0001f, ELV_REASON_OUT_OF_RANGE},
        {"beyond the norm", 7.9f, ELV_REASON_OVER_NORM},
        {"a denormal", 1e-42f, ELV_REASON_NONE},
    };
    struct body b;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && take_work(h); i++) {
        make_body(h, &b);
        put_f32(value_at(&b, b.n - 1, 3), rows[i].value);
        commit_body(h, rows[i].what, &b,
                    rows[i].reason == ELV_REASON_NONE ? ELV_ACCEPTED : ELV_REFUSED, rows[i].reason);
    }
}

void bad_q8(struct hostile *h)
{
    static const struct {
        const char *what;
        float scale;
        enum elv_reason reason;
    } rows[] = {
        {"the largest scale", 3.4e38f, ELV_REASON_NOT_FINITE},
        {"an infinite scale", INFINITY, ELV_REASON_NOT_FINITE},
        {"a scale that is no number", NAN, ELV_REASON_NOT_FINITE},
        {"a negative scale", -1, ELV_REASON_NOT_FINITE},
        {"a huge scale", 1e30f, ELV_REASON_OUT_OF_RANGE},
        {"no scale", 0, ELV_REASON_NONE},
    };
    struct body b = {.n = 1};
    check(h, "joining with q8", join_as(h, ++h->nonce, ELV_CODEC_Q8));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && take_work(h); i++) {
        uint8_t *at = b.bytes[0];
        memset(at, 0x7F, sizeof b.bytes[0]);
        memset(at, 0, ELV_CHUNK_HEAD_LEN);
        at[0] = ELV_BODY_UPDATE;
        at[1] = ELV_CODEC_Q8;
        put_u32(at + 12, h->n_params);
        b.nonce = ++h->nonce;
        put_tag(at, b.nonce);
        put_f32(at + ELV_CHUNK_HEAD_LEN, rows[i].scale);
        b.len[0] = ELV_CHUNK_HEAD_LEN + 4 + h->n_params;
        commit_body(h, rows[i].what, &b,
                    rows[i].reason == ELV_REASON_NONE ? ELV_ACCEPTED : ELV_REFUSED, rows[i].reason);
    }
    check(h, "joining with f32 again", join_as(h, ++h->nonce, ELV_CODEC_F32));
}

static size_t deflated(const uint8_t *in, size_t len, uint8_t *out, size_t cap)
{
    z_stream z = {0};
    if (deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    z.next_in = (uint8_t *)(uintptr_t)in;
    z.avail_in = (uInt)len;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    const int rc = deflate(&z, Z_FINISH);
    const size_t n = z.total_out;
    deflateEnd(&z);
    return rc == Z_STREAM_END ? n : 0;
}

enum trick { HONEST, TRAILING, CUT, TWICE, BOMB, PLAIN, GZIP_HEAD, N_TRICKS };

static size_t squeezed(enum trick trick, const struct body *b, uint8_t *out)
{
    static uint8_t zeros[500000];
    const uint8_t *values = b->bytes[0] + ELV_CHUNK_HEAD_LEN;
    const size_t len = b->len[0] - ELV_CHUNK_HEAD_LEN;
    size_t n = deflated(values, len, out, 900);
    switch (trick) {
    case TRAILING:
        out[n++] = 0;
        break;
    case CUT:
        n -= 2;
        break;
    case TWICE:
        memcpy(out + n, out, n);
        n *= 2;
        break;
    case BOMB:
        return deflated(zeros, sizeof zeros, out, ELV_CHUNK_PAYLOAD_MAX);
    case PLAIN:
        memcpy(out, values, len);
        return len;
    case GZIP_HEAD:
        memmove(out + 10, out, n);
        memcpy(out, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", 10);
        n += 10;
        break;
    default:
        break;
    }
    return n;
}

void bad_deflate(struct hostile *h)
{
    static const char *const names[N_TRICKS] = {
        "deflated as it should be", "bytes after the end",    "a stream cut short", "two streams",
        "half a megabyte of zeros", "a flag without deflate", "a gzip header"};
    struct body b;
    for (enum trick t = HONEST; t < N_TRICKS && take_work(h); t++) {
        uint8_t payload[HOSTILE_BODY_MAX];
        make_body(h, &b);
        const size_t n = squeezed(t, &b, payload);
        check(h, "a payload that fits", n > 0 && n <= ELV_CHUNK_PAYLOAD_MAX);
        memcpy(b.bytes[0] + ELV_CHUNK_HEAD_LEN, payload, n);
        b.len[0] = ELV_CHUNK_HEAD_LEN + n;
        b.bytes[0][2] = ELV_CHUNK_DEFLATED;
        commit_body(h, names[t], &b, t == HONEST ? ELV_ACCEPTED : ELV_REFUSED,
                    t == HONEST ? ELV_REASON_NONE : ELV_REASON_MALFORMED);
    }
}

/* Commits. */

static void commit_again(struct hostile *h, const struct elv_commit *c, enum elv_decision decision,
                         enum elv_reason reason)
{
    struct answer a;
    for (int i = 0; i < 5; i++) {
        send_commit(h, c, &a);
        expect_verdict(h, "the same commit again", &a, decision, reason);
    }
    struct elv_commit other = *c;
    other.nonce++;
    other.samples = UINT32_MAX;
    send_commit(h, &other, &a);
    expect_verdict(h, "another commit of what is decided", &a, decision, reason);
}

static void early_commit(struct hostile *h)
{
    struct body b;
    struct answer a;
    struct elv_verdict v = {0};
    make_body(h, &b);
    struct elv_commit c = commit_of(&b);
    send_commit(h, &c, &a);
    check(h, "a commit before any chunk",
          a.came && elv_verdict_decode((struct elv_bytes){a.body, a.len}, &v) == ELV_OK &&
              v.decision == ELV_MISSING && v.missing.first == 0);
    c.digest[31] ^= 1;
    check(h, "the chunks", put_body(h, &b));
    send_commit(h, &c, &a);
    expect_verdict(h, "a wrong digest", &a, ELV_REFUSED, ELV_REASON_DIGEST);
    commit_again(h, &c, ELV_REFUSED, ELV_REASON_DIGEST);
}

/* What the encoder would not write. */
static void odd_numbers(struct hostile *h)
{
    uint8_t out[ELV_MSG_MAX];
    size_t len = 0;
    struct body b;
    struct answer a;
    make_body(h, &b);
    struct elv_commit c = commit_of(&b);
    c.loss_sum = 1.5;
    check(h, "a commit", elv_commit_encode(&c, out, sizeof out, &len) == ELV_OK);
    static const uint8_t half[] = {0xf9, 0x3e, 0x00}; /* 1.5 */
    static const uint8_t odd[][3] = {{0xf9, 0x7e, 0x00}, {0xf9, 0x7c, 0x00}, {0xf9, 0xfc, 0x00}};
    for (size_t i = 0; i + 3 <= len; i++) {
        if (memcmp(out + i, half, sizeof half) != 0)
            continue;
        for (size_t k = 0; k < sizeof odd / sizeof odd[0]; k++) {
            memcpy(out + i, odd[k], sizeof odd[k]);
            ask_for(path_of(h, "/u/%u", (unsigned)h->ticket.assignment), ELV_POST,
                    (struct elv_bytes){out, len}, &a);
            expect(h, "a loss that is no number", &a, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED);
        }
        return;
    }
    check(h, "the loss in the commit", false);
}

static void claim(struct hostile *h, const char *what, void (*spoil)(struct elv_commit *c),
                  enum elv_decision decision, enum elv_reason reason)
{
    struct body b;
    struct answer a;
    if (!take_work(h))
        return;
    make_body(h, &b);
    struct elv_commit c = commit_of(&b);
    spoil(&c);
    check(h, what, put_body(h, &b));
    send_commit(h, &c, &a);
    expect_verdict(h, what, &a, decision, reason);
    commit_again(h, &c, decision, reason);
}

static void many_chunks(struct elv_commit *c) { c->n_chunks = UINT32_MAX; }
static void few_chunks(struct elv_commit *c) { c->n_chunks = 1; }
static void much(struct elv_commit *c)
{
    c->samples = c->seen = c->steps = c->compute_ms = UINT32_MAX;
    c->loss_sum = 1.7e308;
}
static void nothing(struct elv_commit *c)
{
    c->samples = c->seen = c->steps = 0;
    c->loss_sum = -1.7e308;
}
static void great_success(struct elv_commit *c)
{
    c->eval = (struct elv_eval_sums){.n = UINT32_MAX,
                                     .loss = -1.7e308,
                                     .n_classes = 3,
                                     .support = {UINT32_MAX, 0, 0},
                                     .predicted = {UINT32_MAX, 0, 0},
                                     .correct = {UINT32_MAX, 0, 0}};
}
static void other_classes(struct elv_commit *c)
{
    c->eval = (struct elv_eval_sums){.n = 10, .loss = 1, .n_classes = ELV_CLASSES_MAX};
    c->eval.support[31] = c->eval.predicted[31] = c->eval.correct[31] = 10;
}
static void own_sums(struct elv_commit *c)
{
    static const char name[] = "0123456789abcdef";
    c->n_user = ELV_USER_SUMS_MAX;
    for (uint32_t i = 0; i < c->n_user; i++)
        c->user[i] = (struct elv_user_sum){{name + i, 16 - i}, -1.7e308};
}

static void give_up(struct hostile *h)
{
    static const struct {
        enum elv_status status;
        int reason;
    } rows[] = {{ELV_STATUS_FAILED, ELV_REASON_TRAINER},
                {ELV_STATUS_FAILED, 255},
                {ELV_STATUS_DECLINED, ELV_REASON_BUSY},
                {ELV_STATUS_DECLINED, 32}};
    struct answer a;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && take_work(h); i++) {
        const struct elv_commit c = {.status = rows[i].status,
                                     .reason = (enum elv_reason)rows[i].reason,
                                     .nonce = ++h->nonce,
                                     .samples = UINT32_MAX};
        send_commit(h, &c, &a);
        expect_verdict(h, "giving up", &a, ELV_ACCEPTED, ELV_REASON_NONE);
        commit_again(h, &c, ELV_ACCEPTED, ELV_REASON_NONE);
    }
}

void bad_commits(struct hostile *h)
{
    if (!take_work(h))
        return;
    odd_numbers(h);
    early_commit(h);
    claim(h, "2^32 - 1 chunks", many_chunks, ELV_REFUSED, ELV_REASON_WRONG_SHAPE);
    claim(h, "fewer chunks than sent", few_chunks, ELV_REFUSED, ELV_REASON_WRONG_SHAPE);
    claim(h, "2^32 - 1 samples", much, ELV_ACCEPTED, ELV_REASON_NONE);
    claim(h, "no samples", nothing, ELV_ACCEPTED, ELV_REASON_NONE);
    claim(h, "a great success", great_success, ELV_ACCEPTED, ELV_REASON_NONE);
    claim(h, "classes that the model lacks", other_classes, ELV_ACCEPTED, ELV_REASON_NONE);
    claim(h, "sums of its own", own_sums, ELV_ACCEPTED, ELV_REASON_NONE);
    give_up(h);
}
