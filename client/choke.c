/* SPDX-License-Identifier: Apache-2.0 */
#include "client/choke.h"

void elv_choke_clear(struct elv_choke *k) { *k = (struct elv_choke){0}; }

void elv_choke_sent(struct elv_choke *k, elv_time_us now)
{
    if (k->chunks == 0)
        *k = (struct elv_choke){.since_us = now};
    k->chunks++;
}

bool elv_choke_answered(struct elv_choke *k, elv_time_us now)
{
    k->answers++;
    return k->answers >= ELV_CHOKE_ANSWERS && k->chunks >= ELV_CHOKE_CHUNKS &&
           now - k->since_us >= ELV_CHOKE_US;
}
