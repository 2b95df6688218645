/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are refused for a reason, or a plain header made from what was read means the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "ports/posix/array.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t write_head(const struct elv_array *a, uint8_t out[512])
{
    static const char *const types[] = {"u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"};
    char dict[256], shape[128] = "";
    for (uint32_t i = 0; i < a->n_dims; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%u,", (unsigned)a->dims[i]);
    const int n = snprintf(dict, sizeof dict, "{'descr':'%c%s','fortran_order':False,'shape':(%s)}",
                           a->big_endian ? '>' : '<', types[a->type], shape);
    memcpy(out, "\x93NUMPY\x02\x00", 8);
    out[8] = (uint8_t)n;
    out[9] = (uint8_t)(n >> 8);
    out[10] = out[11] = 0;
    memcpy(out + 12, dict, (size_t)n);
    return 12 + (size_t)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elv_array a, again;
    const char *why = NULL;
    if (elv_npy_parse((struct elv_bytes){data, size}, &a, &why) != ELV_OK) {
        ELV_ASSERT(why != NULL);
        return 0;
    }
    volatile double sum = 0;
    for (size_t i = 0; i < a.n; i++)
        sum = sum + elv_array_value(&a, i);

    uint8_t *copy = malloc(512 + a.data.len);
    ELV_ASSERT(copy != NULL);
    const size_t head = write_head(&a, copy);
    if (a.data.len > 0)
        memcpy(copy + head, a.data.at, a.data.len);
    const enum elv_err err =
        elv_npy_parse((struct elv_bytes){copy, head + a.data.len}, &again, &why);
    ELV_ASSERT(err == ELV_OK && again.type == a.type && again.n_dims == a.n_dims);
    ELV_ASSERT(memcmp(again.dims, a.dims, sizeof a.dims) == 0 && again.n == a.n);
    free(copy);
    return 0;
}
