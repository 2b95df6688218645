/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/hello.c - opening associations: three round trips, as DTLS 1.2 with a cookie takes. */
#include "ports/sim/world_parts.h"

enum {
    HELLO_ROUNDS = 3,
    HELLO_TRIES = 6,   /* 1 s, doubling: given up after about a minute */
    HELLO_BYTES = 300, /* an average flight */
};
static const elv_time_us hello_wait_us = 1000000;

static void say_hello(struct elv_sim *w, uint32_t client)
{
    struct sim_node *n = w->nodes[client];
    struct packet *p = sim_packet();
    *p = (struct packet){.client = client,
                         .life = n->life,
                         .serial = n->hello.serial,
                         .round = n->hello.round,
                         .epoch = n->hello.epoch};
    struct packet *late = sim_packet_clone(p);
    const elv_time_us wait = hello_wait_us << n->hello.tries;
    elv_sim_queue_push(&w->queue, w->now + wait, AT_HELLO_LATE, client, late);
    sim_travel(w, client, AT_HELLO_UP, p, HELLO_BYTES);
}

void sim_hello_open(struct elv_sim *w, uint32_t client)
{
    struct hello *h = &w->nodes[client]->hello;
    *h = (struct hello){.active = true, .serial = h->serial + 1};
    say_hello(w, client);
}

void sim_hello_up(struct elv_sim *w, struct packet *p)
{
    struct sim_node *client = w->nodes[p->client];
    struct sim_node *server = w->nodes[client->cfg.server];
    const bool forgotten = p->round == HELLO_ROUNDS - 1 && p->epoch != server->life;
    if (!server->up || forgotten || sim_number(server, client->cfg.number)->revoked)
        return;
    struct packet *answer = sim_packet_clone(p);
    answer->epoch = server->life;
    sim_travel(w, p->client, AT_HELLO_DOWN, answer, HELLO_BYTES);
}

/* The old association may be known to nobody any more. Of what is in flight on it the client is
 * told that it was replaced, as the real transport does, or nothing, which is allowed, too. */
static void move(struct elv_sim *w, uint32_t client, uint32_t epoch)
{
    struct sim_node *n = w->nodes[client];
    const bool drop_old = elv_sim_chance(&n->net, ELV_SIM_PPM / 2);
    n->linked = true;
    n->epoch = epoch;
    w->stats.links++;
    for (struct exchange *ex = n->first; ex != NULL; ex = ex->next) {
        if (ex->waiting)
            net_launch(w, ex);
        else if (drop_old)
            net_fail_soon(w, ex, ELV_ERR_CANCELLED);
    }
}

static bool hello_is_current(const struct elv_sim *w, const struct packet *p)
{
    const struct sim_node *n = w->nodes[p->client];
    return n->up && n->life == p->life && n->hello.active && n->hello.serial == p->serial;
}

void sim_hello_down(struct elv_sim *w, struct packet *p)
{
    if (!hello_is_current(w, p))
        return;
    struct hello *h = &w->nodes[p->client]->hello;
    h->epoch = p->epoch;
    h->round++;
    h->serial++;
    h->tries = 0;
    if (h->round < HELLO_ROUNDS) {
        say_hello(w, p->client);
        return;
    }
    h->active = false;
    move(w, p->client, p->epoch);
}

void sim_hello_late(struct elv_sim *w, struct packet *p)
{
    if (!hello_is_current(w, p))
        return;
    struct sim_node *n = w->nodes[p->client];
    if (++n->hello.tries < HELLO_TRIES) {
        say_hello(w, p->client);
        return;
    }
    n->hello.active = false;
    if (n->linked)
        return; /* the old association stays in use */
    for (struct exchange *ex = n->first; ex != NULL; ex = ex->next)
        net_fail_soon(w, ex, ELV_OK);
}
