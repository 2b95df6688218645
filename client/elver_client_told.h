/* SPDX-License-Identifier: Apache-2.0 */
/* client/elver_client_told.h - part of the program elver-client: what the log tells of the node.
 *
 * Events by name are in CHANGELOG.md; they come from what the node counts, so it does not know of
 * any log. */
#ifndef ELV_CLIENT_ELVER_CLIENT_TOLD_H
#define ELV_CLIENT_ELVER_CLIENT_TOLD_H

#include "client/client.h"
#include "ports/libcoap/client.h"
#include "ports/posix/log.h"

struct elv_client_told {
    const struct elv_log *log;       /* borrowed, like the next */
    const struct elv_client *client; /* may be changed by its node only */
    struct elv_client_stats stats;   /* what was told; all that follows is zero at first */
    enum elv_client_phase phase;
    uint32_t assignment, round; /* that the client was at work on, or was last */
};

/* After each step: what it changed. `traffic`: since the start. */
void elv_client_told_step(struct elv_client_told *t, const struct elv_coap_traffic *traffic);

#endif
