/* SPDX-License-Identifier: Apache-2.0 */
/* tests/hostile_net.h - requests of any kind to a real server, over real DTLS.
 *
 * Libcoap used directly: unlike ports/libcoap it lets a caller send what no client of ours would.
 * One association at a time. */
#ifndef ELV_TESTS_HOSTILE_NET_H
#define ELV_TESTS_HOSTILE_NET_H

#include <netinet/in.h>

#include "common/msg.h"

#define HOSTILE_BODY_MAX 1100u
#define HOSTILE_OPTION 65001u /* critical, and known to nobody else */

struct ask {
    uint8_t code;      /* the method; any number */
    bool unreliable;   /* NON */
    const char *path;  /* split at '/'; empty parts are sent as they are */
    const char *query; /* NULL: none */
    struct elv_bytes body;
    int format;          /* Content-Format; 0: none */
    const int64_t *more; /* pairs of option number and unsigned value, ended by -1 */
};

struct answer {
    bool came;
    uint8_t code;
    enum elv_reason reason; /* of a refusal; NONE when there is none */
    uint8_t body[HOSTILE_BODY_MAX];
    size_t len;
};

/* 127.0.0.1 only. False: no association after some seconds. */
bool net_open(uint16_t port, const char *identity, const uint8_t *key, size_t key_len);
void net_close(void);

/* Waits for the answer, up to ten seconds; `answer->came` says whether there is one. */
void net_ask(const struct ask *ask, struct answer *answer);
/* Sends and forgets. */
void net_throw(const struct ask *ask);
/* Reads what has come, for so long. */
void net_idle(uint32_t ms);
/* A message of any type and code, without options, sent and forgotten. */
void net_odd(uint8_t type, uint8_t code, const uint8_t *body, size_t len);
/* Bytes that are no DTLS record, from the very socket of the association. */
void net_inject(const uint8_t *at, size_t len);

/* A handshake by hand, without a key: up to the server's hello, then silence. The socket, which the
 * caller closes, or -1. Each has an address of its own. */
int net_abandon(uint16_t port);
struct sockaddr_in net_address(uint16_t port);
/* A ClientHello without a cookie, as it begins a handshake; returns its length. */
size_t net_hello(uint8_t out[256]);

#endif
