/* SPDX-License-Identifier: Apache-2.0 */
/* ports/mbedtls/certify.h - an authority of one's own, and ECDSA P-256 certificates by it.
 *
 * For enrolment: what is made here is what ports/libcoap takes. Nothing is read from or written to
 * files; reading the clock and the system's entropy is all that reaches outside. Any thread. */
#ifndef ELV_PORTS_MBEDTLS_CERTIFY_H
#define ELV_PORTS_MBEDTLS_CERTIFY_H

#include "common/msg.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_CERTIFY_DAYS_MAX 36500u

/* PEM text with a terminating zero that `len` does not count. */
struct elv_pem {
    char text[2048];
    size_t len;
};

/* A certificate and its private key, as PEM text; a terminating zero is not needed. */
struct elv_certified {
    struct elv_bytes cert;
    struct elv_bytes key;
};

struct elv_certify_order {
    struct elv_text
        name;      /* common name: a device's identity, or the server's host name or address */
    bool server;   /* proves a server, and names it as host or address; else a device */
    uint32_t days; /* valid from yesterday (clocks differ) for so many days, 1 or more */
};

/* Makes a self-signed authority that may sign devices and servers but no further authorities.
 * ELV_ERR_ARG: a name outside the identity alphabet and '#', or longer than 64; ELV_ERR_IO: no
 * entropy. */
enum elv_err elv_certify_authority(struct elv_text name, uint32_t days, struct elv_pem *cert,
                                   struct elv_pem *key);

/* Makes a key and a certificate for it. ELV_ERR_AUTH: the authority cannot be read, is none, or the
 * key is not its own. */
enum elv_err elv_certify_issue(const struct elv_certified *authority,
                               const struct elv_certify_order *order, struct elv_pem *cert,
                               struct elv_pem *key);

/* Whether `own` was issued by `authority` (its `key` may be empty), is valid now, proves what
 * `order` says, and has the key that belongs to it. ELV_ERR_AUTH: it was not or does not;
 * ELV_ERR_FORMAT: something cannot be read. */
enum elv_err elv_certify_check(const struct elv_certified *authority,
                               const struct elv_certified *own,
                               const struct elv_certify_order *order);

#ifdef __cplusplus
}
#endif
#endif
