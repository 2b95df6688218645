/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim_recipe.h - what a version must be made of, computed a second time, the plain way.
 *
 * A job's policy says what an update is worth and by what a version's sum is divided, its rule how
 * the next model follows. Here each is written down once more from its definition, in double
 * precision and without the server's arithmetic, and compared with what the server stored. */
#ifndef ELV_TESTS_SIM_RECIPE_H
#define ELV_TESTS_SIM_RECIPE_H

#include "server/ledger.h"
#include "server/weigh.h"

#define RECIPE_WHY_MAX 160u

enum recipe_divisor { RECIPE_USED, RECIPE_CLAIMED, RECIPE_FLEET, RECIPE_MIXES };

struct recipe {
    const struct elv_job *job;
    struct elv_scales scales; /* the server's */
    enum recipe_divisor by;
    bool stream;
    double alpha;           /* fedasync; else 1 */
    uint32_t unit;          /* updates by which staleness is told */
    uint32_t buffer;        /* fedbuff; 0: another */
    uint32_t staleness_max; /* in units; 0: no limit */
    bool by_effort;
    float rate, beta; /* of the rule; beta 0: it remembers nothing */
};

/* But for the scales. */
void recipe_of(struct recipe *r, const struct elv_job *job);

/* False: what is wrong with the worth of an update that counts. */
bool recipe_worth(const struct recipe *r, const struct elv_rec_decision *d,
                  char why[RECIPE_WHY_MAX]);

struct recipe_mix { /* the contributors of one version */
    int64_t *sum;   /* [n_params] of their updates, in fixed point */
    double *bases;  /* [n_params] of what they started from; NULL: not needed */
    uint32_t n_params, n;
    uint64_t weight, share, claims;
    double effort;                /* times claims */
    double left_least, left_most; /* fedasync: share of the old model that may stay */
};

/* `stream`: its round was one, so models can be mixed. */
struct recipe_mix recipe_begin(const struct recipe *r, uint32_t n_params, bool stream);
void recipe_add(const struct recipe *r, struct recipe_mix *m, const struct elv_rec_decision *d,
                const float *update, const float *base);
void recipe_end(struct recipe_mix *m);

/* The model after `w` with momentum `v` must be `stored`; leaves the momentum after it in `v_next`.
 * `certain`: nothing that the policy counted was taken back. */
bool recipe_check(const struct recipe *r, const struct recipe_mix *m, const float *w,
                  const float *v, const float *stored, float *v_next, bool certain,
                  char why[RECIPE_WHY_MAX]);

#endif
