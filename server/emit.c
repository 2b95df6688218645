/* SPDX-License-Identifier: Apache-2.0 */
#include "common/assert.h"
#include "server/core.h"

static uint32_t next_id(struct elv_server *s)
{
    if (++s->last_id == 0)
        s->last_id = 1;
    return s->last_id;
}

uint32_t elv_core_token(struct elv_server *s)
{
    if (s->step_store == 0)
        s->step_store = next_id(s);
    return s->step_store;
}

void elv_core_seal(struct elv_server *s, struct elv_actions *out)
{
    if (s->step_store == 0)
        return;
    uint32_t i = out->n;
    while (i > 0 && out->at[i - 1].kind != ELV_DO_STORE)
        i--;
    ELV_ASSERT(i > 0); /* who asks for a token stores something */
    out->at[i - 1].id = s->step_store;
}

uint8_t *elv_core_text(struct elv_server *s, size_t cap)
{
    ELV_ASSERT(cap <= ELV_TEXT_CAP - s->text_used); /* what one step says is bounded */
    return s->text + s->text_used;
}

void elv_core_text_used(struct elv_server *s, size_t len) { s->text_used += len; }

static struct elv_action *add(struct elv_actions *out, enum elv_action_kind kind)
{
    ELV_ASSERT(out->n < out->cap);
    struct elv_action *a = &out->at[out->n++];
    *a = (struct elv_action){.kind = kind};
    return a;
}

void elv_core_reply(struct elv_actions *out, uint32_t request, uint8_t code, uint32_t max_age_s,
                    struct elv_bytes body)
{
    struct elv_action *a = add(out, ELV_DO_REPLY);
    a->id = request;
    a->response = (struct elv_response){.code = code, .max_age_s = max_age_s, .body = body};
}

static uint8_t code_of(enum elv_reason reason)
{
    switch (reason) {
    case ELV_REASON_MALFORMED:
    case ELV_REASON_WRONG_SHAPE:
    case ELV_REASON_CODEC:
        return ELV_CODE_BAD_REQUEST;
    case ELV_REASON_MANIFEST_OLD:
    case ELV_REASON_UNKNOWN_ASSIGNMENT:
    case ELV_REASON_SUPERSEDED:
    case ELV_REASON_ROUND_CLOSED:
    case ELV_REASON_DUPLICATE:
        return ELV_CODE_CONFLICT;
    case ELV_REASON_NO_SUCH_JOB:
        return ELV_CODE_NOT_FOUND;
    case ELV_REASON_QUOTA:
        return ELV_CODE_TOO_LARGE;
    case ELV_REASON_FULL:
    case ELV_REASON_STORAGE:
        return ELV_CODE_UNAVAILABLE;
    default:
        return ELV_CODE_FORBIDDEN;
    }
}

void elv_core_refuse(struct elv_server *s, struct elv_actions *out, uint32_t request,
                     enum elv_reason reason, uint32_t retry_ms)
{
    elv_core_refuse_as(s, out, request, code_of(reason), reason, retry_ms);
}

void elv_core_refuse_as(struct elv_server *s, struct elv_actions *out, uint32_t request,
                        uint8_t code, enum elv_reason reason, uint32_t retry_ms)
{
    const struct elv_refusal refusal = {.reason = reason, .retry_ms = retry_ms};
    uint8_t *at = elv_core_text(s, ELV_MSG_MAX);
    size_t len = 0;
    const enum elv_err err = elv_refusal_encode(&refusal, at, ELV_MSG_MAX, &len);
    ELV_ASSERT(err == ELV_OK);
    elv_core_text_used(s, len);
    s->stats.refused[reason]++;
    elv_core_reply(out, request, code, (retry_ms + 999) / 1000, (struct elv_bytes){at, len});
}

void elv_core_store(struct elv_server *s, struct elv_actions *out, const struct elv_store_op *op)
{
    s->step_puts = s->step_puts || op->kind != ELV_STORE_APPEND;
    add(out, ELV_DO_STORE)->store = *op;
}

void elv_core_put(struct elv_server *s, struct elv_actions *out, enum elv_table table,
                  uint64_t number, const uint8_t *at, size_t len)
{
    elv_core_store(
        s, out,
        &(struct elv_store_op){
            .kind = ELV_STORE_PUT, .table = table, .number = number, .bytes = {at, len}});
}

void elv_core_erase(struct elv_server *s, struct elv_actions *out, enum elv_table table,
                    uint64_t number)
{
    elv_core_store(
        s, out, &(struct elv_store_op){.kind = ELV_STORE_ERASE, .table = table, .number = number});
}

uint32_t elv_core_durable_version(const struct elv_server *s)
{
    return s->head.version - (s->version_failed || s->version_store != 0);
}

void elv_core_put_head(struct elv_server *s, struct elv_actions *out)
{
    struct elv_rec_head head = s->head;
    head.version = elv_core_durable_version(s);
    if (s->version_store != 0) /* on its way, before this */
        head.version = s->head.version;
    if (s->log_stands) { /* so does the round that goes with it, and what was begun since is not */
        head.next_seq = head.log != 0 ? head.log : head.next_seq;
        head.log = s->log_before;
        head.void_below = s->void_before;
    }
    uint8_t *at = elv_core_text(s, ELV_REC_MAX);
    const size_t len = elv_rec_head_encode(&head, at);
    elv_core_text_used(s, len);
    elv_core_put(s, out, ELV_TABLE_META, ELV_META_HEAD, at, len);
    s->head_due = false;
}

void elv_core_put_clock(struct elv_server *s, struct elv_actions *out)
{
    const bool open = s->round.state >= ELV_ROUND_OPEN;
    const struct elv_rec_clock clock = {
        .seq = s->round.seq,
        .elapsed_us = open ? (uint64_t)(s->now - s->round.opened) : 0,
        .run_us = elv_core_streams(s) ? (uint64_t)elv_core_run_clock(s) : 0,
    };
    uint8_t *at = elv_core_text(s, ELV_REC_MAX);
    const size_t len = elv_rec_clock_encode(&clock, at);
    elv_core_text_used(s, len);
    elv_core_put(s, out, ELV_TABLE_META, ELV_META_CLOCK, at, len);
    s->clock_at = s->now + ELV_SECOND;
}

void elv_core_drop_log(struct elv_server *s, struct elv_actions *out)
{
    if (s->log_drop != 0)
        elv_core_store(s, out,
                       &(struct elv_store_op){.kind = ELV_STORE_DROP, .number = s->log_drop});
}

void elv_core_put_client(struct elv_server *s, struct elv_actions *out, uint32_t row, bool joined)
{
    const struct elv_row *r = &s->roster.rows[row];
    const struct elv_rec_client rec = {
        .joined = joined,
        .capped = r->capped,
        .boot = r->boot,
        .memory = r->memory,
        .speed = r->speed,
        .samples = r->samples,
        .codec = r->codec,
    };
    uint8_t *at = elv_core_text(s, ELV_REC_MAX);
    const size_t len = elv_rec_client_encode(&rec, at);
    elv_core_text_used(s, len);
    elv_core_put(s, out, ELV_TABLE_CLIENT, r->client, at, len);
}

uint32_t elv_core_compute(struct elv_server *s, struct elv_actions *out, enum elv_server_work work,
                          const void *input)
{
    struct elv_action *a = add(out, ELV_DO_COMPUTE);
    a->id = next_id(s);
    a->compute = (struct elv_compute){.kind = work, .input = input};
    return a->id;
}
