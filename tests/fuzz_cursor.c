/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader accepts, a writer gives back byte for byte, and both stop at the same place.
 *
 * The input is a script and its data in one: the low bits of each byte read say what comes next. */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/cursor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void copy_one(struct elv_rd *r, struct elv_wr *w)
{
    const uint8_t what = elv_rd_u8(r);
    elv_wr_u8(w, what);
    switch (what % 6) {
    case 0:
        elv_wr_u8(w, elv_rd_u8(r));
        break;
    case 1:
        elv_wr_u16(w, elv_rd_u16(r));
        break;
    case 2:
        elv_wr_u32(w, elv_rd_u32(r));
        break;
    case 3:
        elv_wr_u64(w, elv_rd_u64(r));
        break;
    case 4:
        elv_wr_f32(w, elv_rd_f32(r));
        break;
    default:
        elv_wr_bytes(w, elv_rd_bytes(r, what / 6));
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *out = malloc(size + 8); /* a failed read may still write one zero value */
    ELV_ASSERT(out != NULL);
    struct elv_rd r = elv_rd_of((struct elv_bytes){.at = data, .len = size});
    struct elv_wr w = elv_wr_of(out, size + 8);
    size_t whole = 0; /* bytes copied by complete steps */
    while (r.err == ELV_OK && r.left > 0) {
        copy_one(&r, &w);
        if (r.err == ELV_OK)
            whole = w.need;
    }
    ELV_ASSERT(w.err == ELV_OK);
    ELV_ASSERT(whole <= size);
    ELV_ASSERT(r.err != ELV_OK || whole == size);
    ELV_ASSERT(size == 0 || memcmp(out, data, whole) == 0);
    free(out);
    return 0;
}
