/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/timer.h - the first timer of a DTLS handshake.
 *
 * Released versions of libcoap fix it when they are built; ours is patched. Which of the two files
 * behind this header is built depends on the libcoap found. Inner header of this port. */
#ifndef ELV_PORTS_LIBCOAP_TIMER_H
#define ELV_PORTS_LIBCOAP_TIMER_H

#include <coap3/coap.h>
#include <stdbool.h>
#include <stdint.h>

#define ELV_COAP_DTLS_TIMER_MAX_MS 60000u

/* For handshakes that begin from now on; 0 is the default of one second. False: not with this
 * libcoap. */
bool elv_coap_set_dtls_timer(coap_context_t *context, uint32_t ms);

#endif
