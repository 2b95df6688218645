/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/csv.h - tables of numbers as text: one example per line, the label last.
 *
 *     sepal_length,sepal_width,species        a first line that is not all numbers names columns
 *     5.1,3.5,0
 *     4.9,3.0,0
 *
 * Fields are separated by commas, spaces around them are ignored, empty lines skipped. Labels are
 * whole numbers from 0. Pure; memory is the caller's. */
#ifndef ELV_PORTS_POSIX_CSV_H
#define ELV_PORTS_POSIX_CSV_H

#include <stdbool.h>

#include "common/cursor.h"

#define ELV_CSV_LABEL_MAX 65535u

struct elv_csv {
    uint32_t n_rows;
    uint32_t n_values; /* per row, without the label */
    bool has_header;
};

struct elv_csv_error {
    uint32_t line;   /* from 1; 0: about the whole file */
    const char *why; /* a constant phrase */
};

/* Counts and checks everything. ELV_ERR_FORMAT: `e` says where; ELV_ERR_RANGE: a number or a count
 * is too large. */
enum elv_err elv_csv_measure(struct elv_bytes in, struct elv_csv *c, struct elv_csv_error *e);

/* Reads what was measured: x [n_rows * n_values], labels [n_rows]. Cannot fail. */
void elv_csv_read(struct elv_bytes in, const struct elv_csv *c, float *x, uint32_t *labels);

#endif
