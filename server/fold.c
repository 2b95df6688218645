/* SPDX-License-Identifier: Apache-2.0 */
#include "server/fold.h"

#include <string.h>

enum { ZERO_STRIDE = 65536 }; /* sums made zero per unit of budget */

void elv_fold_layout(struct elv_fold *f, struct elv_arena *a)
{
    for (uint32_t i = 0; i < ELV_FOLD_MAX; i++)
        elv_unpacked_layout(&f->bufs[i], a);
}

void elv_fold_start(struct elv_fold *f)
{
    f->at = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        f->next[i] = 0;
        f->bufs[i].view.n = f->bufs[i].view.first = 0;
        f->bufs[i].decoder.left = 0;
    }
}

void elv_fold_soil(struct elv_fold *f) { f->zeroed = 0; }

/* True once the sums may be added to. */
static bool sums_ready(struct elv_fold *f, uint32_t *budget)
{
    while (*budget > 0 && f->zeroed < f->n_params) {
        const size_t left = f->n_params - f->zeroed;
        const size_t n = left < ZERO_STRIDE ? left : ZERO_STRIDE;
        memset(f->sum + f->zeroed, 0, n * sizeof *f->sum);
        f->zeroed += n;
        --*budget;
    }
    return f->zeroed == f->n_params;
}

/* Windows of codecs whose chunks differ in length drift apart; they meet again where half a window
 * divides the coordinate. */
static uint32_t window_at(uint32_t at) { return ELV_WINDOW - at % (ELV_WINDOW / 2); }

/* The view of update `i` covers the coordinate at which all go on. */
static enum elv_err reach(struct elv_fold *f, uint32_t i)
{
    struct elv_unpacked *buf = &f->bufs[i];
    const struct elv_upload *up = f->ups[i];
    if (f->at < buf->view.first + buf->view.n)
        return ELV_OK;
    if (buf->decoder.left == 0) {
        if (f->next[i] == up->commit.n_chunks)
            return ELV_ERR_MISMATCH;
        enum elv_err err = elv_unpack_read(f->unpack, up, f->next[i]++, buf);
        if (err == ELV_OK)
            err = elv_unpack_open(f->unpack, buf);
        if (err == ELV_OK && buf->chunk.first != f->at)
            err = ELV_ERR_MISMATCH;
        if (err != ELV_OK)
            return err;
    }
    return elv_unpack_view(buf, window_at(f->at));
}

/* What is left of the view from coordinate `at`, but no more than `n`. */
static struct elv_view part_of(const struct elv_view *v, uint32_t at, uint32_t n, uint32_t weight)
{
    const size_t size = v->kind == ELV_VIEW_Q8 ? 1 : sizeof(float);
    struct elv_view part = *v;
    part.values = (const uint8_t *)v->values + (at - v->first) * size;
    part.first = at;
    part.n = n;
    part.weight = weight;
    return part;
}

/* As far as the views of all updates go together. */
static enum elv_err fold_some(struct elv_fold *f)
{
    struct elv_view views[ELV_FOLD_MAX];
    uint32_t n = (uint32_t)f->n_params - f->at;
    for (uint32_t i = 0; i < f->n; i++) {
        const enum elv_err err = reach(f, i);
        if (err != ELV_OK)
            return err;
        const struct elv_view *v = &f->bufs[i].view;
        const uint32_t left = v->first + v->n - f->at;
        n = left < n ? left : n;
    }
    for (uint32_t i = 0; i < f->n; i++)
        views[i] = part_of(&f->bufs[i].view, f->at, n, f->ups[i]->weight);
    f->kernels->fold(f->sum, views, f->n, f->value_bits);
    f->at += n;
    return f->kernels->sync();
}

enum elv_err elv_fold_run(struct elv_fold *f, uint32_t budget)
{
    if (!sums_ready(f, &budget))
        return ELV_ERR_BUSY;
    for (uint32_t i = 0; f->at < f->n_params && i < budget; i++) {
        const enum elv_err err = fold_some(f);
        if (err != ELV_OK)
            return err;
    }
    return f->at < f->n_params ? ELV_ERR_BUSY : ELV_OK;
}

static uint64_t key_of(const struct elv_refold_item *item)
{
    return (uint64_t)item->client << 32 | item->assignment;
}

/* The heap below `root` is in order again, though the item there is not. */
static void sift_down(struct elv_refold_item *at, uint32_t root, uint32_t n)
{
    for (uint32_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && key_of(&at[child]) < key_of(&at[child + 1]))
            child++;
        if (key_of(&at[root]) >= key_of(&at[child]))
            return;
        const struct elv_refold_item item = at[root];
        at[root] = at[child];
        at[child] = item;
    }
}

static void sort(struct elv_refold_item *at, uint32_t n)
{
    for (uint32_t i = n / 2; i > 0; i--)
        sift_down(at, i - 1, n);
    for (uint32_t i = n; i > 1; i--) {
        const struct elv_refold_item last = at[i - 1];
        at[i - 1] = at[0];
        at[0] = last;
        sift_down(at, 0, i - 1);
    }
}

void elv_refold_start(struct elv_refold *r, uint64_t log_len)
{
    r->scan = elv_log_scan_of(r->fold->unpack->disk, r->fold->unpack->log, r->scan_buf);
    r->scan.end = log_len;
    r->open = NULL;
    sort(r->items, r->n);
    elv_fold_soil(r->fold);
}

static struct elv_refold_item *find(const struct elv_refold *r, uint32_t client,
                                    uint32_t assignment)
{
    const uint64_t key = (uint64_t)client << 32 | assignment;
    uint32_t low = 0, high = r->n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (key_of(&r->items[mid]) < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low < r->n && key_of(&r->items[low]) == key ? &r->items[low] : NULL;
}

/* A record of what was accepted is opened; others are passed over. */
static enum elv_err open_record(struct elv_refold *r, const struct elv_log_record *rec)
{
    struct elv_refold_item *item = find(r, rec->client, rec->assignment);
    struct elv_unpacked *buf = &r->fold->bufs[0];
    if (item == NULL || rec->at < item->from ||
        elv_chunk_decode(rec->chunk, &buf->chunk) != ELV_OK ||
        elv_nonce_of(buf->chunk.tag) != item->nonce)
        return ELV_OK;
    if (item->left == 0)
        return ELV_ERR_MISMATCH;
    item->left--;
    r->open = item;
    return elv_unpack_open(r->fold->unpack, buf);
}

static enum elv_err refold_window(struct elv_refold *r)
{
    struct elv_fold *f = r->fold;
    struct elv_unpacked *buf = &f->bufs[0];
    const enum elv_err err = elv_unpack_view(buf, ELV_WINDOW);
    if (err != ELV_OK)
        return err;
    buf->view.weight = r->open->weight;
    if (buf->decoder.left == 0)
        r->open = NULL;
    f->kernels->fold(f->sum, &buf->view, 1, f->value_bits);
    return f->kernels->sync();
}

static enum elv_err nothing_left(const struct elv_refold *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->items[i].left != 0)
            return ELV_ERR_MISMATCH;
    return ELV_OK;
}

enum elv_err elv_refold_run(struct elv_refold *r, uint32_t budget)
{
    if (!sums_ready(r->fold, &budget))
        return ELV_ERR_BUSY;
    for (uint32_t i = 0; i < budget; i++) {
        struct elv_log_record rec;
        enum elv_err err = ELV_OK;
        if (r->open == NULL) {
            err = elv_log_scan_next(&r->scan, &rec);
            if (err == ELV_ERR_MISSING)
                return nothing_left(r);
            if (err == ELV_OK)
                err = open_record(r, &rec);
        }
        if (err == ELV_OK && r->open != NULL)
            err = refold_window(r);
        if (err != ELV_OK)
            return err;
    }
    return ELV_ERR_BUSY;
}
