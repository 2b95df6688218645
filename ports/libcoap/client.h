/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/client.h - a client node's requests as CoAP over DTLS 1.2 with Connection ID.
 *
 * SEND becomes a confirmable request when it is reliable, else a non-confirmable one that leaves
 * nothing behind when it is lost. The manifest is fetched block by block (RFC 7959); everything
 * else is one datagram each way. A request that was acknowledged and is then not answered is not
 * reported: only the node knows how long an answer may take. RELINK opens a second association and
 * moves to it once it stands.
 *
 * All functions are called on the node's own thread. None waits, but for looking up a host name:
 * when opened, and with each new association. */
#ifndef ELV_PORTS_LIBCOAP_CLIENT_H
#define ELV_PORTS_LIBCOAP_CLIENT_H

#include "common/port.h"
#include "ports/libcoap/credential.h"
#include "ports/libcoap/traffic.h"

#ifdef __cplusplus
extern "C" {
#endif

struct elv_coap_client_cfg {
    const char *server; /* coaps://host[:port]; coap:// needs `insecure` */
    struct elv_text job;
    struct elv_sink sink;
    /* Either a pre-shared key, */
    struct elv_text identity; /* 1..ELV_COAP_IDENTITY_MAX characters */
    struct elv_bytes psk;     /* 1..ELV_COAP_PSK_MAX bytes */
    /* or a certificate. */
    const struct elv_coap_cert *cert; /* NULL: the key above */
    const char *server_name;          /* with `cert`: what its certificate must say; NULL: the host,
                                       * where that is a name */
    bool insecure;                    /* coap:// is allowed; the identity is sent as a claim */
    /* 0 takes the default. */
    uint32_t ack_timeout_ms; /* 1000: first repetition of a confirmable request; doubles */
    uint32_t retries;        /* 4: repetitions before NO_ANSWER */
    uint32_t dtls_timer_ms;  /* 1000: first repetition in a handshake; needs a patched libcoap */
    uint32_t in_flight_max;  /* 256 requests; at most 65535; beyond it a SEND is lost */
    uint32_t receive_buffer; /* 1048576 bytes asked of the system */
};

/* What became of the newest association. */
enum elv_coap_link {
    ELV_COAP_LINK_OPENING,     /* handshake under way */
    ELV_COAP_LINK_UP,          /* stands, as far as one can know */
    ELV_COAP_LINK_REFUSED,     /* a server answered and ended the handshake: unknown identity or
                                  wrong key */
    ELV_COAP_LINK_DISTRUSTED,  /* its certificate does not prove it to be `server_name` */
    ELV_COAP_LINK_UNREACHABLE, /* no such host, or its system says that nobody listens */
    ELV_COAP_LINK_SILENT,      /* no answer in time */
    ELV_COAP_LINK_CLOSED,      /* stood, and was closed by the server */
};

struct elv_coap_client_status {
    enum elv_coap_link link;
    uint32_t refused_in_row; /* REFUSED since the last that stood; DISTRUSTED says nothing about us.
                                Alerts are not authenticated: believe several, not one. */
    uint64_t handshakes;     /* that stood */
    uint64_t sent, answered, unanswered;
    uint64_t bytes_in, bytes_out; /* CoAP payloads */
    struct elv_coap_traffic traffic;
    uint32_t in_flight;
    uint32_t receive_buffer; /* granted by the system; 0: unknown */
};

struct elv_coap_client;

/* On failure `*problem` holds a sentence. ELV_ERR_ARG: the configuration; ELV_ERR_AUTH: certificate
 * or key cannot be used; ELV_ERR_UNSUPPORTED: not with this libcoap; ELV_ERR_MEMORY. A host that
 * cannot be found now is no failure. Texts and buffers of `cfg` are copied. */
enum elv_err elv_coap_client_open(const struct elv_coap_client_cfg *cfg,
                                  struct elv_coap_client **client,
                                  struct elv_coap_problem *problem);
void elv_coap_client_close(struct elv_coap_client *client); /* NULL is fine */

struct elv_net elv_coap_client_net(struct elv_coap_client *client); /* SEND, FORGET, RELINK */
struct elv_source elv_coap_client_source(struct elv_coap_client *client);
const struct elv_coap_client_status *elv_coap_client_status(const struct elv_coap_client *client);

#ifdef __cplusplus
}
#endif
#endif
