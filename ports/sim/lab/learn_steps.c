/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/learn_steps.h"

#include "common/chunk.h"

static uint32_t capped(uint64_t n) { return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX; }

struct elv_lab_steps elv_lab_steps_of(uint32_t samples, struct elv_size size)
{
    if (samples == 0 || size.batch == 0)
        return (struct elv_lab_steps){0};
    const uint64_t per_epoch = ((uint64_t)samples + size.batch - 1) / size.batch;
    const uint64_t steps = size.local_steps > 0 ? size.local_steps : per_epoch * size.local_epochs;
    const uint64_t seen = steps / per_epoch * samples + steps % per_epoch * size.batch;
    return (struct elv_lab_steps){.steps = capped(steps), .seen = capped(seen)};
}

uint64_t elv_lab_bytes_f32(uint32_t n)
{
    const uint32_t per_chunk = ELV_CHUNK_PAYLOAD_MAX / sizeof(float);
    const uint64_t chunks = ((uint64_t)n + per_chunk - 1) / per_chunk;
    return (uint64_t)n * sizeof(float) + chunks * ELV_CHUNK_HEAD_LEN;
}
