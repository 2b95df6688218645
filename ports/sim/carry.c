/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/carry.c - bodies, packets, and the links that carry, lose, repeat and reorder them. */
#include <stdlib.h>
#include <string.h>

#include "ports/sim/world_parts.h"

enum {
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

/* What a direction is like when the link's own fields say it. */
static struct elv_sim_way way_of(const struct elv_sim_link *l, bool up)
{
    return (struct elv_sim_way){.delay = l->delay,
                                .draw = l->draw,
                                .draw_self = l->draw_self,
                                .bps = up ? l->up_bps : l->down_bps,
                                .queue_us = l->queue_us,
                                .loss_ppm = l->loss_ppm,
                                .duplicate_ppm = l->duplicate_ppm,
                                .reorder_ppm = l->reorder_ppm,
                                .held_back = l->held_back,
                                .in_order = l->in_order,
                                .mtu = l->mtu,
                                .cut = up ? l->cut_up : l->cut_down};
}

static struct elv_sim_passage pass(struct elv_sim *w, struct sim_node *n, bool up, size_t bytes)
{
    const struct elv_sim_link *l = &n->cfg.link;
    const struct elv_sim_way *own = up ? l->up : l->down;
    struct elv_sim_way way = own != NULL ? *own : way_of(l, up);
    way.cut = way.cut || (up ? l->cut_up : l->cut_down);
    return elv_sim_pass(up ? &n->up_lane : &n->down_lane, &way, &n->net, w->now, bytes);
}

/* How long the datagram is that a packet stands for; of a handshake, an average one. The blocks of
 * a long manifest count as one. */
static size_t datagram(const struct elv_sim *w, uint32_t kind, const struct packet *p)
{
    const struct elv_wire_way *way = &w->cfg.way;
    if (kind == AT_HELLO_UP || kind == AT_HELLO_DOWN)
        return elv_wire_handshake(way, kind == AT_HELLO_UP, IDENTITY_LEN) / HELLO_ROUNDS;
    const struct elv_request *r = &p->ex->request;
    return kind == AT_UP ? elv_wire_request(way, r)
                         : elv_wire_response(way, r->op, &p->response, r->observe);
}

/* What it takes to ask for the other blocks of a manifest. */
static size_t more_asked(const struct elv_sim *w, uint32_t kind, const struct packet *p)
{
    if (kind != AT_DOWN || p->ex->request.op != ELV_OP_MANIFEST)
        return 0;
    return elv_wire_more_requests(&w->cfg.way, p->response.body.len);
}

void sim_travel(struct elv_sim *w, uint32_t client, uint32_t kind, struct packet *p, size_t len)
{
    const bool up = kind == AT_UP || kind == AT_HELLO_UP;
    const size_t bytes = datagram(w, kind, p);
    *(up ? &w->stats.bytes_up : &w->stats.bytes_down) += len;
    w->wire_more += more_asked(w, kind, p);

    const struct elv_sim_passage way = pass(w, w->nodes[client], up, bytes);
    elv_sim_fates_count(up ? &w->stats.up : &w->stats.down, &way, bytes);
    if (way.n == 0)
        sim_packet_free(w, p);
    if (way.n == 2)
        elv_sim_queue_push(&w->queue, way.at[0], kind, 0, sim_packet_clone(p));
    if (way.n > 0)
        elv_sim_queue_push(&w->queue, way.at[way.n - 1], kind, 0, p);
}
