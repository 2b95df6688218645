/* SPDX-License-Identifier: Apache-2.0 */
/* tests/transfer_chunks.c - a body in chunks: the client's transfer engine over ports/libcoap.
 *
 * The player does what a client node does with its transfer, and nothing else: no training, no
 * commit. The server answers an update's chunk with what it has and a model's chunk with its bytes,
 * at once, as the real one does. A chunk carries as many bytes of the body as fit. */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/transfer.h"
#include "common/codec.h"
#include "common/msg.h"
#include "ports/libcoap/client.h"
#include "ports/libcoap/server.h"
#include "tests/transfer_rig.h"

enum { GRANT = 64, CHUNKS_MAX = 65536, BURST = 8, TICKET_ID = 1 };

static const uint8_t key[] = "0123456789abcdef";

/* ---- bodies */

static uint32_t chunks_of(uint32_t bytes)
{
    return (bytes + ELV_CHUNK_PAYLOAD_MAX - 1) / ELV_CHUNK_PAYLOAD_MAX;
}

static uint32_t payload_of(uint32_t bytes, uint32_t chunk)
{
    const uint32_t rest = bytes - chunk * ELV_CHUNK_PAYLOAD_MAX;
    return rest < ELV_CHUNK_PAYLOAD_MAX ? rest : ELV_CHUNK_PAYLOAD_MAX;
}

static struct elv_bytes make_chunk(uint32_t bytes, uint32_t chunk, uint8_t out[ELV_CHUNK_MAX])
{
    uint8_t payload[ELV_CHUNK_PAYLOAD_MAX];
    const uint32_t len = payload_of(bytes, chunk), first = chunk * ELV_CHUNK_PAYLOAD_MAX;
    for (uint32_t i = 0; i < len; i++)
        payload[i] = rig_byte(first + i);
    const struct elv_chunk c = {.kind = ELV_BODY_UPDATE,
                                .codec = 1,
                                .index = chunk,
                                .first = first / 4,
                                .count = (len + 3) / 4,
                                .payload = {payload, len}};
    size_t n = 0;
    if (elv_chunk_encode(&c, out, ELV_CHUNK_MAX, &n) != ELV_OK)
        return (struct elv_bytes){0};
    return (struct elv_bytes){out, n};
}

static bool is_right(struct elv_bytes body, uint32_t bytes, uint32_t chunk)
{
    struct elv_chunk c;
    if (elv_chunk_decode(body, &c) != ELV_OK || c.index != chunk ||
        c.payload.len != payload_of(bytes, chunk))
        return false;
    for (uint32_t i = 0; i < c.payload.len; i++)
        if (c.payload.at[i] != rig_byte(chunk * ELV_CHUNK_PAYLOAD_MAX + i))
            return false;
    return true;
}

/* ---- the server */

static struct serving {
    const struct rig_cell *cell;
    struct elv_net net;
    struct elv_bitmap have[RIG_PLAYERS_MAX];
    uint64_t words[RIG_PLAYERS_MAX][CHUNKS_MAX / 64];
    bool wrong;
} serving;

static void on_request(void *self, struct elv_event *ev)
{
    struct serving *s = self;
    struct elv_action a = {.kind = ELV_DO_REPLY, .id = ev->id};
    uint8_t at[ELV_CHUNK_MAX];
    const uint32_t chunk = ev->request.chunk;
    a.response.code = ELV_CODE_CONTENT;
    if (ev->request.op == ELV_OP_MODEL_CHUNK) {
        a.response.body = make_chunk(s->cell->bytes, chunk, at);
    } else if (ev->request.op == ELV_OP_UPDATE_CHUNK) {
        struct elv_bitmap *have = &s->have[ev->peer - 1];
        struct elv_progress p = {.window = GRANT};
        s->wrong = s->wrong || !is_right(ev->request.body, s->cell->bytes, chunk);
        if (chunk < have->n)
            (void)elv_bitmap_set(have, chunk);
        elv_missing_of(have, &p.missing);
        size_t len = 0;
        (void)elv_progress_encode(&p, at, sizeof at, &len);
        a.response.code = ELV_CODE_CHANGED;
        a.response.body = (struct elv_bytes){at, len};
    }
    s->net.act(s->net.self, &a);
}

static enum elv_err find(void *self, struct elv_text identity, struct elv_coap_key *out)
{
    (void)self;
    *out =
        (struct elv_coap_key){(uint32_t)strtoul(identity.at, NULL, 10) + 1, {key, sizeof key - 1}};
    return ELV_OK;
}

int rig_chunks_serve(const struct rig_cell *cell, int port_pipe)
{
    static const char *const listen[] = {"127.0.0.1:0"};
    struct elv_coap_problem problem;
    struct elv_coap_server *server;
    const struct elv_coap_server_cfg cfg = {.listen = listen,
                                            .n_listen = 1,
                                            .job = {"bench", 5},
                                            .sink = {&serving, on_request},
                                            .keys = {NULL, find, NULL}};
    serving.cell = cell;
    for (int i = 0; i < RIG_PLAYERS_MAX; i++)
        elv_bitmap_init(&serving.have[i], serving.words[i], chunks_of(cell->bytes));
    if (elv_coap_server_open(&cfg, &server, &problem) != ELV_OK) {
        fprintf(stderr, "transfer: %s\n", problem.text);
        return 1;
    }
    serving.net = elv_coap_server_net(server);
    const struct elv_source source = elv_coap_server_source(server);
    const uint16_t port = elv_coap_server_info(server)->port[0];
    if (write(port_pipe, &port, sizeof port) != sizeof port)
        return 1;
    while (!rig_ended()) {
        struct pollfd fd = {.fd = (int)source.handle, .events = POLLIN};
        (void)poll(&fd, 1, 100);
        source.ready(source.self);
    }
    elv_coap_server_close(server);
    return serving.wrong ? 1 : 0;
}

/* ---- the client */

struct player {
    const struct rig_cell *cell;
    struct elv_coap_client *coap;
    struct elv_net net;
    struct elv_source source;
    struct elv_transfer transfer;
    struct elv_flight flights[ELV_WINDOW_MAX];
    uint64_t words[CHUNKS_MAX / 64];
    uint32_t id;
    bool welcome; /* the first question was answered: the association stands */
    bool begun, wrong;
    int64_t asked_us, start_us;
    uint64_t sent, repeated;
    uint32_t counted_from; /* chunks there when counting began */
};

static void on_chunk(struct player *p, uint32_t chunk, const struct elv_response *r)
{
    struct elv_progress progress;
    if (p->cell->method == RIG_CHUNKS_DOWN) {
        p->wrong = p->wrong || !is_right(r->body, p->cell->bytes, chunk);
        elv_transfer_have(&p->transfer, chunk);
    } else if (elv_progress_decode(r->body, &progress) == ELV_OK) {
        elv_transfer_grant(&p->transfer, progress.window);
        elv_transfer_have(&p->transfer, chunk);
        elv_transfer_progress(&p->transfer, &progress.missing);
    }
}

static void on_answer(void *self, struct elv_event *ev)
{
    struct player *p = self;
    uint32_t chunk;
    if (ev->kind != ELV_EV_RESPONSE)
        return;
    if (ev->id == TICKET_ID) {
        elv_rtt_sample(&p->transfer.flow.rtt, relay_now() - p->asked_us);
        p->welcome = true;
    } else if (elv_transfer_answered(&p->transfer, relay_now(), ev->id, &chunk)) {
        on_chunk(p, chunk, &ev->response);
    }
}

static void act(struct player *p, struct elv_action a) { p->net.act(p->net.self, &a); }

static void forget(struct player *p, uint32_t id)
{
    if (id != 0)
        act(p, (struct elv_action){.kind = ELV_DO_FORGET, .id = id});
}

static void send_chunk(struct player *p, const struct elv_transmission *t)
{
    uint8_t at[ELV_CHUNK_MAX];
    const bool up = p->cell->method == RIG_CHUNKS_UP;
    struct elv_action a = {.kind = ELV_DO_SEND, .id = p->id};
    a.request.op = up ? ELV_OP_UPDATE_CHUNK : ELV_OP_MODEL_CHUNK;
    a.request.chunk = t->chunk;
    a.request.digest = 1;
    a.request.assignment = 1;
    if (up)
        a.request.body = make_chunk(p->cell->bytes, t->chunk, at);
    forget(p, t->forget[0]);
    forget(p, t->forget[1]);
    act(p, a);
    p->sent++;
    p->repeated += t->repeated;
}

/* What a client node does in a step. */
static void step(struct player *p)
{
    struct elv_transmission t;
    elv_transfer_expire(&p->transfer, relay_now());
    for (int i = 0; i < BURST && elv_transfer_next(&p->transfer, relay_now(), p->id + 1, &t); i++) {
        p->id++;
        send_chunk(p, &t);
    }
}

static bool open_player(struct player *p, const struct rig_cell *cell, uint16_t port, int number)
{
    char uri[64], identity[16];
    struct elv_coap_problem problem;
    snprintf(uri, sizeof uri, "coaps://127.0.0.1:%u", (unsigned)port);
    const int len = snprintf(identity, sizeof identity, "%d", number);
    const struct elv_coap_client_cfg cfg = {.server = uri,
                                            .job = {"bench", 5},
                                            .identity = {identity, (size_t)len},
                                            .psk = {key, sizeof key - 1},
                                            .sink = {p, on_answer}};
    p->cell = cell;
    p->id = TICKET_ID;
    elv_transfer_init(&p->transfer, p->flights, ELV_WINDOW_MAX);
    elv_transfer_grant(&p->transfer, GRANT);
    if (elv_coap_client_open(&cfg, &p->coap, &problem) != ELV_OK) {
        fprintf(stderr, "transfer: %s\n", problem.text);
        return false;
    }
    p->net = elv_coap_client_net(p->coap);
    p->source = elv_coap_client_source(p->coap);
    return true;
}

static void ask_first(struct player *p)
{
    struct elv_action a = {.kind = ELV_DO_SEND, .id = TICKET_ID, .reliable = true};
    a.request.op = ELV_OP_TICKET;
    p->asked_us = relay_now();
    act(p, a);
}

/* Waits for something to happen to one of them, until `until` at most. */
static void wait_for(struct player *p, uint32_t n, int64_t until)
{
    struct pollfd fd[RIG_PLAYERS_MAX];
    for (uint32_t i = 0; i < n; i++) {
        fd[i] = (struct pollfd){.fd = (int)p[i].source.handle, .events = POLLIN};
        const elv_time_us due = p[i].begun ? elv_transfer_deadline(&p[i].transfer) : ELV_NEVER;
        until = due < until ? due : until;
    }
    const int64_t left = until - relay_now();
    (void)poll(fd, (nfds_t)n, left <= 0 ? 0 : left < 50000 ? (int)((left + 999) / 1000) : 50);
    for (uint32_t i = 0; i < n; i++)
        p[i].source.ready(p[i].source.self);
}

static bool meet(struct player *p, uint32_t n)
{
    const int64_t end = relay_now() + 60000000;
    bool all = false;
    while (!all && relay_now() < end) {
        wait_for(p, n, end);
        all = true;
        for (uint32_t i = 0; i < n; i++)
            all = all && p[i].welcome;
    }
    return all;
}

static bool is_done(const struct player *p)
{
    return p->begun && elv_transfer_complete(&p->transfer);
}

static void begin_when_due(struct player *p, int64_t now)
{
    if (p->begun || now < p->start_us)
        return;
    p->begun = true;
    elv_transfer_begin(&p->transfer, p->words, chunks_of(p->cell->bytes));
}

static void run(struct player *p, const struct rig_cell *cell, int64_t start)
{
    const uint32_t n = cell->n_players;
    bool counting = n == 1, done = false;
    while (!done && relay_now() < start + cell->limit_us) {
        done = true;
        for (uint32_t i = 0; i < n; i++) {
            begin_when_due(&p[i], relay_now());
            if (p[i].begun)
                step(&p[i]);
        }
        wait_for(p, n, start + cell->limit_us);
        for (uint32_t i = 0; i < n; i++) {
            if (!counting && relay_now() >= start + cell->from_us)
                p[i].counted_from = p[i].transfer.have.n_set;
            done = done && is_done(&p[i]);
        }
        counting = counting || relay_now() >= start + cell->from_us;
    }
}

void rig_chunks_play(const struct rig_cell *cell, uint16_t port, struct rig_result *result)
{
    static struct player p[RIG_PLAYERS_MAX];
    const uint32_t n = cell->n_players;
    for (uint32_t i = 0; i < n; i++) {
        if (!open_player(&p[i], cell, port, (int)i))
            return;
        ask_first(&p[i]);
    }
    if (!meet(p, n))
        return;
    const int64_t start = relay_now();
    for (uint32_t i = 0; i < n; i++)
        p[i].start_us = start + (int64_t)i * cell->stagger_us;
    run(p, cell, start);
    result->us = relay_now() - start;
    result->finished = true;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t have = p[i].transfer.have.n_set - p[i].counted_from;
        result->bytes[i] =
            is_done(&p[i]) && n == 1 ? cell->bytes : (uint64_t)have * ELV_CHUNK_PAYLOAD_MAX;
        result->finished = result->finished && is_done(&p[i]);
        result->wrong = result->wrong || p[i].wrong;
        result->sent += p[i].sent;
        result->repeated += p[i].repeated;
        elv_coap_client_close(p[i].coap);
    }
}
