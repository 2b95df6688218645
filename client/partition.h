/* SPDX-License-Identifier: Apache-2.0 */
/* client/partition.h - how an experiment splits one data set over several clients.
 *
 *     iid             shuffled, then cut into equal parts
 *     shards S        sorted by label, cut into clients * S pieces, S of them at random to each
 *                     client (McMahan et al., AISTATS 2017, section 3)
 *     dirichlet A     for each class, shares of the clients drawn from a symmetric Dirichlet
 *                     distribution (Hsu, Qi, Brown, arXiv:1909.06335; split by class as in Li,
 *                     Diao, Chen, He, ICDE 2022)
 *     quantity A      shuffled, then parts of sizes drawn from one Dirichlet distribution
 *     file PART.npy   as the file says; reading it is the program's business
 *
 * Pure: the same arguments give the same split on every machine (integers, single IEEE operations
 * and elv_ln/elv_exp only), so every client computes the whole split by itself and takes its own
 * part. Memory is the caller's. */
#ifndef ELV_CLIENT_PARTITION_H
#define ELV_CLIENT_PARTITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../common/cursor.h"
#include "../common/err.h"
#include "../common/rng.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With dirichlet and quantity the shares are drawn again, up to this many times, until each client
 * has this many examples. If none is good enough, the last is mended: clients below take examples
 * from the one that has most. */
#define ELV_PARTITION_MIN 10u
#define ELV_PARTITION_DRAWS 100u

enum elv_partition_kind {
    ELV_PARTITION_IID,
    ELV_PARTITION_SHARDS,
    ELV_PARTITION_DIRICHLET,
    ELV_PARTITION_QUANTITY,
    ELV_PARTITION_FILE,
};

struct elv_partition {
    enum elv_partition_kind kind;
    uint32_t shards;       /* per client */
    float alpha;           /* concentration; small: uneven */
    struct elv_bytes path; /* FILE; views the text */
};

/* ELV_ERR_FORMAT: not one of the forms above; ELV_ERR_RANGE: a number is not 1..1000 (shards) or
 * 0.001..1000 (concentration). `want` (may be NULL) is then what would be accepted. */
enum elv_err elv_partition_parse(struct elv_partition *p, struct elv_bytes text, const char **want);

struct elv_partition_cfg {
    struct elv_partition how; /* not FILE */
    uint64_t seed;            /* the run's */
    uint32_t n_clients;
    uint32_t n; /* examples */
    uint32_t n_classes;
    const uint32_t *labels; /* [n], each below n_classes; not read for iid and quantity */
};

/* Bytes of scratch memory `elv_partition_owners` needs, aligned to ELV_ARENA_ALIGN; 0: too many. */
size_t elv_partition_mem(const struct elv_partition_cfg *cfg);

/* owner [n]: the place 0..n_clients-1 of the client that has each example. ELV_ERR_RANGE: there are
 * too few examples (clients * shards, or ELV_PARTITION_MIN for each client); ELV_ERR_SPACE: `len`;
 * ELV_ERR_ARG: no clients, or FILE. */
enum elv_err elv_partition_owners(const struct elv_partition_cfg *cfg, uint32_t *owner, void *mem,
                                  size_t len);

/* Writes the places of the examples that `client` has, rising, and returns how many. `index` has
 * room for all of them: n in the worst case. May be NULL: only counts. */
uint32_t elv_partition_take(const uint32_t *owner, uint32_t n, uint32_t client, uint32_t *index);

/* Reorders index [n] at random so that a `share` of it, rounded, but not all, lies at the end:
 * those are kept for evaluation. Returns how many come before. `client` is whatever names it: a
 * place, or a client number. */
uint32_t elv_partition_holdout(uint64_t seed, uint32_t client, float share, uint32_t *index,
                               uint32_t n);

/* The draw behind `dirichlet` and `quantity`: share [n], n at least 1, from a symmetric Dirichlet
 * distribution of concentration `alpha` above 0, not normalised. Returns their sum, 1 or more. */
double elv_partition_shares(struct elv_rng *r, float alpha, uint32_t n, float *share);

#ifdef __cplusplus
}
#endif
#endif
