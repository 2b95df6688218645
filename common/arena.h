/* SPDX-License-Identifier: Apache-2.0 */
/* common/arena.h - cuts a caller's block into aligned pieces; for init functions only.
 *
 * An arena over no memory (`elv_arena_of(NULL, 0)`) only counts: a layout function run once over it
 * answers how many bytes the same layout needs, so size and use cannot drift apart. */
#ifndef ELV_COMMON_ARENA_H
#define ELV_COMMON_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_ARENA_ALIGN 64u /* a cache line, and the widest vector in use */

struct elv_arena {
    uint8_t *base; /* NULL: counting only */
    size_t cap;
    size_t used;      /* bytes asked for so far, padding included; may pass `cap` */
    enum elv_err err; /* ELV_ERR_SPACE once a piece did not fit; sticky */
};

/* `base` must be aligned to ELV_ARENA_ALIGN; it stays the caller's. */
struct elv_arena elv_arena_of(void *base, size_t cap);

/* A zeroed piece of `count * size` bytes, aligned to ELV_ARENA_ALIGN. NULL while counting, when the
 * block is exhausted or when the product overflows (then `err` is set). */
void *elv_arena_take(struct elv_arena *a, size_t count, size_t size);
/* The same, but as it lies: for what is written before it is read, so that what a run never needs
 * is never touched and costs no memory where memory is given out page by page. */
void *elv_arena_take_raw(struct elv_arena *a, size_t count, size_t size);

#ifdef __cplusplus
}
#endif
#endif
