/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim_explain.h - a failing seed, told to whoever has to find out why. */
#ifndef ELV_TESTS_SIM_EXPLAIN_H
#define ELV_TESTS_SIM_EXPLAIN_H

#include "tests/sim_case.h"

/* Takes as many faults away as it can while the failure stays the same, and prints what is left
 * and how `program` replays it. `tries`: runs it may take; 0: it takes nothing away. */
void sim_explain(const struct sim_case_cfg *cfg, const struct sim_case_end *end, uint32_t tries,
                 const char *program);

#endif
