/* SPDX-License-Identifier: Apache-2.0 */
/* tests/relay.h - a bad network between a client and a server, in user space and from a seed.
 *
 * Stands between UDP clients and one server: delays, loses, duplicates and reorders datagrams, and
 * can change the address the server sees. Each client address has a socket of its own towards the
 * server. Everything is bounded; what does not fit is lost, as in a router. One thread. */
#ifndef ELV_TESTS_RELAY_H
#define ELV_TESTS_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RELAY_CLIENTS_MAX 64

struct relay_cfg {
    const char *server_host;
    uint16_t server_port;
    uint16_t listen_port; /* 0: any */
    uint64_t seed;
    /* For each direction alike, for each datagram by itself. */
    uint32_t loss_ppm;
    uint32_t duplicate_ppm;
    int64_t delay_us;  /* the least */
    int64_t jitter_us; /* up to so much more; more than the gap between datagrams reorders them */
    /* Sees each datagram that arrives at the relay, before it may be lost. May be NULL. */
    void (*tap)(void *ctx, bool from_client, const uint8_t *datagram, size_t len);
    void *tap_ctx;
};

struct relay_stats {
    uint64_t datagrams[2], lost[2], duplicated[2], bytes[2]; /* [0] towards the server */
    uint64_t overrun;                                        /* queue or client table full */
};

struct relay;
struct relay *relay_open(const struct relay_cfg *cfg); /* NULL: errno says why */
void relay_close(struct relay *r);
uint16_t relay_port(const struct relay *r);
int relay_fd(const struct relay *r);                /* readable: call relay_step */
int64_t relay_now(void);                            /* monotonic microseconds */
int64_t relay_deadline(const struct relay *r);      /* call relay_step then; INT64_MAX: no need */
void relay_step(struct relay *r);                   /* does not wait */
void relay_set_loss(struct relay *r, uint32_t ppm); /* 1000000: nothing gets through */
void relay_move(struct relay *r);                   /* all clients appear at new addresses */
/* Sends something of one's own, as if the client opened last, or the server, had. */
void relay_inject(struct relay *r, bool from_client, const uint8_t *datagram, size_t len);
const struct relay_stats *relay_stats(const struct relay *r);

#endif
