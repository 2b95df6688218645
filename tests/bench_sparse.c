/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench_sparse.c - what the codecs that leave most coordinates out need: bytes and time.
 *
 *     bench NAME FIGURE UNIT ref REFERENCE FIGURE ratio X
 *
 * Bytes of payload stand beside the entropy of a vector of n coordinates of which k are coded with
 * a sign each, n (H(k/n) + k/n) bits, and one binary32; chunk headers are counted apart. Speed is
 * in bytes of binary32 on one core, planning included, beside a copy of the same bytes. Figures of
 * time are medians over short blocks, by processor time. Fails when `ternary` is more than 5 %
 * above the entropy, or anything decodes to something else. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/select_top.h"
#include "kernels/kernels.h"
#include "ports/zlib/squeeze.h"
#include "tests/bench.h"
#include "tests/codec_cases.h"

enum { BLOCKS = 7, N_MAX = 1000000, CHUNKS_MAX = N_MAX / 100 };

struct body {
    const struct elv_codec *codec;
    struct elv_codec_arg arg;
    struct elv_codec_plan plan;
    uint32_t n;
    float *v, *back;   /* [N_MAX] */
    int64_t *sum;      /* [N_MAX] */
    uint8_t *payloads; /* one after the other, ELV_CHUNK_PAYLOAD_MAX apart */
    size_t len[CHUNKS_MAX];
    uint32_t count[CHUNKS_MAX], n_chunks;
};

static struct body body;

static void stop(const char *what)
{
    fprintf(stderr, "%s %s is wrong\n", body.codec->name, what);
    exit(1);
}

/* Median in GB/s of binary32. */
static double rate(void (*work)(void))
{
    double v[BLOCKS];
    work();
    const unsigned turns = 1 + 4 * N_MAX / body.n;
    for (unsigned k = 0; k < BLOCKS; k++) {
        const double from = bench_now_s();
        for (unsigned i = 0; i < turns; i++)
            work();
        v[k] = 4e-9 * body.n * turns / (bench_now_s() - from);
    }
    return bench_median(v, BLOCKS);
}

static void copy(void) { memcpy(body.back, body.v, body.n * sizeof *body.v); }

static void plan(void) { elv_codec_plan(body.codec, &body.plan, body.v, body.n, &body.arg); }

static void encode(void)
{
    plan();
    body.n_chunks = 0;
    for (uint32_t first = 0; first < body.n; body.n_chunks++) {
        const uint32_t i = body.n_chunks;
        if (body.codec->encode(body.v, body.n, first, i, &body.arg,
                               body.payloads + (size_t)i * ELV_CHUNK_PAYLOAD_MAX,
                               ELV_CHUNK_PAYLOAD_MAX, &body.len[i], &body.count[i]) != ELV_OK)
            stop("encoding");
        first += body.count[i];
    }
}

static struct elv_bytes payload(uint32_t i)
{
    return (struct elv_bytes){body.payloads + (size_t)i * ELV_CHUNK_PAYLOAD_MAX, body.len[i]};
}

/* Into windows, and from there into sums, as a server does. */
static void fold(void)
{
    enum { WINDOW = 4096 };
    static float window[WINDOW];
    uint32_t first = 0;
    for (uint32_t i = 0; i < body.n_chunks; i++) {
        struct elv_decoder d;
        enum elv_err err = elv_decode_begin(&d, body.codec, payload(i), body.count[i]);
        for (uint32_t n; err == ELV_OK && d.left > 0; first += n) {
            err = elv_decode_next(&d, window, WINDOW, &n);
            const struct elv_view view = {
                .kind = ELV_VIEW_F32, .values = window, .first = first, .n = n, .weight = 1};
            elv_kernels_best()->fold(body.sum, &view, 1, 20);
        }
        if (err != ELV_OK)
            stop("decoding");
    }
}

static void check(void)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < body.n_chunks; first += body.count[i++]) {
        if (elv_codec_decode(body.codec, payload(i), body.count[i], body.back + first) != ELV_OK)
            stop("decoding");
        const struct codec_trial t = {&body.arg, body.v,        body.n,
                                      first,     body.count[i], body.back + first};
        if (!codec_case_of(body.codec->id)->holds(&t))
            stop("what came back");
    }
    if (first != body.n || body.n_chunks > body.codec->chunks_max(body.n, &body.arg))
        stop("number of chunks");
}

/* Of chunks that are deflated where that makes them shorter. */
static size_t deflated_len(void)
{
    struct elv_zlib *zlib;
    if (elv_zlib_open(&zlib) != ELV_OK)
        exit(1);
    const struct elv_squeeze s = elv_zlib_squeeze(zlib);
    size_t sum = 0;
    for (uint32_t i = 0; i < body.n_chunks; i++) {
        uint8_t out[ELV_CHUNK_PAYLOAD_MAX];
        size_t len;
        const bool shorter = s.deflate(s.self, out, body.len[i] - 1, payload(i), &len) == ELV_OK;
        sum += shorter ? len : body.len[i];
    }
    elv_zlib_close(zlib);
    return sum;
}

static float laplace(struct elv_rng *r)
{
    const float u = elv_rng_unit(r) - 0.5f;
    const float size = -logf(1.0f - 2.0f * fabsf(u) + 0x1p-25f);
    return u < 0 ? -size : size;
}

/* Independent normal values, independent ones with heavy tails, and those of layers of which one
 * learns more than another and some inputs are never there. */
static void fill(const char *kind, uint32_t n)
{
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = 7, .round = n});
    body.n = n;
    float scale = 1.0f;
    for (uint32_t i = 0; i < n; i++) {
        if (i % 784 == 0)
            scale = expf(elv_rng_normal(&r));
        const float v = kind[0] == 'n' ? elv_rng_normal(&r) : laplace(&r);
        const float off = kind[0] == 'u' && i % 28 < 4 ? 0.0f : 1.0f;
        body.v[i] = 0.01f * v * (kind[0] == 'u' ? scale * off : 1.0f);
    }
}

static double entropy_bytes(uint32_t n, double k)
{
    const double p = k / n;
    return (n * (-p * log2(p) - (1 - p) * log2(1 - p) + p) + 32) / 8;
}

static void begin(const char *codec, float fraction)
{
    body.codec = elv_codec_by_name(codec, strlen(codec));
    body.arg = (struct elv_codec_arg){.param = fraction};
    encode();
    check();
}

static void bench_bytes(const char *kind, uint32_t n, float fraction)
{
    fill(kind, n);
    begin("ternary", fraction);
    size_t len = 0;
    for (uint32_t i = 0; i < body.n_chunks; i++)
        len += body.len[i];
    const double least = entropy_bytes(n, elv_select_count(fraction, n));
    printf("bench ternary_%g_%s_%u %zu bytes ref entropy %.1f ratio %.4f\n", (double)fraction, kind,
           (unsigned)n, len, least, (double)len / least);
    const size_t all = len + body.n_chunks * ELV_CHUNK_HEAD_LEN;
    printf("bench ternary_%g_%s_%u_chunks %zu bytes ref f32 %u ratio %.1f\n", (double)fraction,
           kind, (unsigned)n, all, 4 * (unsigned)n, 4.0 * n / (double)all);
    if (fraction == 0.01f)
        printf("bench ternary_%g_%s_%u_deflated %zu bytes ref payload %zu ratio %.4f\n",
               (double)fraction, kind, (unsigned)n, deflated_len(), len,
               (double)deflated_len() / (double)len);
}

static void bench_speed(const char *codec, const char *kind, uint32_t n, float fraction)
{
    fill(kind, n);
    begin(codec, fraction);
    const double memory = rate(copy), planned = rate(plan), in = rate(encode), out = rate(fold);
    printf("bench plan_%s_%g_%s %.3g GB/s ref memcpy %.3g ratio %.2f\n", codec, (double)fraction,
           kind, planned, memory, planned / memory);
    printf("bench encode_%s_%g_%s %.3g GB/s ref memcpy %.3g ratio %.2f\n", codec, (double)fraction,
           kind, in, memory, in / memory);
    printf("bench decode_fold_%s_%g_%s %.3g GB/s ref memcpy %.3g ratio %.2f\n", codec,
           (double)fraction, kind, out, memory, out / memory);
}

int main(void)
{
    static const char *const kinds[] = {"normal", "laplace", "update"};
    static const float fractions[] = {0.001f, 0.01f, 0.05f};
    static const uint32_t sizes[] = {20000, 159010, 1000000};
    body.v = bench_block(N_MAX * sizeof *body.v);
    body.back = bench_block(N_MAX * sizeof *body.back);
    body.sum = bench_block(N_MAX * sizeof *body.sum);
    body.payloads = bench_block((size_t)CHUNKS_MAX * ELV_CHUNK_PAYLOAD_MAX);
    for (int i = 0; i < 27; i++)
        bench_bytes(kinds[i / 9], sizes[i / 3 % 3], fractions[i % 3]);
    for (int i = 0; i < 9; i++) {
        bench_speed("ternary", kinds[i / 3], 1000000, fractions[i % 3]);
        bench_speed("topk", kinds[i / 3], 1000000, fractions[i % 3]);
    }
    free(body.v);
    free(body.back);
    free(body.sum);
    free(body.payloads);
    return 0;
}
