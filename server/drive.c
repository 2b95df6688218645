/* SPDX-License-Identifier: Apache-2.0 */
#include "server/drive.h"

struct elv_sync_scale elv_drive_scale(const struct elv_sync *sync, const void *state,
                                      const struct elv_sync_cfg *cfg,
                                      const struct elv_sync_round *r)
{
    if (sync->scale)
        return sync->scale(state, cfg, r);
    return (struct elv_sync_scale){.by = ELV_SYNC_BY_USED, .step = 1.0};
}

uint32_t elv_drive_wanted(const struct elv_sync *sync, const void *state,
                          const struct elv_sync_cfg *cfg, const struct elv_sync_round *r)
{
    if (sync->wanted)
        return sync->wanted(state, cfg, r);
    return sync->flow == ELV_SYNC_ROUNDS ? r->n_asked : 0;
}

struct elv_sync_grant elv_drive_pull(const struct elv_sync *sync, void *state,
                                     const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                                     struct elv_sync_client c, elv_time_us now)
{
    const bool starts = sync->flow == ELV_SYNC_STREAM && sync->room == NULL;
    if (sync->on_pull)
        return sync->on_pull(state, cfg, r, c, now);
    return (struct elv_sync_grant){.start = starts ? ELV_SYNC_START : ELV_SYNC_HOLD};
}

elv_time_us elv_drive_back_off(uint32_t n_abandoned)
{
    const elv_time_us second = 1000000;
    const uint32_t doublings = n_abandoned > 6 ? 6 : n_abandoned > 0 ? n_abandoned - 1 : 0;
    const elv_time_us wait = second << doublings;
    return wait < 60 * second ? wait : 60 * second;
}
