/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ledger.h"

#include <string.h>

#include "common/assert.h"
#include "common/cursor.h"

enum { SCHEMA = 1 };

static void wr_f64(struct elv_wr *w, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    elv_wr_u64(w, bits);
}

static double rd_f64(struct elv_rd *r)
{
    const uint64_t bits = elv_rd_u64(r);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static bool rd_bool(struct elv_rd *r)
{
    const uint8_t v = elv_rd_u8(r);
    if (v > 1 && r->err == ELV_OK)
        r->err = ELV_ERR_FORMAT;
    return v == 1;
}

static void wr_raw(struct elv_wr *w, const uint8_t *at, size_t len)
{
    elv_wr_bytes(w, (struct elv_bytes){.at = at, .len = len});
}

static void rd_raw(struct elv_rd *r, uint8_t *out, size_t len)
{
    const struct elv_bytes got = elv_rd_bytes(r, len);
    if (got.len == len)
        memcpy(out, got.at, len);
}

static struct elv_wr start(uint8_t *out)
{
    struct elv_wr w = elv_wr_of(out, ELV_REC_MAX);
    elv_wr_u8(&w, SCHEMA);
    return w;
}

static size_t end(const struct elv_wr *w)
{
    ELV_ASSERT(w->err == ELV_OK); /* ELV_REC_MAX holds every record */
    return w->need;
}

static struct elv_rd open(struct elv_bytes in)
{
    struct elv_rd r = elv_rd_of(in);
    const uint8_t schema = elv_rd_u8(&r);
    if (r.err == ELV_OK && schema != SCHEMA)
        r.err = ELV_ERR_VERSION;
    return r;
}

static enum elv_err close(const struct elv_rd *r)
{
    return r->err == ELV_OK && r->left != 0 ? ELV_ERR_FORMAT : r->err;
}

size_t elv_rec_run_encode(const struct elv_rec_run *r, uint8_t out[ELV_REC_MAX])
{
    struct elv_wr w = start(out);
    wr_raw(&w, r->run, sizeof r->run);
    elv_wr_u64(&w, r->seed);
    wr_raw(&w, r->fingerprint, sizeof r->fingerprint);
    elv_wr_u32(&w, r->n_params);
    elv_wr_f32(&w, r->bound);
    elv_wr_u8(&w, r->down);
    return end(&w);
}

enum elv_err elv_rec_run_decode(struct elv_bytes in, struct elv_rec_run *r)
{
    struct elv_rd rd = open(in);
    struct elv_rec_run got = {0};
    rd_raw(&rd, got.run, sizeof got.run);
    got.seed = elv_rd_u64(&rd);
    rd_raw(&rd, got.fingerprint, sizeof got.fingerprint);
    got.n_params = elv_rd_u32(&rd);
    got.bound = elv_rd_f32(&rd);
    got.down = elv_rd_u8(&rd);
    const enum elv_err err = close(&rd);
    if (err == ELV_OK)
        *r = got;
    return err;
}

size_t elv_rec_head_encode(const struct elv_rec_head *r, uint8_t out[ELV_REC_MAX])
{
    struct elv_wr w = start(out);
    elv_wr_u32(&w, r->version);
    elv_wr_u32(&w, r->next_seq);
    elv_wr_u32(&w, r->next_assignment);
    elv_wr_u32(&w, r->n_abandoned);
    elv_wr_u32(&w, r->best_version);
    wr_f64(&w, r->best_accuracy);
    elv_wr_u8(&w, r->over);
    elv_wr_u8(&w, r->reached);
    return end(&w);
}

enum elv_err elv_rec_head_decode(struct elv_bytes in, struct elv_rec_head *r)
{
    struct elv_rd rd = open(in);
    struct elv_rec_head got = {0};
    got.version = elv_rd_u32(&rd);
    got.next_seq = elv_rd_u32(&rd);
    got.next_assignment = elv_rd_u32(&rd);
    got.n_abandoned = elv_rd_u32(&rd);
    got.best_version = elv_rd_u32(&rd);
    got.best_accuracy = rd_f64(&rd);
    got.over = rd_bool(&rd);
    got.reached = rd_bool(&rd);
    const enum elv_err err = close(&rd);
    if (err == ELV_OK)
        *r = got;
    return err;
}

size_t elv_rec_clock_encode(const struct elv_rec_clock *r, uint8_t out[ELV_REC_MAX])
{
    struct elv_wr w = start(out);
    elv_wr_u32(&w, r->seq);
    elv_wr_u64(&w, r->elapsed_us);
    return end(&w);
}

enum elv_err elv_rec_clock_decode(struct elv_bytes in, struct elv_rec_clock *r)
{
    struct elv_rd rd = open(in);
    struct elv_rec_clock got = {0};
    got.seq = elv_rd_u32(&rd);
    got.elapsed_us = elv_rd_u64(&rd);
    if (rd.err == ELV_OK && got.elapsed_us > INT64_MAX / 2)
        rd.err = ELV_ERR_RANGE;
    const enum elv_err err = close(&rd);
    if (err == ELV_OK)
        *r = got;
    return err;
}

size_t elv_rec_client_encode(const struct elv_rec_client *r, uint8_t out[ELV_REC_MAX])
{
    struct elv_wr w = start(out);
    elv_wr_u8(&w, r->joined);
    elv_wr_u8(&w, r->capped);
    elv_wr_u64(&w, r->boot);
    elv_wr_u64(&w, r->memory);
    elv_wr_u32(&w, r->speed);
    elv_wr_u32(&w, r->samples);
    elv_wr_u8(&w, r->codec);
    return end(&w);
}

enum elv_err elv_rec_client_decode(struct elv_bytes in, struct elv_rec_client *r)
{
    struct elv_rd rd = open(in);
    struct elv_rec_client got = {0};
    got.joined = rd_bool(&rd);
    got.capped = rd_bool(&rd);
    got.boot = elv_rd_u64(&rd);
    got.memory = elv_rd_u64(&rd);
    got.speed = elv_rd_u32(&rd);
    got.samples = elv_rd_u32(&rd);
    got.codec = elv_rd_u8(&rd);
    const enum elv_err err = close(&rd);
    if (err == ELV_OK)
        *r = got;
    return err;
}

size_t elv_rec_round_encode(const struct elv_rec_round *r, uint8_t out[ELV_REC_MAX])
{
    struct elv_wr w = start(out);
    elv_wr_u32(&w, r->version);
    elv_wr_u32(&w, r->assignment);
    elv_wr_u32(&w, r->n_asked);
    elv_wr_u32(&w, r->n_blocks);
    elv_wr_u32(&w, (uint32_t)r->weight_bits);
    elv_wr_u64(&w, r->deadline_us);
    return end(&w);
}

enum elv_err elv_rec_round_decode(struct elv_bytes in, struct elv_rec_round *r)
{
    struct elv_rd rd = open(in);
    struct elv_rec_round got = {0};
    got.version = elv_rd_u32(&rd);
    got.assignment = elv_rd_u32(&rd);
    got.n_asked = elv_rd_u32(&rd);
    got.n_blocks = elv_rd_u32(&rd);
    got.weight_bits = (int32_t)elv_rd_u32(&rd);
    got.deadline_us = elv_rd_u64(&rd);
    if (rd.err == ELV_OK &&
        (got.deadline_us > INT64_MAX / 2 || got.weight_bits < -30 || got.weight_bits > 30))
        rd.err = ELV_ERR_RANGE;
    const enum elv_err err = close(&rd);
    if (err == ELV_OK)
        *r = got;
    return err;
}

static void wr_eval(struct elv_wr *w, const struct elv_eval_sums *e)
{
    const uint32_t n_classes = e->n == 0 ? 0 : e->n_classes;
    elv_wr_u32(w, e->n);
    if (e->n == 0)
        return;
    wr_f64(w, e->loss);
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
    e->loss = rd_f64(r);
    e->n_classes = elv_rd_u8(r);
    if (r->err == ELV_OK && e->n_classes > ELV_CLASSES_MAX)
        r->err = ELV_ERR_RANGE;
    for (uint32_t i = 0; r->err == ELV_OK && i < e->n_classes; i++) {
        e->support[i] = elv_rd_u32(r);
        e->predicted[i] = elv_rd_u32(r);
        e->correct[i] = elv_rd_u32(r);
    }
}

size_t elv_rec_decision_encode(const struct elv_rec_decision *r, const struct elv_eval_sums *eval,
                               uint8_t out[ELV_REC_MAX])
{
    struct elv_wr w = start(out);
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
    wr_f64(&w, r->loss_sum);
    wr_eval(&w, eval);
    return end(&w);
}

enum elv_err elv_rec_decision_decode(struct elv_bytes in, struct elv_rec_decision *r,
                                     struct elv_eval_sums *eval)
{
    struct elv_rd rd = open(in);
    struct elv_rec_decision got = {0};
    struct elv_eval_sums sums = {0};
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
    got.loss_sum = rd_f64(&rd);
    rd_eval(&rd, &sums);
    const bool known = status >= ELV_STATUS_DONE && status <= ELV_STATUS_DECLINED &&
                       (decision == ELV_ACCEPTED || decision == ELV_REFUSED);
    if (rd.err == ELV_OK && !known)
        rd.err = ELV_ERR_RANGE;
    const enum elv_err err = close(&rd);
    if (err != ELV_OK)
        return err;
    got.status = (enum elv_status)status;
    got.decision = (enum elv_decision)decision;
    *r = got;
    *eval = sums;
    return ELV_OK;
}

static void wr_body(struct elv_wr *w, const struct elv_body_ref *b)
{
    wr_raw(w, b->digest, sizeof b->digest);
    elv_wr_u32(w, b->n_chunks);
    elv_wr_u8(w, b->codec);
}

static void rd_body(struct elv_rd *r, struct elv_body_ref *b)
{
    rd_raw(r, b->digest, sizeof b->digest);
    b->n_chunks = elv_rd_u32(r);
    b->codec = elv_rd_u8(r);
}

size_t elv_rec_version_encode(const struct elv_rec_version *r, uint8_t out[ELV_REC_MAX])
{
    struct elv_wr w = start(out);
    wr_raw(&w, r->model, sizeof r->model);
    wr_body(&w, &r->full);
    wr_body(&w, &r->step);
    elv_wr_u32(&w, r->seq);
    elv_wr_u32(&w, r->n_used);
    elv_wr_u64(&w, r->weight_sum);
    elv_wr_u8(&w, r->master);
    wr_eval(&w, &r->eval);
    return end(&w);
}

enum elv_err elv_rec_version_decode(struct elv_bytes in, struct elv_rec_version *r)
{
    struct elv_rd rd = open(in);
    struct elv_rec_version got = {0};
    rd_raw(&rd, got.model, sizeof got.model);
    rd_body(&rd, &got.full);
    rd_body(&rd, &got.step);
    got.seq = elv_rd_u32(&rd);
    got.n_used = elv_rd_u32(&rd);
    got.weight_sum = elv_rd_u64(&rd);
    got.master = rd_bool(&rd);
    rd_eval(&rd, &got.eval);
    const enum elv_err err = close(&rd);
    if (err == ELV_OK)
        *r = got;
    return err;
}

void elv_rec_assign_head(uint8_t *out, uint32_t assignment, uint32_t n)
{
    struct elv_wr w = elv_wr_of(out, ELV_ASSIGN_HEAD_LEN);
    elv_wr_u8(&w, SCHEMA);
    elv_wr_u32(&w, assignment);
    elv_wr_u32(&w, n);
}

void elv_rec_assign_item(uint8_t *out, const struct elv_rec_assign *item)
{
    struct elv_wr w = elv_wr_of(out, ELV_ASSIGN_ITEM_LEN);
    elv_wr_u32(&w, item->client);
    elv_wr_u32(&w, item->size.local_epochs);
    elv_wr_u32(&w, item->size.local_steps);
    elv_wr_u32(&w, item->size.batch);
}

enum elv_err elv_rec_assign_open(struct elv_bytes in, uint32_t *assignment, uint32_t *n)
{
    struct elv_rd rd = open(in);
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
    item->size.local_epochs = elv_rd_u32(&rd);
    item->size.local_steps = elv_rd_u32(&rd);
    item->size.batch = elv_rd_u32(&rd);
}
