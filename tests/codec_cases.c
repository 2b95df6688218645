/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/codec_cases.h"

#include <string.h>

static float magnitude(float v) { return v < 0 ? -v : v; }

static float largest(const struct codec_trial *t)
{
    float a = 0;
    for (uint32_t i = 0; i < t->count; i++)
        a = magnitude(t->v[t->first + i]) > a ? magnitude(t->v[t->first + i]) : a;
    return a;
}

static bool within(const struct codec_trial *t, float error)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (!(magnitude(t->v[t->first + i] - t->back[i]) <= error))
            return false;
    return true;
}

static size_t f32_len(uint32_t count) { return 4 * (size_t)count; }

static bool f32_holds(const struct codec_trial *t) { return within(t, 0.0f); }

/* Half a unit in the last place, of which there are 10 and none below 2^-24; what is beyond the
 * largest value comes back as that. */
static bool f16_holds(const struct codec_trial *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        const float v = t->v[t->first + i], a = magnitude(v);
        const float error = a < 0x1p-14f ? 0x1p-25f : a * 0x1p-11f;
        if (a <= 65504.0f ? !(magnitude(v - t->back[i]) <= error)
                          : t->back[i] != (v < 0 ? -65504.0f : 65504.0f))
            return false;
    }
    return true;
}

static size_t f16_len(uint32_t count) { return 2 * (size_t)count; }

static size_t q8_len(uint32_t count) { return 4 + (size_t)count; }

static size_t q4_len(uint32_t count) { return 4 + ((size_t)count + 1) / 2; }

/* Half a step or a whole one, and a little for the roundings; all of it where steps get too small.
 */
static bool steps_hold(const struct codec_trial *t, float most)
{
    const float a = largest(t), step = a / most;
    return within(t, step < 0x1.0002p-100f ? a : step * (t->arg->param < 0 ? 1.00002f : 0.50002f));
}

static bool q8_holds(const struct codec_trial *t) { return steps_hold(t, 127); }

static bool q4_holds(const struct codec_trial *t) { return steps_hold(t, 7); }

static size_t sign_len(uint32_t count) { return 4 + ((size_t)count + 7) / 8; }

/* The signs, and one magnitude that is the mean; below 2^-100 it may be less by that. */
static bool sign_holds(const struct codec_trial *t)
{
    double sum = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const float v = t->v[t->first + i], back = t->back[i];
        if (magnitude(back) != magnitude(t->back[0]) || (v < 0 && back > 0) || (v > 0 && back < 0))
            return false;
        sum += (double)magnitude(v);
    }
    const double off = sum / t->count - (double)magnitude(t->back[0]);
    return off <= sum * 1e-7 + 0x1.0002p-100 && off >= sum * -1e-7;
}

/* Whether the plan takes coordinate `i` of the chunk; tests/test_select_top.c checks plans. */
static bool chosen(const struct codec_trial *t, uint32_t i)
{
    const struct elv_codec_plan *p = t->arg->plan;
    uint32_t bits;
    memcpy(&bits, t->v + t->first + i, sizeof bits);
    bits &= INT32_MAX;
    return bits > p->bits || (bits == p->bits && t->first + i < p->tie_end);
}

/* Nothing but the chosen, within the error given; `error` is for a chunk of which `a` is largest.
 */
static bool chosen_within(const struct codec_trial *t, float (*error)(float a))
{
    float a = 0;
    for (uint32_t i = 0; i < t->count; i++)
        if (chosen(t, i) && magnitude(t->v[t->first + i]) > a)
            a = magnitude(t->v[t->first + i]);
    for (uint32_t i = 0; i < t->count; i++)
        if (chosen(t, i) ? !(magnitude(t->v[t->first + i] - t->back[i]) <= error(a))
                         : t->back[i] != 0)
            return false;
    return true;
}

/* A step of q8, whose scale is cut by 2^-18, is taken up to 127 times. */
static float topk_error(float a)
{
    return a < 0x1.0002p-93f ? a : a / 127 * (0.5f + 127 * 0x1p-18f);
}

static bool topk_holds(const struct codec_trial *t) { return chosen_within(t, topk_error); }

/* The signs of the chosen, and one magnitude that is their mean, cut; below 2^-100 it may be 0. */
static bool ternary_holds(const struct codec_trial *t)
{
    double sum = 0;
    float one = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const float v = t->v[t->first + i], back = t->back[i];
        if (!chosen(t, i) && back != 0)
            return false;
        if (!chosen(t, i))
            continue;
        one = n++ == 0 ? magnitude(back) : one;
        sum += (double)magnitude(v);
        if (magnitude(back) != one || (v < 0 && back > 0) || (v > 0 && back < 0))
            return false;
    }
    const double off = n > 0 ? sum / n - (double)one : 0.0;
    return off <= sum / (n + 1) * 0x1p-16 + 0x1.0002p-100 && off >= sum * -1e-7;
}

/* A whole chunk's error, of which only the scale of least error sets a bound of use: a level vector
 * times any smaller scale is no farther than nothing at all. The other scale is 1 / cos as long,
 * for an angle that is at worst that of one bit per coordinate and one large coordinate of 256. */
static bool rotate_holds(const struct codec_trial *t)
{
    double wrong = 0, all = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const double v = (double)t->v[t->first + i], e = v - (double)t->back[i];
        wrong += e * e;
        all += v * v;
    }
    return wrong <= all * (t->arg->param < 0.0f ? 256.0 : 1.0) * 1.001;
}

/* By the codec's number. */
static const struct codec_case cases[] = {
    [ELV_CODEC_F32] = {{0}, 1, f32_len, false, f32_holds},
    [ELV_CODEC_Q8] = {{0, -1}, 2, q8_len, false, q8_holds},
    [ELV_CODEC_F16] = {{0}, 1, f16_len, false, f16_holds},
    [ELV_CODEC_Q4] = {{0, -1}, 2, q4_len, false, q4_holds},
    [ELV_CODEC_SIGN] = {{0}, 1, sign_len, false, sign_holds},
    [ELV_CODEC_TERNARY] = {{0.01f, 0.5f, 1e-6f}, 3, NULL, true, ternary_holds},
    [ELV_CODEC_TOPK] = {{0.05f, 0.5f, 1e-6f}, 3, NULL, true, topk_holds},
    [ELV_CODEC_ROTATE] = {{1, 2, 4, -3}, 4, NULL, false, rotate_holds},
};

const struct codec_case *codec_case_of(uint8_t id)
{
    return id < sizeof cases / sizeof cases[0] && cases[id].holds != NULL ? &cases[id] : NULL;
}
