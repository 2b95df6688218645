/* SPDX-License-Identifier: Apache-2.0 */
/* tests/relay.h - a bad network between a client and a server, in user space and from a seed.
 *
 * Stands between UDP clients and one server and does to datagrams in real time what
 * ports/sim/link.h does on virtual time: delay, rate and queue, losses, bursts, duplicates,
 * reordering, an MTU, outages. Can change the address the server sees, when told or by a schedule.
 * Each client address has a socket of its own towards the server, and all share one lane in each
 * direction, as behind one narrow line. Everything is bounded; what does not fit is lost, as in a
 * router. One thread. */
#ifndef ELV_TESTS_RELAY_H
#define ELV_TESTS_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ports/sim/link.h"

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
    /* What each direction is like, instead of the four above: borrowed until relay_open returns.
     * NULL: as they say. The addresses change when those of `down` do. */
    const struct elv_sim_way *up, *down; /* towards the server, and back */
    uint32_t headers; /* bytes that rate, queue and MTU count on top of each datagram */
    /* Sees each datagram that arrives at the relay, before it may be lost. May be NULL. */
    void (*tap)(void *ctx, bool from_client, const uint8_t *datagram, size_t len);
    void *tap_ctx;
};

struct relay_stats {
    uint64_t datagrams[2], bytes[2]; /* [0] towards the server; without `headers` */
    struct elv_sim_fates fates[2];   /* what became of them */
    uint64_t overrun;                /* queue or client table full */
    uint64_t moves;
};

struct relay;
struct relay *relay_open(const struct relay_cfg *cfg); /* NULL: errno says why */
void relay_close(struct relay *r);
uint16_t relay_port(const struct relay *r);
int relay_fd(const struct relay *r);                /* readable: call relay_step */
int64_t relay_now(void);                            /* monotonic microseconds */
int64_t relay_deadline(const struct relay *r);      /* call relay_step then; INT64_MAX: no need */
void relay_wait(const struct relay *r, int64_t us); /* for something to do, at most so long */
void relay_step(struct relay *r);                   /* does not wait */
void relay_set_loss(struct relay *r, uint32_t ppm); /* 1000000: nothing gets through */
void relay_set_mtu(struct relay *r, uint32_t mtu);  /* in both directions; 0: no limit */
void relay_move(struct relay *r);                   /* all clients appear at new addresses */
/* Sends something of one's own, as if the client opened last, or the server, had. */
void relay_inject(struct relay *r, bool from_client, const uint8_t *datagram, size_t len);
const struct relay_stats *relay_stats(const struct relay *r);

#endif
