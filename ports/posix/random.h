/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/random.h - elv_random on the kernel's generator. Needs no state; any thread may ask.
 *
 * Early in the start of a machine a call waits until the kernel has gathered entropy: a key made
 * before that would be guessable. There is no weaker source to fall back to. */
#ifndef ELV_PORTS_POSIX_RANDOM_H
#define ELV_PORTS_POSIX_RANDOM_H

#include "common/port.h"

struct elv_random elv_posix_random(void);

#endif
