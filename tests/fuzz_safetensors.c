/* SPDX-License-Identifier: Apache-2.0 */
/* A header is refused, or its pieces lie inside the file it announces, cover every parameter it
 * should, and its metadata can be searched. */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct elv_model *m, const struct elv_safetensors *st, size_t head_len)
{
    uint64_t all = 0;
    uint32_t flat_at = 0;
    for (uint32_t i = 0; i < st->n_pieces; i++) {
        const struct elv_safetensors_piece *p = &st->piece[i];
        ELV_ASSERT(p->file_at >= head_len && p->file_at + 4 * (uint64_t)p->n <= st->file_len);
        ELV_ASSERT(p->flat_at >= flat_at && p->n <= m->n_params - p->flat_at);
        flat_at = p->flat_at + p->n;
        all += p->n;
    }
    ELV_ASSERT(all == (st->has_local ? m->n_params : m->n_shared));
    ELV_ASSERT(st->file_len == head_len + 4 * all);
    char value[32];
    const enum elv_err err = elv_safetensors_find(st, "job", value, sizeof value);
    ELV_ASSERT(err != ELV_OK || strlen(value) < sizeof value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char line[] = "1x4x4 | conv 2 3x3 relu, maxpool 2, dense 3 local, dense 2 | ";
    struct elv_model m;
    ELV_ASSERT(elv_model_parse_line(&m, (struct elv_bytes){(const uint8_t *)line, sizeof line - 1},
                                    NULL) == ELV_OK);
    struct elv_safetensors st;
    size_t head_len = 0;
    if (elv_safetensors_read(&m, (struct elv_bytes){data, size}, &st) != ELV_OK)
        return 0;
    ELV_ASSERT(elv_safetensors_head_len((struct elv_bytes){data, size}, &head_len) == ELV_OK);
    ELV_ASSERT(head_len <= size);
    check(&m, &st, head_len);
    return 0;
}
