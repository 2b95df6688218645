/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire_size.h"

#include <string.h>

enum {
    IPV4 = 20,
    IPV6 = 40,
    UDP = 8,
    COAP_HEAD = 4,
    MARKER = 1, /* before a payload */
    RECORD_HEAD = 13,
    EXPLICIT_NONCE = 8,
    CID_TYPE = 1,          /* the record's real type moves inside */
    CID_MULTIPLE = 16,     /* and Mbed TLS fills up with zeros */
    HANDSHAKE_FLIGHTS = 3, /* each way; */
    HANDSHAKE_UP = 326,    /* bytes of their records, but for what seals the Finished */
    HANDSHAKE_DOWN = 255,
    BLOCK = ELV_MSG_MAX,
    BLOCK_TAG = 8,
    FORMAT_LEN = 1, /* of the value of Content-Format */
    EXTENDED = 13,  /* an option's length or number from here on takes one byte more */
};

/* Numbers of options, in the order they are written. */
enum {
    ETAG = 4,
    OBSERVE = 6,
    URI_PATH = 11,
    CONTENT_FORMAT = 12,
    MAX_AGE = 14,
    URI_QUERY = 15,
    BLOCK2 = 23,
    SIZE2 = 28,
    SIZE1 = 60,
};

/* A CoAP message, as far as its length goes. */
struct message {
    size_t len;
    unsigned option; /* number of the last one */
};

static void add_option(struct message *m, unsigned number, size_t len)
{
    m->len += 1 + (size_t)(number - m->option >= EXTENDED) + (size_t)(len >= EXTENDED) + len;
    m->option = number;
}

static size_t uint_len(uint32_t value)
{
    size_t n = 0;
    for (; value > 0; value >>= 8)
        n++;
    return n;
}

static void add_body(struct message *m, size_t len) { m->len += len > 0 ? MARKER + len : 0; }

static void add_path(struct message *m, const char *path, size_t len)
{
    size_t from = 0;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && path[i] != '/')
            continue;
        add_option(m, URI_PATH, i - from);
        from = i + 1;
    }
}

struct elv_wire_way elv_wire_usual(struct elv_text job)
{
    return (struct elv_wire_way){.seal = ELV_SEAL_CCM_8, .cid_up = 8, .token_len = 4, .job = job};
}

static size_t tag_len(enum elv_wire_seal seal) { return seal == ELV_SEAL_CCM_8 ? 8 : 16; }

static size_t nonce_len(enum elv_wire_seal seal)
{
    return seal == ELV_SEAL_CHACHA20 ? 0 : EXPLICIT_NONCE;
}

static size_t record(const struct elv_wire_way *way, bool up, size_t len)
{
    const size_t cid = up ? way->cid_up : way->cid_down;
    if (cid > 0)
        len = (len + CID_TYPE + CID_MULTIPLE - 1) / CID_MULTIPLE * CID_MULTIPLE;
    return RECORD_HEAD + cid + nonce_len(way->seal) + len + tag_len(way->seal);
}

static size_t below(const struct elv_wire_way *way) { return (way->ipv6 ? IPV6 : IPV4) + UDP; }

uint32_t elv_wire_datagram(const struct elv_wire_way *way, bool up, size_t coap_len)
{
    const size_t len = way->seal == ELV_SEAL_CLEAR ? coap_len : record(way, up, coap_len);
    return (uint32_t)(below(way) + len);
}

static uint32_t request(const struct elv_wire_way *way, const struct elv_request *r, uint32_t block)
{
    char path[ELV_PATH_MAX];
    size_t len;
    enum elv_method method;
    struct message m = {.len = COAP_HEAD + way->token_len};
    if (elv_path_encode(r, way->job, path, &len, &method) != ELV_OK)
        return 0;
    if (r->observe && r->op == ELV_OP_TICKET)
        add_option(&m, OBSERVE, 0);
    add_path(&m, path, len);
    if (r->body.len > 0)
        add_option(&m, CONTENT_FORMAT, FORMAT_LEN);
    if (way->seal == ELV_SEAL_CLEAR)
        add_option(&m, URI_QUERY, 2 + (size_t)way->identity_len);
    if (block > 0)
        add_option(&m, BLOCK2, uint_len(block << 4 | 6));
    add_body(&m, r->body.len);
    return elv_wire_datagram(way, true, m.len);
}

uint32_t elv_wire_request(const struct elv_wire_way *way, const struct elv_request *r)
{
    return request(way, r, 0);
}

uint32_t elv_wire_more_requests(const struct elv_wire_way *way, size_t len)
{
    const struct elv_request r = {.op = ELV_OP_MANIFEST};
    uint32_t sum = 0;
    for (uint32_t block = 1; (size_t)block * BLOCK < len; block++)
        sum += request(way, &r, block);
    return sum;
}

/* Of one block, or of a body that needs none. */
static uint32_t response(const struct elv_wire_way *way, const struct elv_response *r, size_t part,
                         bool observed, uint32_t block)
{
    const bool success = elv_code_is_success(r->code);
    const bool blocks = success && r->body.len > BLOCK;
    struct message m = {.len = COAP_HEAD + way->token_len};
    if (blocks)
        add_option(&m, ETAG, BLOCK_TAG);
    if (observed && success)
        add_option(&m, OBSERVE, 1); /* its number takes two from the 256th on */
    if (r->body.len > 0)
        add_option(&m, CONTENT_FORMAT, FORMAT_LEN);
    if (r->code == ELV_CODE_CONTENT || !success)
        add_option(&m, MAX_AGE, uint_len(r->max_age_s));
    if (blocks) {
        add_option(&m, BLOCK2, uint_len(block << 4 | 6));
        add_option(&m, SIZE2, uint_len((uint32_t)r->body.len));
    }
    if (r->code == ELV_CODE_TOO_LARGE)
        add_option(&m, SIZE1, uint_len(BLOCK));
    add_body(&m, part);
    return elv_wire_datagram(way, false, m.len);
}

uint32_t elv_wire_response(const struct elv_wire_way *way, enum elv_op op,
                           const struct elv_response *r, bool observed)
{
    const size_t len = r->body.len;
    uint32_t sum = 0, block = 0;
    size_t at = 0;
    if (op != ELV_OP_MANIFEST || len <= BLOCK)
        return response(way, r, len, observed, 0);
    for (; at < len; at += BLOCK)
        sum += response(way, r, len - at < BLOCK ? len - at : BLOCK, observed, block++);
    return sum;
}

uint32_t elv_wire_empty(const struct elv_wire_way *way, bool up)
{
    return elv_wire_datagram(way, up, COAP_HEAD);
}

/* Three flights each way: a hello, refused with a cookie; a hello with it; the key's name and both
 * Finished. One record of either side is sealed. */
uint32_t elv_wire_handshake(const struct elv_wire_way *way, bool up, size_t identity_len)
{
    if (way->seal == ELV_SEAL_CLEAR)
        return 0;
    const size_t sealing = nonce_len(way->seal) + tag_len(way->seal);
    const size_t records = up ? HANDSHAKE_UP + identity_len : HANDSHAKE_DOWN;
    return (uint32_t)(HANDSHAKE_FLIGHTS * below(way) + records + sealing);
}
