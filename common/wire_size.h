/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire_size.h - how long the datagrams are that carry requests and responses.
 *
 * What a network carries is more than bodies: IP, UDP, the DTLS record and CoAP's header and
 * options come on top. Simulations add them from here; programs count what their sockets really
 * sent, handshakes and repeats included (ports/libcoap/traffic.h), and a test holds the two against
 * each other. Pure functions of what is said, for the messages as ports/libcoap writes them.
 *
 * Source of the lengths: Shelby, Hartke, Bormann, "The Constrained Application Protocol (CoAP)",
 * RFC 7252, section 3; Rescorla, Modadugu, "Datagram Transport Layer Security Version 1.2",
 * RFC 6347, section 4.1; Rescorla, Tschofenig, Fossati, Kraus, "Connection Identifier for DTLS
 * 1.2", RFC 9146, section 4; McGrew, Bailey, "AES-CCM Cipher Suites for TLS", RFC 6655. */
#ifndef ELV_COMMON_WIRE_SIZE_H
#define ELV_COMMON_WIRE_SIZE_H

#include "msg.h"

#ifdef __cplusplus
extern "C" {
#endif

enum elv_wire_seal {
    ELV_SEAL_CLEAR,    /* no DTLS */
    ELV_SEAL_CCM_8,    /* AES-CCM with tags of 8 bytes: what Elver's programs agree on */
    ELV_SEAL_GCM,      /* AES-GCM, AES-CCM with tags of 16 bytes */
    ELV_SEAL_CHACHA20, /* ChaCha20-Poly1305 */
};

struct elv_wire_way {
    bool ipv6;
    enum elv_wire_seal seal;
    uint8_t cid_up, cid_down; /* bytes of Connection ID in records that way; 0: none */
    uint8_t token_len;        /* at most 8 */
    uint8_t identity_len;     /* CLEAR: of the identity that requests claim */
    struct elv_text job;
};

/* Elver's own programs over IPv4: CCM_8, 8 bytes of Connection ID up, none down, tokens of 4. */
struct elv_wire_way elv_wire_usual(struct elv_text job);

/* What such a CoAP message becomes, IP header included. */
uint32_t elv_wire_datagram(const struct elv_wire_way *way, bool up, size_t coap_len);

/* The datagram of a request. 0: it has no path, as `elv_path_encode` says. */
uint32_t elv_wire_request(const struct elv_wire_way *way, const struct elv_request *r);

/* The datagrams of the response to it. A body longer than ELV_MSG_MAX, which only the manifest's
 * may be, comes in blocks (RFC 7959): all of them are counted. `observed`: with that option. */
uint32_t elv_wire_response(const struct elv_wire_way *way, enum elv_op op,
                           const struct elv_response *r, bool observed);

/* The requests for the blocks after the first of a manifest of `len` bytes. */
uint32_t elv_wire_more_requests(const struct elv_wire_way *way, size_t len);

/* An acknowledgement by itself, when the answer comes later. */
uint32_t elv_wire_empty(const struct elv_wire_way *way, bool up);

/* All datagrams of a handshake with a pre-shared key where none is lost, for Elver's own programs
 * and an Mbed TLS built as ports/deps.sh does. */
uint32_t elv_wire_handshake(const struct elv_wire_way *way, bool up, size_t identity_len);

#ifdef __cplusplus
}
#endif
#endif
