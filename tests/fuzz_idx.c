/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are refused for a reason, or the header written anew from what was read is the one that
 * was read, and every value is there. */
#include <string.h>

#include "common/assert.h"
#include "ports/posix/array.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t codes[] = {0x08, 0x09, 0, 0x0B, 0, 0x0C, 0, 0, 0x0D, 0x0E};
    struct elv_array a;
    const char *why = NULL;
    if (elv_idx_parse((struct elv_bytes){data, size}, &a, &why) != ELV_OK) {
        ELV_ASSERT(why != NULL);
        return 0;
    }
    uint8_t head[4 + 4 * ELV_ARRAY_DIMS_MAX] = {0, 0, codes[a.type], (uint8_t)a.n_dims};
    for (uint32_t i = 0; i < 4 * a.n_dims; i++)
        head[4 + i] = (uint8_t)(a.dims[i / 4] >> (24 - 8 * (i % 4)));
    ELV_ASSERT(memcmp(data, head, 4 + 4 * (size_t)a.n_dims) == 0);
    ELV_ASSERT(a.data.at + a.data.len == data + size);
    volatile double sum = 0;
    for (size_t i = 0; i < a.n; i++)
        sum = sum + elv_array_value(&a, i);
    return 0;
}
