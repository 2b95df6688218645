/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/clock.h - elv_clock on CLOCK_MONOTONIC. Needs no state; any thread may ask. */
#ifndef ELV_PORTS_POSIX_CLOCK_H
#define ELV_PORTS_POSIX_CLOCK_H

#include "common/port.h"

struct elv_clock elv_posix_clock(void);

#endif
