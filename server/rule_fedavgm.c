/* SPDX-License-Identifier: Apache-2.0 */
/* The weighted means of the updates gather momentum: v = beta v + mean; w = w + rate v.
 *
 *     rule = fedavgm
 *     server_momentum = 0.9      ; beta; 0: fedavg
 *     server_learning_rate = 1   ; rate; in the long run a mean counts rate / (1 - beta) times
 *
 * Source: Hsu, Qi, Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated
 * Visual Classification", arXiv:1909.06335. */
#include "server/param.h"
#include "server/rate.h"

static const char *const params[] = {"server_momentum", "server_learning_rate", NULL};

static enum elv_err check(const struct elv_params *given, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line)
{
    const struct elv_param *p = elv_param_find(given, "server_momentum");
    if (p == NULL || (elv_param_is_number(p, 0, 1) && p->value < 1))
        return elv_rate_check(given, why, line);
    *line = p->line;
    return elv_param_refuse(why, "server_momentum is a number from 0 up to 1, but not 1");
}

static void apply(const struct elv_rule_step *s)
{
    const float beta = (float)elv_param_get(s->params, "server_momentum", 0.9);
    const float rate = elv_rate_of(s->params);
    s->kernels->unfold(s->mean, s->sum, s->gain, s->n);
    for (size_t i = 0; i < s->n; i++) {
        s->state[i] = beta * s->state[i] + s->mean[i];
        s->w[i] += rate * s->state[i];
    }
}

const struct elv_rule elv_rule_fedavgm = {
    .name = "fedavgm",
    .params = params,
    .check = check,
    .state_per_param = 1,
    .apply = apply,
};
