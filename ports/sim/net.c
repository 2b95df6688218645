/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/net.c - requests, their repeats and their answers, at both ends. */
#include "common/assert.h"
#include "ports/sim/world_parts.h"

enum { SLOT_BITS = 20 }; /* of a request id; the rest tells the users of a slot apart */

static void transmit(struct elv_sim *w, struct exchange *ex)
{
    struct packet *p = sim_packet();
    p->ex = sim_hold(ex);
    p->body = sim_share(ex->body);
    sim_travel(w, ex->client, AT_UP, p, sim_bytes(ex->body).len);
}

/* The client no longer waits for this one. */
static void finish(struct elv_sim *w, struct exchange *ex)
{
    struct sim_node *n = w->nodes[ex->client];
    ELV_ASSERT(ex->live);
    *(ex->prev != NULL ? &ex->prev->next : &n->first) = ex->next;
    *(ex->next != NULL ? &ex->next->prev : &n->last) = ex->prev;
    ex->prev = ex->next = NULL;
    ex->live = false;
    sim_let_go(w, &ex->body);
    sim_unref(w, ex);
}

static void fail(struct elv_sim *w, struct exchange *ex)
{
    struct elv_event ev = {.kind = ELV_EV_NO_ANSWER, .id = ex->id, .err = ex->gone};
    const uint32_t client = ex->client;
    finish(w, ex);
    w->stats.no_answers++;
    sim_deliver(w, client, &ev);
}

void net_fail_soon(struct elv_sim *w, struct exchange *ex, enum elv_err why)
{
    ex->gone = why;
    elv_sim_queue_push(&w->queue, w->now, AT_FAILED, 0, sim_hold(ex));
}

static void arm_plain(struct elv_sim *w, uint32_t client, const struct exchange *ex)
{
    struct sim_node *n = w->nodes[client];
    n->plain_armed = true;
    elv_sim_queue_push(&w->queue, ex->sent_us + w->cfg.repeat.plain_us, AT_PLAIN, client,
                       sim_life(n->life));
}

/* The first transmission: from here on the timers run. */
void net_launch(struct elv_sim *w, struct exchange *ex)
{
    struct sim_node *n = w->nodes[ex->client];
    ex->waiting = false;
    ex->epoch = n->epoch;
    ex->sent_us = w->now;
    if (ex->reliable) {
        const elv_time_us first = w->cfg.repeat.first_us;
        ex->wait_us = elv_sim_between(&n->net, first, first + first / 2);
        elv_sim_queue_push(&w->queue, w->now + ex->wait_us, AT_REPEAT, 0, sim_hold(ex));
    } else if (!n->plain_armed) {
        arm_plain(w, ex->client, ex);
    }
    transmit(w, ex);
}

static struct exchange *find(const struct sim_node *n, uint32_t id)
{
    for (struct exchange *ex = n->first; ex != NULL; ex = ex->next) /* at most a window of them */
        if (ex->id == id)
            return ex;
    return NULL;
}

void net_send(struct elv_sim *w, uint32_t client, const struct elv_action *a)
{
    struct sim_node *n = w->nodes[client];
    if (!n->client || find(n, a->id) != NULL) {
        sim_break(w, n->client ? "SEND with the id of one outstanding" : "SEND by a server");
        return;
    }
    struct exchange *ex = elv_sim_alloc(sizeof *ex);
    *ex = (struct exchange){.refs = 1,
                            .client = client,
                            .life = n->life,
                            .id = a->id,
                            .request = a->request,
                            .body = sim_body(w, a->request.body),
                            .reliable = a->reliable,
                            .live = true,
                            .waiting = true,
                            .prev = n->last};
    *(n->last != NULL ? &n->last->next : &n->first) = ex;
    n->last = ex;
    if (n->linked)
        net_launch(w, ex);
    else if (!n->hello.active)
        sim_hello_open(w, client);
}

void net_forget(struct elv_sim *w, uint32_t client, uint32_t id)
{
    struct exchange *ex = find(w->nodes[client], id);
    if (ex != NULL)
        finish(w, ex);
}

void net_relink(struct elv_sim *w, uint32_t client)
{
    if (!w->nodes[client]->client)
        sim_break(w, "RELINK by a server");
    else
        sim_hello_open(w, client);
}

struct number *sim_number(struct sim_node *server, uint32_t number)
{
    if (number >= server->n_numbers) {
        const uint32_t n = number + 1 > 2 * server->n_numbers ? number + 1 : 2 * server->n_numbers;
        server->numbers = elv_sim_grow(server->numbers, n, sizeof *server->numbers);
        for (uint32_t i = server->n_numbers; i < n; i++)
            server->numbers[i] = (struct number){0};
        server->n_numbers = n;
    }
    return &server->numbers[number];
}

/* Notes that the server owes `ex` an answer; returns the request's id. */
static uint32_t owe(struct elv_sim *w, struct sim_node *server, struct exchange *ex, uint32_t turn)
{
    if (server->first_free == 0) {
        if (server->n_pending == server->pending_cap) {
            server->pending_cap = server->pending_cap == 0 ? 64 : 2 * server->pending_cap;
            server->pending =
                elv_sim_grow(server->pending, server->pending_cap, sizeof *server->pending);
        }
        ELV_ASSERT(server->n_pending < (1u << SLOT_BITS) - 1);
        server->pending[server->n_pending] = (struct pending){0};
        server->first_free = ++server->n_pending;
    }
    const uint32_t slot = server->first_free;
    struct pending *p = &server->pending[slot - 1];
    server->first_free = p->next_free;
    p->ex = sim_hold(ex);
    p->turn = turn;
    p->generation++;
    w->stats.requests++;
    if (w->stats.requests > w->stats.requests_peak)
        w->stats.requests_peak = w->stats.requests;
    return p->generation << SLOT_BITS | slot;
}

static struct pending *owed(struct sim_node *server, uint32_t id)
{
    const uint32_t slot = id & ((1u << SLOT_BITS) - 1);
    if (slot == 0 || slot > server->n_pending)
        return NULL;
    struct pending *p = &server->pending[slot - 1];
    const bool same = (p->generation << SLOT_BITS | slot) == id;
    return p->ex != NULL && same ? p : NULL;
}

static void settle(struct elv_sim *w, struct sim_node *server, struct pending *p)
{
    struct exchange *ex = p->ex;
    p->ex = NULL;
    p->next_free = server->first_free;
    server->first_free = (uint32_t)(p - server->pending) + 1;
    w->stats.requests--;
    sim_unref(w, ex);
}

static void send_down(struct elv_sim *w, struct exchange *ex, const struct elv_response *response,
                      struct body *body, uint32_t turn)
{
    struct packet *p = sim_packet();
    p->ex = sim_hold(ex);
    p->body = sim_share(body);
    p->response = *response;
    p->turn = turn;
    sim_travel(w, ex->client, AT_DOWN, p, sim_bytes(body).len);
}

void net_reply(struct elv_sim *w, uint32_t server, const struct elv_action *a)
{
    struct sim_node *n = w->nodes[server];
    struct pending *p = owed(n, a->id);
    if (p == NULL) {
        sim_break(w, "REPLY to no request, or a second one");
        return;
    }
    struct exchange *ex = sim_hold(p->ex);
    const uint32_t turn = p->turn;
    settle(w, n, p);
    struct body *body = sim_body(w, a->response.body);
    if (turn == 0 && ex->reliable) {
        ex->replied = true;
        ex->reply = a->response;
        sim_let_go(w, &ex->reply_body);
        ex->reply_body = sim_share(body);
    }
    if (turn == 0 && ex->request.observe && elv_code_is_success(a->response.code)) {
        struct number *who = sim_number(n, w->nodes[ex->client]->cfg.number);
        sim_unref(w, who->observer);
        who->observer = sim_hold(ex);
    }
    send_down(w, ex, &a->response, body, turn);
    sim_let_go(w, &body);
    sim_unref(w, ex);
}

void net_notify(struct elv_sim *w, uint32_t server, uint32_t number)
{
    struct exchange *ex = sim_number(w->nodes[server], number)->observer;
    if (ex == NULL || ex->notifying)
        return;
    ex->notifying = true;
    elv_sim_queue_push(&w->queue, w->now, AT_NOTIFY, 0, sim_hold(ex));
}

static void ask(struct elv_sim *w, uint32_t server, struct exchange *ex, struct body *body,
                uint32_t turn)
{
    struct sim_node *n = w->nodes[server];
    struct elv_event ev = {.kind = ELV_EV_REQUEST,
                           .peer = w->nodes[ex->client]->cfg.number,
                           .id = owe(w, n, ex, turn),
                           .request = ex->request};
    ev.request.body = sim_bytes(body);
    sim_deliver(w, server, &ev);
}

static void arrive_up(struct elv_sim *w, struct packet *p)
{
    struct exchange *ex = p->ex;
    const uint32_t server = w->nodes[ex->client]->cfg.server;
    struct sim_node *n = w->nodes[server];
    const bool revoked = sim_number(n, w->nodes[ex->client]->cfg.number)->revoked;
    if (!n->up || ex->epoch != n->life || revoked) {
        w->stats.black_holed++;
        return;
    }
    const bool known = ex->known_life == n->life && w->now - ex->known_us < w->cfg.repeat.memory_us;
    if (ex->reliable && known) {
        w->stats.recognised++;
        if (ex->replied)
            send_down(w, ex, &ex->reply, ex->reply_body, 0);
        return;
    }
    ex->known_life = n->life;
    ex->known_us = w->now;
    ex->replied = false;
    ask(w, server, ex, p->body, 0);
}

static void notify(struct elv_sim *w, struct exchange *ex)
{
    const uint32_t server = w->nodes[ex->client]->cfg.server;
    struct sim_node *n = w->nodes[server];
    ex->notifying = false;
    if (n->up && sim_number(n, w->nodes[ex->client]->cfg.number)->observer == ex)
        ask(w, server, ex, NULL, ++ex->notified);
}

static void arrive_down(struct elv_sim *w, struct packet *p)
{
    struct exchange *ex = p->ex;
    struct sim_node *n = w->nodes[ex->client];
    if (!ex->live) {
        /* A notification nobody wants is answered with a reset, which ends the observation. */
        struct number *who = sim_number(w->nodes[n->cfg.server], n->cfg.number);
        if (p->turn > 0 && who->observer == ex) {
            who->observer = NULL;
            sim_unref(w, ex);
        }
        return;
    }
    if (p->turn > 0 ? p->turn <= ex->turn : ex->answered)
        return; /* a repeat, or overtaken by a newer one */
    ex->turn = p->turn > ex->turn ? p->turn : ex->turn;
    ex->answered = true;
    struct elv_event ev = {.kind = ELV_EV_RESPONSE, .id = ex->id, .response = p->response};
    ev.response.body = sim_bytes(p->body);
    if (!ex->request.observe)
        finish(w, ex);
    sim_deliver(w, p->ex->client, &ev);
}

static void repeat(struct elv_sim *w, struct exchange *ex)
{
    if (!ex->live || ex->answered)
        return;
    if (ex->repeats == w->cfg.repeat.max) {
        fail(w, ex);
        return;
    }
    ex->repeats++;
    ex->wait_us *= 2;
    w->stats.repeats++;
    elv_sim_queue_push(&w->queue, w->now + ex->wait_us, AT_REPEAT, 0, sim_hold(ex));
    transmit(w, ex);
}

static struct exchange *first_plain(const struct sim_node *n)
{
    for (struct exchange *ex = n->first; ex != NULL; ex = ex->next)
        if (!ex->reliable && !ex->waiting && !ex->answered)
            return ex;
    return NULL;
}

static void expire_plain(struct elv_sim *w, uint32_t client, uint32_t life)
{
    struct sim_node *n = w->nodes[client];
    if (!n->up || n->life != life)
        return;
    n->plain_armed = false;
    struct exchange *ex = first_plain(n);
    if (ex == NULL)
        return;
    if (w->now < ex->sent_us + w->cfg.repeat.plain_us) {
        arm_plain(w, client, ex);
        return;
    }
    fail(w, ex);
    if (n->up && n->life == life && !n->plain_armed && (ex = first_plain(n)) != NULL)
        arm_plain(w, client, ex);
}

static void gone(struct elv_sim *w, uint32_t server, uint32_t number)
{
    struct elv_event ev = {.kind = ELV_EV_GONE, .peer = number};
    if (w->nodes[server]->up)
        sim_deliver(w, server, &ev);
}

void net_event(struct elv_sim *w, const struct elv_sim_entry *e)
{
    struct packet *p = e->what;
    struct exchange *ex = e->what;
    switch (e->kind) {
    case AT_UP:
        arrive_up(w, p);
        break;
    case AT_DOWN:
        arrive_down(w, p);
        break;
    case AT_HELLO_UP:
        sim_hello_up(w, p);
        break;
    case AT_HELLO_DOWN:
        sim_hello_down(w, p);
        break;
    case AT_HELLO_LATE:
        sim_hello_late(w, p);
        break;
    case AT_REPEAT:
        repeat(w, ex);
        break;
    case AT_FAILED:
        if (ex->live && !ex->answered)
            fail(w, ex);
        break;
    case AT_NOTIFY:
        notify(w, ex);
        break;
    case AT_PLAIN:
        expire_plain(w, e->arg, (uint32_t)(uintptr_t)e->what);
        break;
    case AT_GONE:
        gone(w, (uint32_t)(uintptr_t)e->what, e->arg);
        break;
    default:
        ELV_ASSERT(false);
    }
    net_drop(w, e);
}

void net_drop(struct elv_sim *w, const struct elv_sim_entry *e)
{
    switch (e->kind) {
    case AT_UP:
    case AT_DOWN:
    case AT_HELLO_UP:
    case AT_HELLO_DOWN:
    case AT_HELLO_LATE:
        sim_packet_free(w, e->what);
        break;
    case AT_REPEAT:
    case AT_FAILED:
    case AT_NOTIFY:
        sim_unref(w, e->what);
        break;
    default:
        break;
    }
}

void net_revoke(struct elv_sim *w, uint32_t server, uint32_t number)
{
    sim_number(w->nodes[server], number)->revoked = true;
    elv_sim_queue_push(&w->queue, w->now, AT_GONE, number, (void *)(uintptr_t)server);
}

void net_node_gone(struct elv_sim *w, uint32_t node)
{
    struct sim_node *n = w->nodes[node];
    while (n->first != NULL)
        finish(w, n->first);
    n->hello.active = n->linked = n->plain_armed = false;
    for (uint32_t i = 0; i < n->n_pending; i++)
        if (n->pending[i].ex != NULL)
            settle(w, n, &n->pending[i]);
    for (uint32_t i = 0; i < n->n_numbers; i++) {
        sim_unref(w, n->numbers[i].observer);
        n->numbers[i].observer = NULL;
    }
}
