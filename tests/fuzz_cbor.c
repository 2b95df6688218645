/* SPDX-License-Identifier: Apache-2.0 */
/* What is skipped without complaint is one value; read and written again, it is the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/cbor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads one value of whichever type and writes it. False: a map with keys the reader has no call
 * for. Recursion is for tests only; the depth was checked by skipping the value first. */
static bool copy(struct elv_rd *r, struct elv_wr *w)
{
    struct elv_cbor_map map;
    uint64_t key;
    uint32_t n;
    bool all = true;
    switch (r->at[0] >> 5) {
    case 0:
        elv_cbor_wr_uint(w, elv_cbor_rd_uint(r));
        return true;
    case 1:
        elv_cbor_wr_int(w, elv_cbor_rd_int(r));
        return r->err == ELV_OK; /* a negative one of 64 bits is skipped, but not read */
    case 2:
        elv_cbor_wr_bytes(w, elv_cbor_rd_bytes(r));
        return true;
    case 3:
        elv_cbor_wr_text(w, elv_cbor_rd_text(r));
        return true;
    case 4:
        n = elv_cbor_rd_array(r);
        elv_cbor_wr_array(w, n);
        for (uint32_t i = 0; all && i < n; i++)
            all = copy(r, w);
        return all;
    case 5:
        map = elv_cbor_rd_map(r);
        elv_cbor_wr_map(w, map.left);
        while (all && elv_cbor_rd_key(r, &map, &key)) {
            elv_cbor_wr_uint(w, key);
            all = copy(r, w);
        }
        return all && r->err == ELV_OK;
    default:
        if (r->at[0] == 0xF6) {
            elv_cbor_rd_null(r);
            elv_cbor_wr_null(w);
        } else if (r->at[0] < 0xF6) {
            elv_cbor_wr_bool(w, elv_cbor_rd_bool(r));
        } else {
            elv_cbor_wr_float(w, elv_cbor_rd_float(r));
        }
        return true;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elv_rd r = elv_rd_of((struct elv_bytes){data, size});
    elv_cbor_rd_skip(&r);
    if (r.err != ELV_OK)
        return 0;
    const size_t len = size - r.left;

    uint8_t *out = malloc(len); /* exactly enough: the sanitizer sees one byte more */
    ELV_ASSERT(out != NULL);
    struct elv_wr w = elv_wr_of(out, len);
    r = elv_rd_of((struct elv_bytes){data, len});
    if (copy(&r, &w)) {
        ELV_ASSERT(r.err == ELV_OK && r.left == 0);
        ELV_ASSERT(w.err == ELV_OK && w.need == len);
        ELV_ASSERT(memcmp(out, data, len) == 0);
    }
    free(out);
    return 0;
}
