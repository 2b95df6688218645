/* SPDX-License-Identifier: Apache-2.0 */
#include "common/codec_rotate.h"

#include <math.h>
#include <string.h>

#include "common/assert.h"
#include "common/rng.h"

enum {
    HEAD_LEN = 4,
    SCALE_LEN = 2,
    ROW = 8,            /* coordinates that share a byte of a plane */
    BLOCK = 256,        /* coordinates of a block but for a chunk's last */
    BITS_MAX = 4,       /* per coordinate */
    SCALE_MAX = 0x7A00, /* upper half of 2^117: 256 levels of at most 2.74 times that are finite */
    SCALE_MIN = 0x0D80, /* of 2^-100; smaller ones are written as 0 */
};

static const float levels[BITS_MAX][8] = {
    {0.797884561f},
    {0.452780035f, 1.51041761f},
    {0.245094179f, 0.756005281f, 1.34390928f, 2.15194570f},
    {0.12839503f, 0.388048299f, 0.656759119f, 0.942340456f, 1.2562312f, 1.61804639f, 2.06901723f,
     2.73258957f},
};
static const float thresholds[BITS_MAX][7] = {
    {0},
    {0.981598822f},
    {0.50054973f, 1.04995728f, 1.74792749f},
    {0.258221665f, 0.522403709f, 0.799549788f, 1.09928583f, 1.43713879f, 1.84353181f, 2.4008034f},
};

const float *elv_rotate_levels(uint32_t bits) { return levels[bits - 1]; }
const float *elv_rotate_thresholds(uint32_t bits) { return thresholds[bits - 1]; }

/* How a payload begins: 30 bits that the signs are made of, and the bits per coordinate less 1. */
struct head {
    uint32_t key, bits;
};

static uint32_t bits_of(const struct elv_codec_arg *arg)
{
    const float number = arg->param < 0.0f ? -arg->param : arg->param;
    return number < 2.0f ? 1 : number >= (float)BITS_MAX ? BITS_MAX : (uint32_t)number;
}

/* A chunk has a rotation of its own. */
static struct head head_of(const struct elv_codec_arg *arg, uint32_t index)
{
    struct elv_rng r = elv_rng_of((struct elv_rng_key){
        .seed = arg->seed, .client = index, .round = ELV_CODEC_ROTATE, .purpose = ELV_RNG_CODEC});
    return (struct head){.key = elv_rng_u32(&r) >> 2, .bits = bits_of(arg)};
}

static size_t block_len(uint32_t n, uint32_t bits) { return SCALE_LEN + (size_t)n / ROW * bits; }

/* A block of `n` coordinates is this long: padded with zeros to a power of two. */
static uint32_t padded(uint32_t n)
{
    uint32_t len = ROW;
    while (len < n)
        len *= 2;
    return len;
}

/* How many of `left` coordinates fit: whole blocks, then the largest block that still does. */
static uint32_t fitting(uint32_t left, uint32_t bits, size_t cap)
{
    if (cap < HEAD_LEN)
        return 0;
    const size_t whole = (cap - HEAD_LEN) / block_len(BLOCK, bits);
    if (whole >= left / BLOCK + 1)
        return left;
    const size_t room = cap - HEAD_LEN - whole * block_len(BLOCK, bits);
    uint32_t last = BLOCK / 2;
    while (last >= ROW && block_len(last, bits) > room)
        last /= 2;
    const uint32_t fit = (uint32_t)whole * BLOCK + (last < ROW ? 0 : last);
    return left < fit ? left : fit;
}

static uint32_t chunks_max(uint32_t n, const struct elv_codec_arg *arg)
{
    const uint32_t full = fitting(UINT32_MAX, bits_of(arg), ELV_CHUNK_PAYLOAD_MAX);
    return n / full + (n % full != 0);
}

/* Flips the signs of x[n] that the stream of (key, block) says, n a multiple of 8. Coordinate
 * 8 k + l takes bit 31 - k of word l: vectors of coordinates take vectors of words. */
static void flip(float *x, uint32_t n, uint32_t key, uint32_t block)
{
    uint32_t w[ROW];
    for (uint32_t half = 0; half < 2; half++)
        elv_philox(w + (size_t)half * 4, (const uint32_t[4]){half, block, 0, 0},
                   (const uint32_t[2]){key, ELV_CODEC_ROTATE});
    for (uint32_t i = 0; i < n; i += ROW) {
        uint32_t v[ROW];
        memcpy(v, x + i, sizeof v);
        for (uint32_t l = 0; l < ROW; l++)
            v[l] ^= w[l] & 0x80000000u;
        for (uint32_t l = 0; l < ROW; l++)
            w[l] <<= 1;
        memcpy(x + i, v, sizeof v);
    }
}

/* The transform of eight neighbours. */
static void eight(float x[ROW])
{
    const float a[ROW] = {x[0] + x[4], x[1] + x[5], x[2] + x[6], x[3] + x[7],
                          x[0] - x[4], x[1] - x[5], x[2] - x[6], x[3] - x[7]};
    const float b[ROW] = {a[0] + a[2], a[1] + a[3], a[0] - a[2], a[1] - a[3],
                          a[4] + a[6], a[5] + a[7], a[4] - a[6], a[5] - a[7]};
    for (uint32_t l = 0; l < ROW; l += 2) {
        x[l] = b[l] + b[l + 1];
        x[l + 1] = b[l] - b[l + 1];
    }
}

static void pair(float *restrict a, float *restrict b)
{
    for (uint32_t l = 0; l < ROW; l++) {
        const float x = a[l], y = b[l];
        a[l] = x + y;
        b[l] = x - y;
    }
}

/* Hadamard transform, natural order, without normalisation: twice is n times the vector. */
static void transform(float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += ROW)
        eight(x + i);
    for (uint32_t h = ROW; h < n; h *= 2)
        for (uint32_t i = 0; i < n; i += 2 * h)
            for (uint32_t j = i; j < i + h; j += ROW)
                pair(x + j, x + j + h);
}

/* Sum of a[i] * b[i], eight partial sums and then those. */
static float dot(const float *a, const float *b, uint32_t n)
{
    float s[ROW] = {0};
    for (uint32_t i = 0; i < n; i += ROW)
        for (uint32_t l = 0; l < ROW; l++)
            s[l] += a[i + l] * b[i + l];
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

/* The exponent of the largest magnitude, as binary32 has it. */
static uint32_t exponent_of(const float *v, uint32_t n)
{
    int32_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, v + i, sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    return (uint32_t)most >> 23;
}

static float power_of_two(uint32_t exponent)
{
    const uint32_t bits = exponent << 23;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* code[i] = magnitude's level, plus 2^(bits - 1) when y[i] is negative. Counts the thresholds that
 * lie below: no branches, for the sake of vectors. */
static void choose(const float *y, uint32_t n, float sigma, uint32_t bits, uint8_t *code)
{
    uint32_t sum[BLOCK];
    for (uint32_t i = 0; i < n; i++)
        sum[i] = (uint32_t)(y[i] < 0.0f) << (bits - 1);
    for (uint32_t t = 0; t + 1 < 1u << (bits - 1); t++) {
        const float above = thresholds[bits - 1][t] * sigma;
        for (uint32_t i = 0; i < n; i++)
            sum[i] += fabsf(y[i]) > above;
    }
    for (uint32_t i = 0; i < n; i++)
        code[i] = (uint8_t)sum[i];
}

static void look_up(const uint8_t *code, uint32_t n, uint32_t bits, float *out)
{
    float table[2 << (BITS_MAX - 1)];
    const uint32_t half = 1u << (bits - 1);
    for (uint32_t i = 0; i < half; i++) {
        table[i] = levels[bits - 1][i];
        table[half + i] = -levels[bits - 1][i];
    }
    for (uint32_t i = 0; i < n; i++)
        out[i] = table[code[i]];
}

/* Eight codes at a time: multiplying gathers bit p of eight bytes in the highest byte, or spreads
 * the bits of one over eight. */
static const uint64_t ones = 0x0101010101010101u;

static void pack(const uint8_t *code, uint32_t n, uint32_t bits, uint8_t *out)
{
    for (uint32_t k = 0; k < n / ROW; k++) {
        uint64_t eight_codes = 0;
        for (uint32_t l = 0; l < ROW; l++)
            eight_codes |= (uint64_t)code[ROW * k + l] << (8 * l);
        for (uint32_t p = 0; p < bits; p++)
            out[(size_t)n / ROW * p + k] =
                (uint8_t)((((eight_codes >> p) & ones) * 0x0102040810204080u) >> 56);
    }
}

static void unpack(const uint8_t *in, uint32_t n, uint32_t bits, uint8_t *code)
{
    for (uint32_t k = 0; k < n / ROW; k++) {
        uint64_t eight_codes = 0;
        for (uint32_t p = 0; p < bits; p++) {
            const uint64_t each = (in[(size_t)n / ROW * p + k] * ones) & 0x8040201008040201u;
            eight_codes |= (((each + 0x7F7F7F7F7F7F7F7Fu) >> 7) & ones) << p;
        }
        for (uint32_t l = 0; l < ROW; l++)
            code[ROW * k + l] = (uint8_t)(eight_codes >> (8 * l));
    }
}

/* To the upper half of a binary32, nearest, ties to even; `f` is not negative. */
static uint16_t short_scale(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    return bits > SCALE_MAX ? SCALE_MAX : bits < SCALE_MIN ? 0 : (uint16_t)bits;
}

/* Machines that take subnormal numbers for 0 have to come to the same sums. */
static float without_dust(float x) { return x < 0x1p-100f && x > -0x1p-100f ? 0.0f : x; }

/* One block of `taken` coordinates, padded to `n`. `out` holds what block_len says. */
static void encode_block(const float *v, uint32_t taken, uint32_t n, uint32_t block, struct head h,
                         bool unbiased, uint8_t *out)
{
    float y[BLOCK] = {0}, c[BLOCK];
    uint8_t code[BLOCK] = {0};
    uint16_t scale = 0;
    /* A power of two brings the largest magnitude into [1, 4): no square is lost or infinite. */
    const uint32_t exponent = exponent_of(v, taken), e = exponent < 253 ? exponent : 253;
    if (e >= 127 - 100) {
        const float unit = power_of_two(254 - e);
        for (uint32_t i = 0; i < taken; i++)
            y[i] = without_dust(v[i] * unit);
        flip(y, n, h.key, block);
        transform(y, n);
        const float yy = dot(y, y, n);
        choose(y, n, sqrtf(yy / (float)n), h.bits, code);
        look_up(code, n, h.bits, c);
        const float yc = dot(y, c, n);
        const float s = unbiased ? yy / yc : yc / dot(c, c, n);
        scale = short_scale(s / (float)n * power_of_two(e));
    }
    struct elv_wr w = elv_wr_of(out, SCALE_LEN);
    elv_wr_u16(&w, scale);
    if (scale == 0)
        memset(code, 0, sizeof code);
    pack(code, n, h.bits, out + SCALE_LEN);
}

static enum elv_err encode(const float *v, uint32_t n, uint32_t first, uint32_t index,
                           const struct elv_codec_arg *arg, uint8_t *out, size_t cap, size_t *len,
                           uint32_t *count)
{
    ELV_ASSERT(first < n);
    const struct head h = head_of(arg, index);
    const uint32_t taken = fitting(n - first, h.bits, cap);
    if (taken == 0)
        return ELV_ERR_SPACE;
    struct elv_wr w = elv_wr_of(out, cap);
    elv_wr_u32(&w, h.key << 2 | (h.bits - 1));
    size_t at = HEAD_LEN;
    for (uint32_t done = 0; done < taken; done += BLOCK) {
        const uint32_t some = taken - done < BLOCK ? taken - done : BLOCK, size = padded(some);
        encode_block(v + first + done, some, size, done / BLOCK, h, arg->param < 0.0f, out + at);
        at += block_len(size, h.bits);
    }
    *len = at;
    *count = taken;
    return ELV_OK;
}

/* What the decoder keeps in `word`. */
enum { KEY, BITS, BLOCKS };

static enum elv_err open_payload(struct elv_decoder *d)
{
    const uint32_t word = elv_rd_u32(&d->in), bits = (word & 3) + 1, rest = d->left % BLOCK;
    const uint64_t want = (uint64_t)(d->left / BLOCK) * block_len(BLOCK, bits) +
                          (rest == 0 ? 0 : block_len(padded(rest), bits));
    d->word[KEY] = word >> 2;
    d->word[BITS] = bits;
    return d->in.err == ELV_OK && d->in.left == want ? ELV_OK : ELV_ERR_FORMAT;
}

/* x f32 [n], a whole block. */
static enum elv_err decode_block(struct elv_decoder *d, float *x, uint32_t n)
{
    uint8_t code[BLOCK] = {0};
    const uint32_t bits = d->word[BITS], scale_bits = elv_rd_u16(&d->in);
    const struct elv_bytes in = elv_rd_bytes(&d->in, block_len(n, bits) - SCALE_LEN);
    if (scale_bits > SCALE_MAX)
        return ELV_ERR_RANGE; /* negative, infinite, not a number, or too large */
    const uint32_t wide = scale_bits << 16;
    float scale;
    memcpy(&scale, &wide, sizeof scale);
    unpack(in.at, n, bits, code);
    look_up(code, n, bits, x);
    transform(x, n);
    for (uint32_t i = 0; i < n; i++)
        x[i] *= scale;
    flip(x, n, d->word[KEY], d->word[BLOCKS]++);
    return ELV_OK;
}

static enum elv_err next(struct elv_decoder *d, float *out, uint32_t cap, uint32_t *n)
{
    uint32_t done = 0;
    for (; cap - done >= BLOCK; done += BLOCK) {
        const enum elv_err err = decode_block(d, out + done, BLOCK);
        if (err != ELV_OK)
            return err;
    }
    if (done < cap && cap == d->left) { /* what is left is shorter than a block */
        float x[BLOCK];
        const enum elv_err err = decode_block(d, x, padded(cap - done));
        if (err != ELV_OK)
            return err;
        memcpy(out + done, x, (cap - done) * sizeof *out);
        done = cap;
    }
    *n = done;
    return ELV_OK;
}

const struct elv_codec elv_codec_rotate = {
    .id = ELV_CODEC_ROTATE,
    .name = "rotate",
    .biased = true,
    .tight = true,
    .param_min = 1,
    .param_max = BITS_MAX,
    .option = "unbiased",
    .chunks_max = chunks_max,
    .encode = encode,
    .open = open_payload,
    .next = next,
};
