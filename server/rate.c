/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rate.h"

#include "server/param.h"

float elv_rate_of(const struct elv_params *params)
{
    return (float)elv_param_get(params, "server_learning_rate", 1.0);
}

enum elv_err elv_rate_check(const struct elv_params *params, char why[ELV_JOB_ERROR_MAX],
                            uint32_t *line)
{
    const struct elv_param *p = elv_param_find(params, "server_learning_rate");
    if (p == NULL || elv_param_is_number(p, 1e-6, 1000))
        return ELV_OK;
    *line = p->line;
    return elv_param_refuse(why, "server_learning_rate is a number from 0.000001 to 1000");
}

void elv_rate_apply(const struct elv_rule_step *s)
{
    const float rate = elv_rate_of(s->params);
    s->kernels->unfold(s->mean, s->sum, s->gain, s->n);
    for (size_t i = 0; i < s->n; i++)
        s->w[i] += rate * s->mean[i];
}
