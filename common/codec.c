/* SPDX-License-Identifier: Apache-2.0 */
#include "common/codec.h"

#include <string.h>

#include "common/assert.h"
#include "common/codec_f32.h"
#include "common/codec_q8.h"

static const struct elv_codec *const built[] = {
    &elv_codec_f32,
    &elv_codec_q8,
};

size_t elv_codec_count(void) { return sizeof built / sizeof built[0]; }

const struct elv_codec *elv_codec_at(size_t i)
{
    ELV_ASSERT(i < elv_codec_count());
    return built[i];
}

const struct elv_codec *elv_codec_by_id(uint8_t id)
{
    for (size_t i = 0; i < elv_codec_count(); i++)
        if (built[i]->id == id)
            return built[i];
    return NULL;
}

const struct elv_codec *elv_codec_by_name(const char *name, size_t len)
{
    for (size_t i = 0; i < elv_codec_count(); i++)
        if (strlen(built[i]->name) == len && memcmp(built[i]->name, name, len) == 0)
            return built[i];
    return NULL;
}
