/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a server verifies and folds updates of each codec, by processor time of one core: f32
 * bytes of the updates per second, against the budget of 1 GB/s. Eight updates at a time, whose
 * chunks lie in memory as they lie in a log.
 *
 *     bench fold_CODEC FIGURE GB/s ref budget 1 ratio X */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench.h"
#include "tests/update_log.h"

enum { N = 1 << 20, BLOCKS = 5 };

static void lay_out(struct elv_verify *v, struct elv_fold *f, struct elv_arena *a)
{
    elv_verify_layout(v, a);
    elv_fold_layout(f, a);
    f->sum = elv_arena_take(a, N, sizeof *f->sum);
}

static void run_fold(struct elv_fold *f, const struct update_log *l)
{
    f->n = l->n_up;
    memcpy(f->ups, l->up, f->n * sizeof f->ups[0]);
    elv_fold_start(f);
    if (elv_fold_run(f, UINT32_MAX) != ELV_OK)
        abort();
}

static void run_verify(struct elv_verify *v, const struct update_log *l)
{
    v->n = l->n_up;
    for (uint32_t i = 0; i < v->n; i++)
        v->items[i] = (struct elv_verify_item){.up = l->up[i]};
    elv_verify_start(v);
    if (elv_verify_run(v, UINT32_MAX) != ELV_OK || v->items[0].reason != ELV_REASON_NONE)
        abort();
}

static void check(const struct elv_fold *f, const struct update_log *l)
{
    int64_t *sum = calloc(N, sizeof *sum);
    for (uint32_t i = 0; i < l->n_up; i++) {
        const struct elv_view view = {
            .kind = ELV_VIEW_F32, .values = l->decoded[i], .n = N, .weight = l->up[i]->weight};
        elv_kernels_by_name("ref")->fold(sum, &view, 1, f->value_bits);
    }
    if (memcmp(sum, f->sum, N * sizeof *sum) != 0)
        abort();
    free(sum);
}

static double median_rate(struct elv_fold *f, struct elv_verify *v, const struct update_log *l)
{
    double rate[BLOCKS];
    for (uint32_t b = 0; b < BLOCKS; b++) {
        const double from = bench_now_s();
        if (f != NULL)
            run_fold(f, l);
        else
            run_verify(v, l);
        rate[b] = (double)l->n_up * N * sizeof(float) * 1e-9 / (bench_now_s() - from);
    }
    return bench_median(rate, BLOCKS);
}

static void bench(const struct elv_codec *codec)
{
    static struct update_log l;
    static struct elv_fold f;
    static struct elv_verify v;
    update_log_open(&l, N);
    for (uint32_t i = 0; i < UPDATE_LOG_UPDATES; i++)
        update_log_add(&l, codec, 0.01f);
    struct elv_arena a = elv_arena_of(NULL, 0);
    lay_out(&v, &f, &a);
    void *mem = aligned_alloc(ELV_ARENA_ALIGN, a.used);
    if (mem == NULL)
        exit(1);
    a = elv_arena_of(mem, a.used);
    lay_out(&v, &f, &a);
    f.unpack = v.unpack = &l.unpack;
    f.kernels = v.kernels = elv_kernels_best();
    f.value_bits = 27;
    f.n_params = v.n_params = N;
    v.bound = 8.0f;
    elv_fold_soil(&f);
    run_fold(&f, &l);
    check(&f, &l);
    const double fold = median_rate(&f, NULL, &l), verify = median_rate(NULL, &v, &l);
    printf("bench fold_%s %.3g GB/s ref budget 1 ratio %.2f\n", codec->name, fold, fold);
    printf("bench verify_%s %.3g GB/s ref budget 1 ratio %.2f\n", codec->name, verify, verify);
    free(mem);
    update_log_close(&l);
}

int main(void)
{
    for (size_t i = 0; i < elv_codec_count(); i++)
        bench(elv_codec_at(i));
    return 0;
}
