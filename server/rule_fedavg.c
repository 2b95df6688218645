/* SPDX-License-Identifier: Apache-2.0 */
/* The weighted mean of the updates is added to the model. Source: McMahan, Moore, Ramage, Hampson,
 * Aguera y Arcas, "Communication-Efficient Learning of Deep Networks from Decentralized Data",
 * AISTATS 2017, algorithm 1. */
#include "server/rule.h"

static const char *const no_params[] = {NULL};

static void apply(const struct elv_rule_step *s)
{
    s->kernels->unfold(s->mean, s->sum, s->gain, s->n);
    for (size_t i = 0; i < s->n; i++)
        s->w[i] += s->mean[i];
}

const struct elv_rule elv_rule_fedavg = {
    .name = "fedavg",
    .params = no_params,
    .apply = apply,
};
