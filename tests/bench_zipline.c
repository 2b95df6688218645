/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench_zipline.c - what planning a barrier costs, and that the cost is a straight line.
 *
 * The workload of the algorithm's authors: n clients that start within n ms and have a constant
 * interval of 1000 to 1500 ms each, R moments of everybody. Prints milliseconds per plan against
 * the budget, and at several sizes nanoseconds per moment against the smallest size. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>

#include "common/rng.h"
#include "server/zipline.h"
#include "tests/bench.h"

/* The best of several measurements, each long enough for the clock; seconds per plan. */
static double plan_s(uint32_t n, uint32_t moments)
{
    struct elv_zip_row *rows = calloc(n, sizeof *rows);
    uint32_t *at = calloc(n, sizeof *at);
    void *scratch = malloc(elv_zip_scratch_len(n));
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = n, .purpose = ELV_RNG_TEST});
    for (uint32_t w = 0; w < n; w++)
        rows[w] = (struct elv_zip_row){.next = 1000 * (elv_time_us)elv_rng_below(&r, n),
                                       .interval = 1000000 + elv_rng_below(&r, 500001),
                                       .n = moments};
    double best = 1e9;
    for (int attempt = 0; attempt < 5; attempt++) {
        struct elv_zip_window w;
        uint32_t times = 0;
        const double began = bench_now_s();
        double took = 0.0;
        for (; took < 0.05; took = bench_now_s() - began, times++)
            if (!elv_zip_plan(rows, n, -1, scratch, at, &w))
                exit(1);
        best = took / times < best ? took / times : best;
    }
    free(scratch);
    free(at);
    free(rows);
    return best;
}

int main(void)
{
    static const struct {
        uint32_t n, moments;
    } sizes[] = {{1000, 15},  {10, 150},   {100, 150}, {300, 150},
                 {1000, 150}, {3000, 150}, {1000, 960}};
    const double budget_ms = 20.0, took_ms = 1e3 * plan_s(1000, 150);
    printf("bench zipline_1000x150 %.3g ms ref budget %.3g ratio %.3g\n", took_ms, budget_ms,
           took_ms / budget_ms);
    double first = 0.0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const double all = (double)sizes[i].n * sizes[i].moments;
        const double ns = 1e9 * plan_s(sizes[i].n, sizes[i].moments) / all;
        first = i == 0 ? ns : first;
        printf("bench zipline_per_moment_%ux%u %.3g ns ref 1000x15 %.3g ratio %.2f\n", sizes[i].n,
               sizes[i].moments, ns, first, ns / first);
    }
    return 0;
}
