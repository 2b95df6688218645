/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/codec_cases.h"

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

static size_t q8_len(uint32_t count) { return 4 + (size_t)count; }

/* Half a step, and a little for the roundings. */
static bool q8_holds(const struct codec_trial *t)
{
    const float a = largest(t);
    return within(t, a < 0x1p-93f ? a : a / 127 * 0.50002f);
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
    [ELV_CODEC_F32] = {{0}, 1, f32_len, f32_holds},
    [ELV_CODEC_Q8] = {{0}, 1, q8_len, q8_holds},
    [ELV_CODEC_ROTATE] = {{1, 2, 4, -3}, 4, NULL, rotate_holds},
};

const struct codec_case *codec_case_of(uint8_t id)
{
    return id < sizeof cases / sizeof cases[0] && cases[id].holds != NULL ? &cases[id] : NULL;
}
