/* SPDX-License-Identifier: Apache-2.0 */
/* tests/transfer_block.c - a body by block-wise transfer, with libcoap as it comes.
 *
 * Block1 as in RFC 7959 with confirmable messages, and Q-Block1 as in RFC 9177 with
 * non-confirmable ones, over DTLS with a pre-shared key and a Connection ID. Timers are libcoap's.
 * MAX_PAYLOADS is 64 on both sides, the best that was found without loss; the MTU is set so that
 * blocks have 1,024 bytes in spite of the Connection ID. */
#define _POSIX_C_SOURCE 200809L
#include <coap3/coap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ports/libcoap/socket.h"
#include "tests/transfer_rig.h"

enum { MTU = 1200, MAX_PAYLOADS = 64, BUFFER = 8 << 20 };

static const uint8_t key[] = "0123456789abcdef";

static uint32_t mode_of(const struct rig_cell *cell)
{
    return COAP_BLOCK_USE_LIBCOAP | COAP_BLOCK_SINGLE_BODY |
           (cell->method == RIG_Q_BLOCK1 ? COAP_BLOCK_TRY_Q_BLOCK : 0);
}

static void prepare(void)
{
    coap_startup();
    coap_set_log_level(COAP_LOG_EMERG);
    coap_dtls_set_log_level(COAP_LOG_EMERG);
}

static void address(coap_address_t *at, uint16_t port)
{
    coap_address_init(at);
    at->size = sizeof at->addr.sin;
    at->addr.sin.sin_family = AF_INET;
    at->addr.sin.sin_port = htons(port);
    at->addr.sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

/* ---- the server */

static bool wrong;

static void on_put(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request,
                   const coap_string_t *query, coap_pdu_t *response)
{
    const uint8_t *at;
    size_t len, offset, total;
    (void)resource, (void)session, (void)query;
    if (coap_get_data_large(request, &len, &at, &offset, &total) == 0 || len != total)
        wrong = true;
    for (uint32_t i = 0; !wrong && i < len; i++)
        wrong = at[i] != rig_byte(i);
    coap_pdu_set_code(response,
                      wrong ? COAP_RESPONSE_CODE_BAD_REQUEST : COAP_RESPONSE_CODE_CHANGED);
}

static int on_event(coap_session_t *session, const coap_event_t event)
{
    if (event == COAP_EVENT_SERVER_SESSION_NEW) {
        coap_session_set_mtu(session, MTU);
        coap_session_set_max_payloads(session, MAX_PAYLOADS);
    }
    return 0;
}

int rig_block_serve(const struct rig_cell *cell, int port_pipe)
{
    coap_address_t at;
    coap_dtls_spsk_t psk = {.version = COAP_DTLS_SPSK_SETUP_VERSION};
    uint16_t port = 0;
    prepare();
    coap_context_t *context = coap_new_context(NULL);
    psk.psk_info.key = (coap_bin_const_t){sizeof key - 1, key};
    if (context == NULL || coap_context_set_psk2(context, &psk) == 0)
        return 1;
    coap_context_set_block_mode(context, mode_of(cell));
    coap_register_event_handler(context, on_event);
    coap_resource_t *resource = coap_resource_init(coap_make_str_const("body"), 0);
    coap_register_request_handler(resource, COAP_REQUEST_PUT, on_put);
    coap_add_resource(context, resource);
    address(&at, 0);
    const int fd = elv_coap_next_socket();
    if (coap_new_endpoint(context, &at, COAP_PROTO_DTLS) == NULL)
        return 1;
    (void)elv_coap_grow(fd, BUFFER, &port);
    if (port == 0 || write(port_pipe, &port, sizeof port) != sizeof port)
        return 1;
    while (!rig_ended())
        (void)coap_io_process(context, 100);
    coap_free_context(context);
    return wrong ? 1 : 0;
}

/* ---- the client */

static bool answered, accepted;

static coap_response_t on_response(coap_session_t *session, const coap_pdu_t *sent,
                                   const coap_pdu_t *pdu, const coap_mid_t mid)
{
    (void)session, (void)sent, (void)mid;
    answered = true;
    accepted = coap_pdu_get_code(pdu) == COAP_RESPONSE_CODE_CHANGED;
    return COAP_RESPONSE_OK;
}

static void on_nack(coap_session_t *session, const coap_pdu_t *sent, const coap_nack_reason_t why,
                    const coap_mid_t mid)
{
    (void)session, (void)sent, (void)mid;
    if (why != COAP_NACK_ICMP_ISSUE)
        answered = true;
}

static coap_session_t *open_session(coap_context_t *context, uint16_t port)
{
    coap_address_t at;
    coap_dtls_cpsk_t psk = {.version = COAP_DTLS_CPSK_SETUP_VERSION, .use_cid = 1};
    psk.psk_info.identity = (coap_bin_const_t){5, (const uint8_t *)"bench"};
    psk.psk_info.key = (coap_bin_const_t){sizeof key - 1, key};
    address(&at, port);
    const int fd = elv_coap_next_socket();
    coap_session_t *s = coap_new_client_session_psk2(context, NULL, &at, COAP_PROTO_DTLS, &psk);
    (void)elv_coap_grow(fd, BUFFER, NULL);
    for (const int64_t end = relay_now() + 60000000;
         s != NULL && coap_session_get_state(s) != COAP_SESSION_STATE_ESTABLISHED;) {
        if (relay_now() > end || coap_session_get_state(s) == COAP_SESSION_STATE_NONE)
            return NULL;
        (void)coap_io_process(context, 10);
    }
    return s;
}

static bool put(coap_session_t *session, const struct rig_cell *cell, const uint8_t *body)
{
    const bool con = cell->method == RIG_BLOCK1;
    coap_pdu_t *pdu =
        coap_new_pdu(con ? COAP_MESSAGE_CON : COAP_MESSAGE_NON, COAP_REQUEST_CODE_PUT, session);
    coap_optlist_t *list = coap_new_optlist(COAP_OPTION_URI_PATH, 4, (const uint8_t *)"body");
    uint8_t token[8];
    size_t len;
    coap_session_new_token(session, &len, token);
    if (pdu == NULL || coap_add_token(pdu, len, token) == 0 ||
        coap_add_optlist_pdu(pdu, &list) == 0)
        return false;
    coap_delete_optlist(list);
    return coap_add_data_large_request(session, pdu, cell->bytes, body, NULL, NULL) != 0 &&
           coap_send(session, pdu) != COAP_INVALID_MID;
}

void rig_block_play(const struct rig_cell *cell, uint16_t port, struct rig_result *result)
{
    prepare();
    if (cell->method == RIG_Q_BLOCK1 && coap_q_block_is_supported() == 0) {
        result->missing = true;
        return;
    }
    coap_context_t *context = coap_new_context(NULL);
    uint8_t *body = malloc(cell->bytes);
    if (context == NULL || body == NULL)
        return;
    for (uint32_t i = 0; i < cell->bytes; i++)
        body[i] = rig_byte(i);
    coap_context_set_block_mode(context, mode_of(cell));
    coap_register_response_handler(context, on_response);
    coap_register_nack_handler(context, on_nack);
    coap_session_t *session = open_session(context, port);
    if (session != NULL) {
        coap_session_set_mtu(session, MTU);
        coap_session_set_max_payloads(session, MAX_PAYLOADS);
        const int64_t start = relay_now();
        const bool sent = put(session, cell, body);
        while (sent && !answered && relay_now() < start + cell->limit_us)
            (void)coap_io_process(context, 20);
        result->us = relay_now() - start;
        result->finished = answered && accepted;
        result->bytes[0] = result->finished ? cell->bytes : 0;
        coap_session_release(session);
    }
    coap_free_context(context);
    free(body);
}
