/* SPDX-License-Identifier: Apache-2.0 */
/* client/rtt.h - how long an answer takes, and when one is overdue.
 *
 * Source: Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988; RFC 6298 with a lower floor,
 * because a repeated chunk costs little and waiting costs a window. The margin over the smoothed
 * time is never below a quarter of it: the answers of a slow link come at such even distances that
 * their deviation alone would call the first one late that waits behind another. */
#ifndef ELV_CLIENT_RTT_H
#define ELV_CLIENT_RTT_H

#include <stdbool.h>

#include "../common/node.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_RTO_FIRST_US 3000000 /* until something was measured */
#define ELV_RTO_MIN_US 200000
#define ELV_RTO_MAX_US 10000000
#define ELV_PROBE_MIN_US 50000 /* a busy machine takes that long now and then */

struct elv_rtt { /* all zero: nothing measured yet */
    bool measured;
    elv_time_us smoothed, deviation;
};

/* One answer took `took` (not negative). It must be known which transmission it answers. */
void elv_rtt_sample(struct elv_rtt *r, elv_time_us took);

/* How long to wait for an answer, from ELV_RTO_MIN_US to ELV_RTO_MAX_US. */
elv_time_us elv_rto(const struct elv_rtt *r);

/* How long to be without any answer before one request is repeated to see what is going on. Not
 * longer than `elv_rto`; source: the tail loss probe of RFC 8985, section 7, and RFC 9002, section
 * 6.2. */
elv_time_us elv_rtt_probe(const struct elv_rtt *r);

#ifdef __cplusplus
}
#endif
#endif
