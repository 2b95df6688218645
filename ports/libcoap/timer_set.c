/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/timer_set.c - for a libcoap whose first timer can be chosen. */
#include "ports/libcoap/timer.h"

bool elv_coap_set_dtls_timer(coap_context_t *context, uint32_t ms)
{
    coap_context_set_dtls_retransmit_ms(context, ms);
    return true;
}
