/* SPDX-License-Identifier: Apache-2.0 */
/* server/rate.h - a rule's parameter `server_learning_rate`: the factor on the step that the
 * updates ask for; 1 unless given. */
#ifndef ELV_SERVER_RATE_H
#define ELV_SERVER_RATE_H

#include "rule.h"

float elv_rate_of(const struct elv_params *params);
enum elv_err elv_rate_check(const struct elv_params *params, char why[ELV_JOB_ERROR_MAX],
                            uint32_t *line);

/* For the vtable: the step is made into `mean` and added to the model, times the rate. */
void elv_rate_apply(const struct elv_rule_step *s);

#endif
