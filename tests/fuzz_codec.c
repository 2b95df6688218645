/* SPDX-License-Identifier: Apache-2.0 */
/* Two ways into every codec, which the second byte names (0 is codec 1); the first byte's other
 * bits choose one of the parameters that codec_cases.c has for it.
 *
 * As a payload (first byte even): refused, or as many finite values as asked for, the same ones in
 * windows. The third byte and the next two say how many. As a vector of floats (odd): cut into
 * chunks that tile it, each of which decodes to within what the codec promises. The third byte says
 * how long a chunk may be. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "tests/codec_cases.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static float magnitude(float v) { return v < 0 ? -v : v; }

/* In the smallest windows, to the values that came all at once. */
static void in_windows(const struct elv_codec *codec, uint32_t count, struct elv_bytes in,
                       const float *want)
{
    float window[ELV_DECODE_MIN];
    struct elv_decoder d;
    ELV_ASSERT(elv_decode_begin(&d, codec, in, count) == ELV_OK);
    for (uint32_t n; d.left > 0; want += n) {
        ELV_ASSERT(elv_decode_next(&d, window, ELV_DECODE_MIN, &n) == ELV_OK);
        ELV_ASSERT(memcmp(window, want, n * sizeof *want) == 0);
    }
}

static void as_payload(const struct elv_codec *codec, uint32_t count, struct elv_bytes in)
{
    float *out = malloc(count * sizeof *out);
    ELV_ASSERT(out != NULL);
    if (elv_codec_decode(codec, in, count, out) == ELV_OK) {
        for (uint32_t i = 0; i < count; i++)
            ELV_ASSERT(magnitude(out[i]) <= FLT_MAX);
        in_windows(codec, count, in, out);
    }
    free(out);
}

static void as_vector(const struct elv_codec *codec, struct elv_codec_arg *arg, size_t cap,
                      struct elv_bytes in)
{
    const uint32_t n = (uint32_t)(in.len / 4);
    float *v = malloc(n * sizeof *v), *back = malloc(n * sizeof *back);
    uint8_t *out = malloc(cap);
    ELV_ASSERT(n > 0 && v != NULL && back != NULL && out != NULL);
    memcpy(v, in.at, n * sizeof *v);
    for (uint32_t i = 0; i < n; i++)
        if (!(magnitude(v[i]) < 0x1p125f)) /* beyond, a step of q4 could not be coded */
            v[i] = 1.0f;
    struct elv_codec_plan plan;
    elv_codec_plan(codec, &plan, v, n, arg);
    uint32_t count = 0;
    for (uint32_t first = 0, index = 0; first < n; first += count, index++) {
        size_t len;
        ELV_ASSERT(codec->encode(v, n, first, index, arg, out, cap, &len, &count) == ELV_OK);
        ELV_ASSERT(count > 0 && count <= n - first && len <= cap);
        ELV_ASSERT(elv_codec_decode(codec, (struct elv_bytes){out, len}, count, back) == ELV_OK);
        const struct codec_trial t = {arg, v, n, first, count, back};
        ELV_ASSERT(codec_case_of(codec->id)->holds(&t));
    }
    free(out);
    free(v);
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 5 + 4)
        return 0;
    const struct elv_codec *codec = elv_codec_by_id((uint8_t)(data[1] % 8 + 1));
    if (codec == NULL)
        return 0;
    const struct codec_case *row = codec_case_of(codec->id);
    struct elv_codec_arg arg = {.seed = data[0], .param = row->params[data[0] / 2 % row->n_params]};
    const uint32_t some = (uint32_t)data[3] | (uint32_t)data[4] << 8;
    if (data[0] % 2 == 0)
        as_payload(codec, 1 + (some << data[2] % 4), (struct elv_bytes){data + 5, size - 5});
    else /* no codec needs more room for its first value */
        as_vector(codec, &arg, 32 + 4 * (size_t)data[2], (struct elv_bytes){data + 3, size - 3});
    return 0;
}
