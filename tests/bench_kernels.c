/* SPDX-License-Identifier: Apache-2.0 */
/* Training speed of two networks and speed of the server's sums, against the reference kernels.
 *
 *     bench NAME FIGURE UNIT ref REFERENCE FIGURE ratio X
 *
 * Figures are medians over short blocks, by processor time of one core: other load does not count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "kernels/nn.h"
#include "tests/bench.h"

enum { BLOCKS = 7 };

/* Median of work done per second; one block takes about `block_s`. */
static double rate(void (*work)(void *), void *arg, double amount, double block_s)
{
    work(arg);
    const double once = bench_now_s();
    work(arg);
    const double took = bench_now_s() - once;
    const unsigned turns = took >= block_s ? 1 : (unsigned)(block_s / (took + 1e-7)) + 1;
    double v[BLOCKS];
    for (unsigned b = 0; b < BLOCKS; b++) {
        const double from = bench_now_s();
        for (unsigned i = 0; i < turns; i++)
            work(arg);
        v[b] = amount * turns / (bench_now_s() - from);
    }
    return bench_median(v, BLOCKS);
}

static void report(const char *name, const char *kernels, const char *unit, double got, double ref)
{
    printf("bench %s_%s %.4g %s ref ref %.4g ratio %.2f\n", name, kernels, got, unit, ref,
           got / ref);
}

static void step(void *arg)
{
    struct elv_nn *nn = arg;
    const struct elv_nn_rates rates = {.rate = 0.001f, .momentum = 0.9f};
    elv_nn_forward(nn);
    elv_nn_loss(nn);
    elv_nn_backward(nn, &rates);
}

static double train_rate(const struct elv_kernels *k, const char *line, uint32_t batch)
{
    struct elv_model m;
    const struct elv_bytes text = {(const uint8_t *)line, strlen(line)};
    if (elv_model_parse_line(&m, text, NULL) != ELV_OK)
        exit(1);
    const struct elv_nn_cfg cfg = {.model = &m, .kernels = k, .batch = batch, .momentum = true};
    const size_t len = elv_nn_mem(&cfg);
    void *mem = bench_block(len);
    struct elv_nn nn;
    if (elv_nn_init(&nn, &cfg, mem, len) != ELV_OK)
        exit(1);
    float *w = bench_block(m.n_params * sizeof *w);
    elv_model_init_params(&m, 1, w);
    elv_nn_bind(&nn, w, m.n_params);
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = 1});
    for (size_t i = 0; i < (size_t)batch * elv_shape_len(m.input); i++)
        elv_nn_x(&nn, 0)[i] = elv_rng_unit(&r);
    for (uint32_t i = 0; i < batch; i++)
        elv_nn_labels(&nn, 0)[i] = elv_rng_below(&r, m.n_classes);
    elv_nn_set_rows(&nn, 0, batch);
    const double v = rate(step, &nn, batch, 0.1);
    free(w);
    free(mem);
    return v;
}

static void bench_training(const char *name, const char *line, uint32_t batch)
{
    const double ref = train_rate(elv_kernels_by_name("ref"), line, batch);
    for (size_t i = 0; i + 1 < elv_kernels_count(); i++) {
        const struct elv_kernels *k = elv_kernels_at(i);
        if (k != NULL)
            report(name, k->name, "samples/s", train_rate(k, line, batch), ref);
    }
}

enum { UPDATES = 16, COORDINATES = 1 << 20 };

struct folding {
    const struct elv_kernels *k;
    struct elv_view views[UPDATES];
    int64_t *acc;
};

static void fold(void *arg)
{
    struct folding *f = arg;
    f->k->fold(f->acc, f->views, UPDATES, 27);
}

/* Reads the same bytes and adds them up: what memory alone allows. */
static void read_all(void *arg)
{
    const struct folding *f = arg;
    const size_t size = f->views[0].kind == ELV_VIEW_Q8 ? 1 : sizeof(float);
    uint64_t sum[8] = {0};
    for (size_t k = 0; k < UPDATES; k++) {
        const uint64_t *p = f->views[k].values;
        for (size_t i = 0; i < COORDINATES * size / sizeof *p; i += 8)
            for (size_t j = 0; j < 8; j++)
                sum[j] += p[i + j];
    }
    f->acc[0] = (int64_t)(sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7]);
}

static void bench_fold(const char *name, enum elv_view_kind kind)
{
    const size_t size = kind == ELV_VIEW_Q8 ? 1 : sizeof(float);
    struct folding f = {.acc = bench_block(COORDINATES * sizeof *f.acc)};
    memset(f.acc, 0, COORDINATES * sizeof *f.acc); /* far from full after all repeats */
    uint8_t *bytes = bench_block(UPDATES * COORDINATES * size);
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = 2});
    for (size_t i = 0; i < (size_t)UPDATES * COORDINATES; i++) {
        const float v = elv_rng_unit(&r) - 0.5f;
        if (kind == ELV_VIEW_Q8)
            bytes[i] = (uint8_t)(int8_t)(v * 254.0f);
        else
            memcpy(bytes + 4 * i, &v, sizeof v);
    }
    for (uint32_t k = 0; k < UPDATES; k++)
        f.views[k] = (struct elv_view){.kind = kind,
                                       .values = bytes + (size_t)k * COORDINATES * size,
                                       .scale = 0.01f,
                                       .n = COORDINATES,
                                       .weight = 1000 + k};
    const double all = (double)UPDATES * COORDINATES;
    f.k = elv_kernels_by_name("ref");
    const double ref = rate(fold, &f, all, 0.1);
    for (size_t i = 0; i + 1 < elv_kernels_count(); i++) {
        f.k = elv_kernels_at(i);
        if (f.k != NULL)
            report(name, f.k->name, "coordinates/s", rate(fold, &f, all, 0.1), ref);
    }
    f.k = elv_kernels_best();
    const double got = rate(fold, &f, all * (double)size * 1e-9, 0.1);
    const double most = rate(read_all, &f, all * (double)size * 1e-9, 0.1);
    printf("bench %s_bytes %.4g GB/s ref read %.4g ratio %.2f\n", name, got, most, got / most);
    free(bytes);
    free(f.acc);
}

int main(void)
{
    static const char lenet[] =
        "1x28x28 | conv 8 5x5 relu, maxpool 2, conv 16 5x5 relu, maxpool 2, "
        "dense 64 relu, dense 10 | ";
    static const char mlp[] = "784x1x1 | dense 200 relu, dense 10 | ";
    bench_training("train_lenet_b32", lenet, 32);
    bench_training("train_lenet_b10", lenet, 10);
    bench_training("train_mlp_b32", mlp, 32);
    bench_training("train_mlp_b10", mlp, 10);
    bench_fold("fold_f32", ELV_VIEW_F32);
    bench_fold("fold_q8", ELV_VIEW_Q8);
    return 0;
}
