/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/learn_data.h - one data set that all simulated clients share, and who has which
 * part of it.
 *
 * The set is loaded once and only read: any number of splits, learners and threads use it at the
 * same time. A split belongs to one run, because its seed decides it. */
#ifndef ELV_PORTS_SIM_LAB_LEARN_DATA_H
#define ELV_PORTS_SIM_LAB_LEARN_DATA_H

#include "common/feed.h"
#include "common/sha256.h"
#include "server/job.h"

struct elv_lab_data {
    struct elv_feed feed; /* prepared; its functions may be called from several threads at once */
    uint32_t n, n_values, n_classes;
    uint32_t *labels;               /* [n] owned */
    uint8_t digest[ELV_SHA256_LEN]; /* of all examples in order: the label as little-endian u32,
                                       then the values, scaled, as little-endian f32 */
};

/* Reads the feed once. ELV_ERR_MISSING: it has no examples; ELV_ERR_RANGE: a label is none of its
 * classes; ELV_ERR_MEMORY; else the feed's error. */
enum elv_err elv_lab_data_open(struct elv_lab_data *d, const struct elv_feed *feed);
void elv_lab_data_close(struct elv_lab_data *d);

struct elv_lab_split {
    uint32_t n_clients;
    uint32_t *index;   /* [n] places in the data set, client by client: what it trains on first,
                          what it holds out after that. A client's own order is that of a real one */
    uint64_t *first;   /* [n_clients + 1] where each begins in `index` */
    uint32_t *n_train; /* [n_clients] */
    uint32_t most;     /* the largest of n_train */
    uint8_t digest[ELV_SHA256_LEN]; /* of the owner of each example, as little-endian u32 */
};

struct elv_lab_split_cfg {
    const struct elv_lab_data *data; /* borrowed for the call */
    uint64_t seed;                   /* of the run */
    uint32_t n_clients;
    const char *partition; /* as in a job file; empty: iid */
    const uint32_t *owner; /* [n] 0..n_clients-1: of a `file` partition, which the program reads */
    float holdout;
};

/* On failure `why` is a sentence. ELV_ERR_FORMAT, ELV_ERR_RANGE: not a partition, or not of so few
 * examples; ELV_ERR_ARG: no clients, or owners that are not there or are none of them. */
enum elv_err elv_lab_split_new(struct elv_lab_split *s, const struct elv_lab_split_cfg *cfg,
                               char why[ELV_JOB_ERROR_MAX]);
void elv_lab_split_free(struct elv_lab_split *s);

/* A feed over some examples of a data set. `self` of the feed is the struct. */
struct elv_lab_part {
    const struct elv_lab_data *data;
    const uint32_t *index; /* [n] */
    uint32_t n;
};
struct elv_feed elv_lab_part_feed(struct elv_lab_part *p);

#endif
