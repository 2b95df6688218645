/* SPDX-License-Identifier: Apache-2.0 */
/* The codec `rotate`: encoding a vector into payloads and decoding them, in megabytes of f32 a
 * second, beside what copying the same vector takes.
 *
 *     bench NAME FIGURE UNIT ref REFERENCE FIGURE ratio X
 *
 * By processor time of one core: other load does not count. Decoding goes window by window, as a
 * receiver does. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/codec.h"
#include "common/rng.h"
#include "tests/bench.h"

enum { N = 1 << 20, TIMES = 24, CHUNKS_MAX = N / 1500 };

static float v[N], back[N];
static uint8_t payload[CHUNKS_MAX][ELV_CHUNK_PAYLOAD_MAX];
static size_t len[CHUNKS_MAX];
static uint32_t count[CHUNKS_MAX], n_chunks;

static bool encode(const struct elv_codec *c, const struct elv_codec_arg *arg)
{
    uint32_t i = 0;
    for (uint32_t first = 0; first < N; first += count[i++])
        if (i == CHUNKS_MAX || c->encode(v, N, first, i, arg, payload[i], sizeof payload[i],
                                         &len[i], &count[i]) != ELV_OK)
            return false;
    n_chunks = i;
    return true;
}

static bool decode(const struct elv_codec *c)
{
    struct elv_decoder d;
    float *out = back;
    for (uint32_t i = 0, n; i < n_chunks; i++) {
        if (elv_decode_begin(&d, c, (struct elv_bytes){payload[i], len[i]}, count[i]) != ELV_OK)
            return false;
        for (; d.left > 0; out += n)
            if (elv_decode_next(&d, out, ELV_DECODE_MIN, &n) != ELV_OK)
                return false;
    }
    return true;
}

/* Mean square error over mean square. */
static double error(void)
{
    double wrong = 0, all = 0;
    for (uint32_t i = 0; i < N; i++) {
        wrong += ((double)v[i] - (double)back[i]) * ((double)v[i] - (double)back[i]);
        all += (double)v[i] * (double)v[i];
    }
    return wrong / all;
}

/* Seconds for a copy of the vector. */
static double copy(void)
{
    const double from = bench_now_s();
    for (int t = 0; t < TIMES; t++) {
        v[t] += 0x1p-20f; /* no copy is like the one before */
        memcpy(back, v, sizeof v);
    }
    return (bench_now_s() - from) / TIMES;
}

static void line(const char *what, int bits, double took, double copied)
{
    const double mb = sizeof v * 1e-6;
    printf("bench rotate_%d_%s %.0f MB/s ref memcpy %.0f ratio %.3f\n", bits, what, mb / took,
           mb / copied, copied / took);
}

static bool bench(int bits, double error_max)
{
    const struct elv_codec *c = elv_codec_by_id(ELV_CODEC_ROTATE);
    const struct elv_codec_arg arg = {.seed = 1, .param = (float)bits};
    if (!encode(c, &arg) || !decode(c) || error() > error_max) {
        printf("rotate %d does not give back what went in: error %g\n", bits, error());
        return false;
    }
    double from = bench_now_s();
    for (int t = 0; t < TIMES; t++)
        encode(c, &arg);
    const double coded = (bench_now_s() - from) / TIMES;
    from = bench_now_s();
    for (int t = 0; t < TIMES; t++)
        decode(c);
    const double decoded = (bench_now_s() - from) / TIMES, copied = copy();
    line("encode", bits, coded, copied);
    line("decode", bits, decoded, copied);
    return true;
}

int main(void)
{
    static const double error_max[] = {0.3634, 0.1175, 0.03454, 0.009497};
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = 1, .purpose = ELV_RNG_TEST});
    for (uint32_t i = 0; i < N; i++)
        v[i] = elv_rng_normal(&r) * 0.01f;
    for (int bits = 1; bits <= 4; bits++)
        if (!bench(bits, error_max[bits - 1] * 1.01))
            return 1;
    return 0;
}
