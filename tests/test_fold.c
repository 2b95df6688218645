/* SPDX-License-Identifier: Apache-2.0 */
/* Verifying and folding updates of every codec, whose chunks cover from 250 coordinates to all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/update_log.h"

enum { N = 120007, BITS = 27 };

struct world {
    struct update_log log;
    void *mem;
    struct elv_verify verify;
    struct elv_fold fold;
    struct elv_refold refold;
    struct elv_refold_item items[UPDATE_LOG_UPDATES];
    uint8_t scan_buf[ELV_LOG_SCAN_BUF];
    int64_t *sum;
};

static void lay_out(struct world *w, struct elv_arena *a)
{
    elv_verify_layout(&w->verify, a);
    elv_fold_layout(&w->fold, a);
    w->sum = elv_arena_take(a, w->log.n, sizeof *w->sum);
}

static struct world *open_world(uint32_t n)
{
    struct world *w = calloc(1, sizeof *w);
    update_log_open(&w->log, n);
    struct elv_arena a = elv_arena_of(NULL, 0);
    lay_out(w, &a);
    w->mem = aligned_alloc(ELV_ARENA_ALIGN, a.used);
    a = elv_arena_of(w->mem, a.used);
    lay_out(w, &a);
    assert_int_equal(a.err, ELV_OK);
    w->verify.unpack = w->fold.unpack = &w->log.unpack;
    w->verify.kernels = w->fold.kernels = elv_kernels_best();
    w->verify.n_params = n;
    w->verify.bound = 8.0f;
    w->fold.value_bits = BITS;
    w->fold.sum = w->sum;
    w->fold.n_params = n;
    w->refold.fold = &w->fold;
    w->refold.items = w->items;
    w->refold.scan_buf = w->scan_buf;
    return w;
}

static void close_world(struct world *w)
{
    update_log_close(&w->log);
    free(w->mem);
    free(w);
}

static void add_all_codecs(struct world *w)
{
    for (size_t i = 0; i < elv_codec_count() && i < UPDATE_LOG_UPDATES; i++)
        update_log_add(&w->log, elv_codec_at(i), 0.01f);
}

static void verify(struct world *w, uint32_t budget)
{
    struct elv_verify *v = &w->verify;
    v->n = w->log.n_up;
    for (uint32_t i = 0; i < v->n; i++)
        v->items[i] = (struct elv_verify_item){.up = w->log.up[i]};
    elv_verify_start(v);
    enum elv_err err;
    while ((err = elv_verify_run(v, budget)) == ELV_ERR_BUSY)
        ;
    assert_int_equal(err, ELV_OK);
}

static void fold(struct world *w, uint32_t budget)
{
    struct elv_fold *f = &w->fold;
    f->n = w->log.n_up;
    memcpy(f->ups, w->log.up, f->n * sizeof f->ups[0]);
    elv_fold_soil(f);
    elv_fold_start(f);
    enum elv_err err;
    while ((err = elv_fold_run(f, budget)) == ELV_ERR_BUSY)
        ;
    assert_int_equal(err, ELV_OK);
}

/* By the definition: whole vectors, one after the other. */
static int64_t *expected(const struct world *w)
{
    const struct elv_kernels *ref = elv_kernels_by_name("ref");
    int64_t *sum = calloc(w->log.n, sizeof *sum);
    for (uint32_t i = 0; i < w->log.n_up; i++) {
        const struct elv_view view = {.kind = ELV_VIEW_F32,
                                      .values = w->log.decoded[i],
                                      .n = w->log.n,
                                      .weight = w->log.up[i]->weight};
        ref->fold(sum, &view, 1, BITS);
    }
    return sum;
}

static void updates_of_all_codecs_fold_to_the_sum_of_what_they_decode_to(void **state)
{
    (void)state;
    static const uint32_t budgets[] = {1, 7, UINT32_MAX};
    struct world *w = open_world(N);
    add_all_codecs(w);
    int64_t *sum = expected(w);
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        fold(w, budgets[i]);
        assert_memory_equal(w->sum, sum, N * sizeof *sum);
    }
    free(sum);
    close_world(w);
}

static void folding_again_from_the_log_gives_the_same_sums(void **state)
{
    (void)state;
    static const uint32_t budgets[] = {1, 1000};
    struct world *w = open_world(N);
    add_all_codecs(w);
    int64_t *sum = expected(w);
    for (size_t b = 0; b < sizeof budgets / sizeof budgets[0]; b++) {
        w->refold.n = w->log.n_up;
        for (uint32_t i = 0; i < w->refold.n; i++)
            w->items[i] = (struct elv_refold_item){.client = i + 1,
                                                   .assignment = 1,
                                                   .nonce = w->log.up[i]->nonce,
                                                   .weight = w->log.up[i]->weight,
                                                   .left = w->log.up[i]->commit.n_chunks};
        elv_refold_start(&w->refold, w->log.len);
        enum elv_err err;
        while ((err = elv_refold_run(&w->refold, budgets[b])) == ELV_ERR_BUSY)
            ;
        assert_int_equal(err, ELV_OK);
        assert_memory_equal(w->sum, sum, N * sizeof *sum);
    }
    free(sum);
    close_world(w);
}

/* Each chunk's squares as the kernel adds them, then the chunks in order. */
static double norm2_of(const struct world *w, uint32_t up)
{
    const struct elv_kernels *ref = elv_kernels_by_name("ref");
    double norm2 = 0.0;
    for (uint32_t i = 0; i < w->log.up[up]->commit.n_chunks; i++) {
        const struct elv_chunk_ref *c = &w->log.up[up]->refs[i];
        double part;
        ref->norm2(&part, w->log.decoded[up] + c->first, c->count);
        norm2 += part;
    }
    return norm2;
}

static void norms_are_the_same_bits_however_the_work_is_cut(void **state)
{
    (void)state;
    static const uint32_t budgets[] = {1, 3, UINT32_MAX};
    struct world *w = open_world(N);
    add_all_codecs(w);
    for (size_t b = 0; b < sizeof budgets / sizeof budgets[0]; b++) {
        verify(w, budgets[b]);
        for (uint32_t i = 0; i < w->log.n_up; i++) {
            const struct elv_verify_item *item = &w->verify.items[i];
            const double norm2 = norm2_of(w, i);
            assert_int_equal(item->reason, ELV_REASON_NONE);
            assert_false(item->lost);
            assert_memory_equal(&item->norm2, &norm2, sizeof norm2);
        }
    }
    close_world(w);
}

static void too_large_a_value_or_norm_is_noticed_in_every_codec(void **state)
{
    (void)state;
    struct world *w = open_world(5000);
    add_all_codecs(w);
    w->verify.bound = 1e-5f;
    verify(w, 1000);
    for (uint32_t i = 0; i < w->log.n_up; i++)
        assert_int_equal(w->verify.items[i].reason, ELV_REASON_OUT_OF_RANGE);
    w->verify.bound = 8.0f;
    w->verify.clip = 1e-3f;
    verify(w, 1000);
    for (uint32_t i = 0; i < w->log.n_up; i++)
        assert_int_equal(w->verify.items[i].reason, ELV_REASON_OVER_NORM);
    close_world(w);
}

enum { FIRST_AT = 8, COUNT_AT = 12 };

static void put_u32(uint8_t *at, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> 8 * i);
}

static enum elv_reason reason_with(struct world *w, uint32_t up, uint32_t index, uint32_t first,
                                   uint32_t count)
{
    size_t len;
    uint8_t *at = update_log_chunk(&w->log, up, index, &len), was[ELV_CHUNK_MAX];
    memcpy(was, at, len);
    put_u32(at + FIRST_AT, first);
    put_u32(at + COUNT_AT, count);
    update_log_seal(&w->log, up, index);
    verify(w, 1000);
    const enum elv_reason reason = w->verify.items[up].reason;
    for (uint32_t i = 0; i < w->log.n_up; i++)
        assert_true(i == up || w->verify.items[i].reason == ELV_REASON_NONE);
    memcpy(at, was, len);
    update_log_seal(&w->log, up, index);
    return reason;
}

static bool is_refusal_of_a_lie(enum elv_reason r)
{
    return r == ELV_REASON_WRONG_SHAPE || r == ELV_REASON_MALFORMED || r == ELV_REASON_DIGEST;
}

/* What each chunk says by itself was checked when it came; together they have to fit. */
static void chunks_that_overlap_leave_gaps_or_cover_too_much_are_refused(void **state)
{
    (void)state;
    struct world *w = open_world(N);
    add_all_codecs(w);
    for (uint32_t i = 0; i < w->log.n_up; i++) {
        const struct elv_upload *up = w->log.up[i];
        const uint32_t last = up->commit.n_chunks - 1;
        const struct elv_chunk_ref c = up->refs[last];
        if (last > 0) {
            const uint32_t before = up->refs[last - 1].first;
            assert_int_equal(reason_with(w, i, last, before + 1, c.count), ELV_REASON_WRONG_SHAPE);
            assert_int_equal(reason_with(w, i, last, c.first - 1, c.count), ELV_REASON_WRONG_SHAPE);
            assert_true(is_refusal_of_a_lie(reason_with(w, i, 0, 0, N)));
        }
        assert_true(is_refusal_of_a_lie(reason_with(w, i, last, c.first, c.count - 1)));
        assert_int_equal(reason_with(w, i, last, c.first + 1, c.count), ELV_REASON_WRONG_SHAPE);
    }
    close_world(w);
}

static void damaged_payloads_end_in_a_refusal_never_in_a_crash(void **state)
{
    (void)state;
    struct world *w = open_world(20000);
    add_all_codecs(w);
    uint32_t x = 1;
    for (uint32_t round = 0; round < 200; round++) {
        for (uint32_t i = 0; i < w->log.n_up; i++) {
            size_t len;
            x = x * 1664525u + 1013904223u;
            uint8_t *at = update_log_chunk(&w->log, i, 0, &len);
            at[ELV_CHUNK_HEAD_LEN + x % (len - ELV_CHUNK_HEAD_LEN)] ^= (uint8_t)(1 + x % 255);
            update_log_seal(&w->log, i, 0);
        }
        verify(w, 64);
        for (uint32_t i = 0; i < w->log.n_up; i++)
            assert_int_not_equal(w->verify.items[i].reason, ELV_REASON_NONE);
    }
    close_world(w);
}

/* A sixteenth of what was needed while a buffer held the widest chunk. */
static void memory_does_not_depend_on_what_a_chunk_covers(void **state)
{
    (void)state;
    struct world w = {0};
    struct elv_arena a = elv_arena_of(NULL, 0);
    elv_verify_layout(&w.verify, &a);
    elv_fold_layout(&w.fold, &a);
    assert_true(a.used < (ELV_FOLD_MAX + 1) * (ELV_WINDOW * sizeof(float) + 4096));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_of_all_codecs_fold_to_the_sum_of_what_they_decode_to),
        cmocka_unit_test(folding_again_from_the_log_gives_the_same_sums),
        cmocka_unit_test(norms_are_the_same_bits_however_the_work_is_cut),
        cmocka_unit_test(too_large_a_value_or_norm_is_noticed_in_every_codec),
        cmocka_unit_test(chunks_that_overlap_leave_gaps_or_cover_too_much_are_refused),
        cmocka_unit_test(damaged_payloads_end_in_a_refusal_never_in_a_crash),
        cmocka_unit_test(memory_does_not_depend_on_what_a_chunk_covers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
