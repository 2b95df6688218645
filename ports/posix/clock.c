/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/posix/clock.h"

#include <time.h>

#include "common/assert.h"

static elv_time_us now(void *self)
{
    (void)self;
    struct timespec t;
    const int rc = clock_gettime(CLOCK_MONOTONIC, &t);
    ELV_ASSERT(rc == 0); /* cannot fail on a system that has the clock */
    return (elv_time_us)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

struct elv_clock elv_posix_clock(void) { return (struct elv_clock){.now = now}; }
