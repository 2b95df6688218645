/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/credential.h - how the two ends prove who they are. */
#ifndef ELV_PORTS_LIBCOAP_CREDENTIAL_H
#define ELV_PORTS_LIBCOAP_CREDENTIAL_H

#include "common/msg.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_COAP_PORT 5683u  /* coap: in the clear, for debugging only */
#define ELV_COAPS_PORT 5684u /* coaps */

/* What is visible in a PSK handshake: `name` or `name#generation`. */
#define ELV_COAP_IDENTITY_MAX (ELV_NAME_MAX + 11u)
#define ELV_COAP_PSK_MAX 32u

/* An ECDSA P-256 certificate, its private key and the authority that signs both ends, as PEM text.
 * Without a terminating zero; copied when something is opened with it. */
struct elv_coap_cert {
    struct elv_bytes ca;
    struct elv_bytes cert;
    struct elv_bytes key;
};

/* Why something could not be opened, as a sentence for the operator. */
struct elv_coap_problem {
    char text[192];
};

#ifdef __cplusplus
}
#endif
#endif
