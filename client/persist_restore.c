/* SPDX-License-Identifier: Apache-2.0 */
/* client/persist_restore.c - reads back what was kept. All of it runs as work, in slices; what is
 * not whole, not ours or not there is as if there were nothing. */
#include <string.h>

#include "client/persist.h"
#include "common/assert.h"
#include "common/exact.h"

enum {
    SLICE = 65536,       /* bytes */
    RECORDS = 16,        /* of a slice */
    SKIPPED_MAX = 65536, /* bytes of a log that are no records; then it is given up */
};

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static void enter(struct elv_persist *p, enum elv_persist_pass at)
{
    p->at = at;
    p->done = 0;
}

/* Up to `cap` bytes; false: there is no such file, or it cannot be read. */
static bool read_some(const struct elv_persist *p, enum elv_persist_file file, uint64_t offset,
                      uint8_t *out, size_t cap, size_t *got)
{
    const struct elv_disk *d = p->disk;
    return d->read_file(d->self, file, 0, offset, out, cap, got) == ELV_OK;
}

/* The next values of a file that has `len` bytes of them after its head. ELV_ERR_BUSY: there are
 * more. */
static enum elv_err read_values(struct elv_persist *p, enum elv_persist_file file, void *values,
                                uint64_t len)
{
    size_t got = 0;
    uint8_t more;
    if (p->done == len) /* and nothing follows */
        return read_some(p, file, p->found_head + len, &more, 1, &got) && got == 0 ? ELV_OK
                                                                                   : ELV_ERR_FORMAT;
    const size_t want = smaller(SLICE, (size_t)(len - p->done));
    if (!read_some(p, file, p->found_head + p->done, (uint8_t *)values + p->done, want, &got) ||
        got != want)
        return ELV_ERR_SHORT;
    p->done += got;
    return ELV_ERR_BUSY;
}

static void find_base(struct elv_persist *p, const struct elv_restore_into *into)
{
    size_t got = 0;
    const bool found =
        read_some(p, ELV_PERSIST_BASE, 0, p->base_head, ELV_PERSIST_BASE_LEN, &got) &&
        elv_persist_base_decode((struct elv_bytes){p->base_head, got}, &p->owner, &p->found_base,
                                &p->found_head) == ELV_OK &&
        p->found_base.n_params == into->model->n_params;
    enter(p, found ? ELV_RESTORE_BASE_VALUES : ELV_RESTORE_RESIDUAL);
}

static void read_base(struct elv_persist *p, const struct elv_restore_into *into)
{
    const enum elv_err err = read_values(p, ELV_PERSIST_BASE, into->base,
                                         (uint64_t)into->model->n_params * sizeof *into->base);
    if (err == ELV_ERR_BUSY)
        return;
    enter(p, err == ELV_OK ? ELV_RESTORE_BASE_DIGEST : ELV_RESTORE_RESIDUAL);
    elv_sha256_init(&p->sha);
}

/* What stays on the device is in no digest; the port saw that it is as it was written. */
static void check_base(struct elv_persist *p, const struct elv_restore_into *into)
{
    uint32_t at = 0;
    uint8_t digest[ELV_SHA256_LEN];
    const uint32_t run = elv_model_run(into->model, (uint32_t)p->done, &at);
    const uint32_t n = (uint32_t)smaller(run, SLICE / sizeof(float));
    elv_sha256_update_f32(&p->sha, into->base + at, n);
    p->done += n;
    if (p->done < into->model->n_shared)
        return;
    elv_sha256_final(&p->sha, digest);
    p->has_base = memcmp(digest, p->found_base.digest, sizeof digest) == 0;
    enter(p, ELV_RESTORE_RESIDUAL);
}

static bool all_finite(const float *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!elv_finite_f32(v[i]))
            return false;
    return true;
}

static bool is_sound(const struct elv_residual_cfg *r)
{
    const uint16_t *half = r->values;
    if (r->kind == ELV_FEEDBACK_F32)
        return all_finite(r->values, r->n);
    for (uint32_t i = 0; i < r->n; i++)
        if ((half[i] & 0x7C00u) == 0x7C00u)
            return false;
    return true;
}

/* The head of RESIDUAL or VELOCITY. */
static bool find_left(struct elv_persist *p, const struct elv_restore_into *into,
                      enum elv_persist_file file, struct elv_persist_left *l)
{
    size_t got = 0;
    uint8_t *head = p->left_head[file == ELV_PERSIST_VELOCITY];
    return into->residual != NULL && read_some(p, file, 0, head, ELV_PERSIST_LEFT_LEN, &got) &&
           elv_persist_left_decode((struct elv_bytes){head, got}, &p->owner, file, l,
                                   &p->found_head) == ELV_OK &&
           l->n_shared == into->residual->cfg.n;
}

static void find_residual(struct elv_persist *p, const struct elv_restore_into *into)
{
    const bool found = find_left(p, into, ELV_PERSIST_RESIDUAL, &p->found_left) &&
                       p->found_left.kind == into->residual->cfg.kind;
    enter(p, found ? ELV_RESTORE_RESIDUAL_VALUES : ELV_RESTORE_WORK);
}

static void read_residual(struct elv_persist *p, const struct elv_restore_into *into)
{
    const struct elv_residual_cfg *r = &into->residual->cfg;
    const enum elv_err err = read_values(p, ELV_PERSIST_RESIDUAL, r->values,
                                         (uint64_t)r->n * elv_residual_size(r->kind));
    if (err == ELV_ERR_BUSY)
        return;
    p->has_left = err == ELV_OK && is_sound(r);
    enter(p, p->has_left ? ELV_RESTORE_VELOCITY : ELV_RESTORE_WORK);
}

/* It was stored before the residual, so it may be of one assignment more; then that one is settled
 * anew, for which no velocity is needed. */
static void find_velocity(struct elv_persist *p, const struct elv_restore_into *into)
{
    struct elv_persist_left l;
    const struct elv_residual_cfg *r = &into->residual->cfg;
    if (r->velocity == NULL) {
        enter(p, ELV_RESTORE_WORK);
    } else if (find_left(p, into, ELV_PERSIST_VELOCITY, &l) && l.kind == ELV_FEEDBACK_F32 &&
               l.assignment >= p->found_left.assignment) {
        enter(p, ELV_RESTORE_VELOCITY_VALUES);
    } else {
        memset(r->velocity, 0, r->n * sizeof *r->velocity);
        enter(p, ELV_RESTORE_WORK);
    }
}

static void read_velocity(struct elv_persist *p, const struct elv_restore_into *into)
{
    const struct elv_residual_cfg *r = &into->residual->cfg;
    const enum elv_err err =
        read_values(p, ELV_PERSIST_VELOCITY, r->velocity, (uint64_t)r->n * sizeof *r->velocity);
    if (err == ELV_ERR_BUSY)
        return;
    if (err != ELV_OK || !all_finite(r->velocity, r->n))
        memset(r->velocity, 0, r->n * sizeof *r->velocity);
    enter(p, ELV_RESTORE_WORK);
}

static bool is_open(const struct elv_persist *p)
{
    return !p->has_left || p->found_left.assignment < p->found_work.assignment;
}

static void find_work(struct elv_persist *p, const struct elv_restore_into *into)
{
    size_t got = 0;
    const struct elv_persist_work *w = &p->found_work;
    const bool found =
        into->fresh != NULL &&
        read_some(p, ELV_PERSIST_WORK, 0, p->work_head, ELV_PERSIST_WORK_MAX, &got) &&
        elv_persist_work_decode((struct elv_bytes){p->work_head, got}, &p->owner, &p->found_work,
                                &p->found_head) == ELV_OK &&
        w->n_shared == into->model->n_shared &&
        memcmp(w->manifest, into->manifest, sizeof w->manifest) == 0 && is_open(p);
    enter(p, found ? ELV_RESTORE_WORK_VALUES : ELV_RESTORE_LOG);
}

static void read_work(struct elv_persist *p, const struct elv_restore_into *into)
{
    const uint32_t n = into->model->n_shared;
    const enum elv_err err =
        read_values(p, ELV_PERSIST_WORK, into->fresh, (uint64_t)n * sizeof *into->fresh);
    if (err == ELV_ERR_BUSY)
        return;
    p->has_work = err == ELV_OK && all_finite(into->fresh, n);
    enter(p, ELV_RESTORE_LOG);
}

static void find_log(struct elv_persist *p)
{
    uint8_t byte;
    size_t got = 0;
    const struct elv_disk *d = p->disk;
    const enum elv_err err = d->read_log(d->self, ELV_PERSIST_LOG, 0, &byte, 1, &got);
    p->log_len = err == ELV_OK ? got : 0; /* how long it is will show */
    enter(p, ELV_RESTORE_DONE);
}

static void slice(struct elv_persist *p, const struct elv_restore_into *into)
{
    switch (p->at) {
    case ELV_RESTORE_BASE:
        find_base(p, into);
        break;
    case ELV_RESTORE_BASE_VALUES:
        read_base(p, into);
        break;
    case ELV_RESTORE_BASE_DIGEST:
        check_base(p, into);
        break;
    case ELV_RESTORE_RESIDUAL:
        find_residual(p, into);
        break;
    case ELV_RESTORE_RESIDUAL_VALUES:
        read_residual(p, into);
        break;
    case ELV_RESTORE_VELOCITY:
        find_velocity(p, into);
        break;
    case ELV_RESTORE_VELOCITY_VALUES:
        read_velocity(p, into);
        break;
    case ELV_RESTORE_WORK:
        find_work(p, into);
        break;
    case ELV_RESTORE_WORK_VALUES:
        read_work(p, into);
        break;
    case ELV_RESTORE_LOG:
        find_log(p);
        break;
    case ELV_RESTORE_DONE:
        break;
    }
}

enum elv_err elv_persist_restore(struct elv_persist *p, const struct elv_restore_into *into,
                                 uint32_t budget)
{
    for (uint32_t i = 0; (i == 0 || i < budget) && p->at != ELV_RESTORE_DONE; i++)
        slice(p, into);
    return p->at == ELV_RESTORE_DONE ? ELV_OK : ELV_ERR_BUSY;
}

static void take(struct elv_persist *p, struct elv_base *base, struct elv_bytes chunk)
{
    uint32_t i;
    if (!elv_base_find(base, chunk, &i) || elv_bitmap_get(&p->have, i) ||
        elv_base_take(base, i, chunk) != ELV_OK)
        return;
    elv_bitmap_set(&p->have, i);
    p->n_replayed++;
}

/* One record, or a byte that begins none. False: there is no more, or it cannot be read. */
static bool next_record(struct elv_persist *p, struct elv_base *base)
{
    size_t got = 0;
    struct elv_bytes chunk;
    const struct elv_disk *d = p->disk;
    const enum elv_err err =
        d->read_log(d->self, ELV_PERSIST_LOG, p->done, p->record, ELV_PERSIST_RECORD_MAX, &got);
    if (err != ELV_OK || got == 0 || p->skipped > SKIPPED_MAX)
        return false;
    if (elv_persist_record_decode((struct elv_bytes){p->record, got}, &chunk) != ELV_OK) {
        p->skipped++;
        p->done++;
        return true;
    }
    p->done += ELV_PERSIST_RECORD_LEN + chunk.len;
    take(p, base, chunk);
    return true;
}

enum elv_err elv_persist_replay(struct elv_persist *p, struct elv_base *base, uint32_t budget)
{
    for (uint32_t i = 0; i < RECORDS * (budget > 0 ? (uint64_t)budget : 1); i++)
        if (!next_record(p, base)) {
            p->log_len = p->done > 0 ? p->done : p->log_len;
            return ELV_OK;
        }
    return ELV_ERR_BUSY;
}
