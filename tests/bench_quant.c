/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the codecs with a fixed number of bits per coordinate encode and decode, on one core.
 *
 *     bench NAME FIGURE UNIT ref REFERENCE FIGURE ratio X
 *
 * Counted in bytes of binary32, chunk by chunk as updates travel; the reference copies the same
 * bytes from memory to memory. Figures are medians over short blocks, by processor time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "tests/bench.h"
#include "tests/codec_cases.h"

enum { BLOCKS = 7, N = 1 << 20, CHUNKS_MAX = N / 250 + 1 };

struct body {
    const struct elv_codec *codec;
    struct elv_codec_arg arg;
    float *v, *back;   /* [N] */
    uint8_t *payloads; /* one after the other, ELV_CHUNK_PAYLOAD_MAX apart */
    size_t len[CHUNKS_MAX];
    uint32_t count[CHUNKS_MAX], n_chunks;
};

/* Median in GB/s of binary32. */
static double rate(void (*work)(struct body *), struct body *b)
{
    double v[BLOCKS];
    work(b);
    for (unsigned k = 0; k < BLOCKS; k++) {
        enum { TURNS = 8 };
        const double from = bench_now_s();
        for (unsigned i = 0; i < TURNS; i++)
            work(b);
        v[k] = 4e-9 * N * TURNS / (bench_now_s() - from);
    }
    return bench_median(v, BLOCKS);
}

static void copy(struct body *b) { memcpy(b->back, b->v, N * sizeof *b->v); }

static void encode(struct body *b)
{
    b->n_chunks = 0;
    for (uint32_t first = 0; first < N; b->n_chunks++) {
        const uint32_t i = b->n_chunks;
        if (b->codec->encode(b->v, N, first, i, &b->arg,
                             b->payloads + (size_t)i * ELV_CHUNK_PAYLOAD_MAX, ELV_CHUNK_PAYLOAD_MAX,
                             &b->len[i], &b->count[i]) != ELV_OK)
            exit(1);
        first += b->count[i];
    }
}

static void decode(struct body *b)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < b->n_chunks; first += b->count[i++]) {
        const struct elv_bytes in = {b->payloads + (size_t)i * ELV_CHUNK_PAYLOAD_MAX, b->len[i]};
        if (elv_codec_decode(b->codec, in, b->count[i], b->back + first) != ELV_OK)
            exit(1);
    }
}

static bool right(const struct body *b)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < b->n_chunks; first += b->count[i++]) {
        const struct codec_trial t = {&b->arg, b->v, N, first, b->count[i], b->back + first};
        if (!codec_case_of(b->codec->id)->holds(&t))
            return false;
    }
    return first == N;
}

static void bench(struct body *b, const char *name, float param)
{
    b->codec = elv_codec_by_name(name, strlen(name));
    b->arg = (struct elv_codec_arg){.seed = 1, .param = param};
    encode(b);
    decode(b);
    if (!right(b)) {
        fprintf(stderr, "%s is wrong\n", name);
        exit(1);
    }
    const char *how = param < 0 ? "_stochastic" : "";
    const double memory = rate(copy, b);
    const double in = rate(encode, b), out = rate(decode, b);
    printf("bench encode_%s%s %.3g GB/s ref memcpy %.3g ratio %.2f\n", name, how, in, memory,
           in / memory);
    printf("bench decode_%s%s %.3g GB/s ref memcpy %.3g ratio %.2f\n", name, how, out, memory,
           out / memory);
}

int main(void)
{
    static struct body b;
    b.v = bench_block(N * sizeof *b.v);
    b.back = bench_block(N * sizeof *b.back);
    b.payloads = bench_block((size_t)CHUNKS_MAX * ELV_CHUNK_PAYLOAD_MAX);
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = 1});
    for (uint32_t i = 0; i < N; i++)
        b.v[i] = elv_rng_normal(&r) * 0.01f;
    bench(&b, "f32", 0);
    bench(&b, "f16", 0);
    bench(&b, "q8", 0);
    bench(&b, "q8", -1);
    bench(&b, "q4", 0);
    bench(&b, "q4", -1);
    bench(&b, "sign", 0);
    free(b.v);
    free(b.back);
    free(b.payloads);
    return 0;
}
