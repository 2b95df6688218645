/* SPDX-License-Identifier: Apache-2.0 */
#include "client/link.h"

/* Up to a quarter more than max(3 rto, 2 s), doubled with each attempt, never beyond the cap. */
static void measure_from(struct elv_link *l, elv_time_us now, elv_time_us rto, struct elv_rng *rng)
{
    const elv_time_us base = 3 * rto > ELV_QUIET_MIN_US ? 3 * rto : ELV_QUIET_MIN_US;
    const elv_time_us most = elv_doubled(base, l->n_relinks);
    const elv_time_us limit = most + elv_jitter(rng, most / 4);
    l->quiet_since = now;
    l->limit = limit < ELV_BACKOFF_CAP_US ? limit : ELV_BACKOFF_CAP_US;
}

void elv_link_asked(struct elv_link *l, elv_time_us now, elv_time_us rto, struct elv_rng *rng)
{
    if (l->asking)
        return;
    l->asking = true;
    measure_from(l, now, rto, rng);
}

void elv_link_heard(struct elv_link *l, elv_time_us now, elv_time_us rto, struct elv_rng *rng)
{
    l->n_relinks = 0;
    measure_from(l, now, rto, rng);
}

void elv_link_slept(struct elv_link *l, elv_time_us us) { l->quiet_since += us; }

void elv_link_idle(struct elv_link *l) { l->asking = false; }

elv_time_us elv_link_deadline(const struct elv_link *l)
{
    return l->asking ? l->quiet_since + l->limit : ELV_NEVER;
}

void elv_link_renewed(struct elv_link *l, elv_time_us now, elv_time_us rto, struct elv_rng *rng)
{
    l->n_relinks++;
    measure_from(l, now, rto, rng);
}
