/* SPDX-License-Identifier: Apache-2.0 */
/* server/select.h - whom a round asks. Pure: the same candidates, seed and round, the same answer.
 */
#ifndef ELV_SERVER_SELECT_H
#define ELV_SERVER_SELECT_H

#include "job.h"

struct elv_candidate {
    uint32_t client;  /* the client number */
    uint32_t row;     /* its place in the roster */
    uint32_t samples; /* as it said on joining */
    uint32_t speed;
};

struct elv_select_ask {
    const struct elv_params *params;
    uint64_t seed;
    uint32_t round;
    uint32_t count; /* clients wanted; 0: all */
};

struct elv_select {
    const char *name;
    const char *const *params;
    enum elv_err (*check)(const struct elv_params *params, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line); /* may be NULL */

    /* Moves the chosen ones of `at` [n], which come in rising order of client number, to the front,
     * in rising order again, and returns how many. */
    uint32_t (*choose)(const struct elv_select_ask *ask, struct elv_candidate *at, uint32_t n);

    /* The same choice by place alone, in rising order, without walking over the candidates: writes
     * `ask->count` places below `n` to `places` and takes time for so many. 1 <= count <= n. NULL:
     * the policy has to see the candidates. */
    void (*draw)(const struct elv_select_ask *ask, uint32_t n, uint32_t *places);
};

/* NULL when there is no such policy. */
const struct elv_select *elv_select_by_name(const char *name);

#endif
