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

elv_time_us elv_rto(const struct elv_rtt *r)
{
    if (!r->measured)
        return ELV_RTO_FIRST_US;
    const elv_time_us rto = r->smoothed + 4 * r->deviation;
    if (rto < ELV_RTO_MIN_US)
        return ELV_RTO_MIN_US;
    return rto < ELV_RTO_MAX_US ? rto : ELV_RTO_MAX_US;
}
