/* SPDX-License-Identifier: Apache-2.0 */
/* server/time_table.h - how long until the k-th of n updates is there, after a round that used h?
 *
 * Whoever was still at work when a round closed starts late in the next one, so the time to the
 * k-th update depends on h, how many the round before waited for. The table keeps the mean and the
 * weight of the times seen for each (h, k) and estimates all of them together, by weighted least
 * squares under what must hold: more updates take longer, and having waited for more before leaves
 * more clients free, so it takes no longer.
 *
 * Up to 64 clients every h and every k has a cell of its own. Beyond that there are 64 classes of
 * each: the 16 smallest and the 16 largest alone, where times change fastest from one to the next,
 * and 32 classes of equal width between; times in between are interpolated.
 *
 * A value without pointers in the caller's memory, at most 97 KiB. Nothing here can fail.
 *
 * Sources: the constraints and the joint estimate are those of Xu, Neglia, Sebastianelli, "Dynamic
 * Backup Workers for Parallel Machine Learning", IFIP Networking 2020, arXiv:2004.14696; the solver
 * is that of Spouge, Wan, Wilbur, "Least Squares Isotonic Regression in Two Dimensions", J. Optim.
 * Theory Appl. 117, 2003: a set of cells is split where the part above its mean is worth most. */
#ifndef ELV_SERVER_TIME_TABLE_H
#define ELV_SERVER_TIME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELV_TIME_BINS_MAX 64u

struct elv_time_cell {
    double mean;
    double weight; /* of `mean`: samples, old ones forgotten; 0: never seen */
    double fit;    /* the estimate */
};

struct elv_time_table {
    double mean;         /* of all samples, as of the last fit */
    uint32_t cap;        /* cells of a row */
    bool by_k;           /* h makes no difference: one row */
    uint32_t n;          /* clients it speaks of */
    uint32_t rows, cols; /* classes in use */
    /* then [rows_max * cap] cells, h by h */
};

/* Bytes for rounds of up to `clients` clients. */
size_t elv_time_table_len(uint32_t clients, bool by_k);
/* `t` is aligned for doubles and has as many bytes as elv_time_table_len says, all zero. */
void elv_time_table_init(struct elv_time_table *t, uint32_t clients, bool by_k);

/* From here on rounds have n clients, at least 1 and no more than at the start. What was seen stays
 * with the classes that stand for the same share of all clients. */
void elv_time_table_resize(struct elv_time_table *t, uint32_t n);

/* Multiplies the weight of everything seen by `keep`, in [0, 1]. */
void elv_time_table_forget(struct elv_time_table *t, double keep);

/* The k-th update came after `time`; h and k in 1..n. */
void elv_time_table_add(struct elv_time_table *t, uint32_t h, uint32_t k, double time);
bool elv_time_table_is_empty(const struct elv_time_table *t);

/* Estimates all cells. Exact but for rounding; in the order of the number of cells times a few. */
void elv_time_table_fit(struct elv_time_table *t);

/* The estimate as of the last fit; h and k in 1..n. Never falls with k, never rises with h. */
double elv_time_table_at(const struct elv_time_table *t, uint32_t h, uint32_t k);

#endif
