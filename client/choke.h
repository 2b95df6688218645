/* SPDX-License-Identifier: Apache-2.0 */
/* client/choke.h - notices a path that small messages pass and chunks do not.
 *
 * A tunnel or a link with a small MTU may drop longer datagrams without a word (RFC 2923, section
 * 2.1). Then tickets come and no chunk does, however often it is asked for, and nothing ever says
 * why. Silence alone proves nothing: the server may be away, the link out of reach, a chunk lost.
 * But when several small messages were answered while many chunks in a row were not, and all of
 * that for long enough, waiting will not help. */
#ifndef ELV_CLIENT_CHOKE_H
#define ELV_CLIENT_CHOKE_H

#include <stdbool.h>
#include <stdint.h>

#include "../common/node.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_CHOKE_US 45000000 /* from the first of them on at least so long, */
#define ELV_CHOKE_CHUNKS 12u  /* and so many chunk requests without an answer to any, */
#define ELV_CHOKE_ANSWERS 3u  /* and so many answers to other messages meanwhile */

struct elv_choke {        /* all zero to begin */
    elv_time_us since_us; /* meaningful with chunks > 0 */
    uint32_t chunks, answers;
};

void elv_choke_clear(struct elv_choke *k); /* a chunk was answered, or there is no transfer */
void elv_choke_sent(struct elv_choke *k, elv_time_us now); /* a chunk request went out */
/* Another message was answered during the transfer. True: chunks do not get through. */
bool elv_choke_answered(struct elv_choke *k, elv_time_us now);

#ifdef __cplusplus
}
#endif
#endif
