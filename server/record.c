/* SPDX-License-Identifier: Apache-2.0 */
#include "server/record.h"

#include <string.h>

#include "common/assert.h"
#include "server/ledger.h"

struct elv_wr elv_rec_start_as(uint8_t *out, uint8_t schema)
{
    struct elv_wr w = elv_wr_of(out, ELV_REC_MAX);
    elv_wr_u8(&w, schema);
    return w;
}

struct elv_wr elv_rec_start(uint8_t *out) { return elv_rec_start_as(out, ELV_REC_SCHEMA); }

size_t elv_rec_end(const struct elv_wr *w)
{
    ELV_ASSERT(w->err == ELV_OK); /* ELV_REC_MAX holds every record */
    return w->need;
}

struct elv_rd elv_rec_open(struct elv_bytes in)
{
    uint8_t schema;
    struct elv_rd r = elv_rec_open_any(in, &schema);
    if (r.err == ELV_OK && schema != ELV_REC_SCHEMA)
        r.err = ELV_ERR_VERSION;
    return r;
}

struct elv_rd elv_rec_open_any(struct elv_bytes in, uint8_t *schema)
{
    struct elv_rd r = elv_rd_of(in);
    *schema = elv_rd_u8(&r);
    if (r.err == ELV_OK && (*schema == 0 || *schema > ELV_REC_SCHEMA_2))
        r.err = ELV_ERR_VERSION;
    return r;
}

bool elv_rec_more(const struct elv_rd *r) { return r->err == ELV_OK && r->left > 0; }

enum elv_err elv_rec_close(const struct elv_rd *r)
{
    return r->err == ELV_OK && r->left != 0 ? ELV_ERR_FORMAT : r->err;
}

void elv_rec_wr_f64(struct elv_wr *w, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    elv_wr_u64(w, bits);
}

double elv_rec_rd_f64(struct elv_rd *r)
{
    const uint64_t bits = elv_rd_u64(r);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

bool elv_rec_rd_bool(struct elv_rd *r)
{
    const uint8_t v = elv_rd_u8(r);
    if (v > 1 && r->err == ELV_OK)
        r->err = ELV_ERR_FORMAT;
    return v == 1;
}

void elv_rec_wr_raw(struct elv_wr *w, const uint8_t *at, size_t len)
{
    elv_wr_bytes(w, (struct elv_bytes){.at = at, .len = len});
}

void elv_rec_rd_raw(struct elv_rd *r, uint8_t *out, size_t len)
{
    const struct elv_bytes got = elv_rd_bytes(r, len);
    if (got.len == len)
        memcpy(out, got.at, len);
}
