/* SPDX-License-Identifier: Apache-2.0 */
/* server/drive.h - what whoever drives a policy (sync.h) does where the policy has no say.
 *
 * The live server and the simulator's world of many clients both do, so that they cannot differ. */
#ifndef ELV_SERVER_DRIVE_H
#define ELV_SERVER_DRIVE_H

#include "sync.h"

/* How the version being closed is scaled. */
struct elv_sync_scale elv_drive_scale(const struct elv_sync *sync, const void *state,
                                      const struct elv_sync_cfg *cfg,
                                      const struct elv_sync_round *r);

/* Updates that the open round waits for; 0: no number in particular. */
uint32_t elv_drive_wanted(const struct elv_sync *sync, const void *state,
                          const struct elv_sync_cfg *cfg, const struct elv_sync_round *r);

/* A client without work wants some. */
struct elv_sync_grant elv_drive_pull(const struct elv_sync *sync, void *state,
                                     const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                                     struct elv_sync_client c, elv_time_us now);

/* ROUNDS: from the last of so many abandoned rounds in a row until the next may open: a second,
 * doubling to a minute. */
elv_time_us elv_drive_back_off(uint32_t n_abandoned);

#endif
