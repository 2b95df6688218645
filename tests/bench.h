/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench.h - what benchmarks of one process have in common. */
#ifndef ELV_TESTS_BENCH_H
#define ELV_TESTS_BENCH_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Processor time of this process: other load does not count. */
static inline double bench_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline int bench_by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts `v` [n]. */
static inline double bench_median(double *v, size_t n)
{
    qsort(v, n, sizeof v[0], bench_by_value);
    return v[n / 2];
}

/* Touched, and aligned to a cache line; for as long as the program runs. */
static inline void *bench_block(size_t len)
{
    void *p = aligned_alloc(64, (len + 63) / 64 * 64);
    if (p == NULL)
        exit(1);
    memset(p, 0, len);
    return p;
}

#endif
