/* SPDX-License-Identifier: Apache-2.0 */
#include "server/score.h"

#include <math.h>

static void score_classes(const struct elv_eval_sums *sums, struct elv_score *score)
{
    uint32_t n_present = 0, n_seen = 0;
    double recall = 0.0, f1 = 0.0, correct = 0.0;
    for (uint32_t i = 0; i < sums->n_classes; i++) {
        const double support = sums->support[i], predicted = sums->predicted[i];
        const double right = sums->correct[i];
        correct += right;
        if (sums->support[i] > 0) {
            recall += right / support;
            n_present++;
        }
        if (sums->support[i] > 0 || sums->predicted[i] > 0) {
            f1 += 2.0 * right / (support + predicted);
            n_seen++;
        }
    }
    score->accuracy = correct / sums->n;
    score->balanced_accuracy = n_present > 0 ? recall / n_present : (double)NAN;
    score->macro_f1 = n_seen > 0 ? f1 / n_seen : (double)NAN;
}

void elv_score_of(const struct elv_eval_sums *sums, struct elv_score *score)
{
    *score = (struct elv_score){
        .n = sums->n,
        .loss = (double)NAN,
        .accuracy = (double)NAN,
        .balanced_accuracy = (double)NAN,
        .macro_f1 = (double)NAN,
    };
    if (sums->n == 0)
        return;
    score->loss = sums->loss / sums->n;
    if (sums->n_classes > 0)
        score_classes(sums, score);
}

static void add(uint32_t *into, uint32_t more)
{
    *into = more > UINT32_MAX - *into ? UINT32_MAX : *into + more;
}

void elv_eval_add(struct elv_eval_sums *into, const struct elv_eval_sums *more)
{
    if (more->n == 0)
        return;
    add(&into->n, more->n);
    into->loss += more->loss;
    if (more->n_classes > into->n_classes)
        into->n_classes = more->n_classes;
    for (uint32_t i = 0; i < more->n_classes; i++) {
        add(&into->support[i], more->support[i]);
        add(&into->predicted[i], more->predicted[i]);
        add(&into->correct[i], more->correct[i]);
    }
}
