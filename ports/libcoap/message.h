/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/message.h - what both ends do to CoAP messages: paths, blocks, options.
 *
 * Inner header of this port. Nothing here keeps or allocates memory of its own. */
#ifndef ELV_PORTS_LIBCOAP_MESSAGE_H
#define ELV_PORTS_LIBCOAP_MESSAGE_H

#include <coap3/coap.h>

#include "common/msg.h"

#define ELV_COAP_FORMAT_LINK 40u  /* application/link-format */
#define ELV_COAP_FORMAT_OCTET 42u /* application/octet-stream: chunks */
#define ELV_COAP_FORMAT_CBOR 60u  /* application/cbor: messages */
#define ELV_COAP_BODY_MAX 1024u   /* in one datagram, either way */

/* IPv6 promises 1280 bytes; 40 are its own header and 8 are UDP's. A chunk of 1,024 bytes with its
 * options and a DTLS record with Connection ID counted at its longest stays below. */
#define ELV_COAP_MTU 1232u

static inline coap_fixed_point_t elv_coap_seconds(uint32_t ms)
{
    return (coap_fixed_point_t){(uint16_t)(ms / 1000), (uint16_t)(ms % 1000)};
}

/* Joins the Uri-Path options with '/'. False when they do not fit or one contains a '/'. */
bool elv_coap_path(const coap_pdu_t *pdu, char out[ELV_PATH_MAX], size_t *len);

/* Adds `path`, split at '/', as Uri-Path options. */
bool elv_coap_add_path(coap_pdu_t *pdu, struct elv_text path);

/* Adds an option with an unsigned value in its shortest form. */
bool elv_coap_add_uint(coap_pdu_t *pdu, uint16_t number, uint32_t value);

/* The value of an unsigned option; false when it is absent or too long. */
bool elv_coap_uint(const coap_pdu_t *pdu, uint16_t number, uint32_t *value);

/* A Block1 or Block2 option (RFC 7959, section 2.2). */
struct elv_coap_block {
    bool present;
    bool more;
    uint32_t num;
    uint32_t size; /* 16..1024 */
};

/* False when the option is there and malformed. */
bool elv_coap_block_read(const coap_pdu_t *pdu, uint16_t number, struct elv_coap_block *block);
bool elv_coap_block_add(coap_pdu_t *pdu, uint16_t number, const struct elv_coap_block *block);

struct elv_coap_answer {
    struct elv_response response;
    uint32_t format;
    struct elv_coap_block block2; /* as asked for */
    bool observed;
    uint32_t observe; /* sequence number */
};

/* Writes code, options and body into `pdu`, which has its token. A successful body beyond the block
 * asked for, or beyond one datagram, is cut to that block; nothing is remembered between blocks. */
bool elv_coap_answer_write(coap_pdu_t *pdu, const struct elv_coap_answer *answer);

/* The content format of what `op` carries. */
uint32_t elv_coap_format_up(enum elv_op op);
uint32_t elv_coap_format_down(enum elv_op op);

#endif
