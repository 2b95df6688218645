/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ledger.h"

#include "common/assert.h"
#include "server/record.h"

size_t elv_rec_run_encode(const struct elv_rec_run *r, uint8_t out[ELV_REC_MAX])
{
    struct elv_wr w = elv_rec_start(out);
    elv_rec_wr_raw(&w, r->run, sizeof r->run);
    elv_wr_u64(&w, r->seed);
    elv_rec_wr_raw(&w, r->fingerprint, sizeof r->fingerprint);
    elv_wr_u32(&w, r->n_params);
    elv_wr_f32(&w, r->bound);
    elv_wr_u8(&w, r->down);
    return elv_rec_end(&w);
}

enum elv_err elv_rec_run_decode(struct elv_bytes in, struct elv_rec_run *r)
{
    struct elv_rd rd = elv_rec_open(in);
    struct elv_rec_run got = {0};
    elv_rec_rd_raw(&rd, got.run, sizeof got.run);
    got.seed = elv_rd_u64(&rd);
    elv_rec_rd_raw(&rd, got.fingerprint, sizeof got.fingerprint);
    got.n_params = elv_rd_u32(&rd);
    got.bound = elv_rd_f32(&rd);
    got.down = elv_rd_u8(&rd);
    const enum elv_err err = elv_rec_close(&rd);
    if (err == ELV_OK)
        *r = got;
    return err;
}

size_t elv_rec_head_encode(const struct elv_rec_head *r, uint8_t out[ELV_REC_MAX])
{
    const bool more = r->log > 0 || r->void_below > 0;
    struct elv_wr w = elv_rec_start_as(out, more ? ELV_REC_SCHEMA_2 : ELV_REC_SCHEMA);
    elv_wr_u32(&w, r->version);
    elv_wr_u32(&w, r->next_seq);
    elv_wr_u32(&w, r->next_assignment);
    elv_wr_u32(&w, r->n_abandoned);
    elv_wr_u32(&w, r->best_version);
    elv_rec_wr_f64(&w, r->best_accuracy);
    elv_wr_u8(&w, r->over);
    elv_wr_u8(&w, r->reached);
    if (r->surveyed > 0 || more)
        elv_wr_u32(&w, r->surveyed);
    if (more) {
        elv_wr_u32(&w, r->log);
        elv_wr_u32(&w, r->void_below);
    }
    return elv_rec_end(&w);
}

/* What came later. */
static void rd_head_rest(struct elv_rd *rd, uint8_t schema, struct elv_rec_head *r)
{
    const bool more = schema == ELV_REC_SCHEMA_2;
    if (!more && !elv_rec_more(rd))
        return;
    r->surveyed = elv_rd_u32(rd);
    if (more) {
        r->log = elv_rd_u32(rd);
        r->void_below = elv_rd_u32(rd);
    }
    const bool says = more ? r->log > 0 || r->void_below > 0 : r->surveyed > 0;
    if (rd->err == ELV_OK && !says)
        rd->err = ELV_ERR_FORMAT;
}

enum elv_err elv_rec_head_decode(struct elv_bytes in, struct elv_rec_head *r)
{
    uint8_t schema;
    struct elv_rd rd = elv_rec_open_any(in, &schema);
    struct elv_rec_head got = {0};
    got.version = elv_rd_u32(&rd);
    got.next_seq = elv_rd_u32(&rd);
    got.next_assignment = elv_rd_u32(&rd);
    got.n_abandoned = elv_rd_u32(&rd);
    got.best_version = elv_rd_u32(&rd);
    got.best_accuracy = elv_rec_rd_f64(&rd);
    got.over = elv_rec_rd_bool(&rd);
    got.reached = elv_rec_rd_bool(&rd);
    rd_head_rest(&rd, schema, &got);
    const enum elv_err err = elv_rec_close(&rd);
    if (err == ELV_OK)
        *r = got;
    return err;
}

size_t elv_rec_clock_encode(const struct elv_rec_clock *r, uint8_t out[ELV_REC_MAX])
{
    const bool more = r->run_us > 0;
    struct elv_wr w = elv_rec_start_as(out, more ? ELV_REC_SCHEMA_2 : ELV_REC_SCHEMA);
    elv_wr_u32(&w, r->seq);
    elv_wr_u64(&w, r->elapsed_us);
    if (more)
        elv_wr_u64(&w, r->run_us);
    return elv_rec_end(&w);
}

enum elv_err elv_rec_clock_decode(struct elv_bytes in, struct elv_rec_clock *r)
{
    uint8_t schema;
    struct elv_rd rd = elv_rec_open_any(in, &schema);
    struct elv_rec_clock got = {0};
    got.seq = elv_rd_u32(&rd);
    got.elapsed_us = elv_rd_u64(&rd);
    if (schema == ELV_REC_SCHEMA_2) {
        got.run_us = elv_rd_u64(&rd);
        if (rd.err == ELV_OK && got.run_us == 0)
            rd.err = ELV_ERR_FORMAT;
    }
    if (rd.err == ELV_OK && (got.elapsed_us > INT64_MAX / 2 || got.run_us > INT64_MAX / 2))
        rd.err = ELV_ERR_RANGE;
    const enum elv_err err = elv_rec_close(&rd);
    if (err == ELV_OK)
        *r = got;
    return err;
}

size_t elv_rec_client_encode(const struct elv_rec_client *r, uint8_t out[ELV_REC_MAX])
{
    struct elv_wr w = elv_rec_start(out);
    elv_wr_u8(&w, r->joined);
    elv_wr_u8(&w, r->capped);
    elv_wr_u64(&w, r->boot);
    elv_wr_u64(&w, r->memory);
    elv_wr_u32(&w, r->speed);
    elv_wr_u32(&w, r->samples);
    elv_wr_u8(&w, r->codec);
    return elv_rec_end(&w);
}

enum elv_err elv_rec_client_decode(struct elv_bytes in, struct elv_rec_client *r)
{
    struct elv_rd rd = elv_rec_open(in);
    struct elv_rec_client got = {0};
    got.joined = elv_rec_rd_bool(&rd);
    got.capped = elv_rec_rd_bool(&rd);
    got.boot = elv_rd_u64(&rd);
    got.memory = elv_rd_u64(&rd);
    got.speed = elv_rd_u32(&rd);
    got.samples = elv_rd_u32(&rd);
    got.codec = elv_rd_u8(&rd);
    const enum elv_err err = elv_rec_close(&rd);
    if (err == ELV_OK)
        *r = got;
    return err;
}

/* Schema 2 is a round of a stream; a survey is none. */
size_t elv_rec_round_encode(const struct elv_rec_round *r, uint8_t out[ELV_REC_MAX])
{
    struct elv_wr w = elv_rec_start_as(out, r->stream ? ELV_REC_SCHEMA_2 : ELV_REC_SCHEMA);
    elv_wr_u32(&w, r->version);
    elv_wr_u32(&w, r->assignment);
    elv_wr_u32(&w, r->n_asked);
    elv_wr_u32(&w, r->n_blocks);
    elv_wr_u32(&w, (uint32_t)r->weight_bits);
    elv_wr_u64(&w, r->deadline_us);
    if (r->what != ELV_WHAT_TRAIN)
        elv_wr_u8(&w, (uint8_t)r->what);
    return elv_rec_end(&w);
}

enum elv_err elv_rec_round_decode(struct elv_bytes in, struct elv_rec_round *r)
{
    uint8_t schema;
    struct elv_rd rd = elv_rec_open_any(in, &schema);
    struct elv_rec_round got = {.what = ELV_WHAT_TRAIN, .stream = schema == ELV_REC_SCHEMA_2};
    got.version = elv_rd_u32(&rd);
    got.assignment = elv_rd_u32(&rd);
    got.n_asked = elv_rd_u32(&rd);
    got.n_blocks = elv_rd_u32(&rd);
    got.weight_bits = (int32_t)elv_rd_u32(&rd);
    got.deadline_us = elv_rd_u64(&rd);
    if (elv_rec_more(&rd) && !got.stream) {
        got.what = ELV_WHAT_EVALUATE;
        if (elv_rd_u8(&rd) != ELV_WHAT_EVALUATE && rd.err == ELV_OK)
            rd.err = ELV_ERR_RANGE;
    }
    if (rd.err == ELV_OK &&
        (got.deadline_us > INT64_MAX / 2 || got.weight_bits < -30 || got.weight_bits > 30))
        rd.err = ELV_ERR_RANGE;
    const enum elv_err err = elv_rec_close(&rd);
    if (err == ELV_OK)
        *r = got;
    return err;
}

static void wr_size(struct elv_wr *w, const struct elv_size *size)
{
    elv_wr_u32(w, size->local_epochs);
    elv_wr_u32(w, size->local_steps);
    elv_wr_u32(w, size->batch);
}

static void rd_size(struct elv_rd *r, struct elv_size *size)
{
    size->local_epochs = elv_rd_u32(r);
    size->local_steps = elv_rd_u32(r);
    size->batch = elv_rd_u32(r);
}

size_t elv_rec_offer_encode(const struct elv_rec_offer *r, uint8_t out[ELV_REC_MAX])
{
    struct elv_wr w = elv_rec_start(out);
    elv_wr_u32(&w, r->assignment);
    elv_wr_u32(&w, r->seq);
    elv_wr_u32(&w, r->version);
    elv_wr_u64(&w, r->granted_us);
    wr_size(&w, &r->size);
    return elv_rec_end(&w);
}

enum elv_err elv_rec_offer_decode(struct elv_bytes in, struct elv_rec_offer *r)
{
    struct elv_rd rd = elv_rec_open(in);
    struct elv_rec_offer got = {0};
    got.assignment = elv_rd_u32(&rd);
    got.seq = elv_rd_u32(&rd);
    got.version = elv_rd_u32(&rd);
    got.granted_us = elv_rd_u64(&rd);
    rd_size(&rd, &got.size);
    if (rd.err == ELV_OK && (got.assignment == 0 || got.granted_us > INT64_MAX / 2))
        rd.err = ELV_ERR_RANGE;
    const enum elv_err err = elv_rec_close(&rd);
    if (err == ELV_OK)
        *r = got;
    return err;
}

void elv_rec_assign_head(uint8_t *out, uint32_t assignment, uint32_t n)
{
    struct elv_wr w = elv_wr_of(out, ELV_ASSIGN_HEAD_LEN);
    elv_wr_u8(&w, ELV_REC_SCHEMA);
    elv_wr_u32(&w, assignment);
    elv_wr_u32(&w, n);
}

void elv_rec_assign_item(uint8_t *out, const struct elv_rec_assign *item)
{
    struct elv_wr w = elv_wr_of(out, ELV_ASSIGN_ITEM_LEN);
    elv_wr_u32(&w, item->client);
    wr_size(&w, &item->size);
}

enum elv_err elv_rec_assign_open(struct elv_bytes in, uint32_t *assignment, uint32_t *n)
{
    struct elv_rd rd = elv_rec_open(in);
    const uint32_t number = elv_rd_u32(&rd);
    const uint32_t count = elv_rd_u32(&rd);
    if (rd.err == ELV_OK && (count > ELV_ASSIGN_BLOCK || rd.left != count * ELV_ASSIGN_ITEM_LEN))
        rd.err = ELV_ERR_FORMAT;
    if (rd.err != ELV_OK)
        return rd.err;
    *assignment = number;
    *n = count;
    return ELV_OK;
}

void elv_rec_assign_at(struct elv_bytes in, uint32_t i, struct elv_rec_assign *item)
{
    const size_t at = ELV_ASSIGN_HEAD_LEN + (size_t)i * ELV_ASSIGN_ITEM_LEN;
    ELV_ASSERT(at + ELV_ASSIGN_ITEM_LEN <= in.len);
    struct elv_rd rd = elv_rd_of((struct elv_bytes){in.at + at, ELV_ASSIGN_ITEM_LEN});
    item->client = elv_rd_u32(&rd);
    rd_size(&rd, &item->size);
}
