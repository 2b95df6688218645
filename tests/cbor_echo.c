/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cbor_echo.c - decodes CBOR and encodes it again; the C half of cbor_cross.py.
 *
 * Reads a line of hex, writes a line: the hex of what the value encodes to, "skipped" when the
 * reader accepts it but has no call for such map keys, or "refused". Ends with its input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cbor.h"

/* Recursion is for tests only; the depth was checked by skipping the value first. */
static void copy(struct elv_rd *r, struct elv_wr *w)
{
    if (r->err != ELV_OK || r->left == 0)
        return;
    const uint8_t first = r->at[0];
    struct elv_cbor_map map;
    uint64_t key;
    uint32_t n;
    switch (first >> 5) {
    case 0:
        elv_cbor_wr_uint(w, elv_cbor_rd_uint(r));
        break;
    case 1:
        elv_cbor_wr_int(w, elv_cbor_rd_int(r));
        break;
    case 2:
        elv_cbor_wr_bytes(w, elv_cbor_rd_bytes(r));
        break;
    case 3:
        elv_cbor_wr_text(w, elv_cbor_rd_text(r));
        break;
    case 4:
        n = elv_cbor_rd_array(r);
        elv_cbor_wr_array(w, n);
        for (uint32_t i = 0; i < n; i++)
            copy(r, w);
        break;
    case 5:
        map = elv_cbor_rd_map(r);
        elv_cbor_wr_map(w, map.left);
        while (elv_cbor_rd_key(r, &map, &key)) {
            elv_cbor_wr_uint(w, key);
            copy(r, w);
        }
        break;
    default:
        if (first == 0xF6) {
            elv_cbor_rd_null(r);
            elv_cbor_wr_null(w);
        } else if (first < 0xF6) {
            elv_cbor_wr_bool(w, elv_cbor_rd_bool(r));
        } else {
            elv_cbor_wr_float(w, elv_cbor_rd_float(r));
        }
    }
}

static void answer(struct elv_bytes in)
{
    struct elv_rd r = elv_rd_of(in);
    elv_cbor_rd_skip(&r);
    if (r.err != ELV_OK || r.left > 0) {
        puts("refused");
        return;
    }
    static uint8_t out[1 << 16];
    struct elv_wr w = elv_wr_of(out, sizeof out);
    r = elv_rd_of(in);
    copy(&r, &w);
    if (r.err != ELV_OK) {
        puts("skipped");
        return;
    }
    for (size_t i = 0; i < w.need && w.err == ELV_OK; i++)
        printf("%02x", out[i]);
    putchar('\n');
}

int main(void)
{
    static char line[1 << 17];
    static uint8_t in[1 << 16];
    while (fgets(line, sizeof line, stdin) != NULL) {
        size_t n = 0;
        unsigned byte;
        while (sscanf(line + 2 * n, "%2x", &byte) == 1)
            in[n++] = (uint8_t)byte;
        answer((struct elv_bytes){in, n});
    }
    return 0;
}
