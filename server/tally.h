/* SPDX-License-Identifier: Apache-2.0 */
/* server/tally.h - what the updates of one version add up to, besides themselves.
 *
 * Made when a round closes, from what the ledger remembers of each update, so it is the same after
 * a restart. Weights are the integers the updates were folded with; floating-point sums depend on
 * the order of the additions in their last places. */
#ifndef ELV_SERVER_TALLY_H
#define ELV_SERVER_TALLY_H

#include "sync.h"
#include "weigh.h"

struct elv_tally_item { /* one update that counts */
    uint32_t weight;    /* it was folded with */
    uint32_t claim;     /* uncut */
    double factor;      /* the synchronisation policy's; 0: not known, and the claim as weighed */
    double effort;      /* the rule's; 1 or more */
    double norm2;       /* of the update; meaningful with a factor */
    double rate;        /* learning rate it was trained with */
    uint32_t steps, seen, staleness;
    double loss_sum; /* over `seen` */
};

struct elv_tally {
    uint32_t n;
    uint64_t weight; /* sum of the weights u */
    uint64_t share;  /* of what they were without the rule's effort */
    uint64_t claim;  /* of what they were without the policy's factor, too */
    double weight2;  /* sum of u^2 */
    uint64_t normed; /* sum of the u whose update's norm is known, */
    double norm2;    /* and of u times squared norm */
    double effort;   /* sum of claim times effort */
    double rate;     /* sum of learning rate times steps */
    uint64_t staleness, seen;
    double loss_sum;
};

void elv_tally_add(struct elv_tally *t, const struct elv_scales *scales,
                   const struct elv_tally_item *item);

/* The factor that turns the sum of the updates into the step that is asked for. `fleet`: the claims
 * of all clients there, weighed; for BY_FLEET, which divides by no less than what was used: several
 * updates of one client from the same version would else add up to as many times its step. */
double elv_tally_gain(const struct elv_tally *t, const struct elv_scales *scales,
                      const struct elv_sync_scale *scale, uint64_t fleet);

/* Fills in all but `round`, `version` and `mean_norm2`. */
void elv_tally_commit(const struct elv_tally *t, struct elv_sync_commit *c);

double elv_tally_loss(const struct elv_tally *t);      /* NAN: none reported */
double elv_tally_staleness(const struct elv_tally *t); /* mean; 0: no update */

#endif
