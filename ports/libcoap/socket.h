/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/socket.h - addresses, receive buffers, and reading all that has arrived.
 *
 * Inner header of this port. */
#ifndef ELV_PORTS_LIBCOAP_SOCKET_H
#define ELV_PORTS_LIBCOAP_SOCKET_H

#include <coap3/coap.h>

#include "ports/libcoap/credential.h"

#define ELV_COAP_HOST_MAX 255u

struct elv_coap_place {
    char host[ELV_COAP_HOST_MAX + 1];
    uint16_t port;
    bool secure;
};

/* Reads "[coap[s]://]host[:port]"; no scheme means coaps. */
enum elv_err elv_coap_place_parse(const char *text, struct elv_coap_place *place);

/* Looks the host up; returns how many addresses it has, at most `cap`. May wait for a name server;
 * numeric addresses do not. */
uint32_t elv_coap_resolve(const struct elv_coap_place *place, coap_address_t *out, uint32_t cap);

/* The descriptor the next socket will get. Libcoap shows no descriptor of the sockets it opens. */
int elv_coap_next_socket(void);

/* Asks for `want` bytes of receive buffer on `fd`. Returns what was granted, 0 when `fd` is no
 * datagram socket; `*port` (may be NULL) becomes its local port. */
uint32_t elv_coap_grow(int fd, uint32_t want, uint16_t *port);

/* Keeps others off the address `fd` is bound to. Libcoap lets anybody bind it once more, and the
 * newcomer would get all the datagrams. */
void elv_coap_own(int fd);

/* Reads what has arrived at a context's sockets, many datagrams for each pass over its sessions. */
struct elv_coap_pump {
    coap_context_t *context;
    int epoll;
    uint32_t burst;
};

void elv_coap_pump_init(struct elv_coap_pump *pump, coap_context_t *context);
void elv_coap_pump_run(struct elv_coap_pump *pump);

#endif
