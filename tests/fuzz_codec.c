/* SPDX-License-Identifier: Apache-2.0 */
/* Two ways into every codec. As a payload (first byte even): it is refused or gives finite values,
 * as many as asked for. As a vector of floats (odd): it is cut into chunks that tile it, each of
 * which decodes to within the codec's error. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct elv_codec_arg no_arg = {0};

static float magnitude(float v) { return v < 0 ? -v : v; }

static void as_payload(const struct elv_codec *codec, uint32_t count, struct elv_bytes in)
{
    float *out = malloc(count * sizeof *out);
    ELV_ASSERT(out != NULL);
    if (elv_codec_decode(codec, in, count, out) == ELV_OK)
        for (uint32_t i = 0; i < count; i++)
            ELV_ASSERT(magnitude(out[i]) <= FLT_MAX);
    free(out);
}

/* Half a step of q8, and a little for the roundings; nothing for f32. */
static float error_max(const struct elv_codec *codec, const float *v, uint32_t n)
{
    float a = 0;
    for (uint32_t i = 0; i < n && codec->id == ELV_CODEC_Q8; i++)
        a = magnitude(v[i]) > a ? magnitude(v[i]) : a;
    return a < 0x1p-93f ? a : a / 127 * 0.50002f;
}

static void as_vector(const struct elv_codec *codec, size_t cap, struct elv_bytes in)
{
    const uint32_t n = (uint32_t)(in.len / 4);
    float *v = malloc(n * sizeof *v), *back = malloc(n * sizeof *back);
    ELV_ASSERT(n > 0 && v != NULL && back != NULL);
    memcpy(v, in.at, n * sizeof *v);
    for (uint32_t i = 0; i < n; i++)
        if (!(magnitude(v[i]) < 0x1p127f)) /* beyond, a step of q8 could not be coded */
            v[i] = 1.0f;
    uint32_t count = 0;
    for (uint32_t first = 0, index = 0; first < n; first += count, index++) {
        uint8_t *out = malloc(cap);
        size_t len;
        ELV_ASSERT(out != NULL);
        ELV_ASSERT(codec->encode(v, n, first, index, &no_arg, out, cap, &len, &count) == ELV_OK);
        ELV_ASSERT(count > 0 && count <= n - first && len <= cap);
        ELV_ASSERT(elv_codec_decode(codec, (struct elv_bytes){out, len}, count, back) == ELV_OK);
        const float most = error_max(codec, v + first, count);
        for (uint32_t i = 0; i < count; i++)
            ELV_ASSERT(magnitude(v[first + i] - back[i]) <= most);
        free(out);
    }
    free(v);
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3 + 4)
        return 0;
    const struct elv_codec *codec = elv_codec_at(data[1] % elv_codec_count());
    const struct elv_bytes in = {data + 3, size - 3};
    if (data[0] % 2 == 0)
        as_payload(codec, (uint32_t)(in.len / 4 + data[2] % 5 + (data[2] & 16 ? in.len : 0)), in);
    else
        as_vector(codec, 8 + 4 * (size_t)data[2], in);
    return 0;
}
