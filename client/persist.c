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
}

void elv_persist_begin(struct elv_persist *p, const struct elv_manifest *m)
{
    memcpy(p->owner.run, m->run, sizeof p->owner.run);
    memcpy(p->owner.fingerprint, m->fingerprint, sizeof p->owner.fingerprint);
    p->restore_due = p->disk != NULL;
    p->at = ELV_RESTORE_BASE;
    p->done = 0;
    p->has_base = p->has_work = false;
}

void elv_persist_chunk(struct elv_persist *p, struct elv_bytes chunk)
{
    if (p->disk == NULL || p->drop_log || p->pending_drop)
        return;
    p->append_len = elv_persist_record_encode(chunk, p->record);
    p->log_len += p->append_len;
}

void elv_persist_spoilt(struct elv_persist *p) { p->drop_log = p->disk != NULL && p->log_len > 0; }

static struct elv_bytes f32s(const float *values, uint32_t n)
{
    return (struct elv_bytes){.at = (const uint8_t *)values, .len = n * sizeof *values};
}

void elv_persist_base(struct elv_persist *p, const struct elv_persist_base *b, const float *values)
{
    if (p->disk == NULL)
        return;
    ELV_ASSERT(p->pending == 0);
    const size_t len = elv_persist_base_encode(&p->owner, b, p->base_head);
    p->base = (struct elv_store_op){.kind = ELV_STORE_FILE,
                                    .table = ELV_PERSIST_BASE,
                                    .head = {p->base_head, len},
                                    .bytes = f32s(values, b->n_params)};
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
    p->work = (struct elv_store_op){.kind = ELV_STORE_FILE,
                                    .table = ELV_PERSIST_WORK,
                                    .head = {p->work_head, len},
                                    .bytes = f32s(values, w->n_shared)};
    p->put_work = p->work_kept = true;
    p->drop_work = false;
}

void elv_persist_decided(struct elv_persist *p)
{
    p->drop_work |= p->work_kept;
    p->work_kept = p->put_work = false;
}

bool elv_persist_park(struct elv_persist *p)
{
    const bool kept = p->work_kept;
    p->work_kept = false;
    return kept;
}

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

bool elv_persist_emit(struct elv_persist *p, uint32_t id, struct elv_actions *out)
{
    struct elv_action *last = NULL;
    append(p, out);
    if (p->drop_work)
        store(out, &(struct elv_store_op){.kind = ELV_STORE_UNLINK, .table = ELV_PERSIST_WORK});
    if (p->put_base)
        last = store(out, &p->base);
    if (p->drop_log)
        last =
            store(out, &(struct elv_store_op){.kind = ELV_STORE_DROP, .number = ELV_PERSIST_LOG});
    if (p->put_work)
        last = store(out, &p->work);
    p->pending_drop |= p->drop_log;
    p->drop_work = p->put_base = p->drop_log = p->put_work = false;
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
    return p->pending != 0 || p->put_base || p->put_work || p->drop_log;
}
