/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile_net.h"

#include <coap3/coap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "ports/libcoap/socket.h"

static struct {
    coap_context_t *context;
    coap_session_t *session;
    int fd;
    uint32_t sequence;
    bool waits; /* for the answer to the token below */
    uint8_t token[4];
    struct answer *into;
} net;

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct sockaddr_in net_address(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

static coap_response_t on_response(coap_session_t *session, const coap_pdu_t *sent,
                                   const coap_pdu_t *pdu, const coap_mid_t mid)
{
    const coap_bin_const_t token = coap_pdu_get_token(pdu);
    struct answer *a = net.into;
    const uint8_t *at = NULL;
    (void)session, (void)sent, (void)mid;
    if (!net.waits || token.length != sizeof net.token ||
        memcmp(token.s, net.token, token.length) != 0)
        return COAP_RESPONSE_OK;
    net.waits = false;
    *a = (struct answer){.came = true, .code = (uint8_t)coap_pdu_get_code(pdu)};
    if (coap_get_data(pdu, &a->len, &at) == 0 || a->len > sizeof a->body)
        a->len = 0;
    if (a->len > 0)
        memcpy(a->body, at, a->len);
    struct elv_refusal f;
    if (!elv_code_is_success(a->code) &&
        elv_refusal_decode((struct elv_bytes){a->body, a->len}, &f) == ELV_OK)
        a->reason = f.reason;
    return COAP_RESPONSE_OK;
}

bool net_open(uint16_t port, const char *identity, const uint8_t *key, size_t key_len)
{
    coap_address_t at;
    const struct sockaddr_in to = net_address(port);
    coap_startup();
    coap_set_log_level(COAP_LOG_EMERG);
    coap_dtls_set_log_level(COAP_LOG_EMERG);
    net.context = coap_new_context(NULL);
    if (net.context == NULL)
        return false;
    coap_context_set_block_mode(net.context, 0);
    coap_register_option(net.context, HOSTILE_OPTION); /* a refusal repeats it */
    coap_register_response_handler(net.context, on_response);
    coap_address_init(&at);
    at.size = sizeof to;
    memcpy(&at.addr, &to, sizeof to);
    coap_dtls_cpsk_t psk = {.version = COAP_DTLS_CPSK_SETUP_VERSION, .use_cid = 1};
    psk.psk_info.identity = (coap_bin_const_t){strlen(identity), (const uint8_t *)identity};
    psk.psk_info.key = (coap_bin_const_t){key_len, key};
    net.fd = elv_coap_next_socket();
    net.session = coap_new_client_session_psk2(net.context, NULL, &at, COAP_PROTO_DTLS, &psk);
    if (net.session == NULL)
        return false;
    coap_session_set_nstart(net.session, 60000);
    for (const uint64_t end = now_ms() + 8000; now_ms() < end;) {
        (void)coap_io_process(net.context, 20);
        const coap_session_state_t state = coap_session_get_state(net.session);
        if (state == COAP_SESSION_STATE_ESTABLISHED)
            return true;
        if (state == COAP_SESSION_STATE_NONE)
            return false;
    }
    return false;
}

void net_close(void)
{
    if (net.session != NULL)
        coap_session_release(net.session);
    if (net.context != NULL)
        coap_free_context(net.context);
    net.session = NULL;
    net.context = NULL;
    coap_cleanup();
}

static bool add_uint(coap_optlist_t **list, uint16_t number, uint32_t value)
{
    uint8_t bytes[4];
    const size_t n = coap_encode_var_safe(bytes, sizeof bytes, value);
    return coap_insert_optlist(list, coap_new_optlist(number, n, bytes)) != 0;
}

static bool add_path(coap_optlist_t **list, const char *path)
{
    for (;;) {
        const size_t n = strcspn(path, "/");
        if (!coap_insert_optlist(list,
                                 coap_new_optlist(COAP_OPTION_URI_PATH, n, (const uint8_t *)path)))
            return false;
        if (path[n] == 0)
            return true;
        path += n + 1;
    }
}

static bool fill(coap_pdu_t *pdu, const struct ask *ask)
{
    coap_optlist_t *list = NULL;
    bool ok = coap_add_token(pdu, sizeof net.token, net.token) != 0;
    ok = ok && (ask->path == NULL || add_path(&list, ask->path));
    if (ok && ask->query != NULL)
        ok = coap_insert_optlist(&list, coap_new_optlist(COAP_OPTION_URI_QUERY, strlen(ask->query),
                                                         (const uint8_t *)ask->query)) != 0;
    if (ok && ask->format != 0)
        ok = add_uint(&list, COAP_OPTION_CONTENT_FORMAT, (uint32_t)ask->format);
    for (const int64_t *m = ask->more; ok && m != NULL && m[0] >= 0; m += 2)
        ok = add_uint(&list, (uint16_t)m[0], (uint32_t)m[1]);
    ok = ok && coap_add_optlist_pdu(pdu, &list) != 0;
    coap_delete_optlist(list);
    if (ok && ask->body.len > 0)
        ok = coap_add_data(pdu, ask->body.len, ask->body.at) != 0;
    return ok;
}

static bool send_it(const struct ask *ask)
{
    net.sequence++;
    memcpy(net.token, &net.sequence, sizeof net.token);
    coap_pdu_t *pdu =
        coap_pdu_init(ask->unreliable ? COAP_MESSAGE_NON : COAP_MESSAGE_CON,
                      (coap_pdu_code_t)ask->code, coap_new_message_id(net.session), 2000);
    if (pdu == NULL)
        return false;
    if (!fill(pdu, ask)) {
        coap_delete_pdu(pdu);
        return false;
    }
    return coap_send(net.session, pdu) != COAP_INVALID_MID;
}

void net_ask(const struct ask *ask, struct answer *answer)
{
    *answer = (struct answer){0};
    net.into = answer;
    net.waits = true;
    if (!send_it(ask))
        fprintf(stderr, "hostile: could not send to %s\n", ask->path);
    for (const uint64_t end = now_ms() + 10000; net.waits && now_ms() < end;)
        (void)coap_io_process(net.context, 50);
    net.waits = false;
}

void net_throw(const struct ask *ask)
{
    net.waits = false;
    (void)send_it(ask);
}

void net_odd(uint8_t type, uint8_t code, const uint8_t *body, size_t len)
{
    net.waits = false;
    coap_pdu_t *pdu = coap_pdu_init((coap_pdu_type_t)type, (coap_pdu_code_t)code,
                                    coap_new_message_id(net.session), 2000);
    if (pdu == NULL)
        return;
    if (len > 0)
        (void)coap_add_data(pdu, len, body);
    (void)coap_send(net.session, pdu);
}

void net_idle(uint32_t ms)
{
    for (const uint64_t end = now_ms() + ms; now_ms() < end;)
        (void)coap_io_process(net.context, 10);
}

void net_inject(const uint8_t *at, size_t len) { (void)!send(net.fd, at, len, 0); }

/* A ClientHello (RFC 6347, section 4.2) for PSK with AES-128-CCM-8. */
static size_t make_hello(uint8_t *out, uint8_t sequence, const uint8_t *cookie, size_t cookie_len)
{
    uint8_t body[128];
    size_t n = 0;
    body[n++] = 0xfe, body[n++] = 0xfd;
    for (int i = 0; i < 32; i++)
        body[n++] = (uint8_t)(i * 7 + 1);
    body[n++] = 0; /* no session to resume */
    body[n++] = (uint8_t)cookie_len;
    if (cookie_len > 0)
        memcpy(body + n, cookie, cookie_len);
    n += cookie_len;
    static const uint8_t rest[] = {0, 2, 0xc0, 0xa8, 1, 0}; /* one suite, no compression */
    memcpy(body + n, rest, sizeof rest);
    n += sizeof rest;

    uint8_t *p = out;
    const size_t record = n + 12;
    const uint8_t head[] = {22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, sequence, 0, (uint8_t)record,
                            /* handshake: type, length, message number, fragment */
                            1, 0, 0, (uint8_t)n, 0, sequence, 0, 0, 0, 0, 0, (uint8_t)n};
    memcpy(p, head, sizeof head);
    memcpy(p + sizeof head, body, n);
    return sizeof head + n;
}

size_t net_hello(uint8_t out[256]) { return make_hello(out, 0, NULL, 0); }

static int abandon_once(uint16_t port)
{
    const struct sockaddr_in to = net_address(port);
    const struct timeval patience = {.tv_sec = 1};
    uint8_t hello[256], got[1500];
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0)
        return -1;
    size_t len = make_hello(hello, 0, NULL, 0);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
        connect(fd, (const struct sockaddr *)&to, sizeof to) != 0 || send(fd, hello, len, 0) < 0)
        goto failed;
    /* HelloVerifyRequest: record 13, handshake 12, version 2, then the cookie. */
    const ssize_t n = recv(fd, got, sizeof got, 0);
    if (n < 28 || got[13] != 3 || 28 + got[27] > n || got[27] > 64)
        goto failed;
    len = make_hello(hello, 1, got + 28, got[27]);
    if (send(fd, hello, len, 0) < 0)
        goto failed;
    return fd;
failed:
    close(fd);
    return -1;
}

/* The system may give a socket the port of one given up before, from which the server still expects
 * the rest of a handshake: then another is tried. */
int net_abandon(uint16_t port)
{
    int fd = -1;
    for (int i = 0; i < 5 && fd < 0; i++)
        fd = abandon_once(port);
    return fd;
}
