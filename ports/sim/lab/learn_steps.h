/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/learn_steps.h - what a piece of work takes, and what its update weighs. */
#ifndef ELV_PORTS_SIM_LAB_LEARN_STEPS_H
#define ELV_PORTS_SIM_LAB_LEARN_STEPS_H

#include "server/sizing.h"

struct elv_lab_steps {
    uint32_t steps, seen; /* gradient steps; examples they use, repeats counted */
};

/* Of the trainer with `samples` examples (client/trainer.h): each epoch goes over all of them in
 * batches, the last one smaller. Both stop at UINT32_MAX. */
struct elv_lab_steps elv_lab_steps_of(uint32_t samples, struct elv_size size);

/* Bytes that `n` values take as f32 chunks, headers included. */
uint64_t elv_lab_bytes_f32(uint32_t n);

#endif
