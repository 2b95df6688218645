/* SPDX-License-Identifier: Apache-2.0 */
/* The weighted mean of the updates is added to the model.
 *
 *     rule = fedavg
 *     server_learning_rate = 1   ; factor on that mean
 *
 * Source: McMahan, Moore, Ramage, Hampson, Aguera y Arcas, "Communication-Efficient Learning of
 * Deep Networks from Decentralized Data", AISTATS 2017, algorithm 1. */
#include "server/rate.h"

static const char *const params[] = {"server_learning_rate", NULL};

const struct elv_rule elv_rule_fedavg = {
    .name = "fedavg",
    .params = params,
    .check = elv_rate_check,
    .apply = elv_rate_apply,
};
