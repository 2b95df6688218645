/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/dataset.h - labelled examples in memory, and a feed over some of them.
 *
 * Bytes stay bytes: images of 8-bit pixels take one byte per value and are scaled when they are
 * asked for. Everything else is held as 32-bit floats. Loading allocates; a loaded set is constant,
 * and any number of feeds on any threads may share it. */
#ifndef ELV_PORTS_POSIX_DATASET_H
#define ELV_PORTS_POSIX_DATASET_H

#include <stdbool.h>

#include "ports/posix/array.h"

#define ELV_DATASET_WHY_MAX 1024u
#define ELV_DATASET_FILE_MAX (SIZE_MAX / 4) /* bytes, unpacked */

struct elv_dataset {
    uint32_t n;
    uint32_t n_values;  /* per example */
    uint32_t n_classes; /* 1 + the largest label */
    const uint8_t *u8;  /* [n * n_values], or NULL and */
    const float *f32;   /* [n * n_values] */
    const uint32_t *labels;
    void *values, *memory; /* owned: what u8 or f32 lies in, and the labels */
    void (*release)(uint8_t *values);
};

/* How a .gz file is unpacked, by whoever can; see elv_zlib_gunzip. */
struct elv_gunzip {
    enum elv_err (*unpack)(struct elv_bytes in, size_t cap, uint8_t **out, size_t *len);
    void (*release)(uint8_t *out);
};

enum elv_dataset_part { ELV_DATASET_TRAIN, ELV_DATASET_TEST };

/* Loads what a job's `[data]` names:
 *
 *     idx DIR            train-images-idx3-ubyte and -labels-idx1-ubyte, or t10k-, also with .gz
 *     npy X.npy Y.npy    the first dimension counts examples; labels are whole numbers
 *     csv FILE
 *
 * `gz` may be NULL: packed files are refused. `why` is written on failure: a sentence with the
 * file, for CSV with the line. ELV_ERR_MISSING: no such file; ELV_ERR_FORMAT, ELV_ERR_SHORT,
 * ELV_ERR_RANGE, ELV_ERR_UNSUPPORTED: not a data set; ELV_ERR_ARG: not a specification;
 * ELV_ERR_MEMORY; ELV_ERR_IO. */
enum elv_err elv_dataset_load(struct elv_dataset *d, const char *spec, enum elv_dataset_part part,
                              const struct elv_gunzip *gz, char why[ELV_DATASET_WHY_MAX]);

/* From arrays. Takes over `values`, the block x.data lies in, whatever happens; `release` gives it
 * back. The labels are copied. */
enum elv_err elv_dataset_of(struct elv_dataset *d, const struct elv_array *x,
                            const struct elv_array *y, uint8_t *values,
                            void (*release)(uint8_t *values), char why[ELV_DATASET_WHY_MAX]);

void elv_dataset_free(struct elv_dataset *d);

/* Owners of a `file PART.npy` partition: one whole number per example into owner [n].
 * ELV_ERR_MISMATCH: it has another length; ELV_ERR_RANGE: a value is not one of 0..n_clients-1. */
enum elv_err elv_dataset_load_owners(const char *path, uint32_t n, uint32_t n_clients,
                                     uint32_t *owner, char why[ELV_DATASET_WHY_MAX]);

/* x = (raw * scale - mean) / std, each operation rounded to a float. The functions have the
 * signatures of a trainer's feed, whose `self` the struct is. */
struct elv_dataset_feed {
    const struct elv_dataset *data;
    const uint32_t *index; /* NULL: all examples in their order */
    uint32_t n;
    float scale, mean, std;
    float table[256]; /* for bytes: every result there is */
};

/* Borrows `data` and `index` [n]; with a NULL index n is ignored. std > 0. */
void elv_dataset_feed_init(struct elv_dataset_feed *f, const struct elv_dataset *data,
                           const uint32_t *index, uint32_t n, float scale, float mean, float std);
uint32_t elv_dataset_feed_count(void *self);
void elv_dataset_feed_shape(void *self, uint32_t *n_values, uint32_t *n_classes);
enum elv_err elv_dataset_feed_get(void *self, const uint32_t *index, uint32_t n, float *x,
                                  uint32_t *y);

#endif
