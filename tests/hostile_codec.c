/* SPDX-License-Identifier: Apache-2.0 */
/* Updates that no encoder writes, in every codec of the job. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/codec.h"
#include "common/rng.h"
#include "tests/hostile_body.h"

enum { VALUES_MAX = 4096, FIRST_AT = 8, COUNT_AT = 12 };

static float param_of(const struct elv_codec *codec)
{
    if (codec->param_max <= 0.0f)
        return 0.0f;
    return codec->param_min >= 1.0f ? 2.0f : 0.05f;
}

/* The head of chunk `index`, which covers [first, first + count). */
static void put_head(struct body *b, const struct elv_codec *codec, uint32_t index, uint32_t first,
                     uint32_t count)
{
    uint8_t *at = b->bytes[index];
    memset(at, 0, ELV_CHUNK_HEAD_LEN);
    at[0] = ELV_BODY_UPDATE;
    at[1] = codec->id;
    put_u32(at + 4, index);
    put_u32(at + FIRST_AT, first);
    put_u32(at + COUNT_AT, count);
    put_tag(at, b->nonce);
}

static void make_coded(struct hostile *h, const struct elv_codec *codec, struct body *b)
{
    static float v[VALUES_MAX];
    static struct elv_codec_plan plan;
    struct elv_codec_arg arg = {.seed = 1, .param = param_of(codec)};
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = 3});
    for (uint32_t i = 0; i < h->n_params; i++)
        v[i] = 0.001f * elv_rng_normal(&r);
    elv_codec_plan(codec, &plan, v, h->n_params, &arg);
    b->nonce = ++h->nonce;
    b->n = 0;
    for (uint32_t first = 0, count; first < h->n_params; first += count, b->n++) {
        size_t len = 0;
        const enum elv_err err =
            codec->encode(v, h->n_params, first, b->n, &arg, b->bytes[b->n] + ELV_CHUNK_HEAD_LEN,
                          ELV_CHUNK_PAYLOAD_MAX, &len, &count);
        check(h, "encoding", err == ELV_OK && b->n + 1 < HOSTILE_CHUNKS_MAX);
        put_head(b, codec, b->n, first, count);
        b->len[b->n] = ELV_CHUNK_HEAD_LEN + len;
    }
}

static bool is_dense(const struct elv_codec *codec) { return !elv_codec_is_sparse(codec); }

/* All that decides is that it is refused, and for what it is. */
static void expect_refused(struct hostile *h, const struct elv_codec *codec, const char *what,
                           const struct body *b)
{
    char text[96];
    const struct elv_verdict v = try_body(h, b);
    snprintf(text, sizeof text, "%s: %s (%s)", codec->name, what, elv_reason_text(v.reason));
    check(h, text,
          v.decision == ELV_REFUSED &&
              (v.reason == ELV_REASON_MALFORMED || v.reason == ELV_REASON_NOT_FINITE ||
               v.reason == ELV_REASON_OUT_OF_RANGE || v.reason == ELV_REASON_OVER_NORM ||
               v.reason == ELV_REASON_WRONG_SHAPE));
}

static void spoil_payload(struct hostile *h, const struct elv_codec *codec)
{
    static const float heads[] = {NAN, -1.0f};
    struct body b;
    make_coded(h, codec, &b);
    commit_body(h, codec->name, &b, ELV_ACCEPTED, ELV_REASON_NONE);
    if (!take_work(h))
        return;
    make_coded(h, codec, &b);
    b.bytes[b.n - 1][b.len[b.n - 1]++] = 0xA5;
    expect_refused(h, codec, "bytes after the last value", &b);
    if (!take_work(h))
        return;
    make_coded(h, codec, &b);
    b.len[0] = ELV_CHUNK_HEAD_LEN + 1;
    expect_refused(h, codec, "a payload of one byte", &b);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0] && take_work(h); i++) {
        make_coded(h, codec, &b);
        if (codec->id == ELV_CODEC_F16) {                /* it has no head: as a value */
            b.bytes[0][ELV_CHUNK_HEAD_LEN] = (uint8_t)i; /* infinite, no number */
            b.bytes[0][ELV_CHUNK_HEAD_LEN + 1] = 0x7C;
        } else {
            put_f32(b.bytes[0] + ELV_CHUNK_HEAD_LEN, heads[i]);
        }
        expect_refused(h, codec, "a magnitude that cannot be", &b);
    }
}

/* What a chunk says that it covers. */
static void spoil_ranges(struct hostile *h, const struct elv_codec *codec)
{
    struct body b;
    struct answer a;
    if (!take_work(h))
        return;
    make_coded(h, codec, &b);
    static const uint32_t counts[] = {0x7FFFFFFFu, 0xFFFFFFFFu, 1u << 20};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        put_u32(b.bytes[0] + COUNT_AT, counts[i]);
        put_chunk(h, (struct elv_bytes){b.bytes[0], b.len[0]}, 0, &a);
        check(h, "a chunk of billions", a.came && a.code == ELV_CODE_BAD_REQUEST);
    }
    /* The same coordinates, nearly all of them, as often as there may be chunks. */
    make_coded(h, codec, &b);
    const size_t len = b.len[0];
    for (b.n = 1; b.n < 3; b.n++) {
        memcpy(b.bytes[b.n], b.bytes[0], len);
        put_head(&b, codec, b.n, 1, h->n_params - 1);
        b.len[b.n] = len;
        put_chunk(h, (struct elv_bytes){b.bytes[b.n], len}, b.n, &a);
        if (a.code == ELV_CODE_BAD_REQUEST) /* more chunks than this codec ever makes */
            break;
    }
    if (b.n > 1)
        expect_refused(h, codec, "all coordinates twice", &b);
    else
        decline(h);
    if (!take_work(h))
        return;
    make_coded(h, codec, &b);
    put_u32(b.bytes[0] + COUNT_AT, h->n_params - (is_dense(codec) ? 1 : 7));
    b.n = 1;
    expect_refused(h, codec, "the end left out", &b);
}

void bad_codecs(struct hostile *h)
{
    check(h, "a model of few values", h->n_params <= VALUES_MAX);
    for (size_t i = 0; i < elv_codec_count(); i++) {
        const struct elv_codec *codec = elv_codec_at(i);
        if (codec->id == ELV_CODEC_F32 || codec->id == ELV_CODEC_Q8)
            continue; /* they have groups of their own */
        check(h, "joining with another codec", join_as(h, ++h->nonce, codec->id));
        if (!take_work(h))
            return;
        spoil_payload(h, codec);
        spoil_ranges(h, codec);
    }
    check(h, "joining with f32 again", join_as(h, ++h->nonce, ELV_CODEC_F32));
}
