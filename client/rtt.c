/* SPDX-License-Identifier: Apache-2.0 */
#include "client/rtt.h"

#include "common/assert.h"

void elv_rtt_sample(struct elv_rtt *r, elv_time_us took)
{
    ELV_ASSERT(took >= 0);
    if (!r->measured) {
        *r = (struct elv_rtt){.measured = true, .smoothed = took, .deviation = took / 2};
        return;
    }
    const elv_time_us off = took > r->smoothed ? took - r->smoothed : r->smoothed - took;
    r->deviation += (off - r->deviation) / 4;
    r->smoothed += (took - r->smoothed) / 8;
}

static elv_time_us late(const struct elv_rtt *r, elv_time_us floor)
{
    if (!r->measured)
        return ELV_RTO_FIRST_US;
    const elv_time_us spread = 4 * r->deviation, least = r->smoothed / 4;
    const elv_time_us wait = r->smoothed + (spread > least ? spread : least);
    if (wait < floor)
        return floor;
    return wait < ELV_RTO_MAX_US ? wait : ELV_RTO_MAX_US;
}

elv_time_us elv_rto(const struct elv_rtt *r) { return late(r, ELV_RTO_MIN_US); }

elv_time_us elv_rtt_probe(const struct elv_rtt *r) { return late(r, ELV_PROBE_MIN_US); }
