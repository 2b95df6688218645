/* SPDX-License-Identifier: Apache-2.0 */
#include "common/arena.h"

#include <string.h>

#include "common/assert.h"
#include "common/size.h"

struct elv_arena elv_arena_of(void *base, size_t cap)
{
    ELV_ASSERT((uintptr_t)base % ELV_ARENA_ALIGN == 0);
    return (struct elv_arena){.base = base, .cap = cap};
}

void *elv_arena_take_raw(struct elv_arena *a, size_t count, size_t size)
{
    size_t len, padded, used;
    if (!elv_size_mul(count, size, &len) || !elv_size_add(len, ELV_ARENA_ALIGN - 1, &padded) ||
        !elv_size_add(a->used, padded / ELV_ARENA_ALIGN * ELV_ARENA_ALIGN, &used)) {
        a->err = ELV_ERR_SPACE;
        return NULL;
    }
    const size_t at = a->used;
    a->used = used;
    if (a->base == NULL)
        return NULL;
    if (used > a->cap)
        a->err = ELV_ERR_SPACE;
    if (a->err != ELV_OK)
        return NULL;
    return a->base + at;
}

void *elv_arena_take(struct elv_arena *a, size_t count, size_t size)
{
    void *piece = elv_arena_take_raw(a, count, size);
    return piece == NULL ? NULL : memset(piece, 0, count * size);
}
