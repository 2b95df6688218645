/* SPDX-License-Identifier: Apache-2.0 */
#include "client/persist.h"

#include <string.h>

#include "common/assert.h"

enum { LOG_BODIES = 4 }; /* so many times what is fetched now, and the log begins anew */

void elv_persist_layout(struct elv_persist *p, const struct elv_disk *disk, struct elv_arena *a)
{
    *p = (struct elv_persist){.disk = disk};
    if (disk == NULL)
        return;
    p->record = elv_arena_take(a, ELV_PERSIST_RECORD_MAX, 1);
    p->base_head = elv_arena_take(a, ELV_PERSIST_BASE_LEN, 1);
    p->work_head = elv_arena_take(a, ELV_PERSIST_WORK_MAX, 1);
    for (uint32_t i = 0; i < 2; i++)
        p->left_head[i] = elv_arena_take(a, ELV_PERSIST_LEFT_LEN, 1);
}

void elv_persist_begin(struct elv_persist *p, const struct elv_manifest *m)
{
    memcpy(p->owner.run, m->run, sizeof p->owner.run);
    memcpy(p->owner.fingerprint, m->fingerprint, sizeof p->owner.fingerprint);
    p->restore_due = p->disk != NULL;
    p->at = ELV_RESTORE_BASE;
    p->done = 0;
    p->has_base = p->has_work = p->has_left = false;
}

void elv_persist_chunk(struct elv_persist *p, struct elv_bytes chunk)
{
    if (p->disk == NULL || p->drop_log || p->pending_drop)
        return;
    p->append_len = elv_persist_record_encode(chunk, p->record);
    p->log_len += p->append_len;
}

void elv_persist_spoilt(struct elv_persist *p) { p->drop_log = p->disk != NULL && p->log_len > 0; }

static struct elv_store_op file_of(enum elv_persist_file file, const uint8_t *head, size_t head_len,
                                   const void *values, size_t len)
{
    return (struct elv_store_op){
        .kind = ELV_STORE_FILE, .table = file, .head = {head, head_len}, .bytes = {values, len}};
}

void elv_persist_base(struct elv_persist *p, const struct elv_persist_base *b, const float *values)
{
    if (p->disk == NULL)
        return;
    ELV_ASSERT(p->pending == 0);
    const size_t len = elv_persist_base_encode(&p->owner, b, p->base_head);
    p->base = file_of(ELV_PERSIST_BASE, p->base_head, len, values, b->n_params * sizeof *values);
    p->put_base = true;
    elv_persist_spoilt(p);
}

void elv_persist_work(struct elv_persist *p, const struct elv_persist_work *w, const float *values)
{
    if (p->disk == NULL)
        return;
    ELV_ASSERT(p->pending == 0);
    const size_t len = elv_persist_work_encode(&p->owner, w, p->work_head);
    if (len == 0)
        return;
    p->work = file_of(ELV_PERSIST_WORK, p->work_head, len, values, w->n_shared * sizeof *values);
    p->put_work = p->work_kept = true;
    p->work_over = p->drop_work = false;
}

void elv_persist_taken_up(struct elv_persist *p)
{
    p->work_kept = true;
    p->work_over = false;
}

void elv_persist_over(struct elv_persist *p) { p->work_over = true; }

void elv_persist_left(struct elv_persist *p, const struct elv_residual *r)
{
    struct elv_persist_left l = {.assignment = r->saved.assignment,
                                 .n_shared = r->cfg.n,
                                 .kind = r->cfg.kind,
                                 .held = r->saved.held,
                                 .sent = r->saved.sent};
    if (p->disk == NULL)
        return;
    ELV_ASSERT(p->pending == 0);
    size_t len = elv_persist_left_encode(&p->owner, ELV_PERSIST_RESIDUAL, &l, p->left_head[0]);
    p->residual = file_of(ELV_PERSIST_RESIDUAL, p->left_head[0], len, r->cfg.values,
                          r->cfg.n * elv_residual_size(r->cfg.kind));
    p->put_residual = true;
    if (r->cfg.velocity == NULL)
        return;
    l.kind = ELV_FEEDBACK_F32;
    len = elv_persist_left_encode(&p->owner, ELV_PERSIST_VELOCITY, &l, p->left_head[1]);
    p->velocity = file_of(ELV_PERSIST_VELOCITY, p->left_head[1], len, r->cfg.velocity,
                          r->cfg.n * sizeof *r->cfg.velocity);
    p->put_velocity = true;
}

void elv_persist_forget(struct elv_persist *p)
{
    p->drop_work |= p->work_kept && p->work_over;
    p->work_kept &= !p->work_over;
}

bool elv_persist_parks(const struct elv_persist *p) { return p->work_kept && !p->work_over; }

void elv_persist_park(struct elv_persist *p) { p->work_kept = false; }

static struct elv_action *store(struct elv_actions *out, const struct elv_store_op *op)
{
    ELV_ASSERT(out->n < out->cap);
    struct elv_action *a = &out->at[out->n++];
    *a = (struct elv_action){.kind = ELV_DO_STORE, .store = *op};
    return a;
}

static void append(struct elv_persist *p, struct elv_actions *out)
{
    if (p->append_len == 0)
        return;
    store(out, &(struct elv_store_op){.kind = ELV_STORE_APPEND,
                                      .number = ELV_PERSIST_LOG,
                                      .bytes = {p->record, p->append_len}});
    p->append_len = 0;
}

/* The last of them, which tells of all; NULL: nothing waits for them. */
static struct elv_action *store_all(const struct elv_persist *p, struct elv_actions *out)
{
    struct elv_action *last = NULL;
    if (p->put_velocity)
        last = store(out, &p->velocity);
    if (p->put_residual)
        last = store(out, &p->residual);
    if (p->drop_work) /* what the residual says of it has to be there before */
        store(out, &(struct elv_store_op){.kind = ELV_STORE_UNLINK, .table = ELV_PERSIST_WORK});
    if (p->put_base)
        last = store(out, &p->base);
    if (p->drop_log)
        last =
            store(out, &(struct elv_store_op){.kind = ELV_STORE_DROP, .number = ELV_PERSIST_LOG});
    if (p->put_work)
        last = store(out, &p->work);
    return last;
}

bool elv_persist_emit(struct elv_persist *p, uint32_t id, struct elv_actions *out)
{
    append(p, out);
    struct elv_action *last = store_all(p, out);
    p->pending_drop |= p->drop_log;
    p->put_velocity = p->put_residual = p->drop_work = false;
    p->put_base = p->drop_log = p->put_work = false;
    if (last == NULL)
        return false;
    ELV_ASSERT(p->pending == 0);
    last->id = p->pending = id;
    return true;
}

bool elv_persist_stored(struct elv_persist *p, uint32_t id, enum elv_err err)
{
    if (id == 0 || id != p->pending)
        return false;
    p->pending = 0;
    if (p->pending_drop && err == ELV_OK)
        p->log_len = 0;
    p->pending_drop = false;
    return true;
}

bool elv_persist_replays(struct elv_persist *p, const struct elv_bitmap *have)
{
    p->have = *have;
    p->done = 0;
    p->n_replayed = p->skipped = 0;
    if (p->log_len > LOG_BODIES * ((uint64_t)have->n + 1) * ELV_PERSIST_RECORD_MAX)
        elv_persist_spoilt(p); /* of downloads that others took the place of, again and again */
    return p->log_len > 0 && !p->drop_log;
}

bool elv_persist_waits(const struct elv_persist *p)
{
    return p->pending != 0 || p->put_base || p->put_work || p->put_residual || p->drop_log;
}
