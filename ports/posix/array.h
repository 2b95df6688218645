/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/array.h - arrays of numbers as files hold them: IDX and NumPy's .npy.
 *
 * Parsers are pure: they check a header and that exactly the promised bytes follow, and leave a
 * view of them. Any thread. */
#ifndef ELV_PORTS_POSIX_ARRAY_H
#define ELV_PORTS_POSIX_ARRAY_H

#include <stdbool.h>

#include "common/cursor.h"

#define ELV_ARRAY_DIMS_MAX 4u

enum elv_array_type {
    ELV_ARRAY_U8,
    ELV_ARRAY_I8,
    ELV_ARRAY_U16,
    ELV_ARRAY_I16,
    ELV_ARRAY_U32,
    ELV_ARRAY_I32,
    ELV_ARRAY_U64,
    ELV_ARRAY_I64,
    ELV_ARRAY_F32,
    ELV_ARRAY_F64,
};

struct elv_array { /* row-major */
    enum elv_array_type type;
    bool big_endian;
    uint32_t n_dims; /* 1 and up */
    uint32_t dims[ELV_ARRAY_DIMS_MAX];
    size_t n;              /* values in all */
    struct elv_bytes data; /* borrowed from the file's bytes */
};

/* ELV_ERR_FORMAT, ELV_ERR_SHORT, ELV_ERR_UNSUPPORTED (a type or order of values we do not read),
 * ELV_ERR_RANGE (too many or too large dimensions). `why` (not NULL) is a constant phrase. `a` is
 * written on success.
 *
 * Source: LeCun, Cortes, Burges, "The MNIST database", section "File formats". */
enum elv_err elv_idx_parse(struct elv_bytes in, struct elv_array *a, const char **why);

/* Versions 1 to 3. Source: NumPy Enhancement Proposal 1. */
enum elv_err elv_npy_parse(struct elv_bytes in, struct elv_array *a, const char **why);

/* Value i < n. A double holds all types but 64-bit integers beyond 2^53 exactly. */
double elv_array_value(const struct elv_array *a, size_t i);

#endif
