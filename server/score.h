/* SPDX-License-Identifier: Apache-2.0 */
/* server/score.h - evaluating a model, and what evaluation sums mean. */
#ifndef ELV_SERVER_SCORE_H
#define ELV_SERVER_SCORE_H

#include "../common/msg.h"

/* Evaluates models on the server's own test set; a program builds one from kernels and a feed. */
struct elv_scorer {
    void *self;
    /* Starts over with `w`, the f32 vector of shared coordinates, which stays as it is meanwhile.
     */
    void (*begin)(void *self, const float *w);
    /* About `budget` batches. ELV_ERR_BUSY: call again; ELV_OK: done; else: failed. Any thread. */
    enum elv_err (*run)(void *self, uint32_t budget);
    void (*sums)(void *self, struct elv_eval_sums *out); /* after ELV_OK */
};

struct elv_score { /* means over what the sums cover; NAN where the sums cannot tell */
    uint32_t n;
    double loss;
    double accuracy;
    double balanced_accuracy; /* mean recall over the classes that occur */
    double macro_f1;          /* mean F1 over the classes that occur or were predicted */
};

void elv_score_of(const struct elv_eval_sums *sums, struct elv_score *score);

/* Sums of sums; a count that would not fit stays at its maximum. */
void elv_eval_add(struct elv_eval_sums *into, const struct elv_eval_sums *more);

#endif
