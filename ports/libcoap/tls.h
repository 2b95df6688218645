/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/tls.h - what has to be asked of Mbed TLS behind libcoap's back.
 *
 * Inner header of this port. */
#ifndef ELV_PORTS_LIBCOAP_TLS_H
#define ELV_PORTS_LIBCOAP_TLS_H

#include <coap3/coap.h>

#include "ports/libcoap/credential.h"

/* The common name in the certificate the peer has shown; false when there is none. Libcoap calls
 * its own callback for names only when verification has found something to object to. */
bool elv_coap_peer_name(const coap_session_t *session, char out[ELV_COAP_IDENTITY_MAX],
                        size_t *len);

/* A copy of a certificate as libcoap wants it, each PEM text with its terminating zero. */
struct elv_coap_pem {
    uint8_t *ca, *cert, *key;
    size_t ca_len, cert_len, key_len;
};

/* ELV_ERR_AUTH when the texts cannot be read or the key is not the certificate's. */
enum elv_err elv_coap_pem_copy(const struct elv_coap_cert *from, struct elv_coap_pem *pem,
                               struct elv_coap_problem *problem);
void elv_coap_pem_free(struct elv_coap_pem *pem);

/* Libcoap tells Mbed TLS of a datagram's greatest length once only, when a session begins. */
void elv_coap_tls_mtu(const coap_session_t *session, unsigned mtu);

/* Fills what both ends say alike; mutual, never optional. */
void elv_coap_pki_setup(const struct elv_coap_pem *pem, coap_dtls_pki_t *setup);

#endif
