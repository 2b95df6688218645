/* SPDX-License-Identifier: Apache-2.0 */
/* tests/state_runs.h - the runs whose durable state is kept in tests/golden. */
#ifndef ELV_TESTS_STATE_RUNS_H
#define ELV_TESTS_STATE_RUNS_H

#include "tests/server_world.h"

struct state_run {
    const char *file; /* below tests/golden */
    void (*prepare)(struct world *w);
    /* From the start of the server to the moment its state is kept. */
    void (*drive)(struct world *w);
};

extern const struct state_run state_runs[];
extern const size_t state_runs_n;

#endif
