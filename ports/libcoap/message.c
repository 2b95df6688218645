/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/message.c - paths, blocks and options of CoAP messages. */
#include "ports/libcoap/message.h"

#include <string.h>

bool elv_coap_path(const coap_pdu_t *pdu, char out[ELV_PATH_MAX], size_t *len)
{
    coap_opt_filter_t only;
    coap_opt_iterator_t each;
    coap_opt_t *segment;
    size_t used = 0;
    bool first = true;
    coap_option_filter_clear(&only);
    coap_option_filter_set(&only, COAP_OPTION_URI_PATH);
    if (coap_option_iterator_init(pdu, &each, &only) == NULL) {
        *len = 0;
        return true;
    }
    while ((segment = coap_option_next(&each)) != NULL) {
        const size_t n = coap_opt_length(segment);
        const uint8_t *at = coap_opt_value(segment);
        if (n >= ELV_PATH_MAX - used || (n != 0 && memchr(at, '/', n) != NULL))
            return false;
        if (!first) /* an empty part counts, in front too: a resource has one path */
            out[used++] = '/';
        first = false;
        if (n != 0)
            memcpy(out + used, at, n);
        used += n;
        if (used >= ELV_PATH_MAX)
            return false;
    }
    *len = used;
    return true;
}

bool elv_coap_add_path(coap_pdu_t *pdu, struct elv_text path)
{
    size_t start = 0;
    while (start <= path.len) {
        const char *at = path.at + start;
        const char *slash = memchr(at, '/', path.len - start);
        const size_t n = slash != NULL ? (size_t)(slash - at) : path.len - start;
        if (coap_add_option(pdu, COAP_OPTION_URI_PATH, n, (const uint8_t *)at) == 0)
            return false;
        start += n + 1;
    }
    return true;
}

bool elv_coap_add_uint(coap_pdu_t *pdu, uint16_t number, uint32_t value)
{
    uint8_t bytes[4];
    const unsigned n = coap_encode_var_safe(bytes, sizeof bytes, value);
    return coap_add_option(pdu, number, n, bytes) != 0;
}

bool elv_coap_uint(const coap_pdu_t *pdu, uint16_t number, uint32_t *value)
{
    coap_opt_iterator_t at;
    const coap_opt_t *option = coap_check_option(pdu, number, &at);
    if (option == NULL || coap_opt_length(option) > 4)
        return false;
    *value = coap_decode_var_bytes(coap_opt_value(option), coap_opt_length(option));
    return true;
}

bool elv_coap_block_read(const coap_pdu_t *pdu, uint16_t number, struct elv_coap_block *block)
{
    coap_opt_iterator_t at;
    uint32_t value;
    *block = (struct elv_coap_block){0};
    if (coap_check_option(pdu, number, &at) == NULL)
        return true;
    /* A size exponent of 7 is reserved outside of TCP (RFC 7959, section 2.2). */
    if (!elv_coap_uint(pdu, number, &value) || value > 0xffffffu || (value & 7u) == 7u)
        return false;
    *block = (struct elv_coap_block){
        .present = true,
        .more = (value & 8u) != 0,
        .num = value >> 4,
        .size = 16u << (value & 7u),
    };
    return true;
}

static uint32_t size_exponent(uint32_t size)
{
    uint32_t exponent = 0;
    while (exponent < 6 && (16u << exponent) < size)
        exponent++;
    return exponent;
}

bool elv_coap_block_add(coap_pdu_t *pdu, uint16_t number, const struct elv_coap_block *block)
{
    const uint32_t more = block->more ? 8u : 0u;
    return elv_coap_add_uint(pdu, number, block->num << 4 | more | size_exponent(block->size));
}

/* FNV-1a: tells two bodies apart while their blocks are fetched; promises nothing else. */
static void body_tag(struct elv_bytes body, uint8_t tag[8])
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < body.len; i++)
        hash = (hash ^ body.at[i]) * UINT64_C(0x100000001b3);
    for (unsigned i = 0; i < 8; i++)
        tag[i] = (uint8_t)(hash >> (8 * i));
}

/* Which part of a body an answer carries; false when the block asked for lies past its end. */
static bool cut(const struct elv_coap_answer *a, struct elv_coap_block *block,
                struct elv_bytes *part)
{
    const struct elv_bytes body = a->response.body;
    *part = body;
    *block = a->block2;
    if (!elv_code_is_success(a->response.code) ||
        (body.len <= ELV_COAP_BODY_MAX && !a->block2.present)) {
        block->present = false;
        return true;
    }
    if (!block->present)
        *block = (struct elv_coap_block){.present = true, .size = ELV_COAP_BODY_MAX};
    /* num < 2^20 and size <= 2^10, so the product fits. */
    const size_t start = (size_t)block->num * block->size;
    if (start >= body.len && start != 0)
        return false;
    part->at = body.len != 0 ? body.at + start : NULL;
    part->len = body.len - start;
    block->more = part->len > block->size;
    if (block->more)
        part->len = block->size;
    return true;
}

/* Answers that a cache may keep carry Max-Age, because leaving it out means 60 seconds. */
static bool is_cacheable(uint8_t code)
{
    return code == ELV_CODE_CONTENT || !elv_code_is_success(code);
}

static bool add_options(coap_pdu_t *pdu, const struct elv_coap_answer *a,
                        const struct elv_coap_block *block)
{
    const struct elv_response *r = &a->response;
    bool ok = true;
    if (block->present) {
        uint8_t tag[8];
        body_tag(r->body, tag);
        ok = coap_add_option(pdu, COAP_OPTION_ETAG, sizeof tag, tag) != 0;
    }
    if (ok && a->observed && elv_code_is_success(r->code))
        ok = elv_coap_add_uint(pdu, COAP_OPTION_OBSERVE, a->observe & 0xffffffu);
    if (ok && r->body.len != 0)
        ok = elv_coap_add_uint(pdu, COAP_OPTION_CONTENT_FORMAT, a->format);
    if (ok && is_cacheable(r->code))
        ok = elv_coap_add_uint(pdu, COAP_OPTION_MAXAGE, r->max_age_s);
    if (ok && block->present)
        ok = elv_coap_block_add(pdu, COAP_OPTION_BLOCK2, block) &&
             elv_coap_add_uint(pdu, COAP_OPTION_SIZE2, (uint32_t)r->body.len);
    if (ok && r->code == ELV_CODE_TOO_LARGE)
        ok = elv_coap_add_uint(pdu, COAP_OPTION_SIZE1, ELV_COAP_BODY_MAX);
    return ok;
}

bool elv_coap_answer_write(coap_pdu_t *pdu, const struct elv_coap_answer *a)
{
    struct elv_coap_block block;
    struct elv_bytes part;
    if (!cut(a, &block, &part)) {
        coap_pdu_set_code(pdu, (coap_pdu_code_t)ELV_CODE_BAD_REQUEST);
        return elv_coap_add_uint(pdu, COAP_OPTION_MAXAGE, 0);
    }
    coap_pdu_set_code(pdu, (coap_pdu_code_t)a->response.code);
    if (!add_options(pdu, a, &block))
        return false;
    return part.len == 0 || coap_add_data(pdu, part.len, part.at) != 0;
}

uint32_t elv_coap_format_up(enum elv_op op)
{
    return op == ELV_OP_UPDATE_CHUNK ? ELV_COAP_FORMAT_OCTET : ELV_COAP_FORMAT_CBOR;
}

uint32_t elv_coap_format_down(enum elv_op op)
{
    return op == ELV_OP_MODEL_CHUNK || op == ELV_OP_STEP_CHUNK ? ELV_COAP_FORMAT_OCTET
                                                               : ELV_COAP_FORMAT_CBOR;
}
