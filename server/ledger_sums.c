/* SPDX-License-Identifier: Apache-2.0 */
/* The records that carry sums: decisions and versions. */
#include <string.h>

#include "server/ledger.h"
#include "server/record.h"

static void wr_eval(struct elv_wr *w, const struct elv_eval_sums *e)
{
    const uint32_t n_classes = e->n == 0 ? 0 : e->n_classes;
    elv_wr_u32(w, e->n);
    if (e->n == 0)
        return;
    elv_rec_wr_f64(w, e->loss);
    elv_wr_u8(w, (uint8_t)n_classes);
    for (uint32_t i = 0; i < n_classes; i++) {
        elv_wr_u32(w, e->support[i]);
        elv_wr_u32(w, e->predicted[i]);
        elv_wr_u32(w, e->correct[i]);
    }
}

static void rd_eval(struct elv_rd *r, struct elv_eval_sums *e)
{
    e->n = elv_rd_u32(r);
    if (e->n == 0)
        return;
    e->loss = elv_rec_rd_f64(r);
    e->n_classes = elv_rd_u8(r);
    if (r->err == ELV_OK && e->n_classes > ELV_CLASSES_MAX)
        r->err = ELV_ERR_RANGE;
    for (uint32_t i = 0; r->err == ELV_OK && i < e->n_classes; i++) {
        e->support[i] = elv_rd_u32(r);
        e->predicted[i] = elv_rd_u32(r);
        e->correct[i] = elv_rd_u32(r);
    }
}

static void wr_user(struct elv_wr *w, const struct elv_user_totals *u)
{
    if (u->n == 0)
        return;
    elv_wr_u8(w, (uint8_t)u->n);
    for (uint32_t i = 0; i < u->n; i++) {
        const size_t len = strlen(u->at[i].name);
        elv_wr_u8(w, (uint8_t)len);
        elv_rec_wr_raw(w, (const uint8_t *)u->at[i].name, len);
        elv_rec_wr_f64(w, u->at[i].value);
    }
}

static void rd_user(struct elv_rd *r, struct elv_user_totals *u)
{
    if (!elv_rec_more(r))
        return;
    const uint8_t n = elv_rd_u8(r);
    if (n == 0 || n > ELV_USER_SUMS_MAX)
        r->err = ELV_ERR_RANGE;
    for (uint32_t i = 0; r->err == ELV_OK && i < n; i++) {
        const struct elv_bytes name = elv_rd_bytes(r, elv_rd_u8(r));
        const double value = elv_rec_rd_f64(r);
        const struct elv_text text = {.at = (const char *)name.at, .len = name.len};
        if (r->err != ELV_OK)
            return;
        if (elv_name_ok(text, ELV_USER_SUM_NAME_MAX))
            elv_user_add(u, text.at, text.len, value);
        if (u->n != i + 1) /* no name, or one that was there before */
            r->err = ELV_ERR_FORMAT;
    }
}

static void wr_worth(struct elv_wr *w, const struct elv_rec_decision *d)
{
    elv_rec_wr_f64(w, d->factor);
    elv_rec_wr_f64(w, d->norm2);
    elv_wr_u32(w, d->version);
    elv_wr_u32(w, d->staleness);
}

static void rd_worth(struct elv_rd *r, struct elv_rec_decision *d)
{
    d->factor = elv_rec_rd_f64(r);
    d->norm2 = elv_rec_rd_f64(r);
    d->version = elv_rd_u32(r);
    d->staleness = elv_rd_u32(r);
    const bool sane = d->factor > 0.0 && d->factor <= 1.0 && d->norm2 >= 0.0;
    if (r->err == ELV_OK && !sane)
        r->err = ELV_ERR_RANGE;
}

size_t elv_rec_decision_encode(const struct elv_rec_decision *r, const struct elv_sums *sums,
                               uint8_t out[ELV_REC_MAX])
{
    const bool more = r->factor > 0.0;
    struct elv_wr w = elv_rec_start_as(out, more ? ELV_REC_SCHEMA_2 : ELV_REC_SCHEMA);
    elv_wr_u32(&w, r->assignment);
    elv_wr_u32(&w, r->seq);
    elv_wr_u8(&w, (uint8_t)r->status);
    elv_wr_u8(&w, (uint8_t)r->decision);
    elv_wr_u8(&w, (uint8_t)r->reason);
    elv_wr_u32(&w, r->weight);
    elv_wr_u32(&w, r->n_chunks);
    elv_wr_u64(&w, r->nonce);
    elv_wr_u64(&w, r->from);
    elv_wr_u64(&w, r->bytes);
    elv_wr_u32(&w, r->samples);
    elv_wr_u32(&w, r->seen);
    elv_wr_u32(&w, r->steps);
    elv_rec_wr_f64(&w, r->loss_sum);
    if (more)
        wr_worth(&w, r);
    wr_eval(&w, &sums->eval);
    wr_user(&w, &sums->user);
    return elv_rec_end(&w);
}

enum elv_err elv_rec_decision_decode(struct elv_bytes in, struct elv_rec_decision *r,
                                     struct elv_sums *sums)
{
    uint8_t schema;
    struct elv_rd rd = elv_rec_open_any(in, &schema);
    struct elv_rec_decision got = {0};
    struct elv_sums found = {0};
    got.assignment = elv_rd_u32(&rd);
    got.seq = elv_rd_u32(&rd);
    const uint8_t status = elv_rd_u8(&rd);
    const uint8_t decision = elv_rd_u8(&rd);
    got.reason = (enum elv_reason)elv_rd_u8(&rd);
    got.weight = elv_rd_u32(&rd);
    got.n_chunks = elv_rd_u32(&rd);
    got.nonce = elv_rd_u64(&rd);
    got.from = elv_rd_u64(&rd);
    got.bytes = elv_rd_u64(&rd);
    got.samples = elv_rd_u32(&rd);
    got.seen = elv_rd_u32(&rd);
    got.steps = elv_rd_u32(&rd);
    got.loss_sum = elv_rec_rd_f64(&rd);
    if (schema == ELV_REC_SCHEMA_2)
        rd_worth(&rd, &got);
    rd_eval(&rd, &found.eval);
    rd_user(&rd, &found.user);
    const bool known = status >= ELV_STATUS_DONE && status <= ELV_STATUS_DECLINED &&
                       (decision == ELV_ACCEPTED || decision == ELV_REFUSED);
    if (rd.err == ELV_OK && !known)
        rd.err = ELV_ERR_RANGE;
    const enum elv_err err = elv_rec_close(&rd);
    if (err != ELV_OK)
        return err;
    got.status = (enum elv_status)status;
    got.decision = (enum elv_decision)decision;
    *r = got;
    *sums = found;
    return ELV_OK;
}

size_t elv_rec_counted_encode(uint32_t client, const struct elv_rec_decision *r,
                              const struct elv_sums *sums, uint8_t out[ELV_REC_MAX])
{
    uint8_t decision[ELV_REC_MAX];
    struct elv_wr w = elv_rec_start(out);
    elv_wr_u32(&w, client);
    elv_rec_wr_raw(&w, decision, elv_rec_decision_encode(r, sums, decision));
    return elv_rec_end(&w);
}

enum elv_err elv_rec_counted_decode(struct elv_bytes in, uint32_t *client,
                                    struct elv_rec_decision *r, struct elv_sums *sums)
{
    struct elv_rd rd = elv_rec_open(in);
    const uint32_t number = elv_rd_u32(&rd);
    if (rd.err != ELV_OK)
        return rd.err;
    *client = number;
    return elv_rec_decision_decode(elv_rd_bytes(&rd, rd.left), r, sums);
}

static void wr_body(struct elv_wr *w, const struct elv_body_ref *b)
{
    elv_rec_wr_raw(w, b->digest, sizeof b->digest);
    elv_wr_u32(w, b->n_chunks);
    elv_wr_u8(w, b->codec);
}

static void rd_body(struct elv_rd *r, struct elv_body_ref *b)
{
    elv_rec_rd_raw(r, b->digest, sizeof b->digest);
    b->n_chunks = elv_rd_u32(r);
    b->codec = elv_rd_u8(r);
}

size_t elv_rec_version_encode(const struct elv_rec_version *r, uint8_t out[ELV_REC_MAX])
{
    struct elv_wr w = elv_rec_start(out);
    elv_rec_wr_raw(&w, r->model, sizeof r->model);
    wr_body(&w, &r->full);
    wr_body(&w, &r->step);
    elv_wr_u32(&w, r->seq);
    elv_wr_u32(&w, r->n_used);
    elv_wr_u64(&w, r->weight_sum);
    elv_wr_u8(&w, r->master);
    wr_eval(&w, &r->eval);
    return elv_rec_end(&w);
}

enum elv_err elv_rec_version_decode(struct elv_bytes in, struct elv_rec_version *r)
{
    struct elv_rd rd = elv_rec_open(in);
    struct elv_rec_version got = {0};
    elv_rec_rd_raw(&rd, got.model, sizeof got.model);
    rd_body(&rd, &got.full);
    rd_body(&rd, &got.step);
    got.seq = elv_rd_u32(&rd);
    got.n_used = elv_rd_u32(&rd);
    got.weight_sum = elv_rd_u64(&rd);
    got.master = elv_rec_rd_bool(&rd);
    rd_eval(&rd, &got.eval);
    const enum elv_err err = elv_rec_close(&rd);
    if (err == ELV_OK)
        *r = got;
    return err;
}
