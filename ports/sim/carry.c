/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/carry.c - bodies, packets, and the links that carry, lose, repeat and reorder them. */
#include <stdlib.h>
#include <string.h>

#include "ports/sim/world_parts.h"

enum {
    OVERHEAD_BYTES = 94, /* CoAP, DTLS with Connection ID, UDP and IP around a body */
    HELLO_ROUNDS = 3,
    IDENTITY_LEN = 8,
};

struct body *sim_body(struct elv_sim *w, struct elv_bytes bytes)
{
    struct body *b = elv_sim_alloc(sizeof *b + bytes.len);
    b->refs = 1;
    b->len = bytes.len;
    if (bytes.len > 0)
        memcpy(b->at, bytes.at, bytes.len);
    w->stats.bodies += bytes.len;
    if (w->stats.bodies > w->stats.bodies_peak)
        w->stats.bodies_peak = w->stats.bodies;
    return b;
}

struct body *sim_share(struct body *b)
{
    if (b != NULL)
        b->refs++;
    return b;
}

void sim_let_go(struct elv_sim *w, struct body **b)
{
    if (*b != NULL && --(*b)->refs == 0) {
        w->stats.bodies -= (*b)->len;
        free(*b);
    }
    *b = NULL;
}

struct elv_bytes sim_bytes(const struct body *b)
{
    return b == NULL ? (struct elv_bytes){0} : (struct elv_bytes){.at = b->at, .len = b->len};
}

struct exchange *sim_hold(struct exchange *ex)
{
    ex->refs++;
    return ex;
}

void sim_unref(struct elv_sim *w, struct exchange *ex)
{
    if (ex == NULL || --ex->refs > 0)
        return;
    sim_let_go(w, &ex->body);
    sim_let_go(w, &ex->reply_body);
    free(ex);
}

struct packet *sim_packet(void) { return elv_sim_alloc(sizeof(struct packet)); }

void sim_packet_free(struct elv_sim *w, struct packet *p)
{
    sim_let_go(w, &p->body);
    sim_unref(w, p->ex);
    free(p);
}

struct packet *sim_packet_clone(const struct packet *p)
{
    struct packet *twin = sim_packet();
    *twin = *p;
    sim_share(twin->body);
    if (twin->ex != NULL)
        sim_hold(twin->ex);
    return twin;
}

/* When a packet that leaves the line at `base` arrives. */
static elv_time_us arrival(struct sim_node *n, struct lane *lane, elv_time_us base)
{
    const struct elv_sim_link *l = &n->cfg.link;
    elv_time_us at = base + (l->draw != NULL ? l->draw(l->draw_self, &n->net)
                                             : elv_sim_delay_draw(&l->delay, &n->net));
    if (elv_sim_chance(&n->net, l->reorder_ppm))
        return at + elv_sim_delay_draw(&l->held_back, &n->net);
    if (l->in_order && at < lane->last_us)
        at = lane->last_us;
    lane->last_us = at;
    return at;
}

/* When the line has taken `len` bytes; ELV_NEVER: its queue is full. */
static elv_time_us through(const struct elv_sim *w, const struct elv_sim_link *l, struct lane *lane,
                           uint32_t bps, size_t len)
{
    if (bps == 0)
        return w->now;
    const elv_time_us start = lane->free_us > w->now ? lane->free_us : w->now;
    if (l->queue_us > 0 && start - w->now > l->queue_us)
        return ELV_NEVER;
    lane->free_us = start + (elv_time_us)(((uint64_t)len * 1000000u) / bps);
    return lane->free_us;
}

/* The datagrams that a packet stands for; of a handshake, average ones. */
static void count_wire(struct elv_sim *w, uint32_t kind, const struct packet *p)
{
    const struct elv_wire_way *way = &w->cfg.way;
    struct elv_sim_stats *s = &w->stats;
    if (kind == AT_HELLO_UP) {
        s->wire_up += elv_wire_handshake(way, true, IDENTITY_LEN) / HELLO_ROUNDS;
    } else if (kind == AT_HELLO_DOWN) {
        s->wire_down += elv_wire_handshake(way, false, IDENTITY_LEN) / HELLO_ROUNDS;
    } else if (kind == AT_UP) {
        s->wire_up += elv_wire_request(way, &p->ex->request);
    } else {
        const struct elv_request *r = &p->ex->request;
        s->wire_down += elv_wire_response(way, r->op, &p->response, r->observe);
        if (r->op == ELV_OP_MANIFEST)
            s->wire_up += elv_wire_more_requests(way, p->response.body.len);
    }
}

void sim_travel(struct elv_sim *w, uint32_t client, uint32_t kind, struct packet *p, size_t len)
{
    struct sim_node *n = w->nodes[client];
    const struct elv_sim_link *l = &n->cfg.link;
    const bool up = kind == AT_UP || kind == AT_HELLO_UP;
    struct lane *lane = up ? &n->up_lane : &n->down_lane;
    w->stats.sent++;
    *(up ? &w->stats.bytes_up : &w->stats.bytes_down) += len;
    count_wire(w, kind, p);

    const elv_time_us base =
        through(w, l, lane, up ? l->up_bps : l->down_bps, len + OVERHEAD_BYTES);
    const bool unlucky = elv_sim_chance(&n->net, l->loss_ppm);
    const bool twice = elv_sim_chance(&n->net, l->duplicate_ppm);
    const bool cut = up ? l->cut_up : l->cut_down;
    if (unlucky || cut || base == ELV_NEVER || (l->mtu > 0 && len > l->mtu)) {
        w->stats.lost++;
        sim_packet_free(w, p);
        return;
    }
    if (twice) {
        w->stats.duplicated++;
        elv_sim_queue_push(&w->queue, arrival(n, lane, base), kind, 0, sim_packet_clone(p));
    }
    elv_sim_queue_push(&w->queue, arrival(n, lane, base), kind, 0, p);
}
