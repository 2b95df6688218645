/* SPDX-License-Identifier: Apache-2.0 */
/* tests/coap_world.c - see coap_world.h. */
#define _GNU_SOURCE
#include "coap_world.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/assert.h"

uint8_t world_byte(uint32_t n, size_t i) { return (uint8_t)(n * 31 + i * 7 + (i >> 8)); }

static void fill(uint8_t *out, size_t len, uint32_t n)
{
    for (size_t i = 0; i < len; i++)
        out[i] = world_byte(n, i);
}

/* ---- the server node */

static void reply(struct world *w, uint32_t id, enum elv_op op, uint32_t chunk)
{
    static uint8_t body[ELV_MANIFEST_MAX];
    struct elv_action a = {.kind = ELV_DO_REPLY, .id = id};
    struct elv_response *r = &a.response;
    r->code = ELV_CODE_CONTENT;
    r->body.at = body;
    switch (op) {
    case ELV_OP_MANIFEST:
        r->body.len = w->manifest_len;
        fill(body, w->manifest_len, 1);
        break;
    case ELV_OP_TICKET:
        r->body.len = 4;
        memcpy(body, &w->ticket, 4);
        r->max_age_s = 7;
        break;
    case ELV_OP_MODEL_CHUNK:
    case ELV_OP_STEP_CHUNK:
        r->body.len = 1024;
        r->max_age_s = 86400;
        fill(body, 1024, chunk);
        break;
    case ELV_OP_LEAVE:
        r->code = ELV_CODE_DELETED;
        break;
    default:
        r->code = ELV_CODE_CHANGED;
        r->body.len = 4;
        memcpy(body, &chunk, 4);
        break;
    }
    if (w->refuse != 0) {
        const struct elv_refusal refusal = {(enum elv_reason)w->refuse, 3000};
        r->code = ELV_CODE_CONFLICT;
        if (elv_refusal_encode(&refusal, body, sizeof body, &r->body.len) != ELV_OK)
            abort();
    }
    struct elv_net net = elv_coap_server_net(w->server);
    net.act(net.self, &a);
}

static void on_request(void *self, struct elv_event *ev)
{
    struct world *w = self;
    if (ev->kind != ELV_EV_REQUEST)
        abort();
    w->requests++;
    w->peer = ev->peer;
    w->last = ev->request;
    if (ev->request.body.len != 0)
        memcpy(w->body, ev->request.body.at, ev->request.body.len);
    w->last.body.at = w->body;
    if (w->later)
        w->kept[w->n_kept++ % 4096] = (struct world_later){ev->id, ev->request.op};
    else
        reply(w, ev->id, ev->request.op, ev->request.chunk);
}

void world_answer_kept(struct world *w)
{
    while (w->n_kept != 0) {
        const struct world_later *k = &w->kept[--w->n_kept];
        reply(w, k->id, k->op, 0);
    }
}

/* ---- keys */

static struct world_key *key_of(struct world *w, struct elv_text identity)
{
    for (uint32_t i = 0; i < w->n_keys; i++) {
        if (strlen(w->key[i].identity) == identity.len &&
            memcmp(w->key[i].identity, identity.at, identity.len) == 0)
            return &w->key[i];
    }
    return NULL;
}

static enum elv_err find_key(void *self, struct elv_text identity, struct elv_coap_key *out)
{
    const struct world_key *k = key_of(self, identity);
    if (k == NULL)
        return ELV_ERR_MISSING;
    if (k->revoked)
        return ELV_ERR_AUTH;
    *out = (struct elv_coap_key){k->client, {(const uint8_t *)k->psk, strlen(k->psk)}};
    return ELV_OK;
}

static void used_key(void *self, struct elv_text identity, uint32_t client)
{
    struct world_key *k = key_of(self, identity);
    if (k == NULL || k->client != client)
        abort();
    k->used++;
    if (k->replaces != NULL)
        key_of(self, (struct elv_text){k->replaces, strlen(k->replaces)})->revoked = true;
}

void world_add_key(struct world *w, const char *identity, const char *psk, uint32_t client)
{
    w->key[w->n_keys++] = (struct world_key){.identity = identity, .psk = psk, .client = client};
}

/* ---- client nodes */

static void on_response(void *self, struct elv_event *ev)
{
    struct world_client *c = self;
    struct world_answer *a = &c->answer[ev->id % WORLD_IDS_MAX];
    if (ev->kind == ELV_EV_NO_ANSWER) {
        a->no_answer++;
        a->err = ev->err;
        c->unanswered++;
        return;
    }
    if (ev->kind != ELV_EV_RESPONSE || ev->response.body.len > sizeof a->body)
        abort();
    a->n++;
    a->code = ev->response.code;
    a->max_age_s = ev->response.max_age_s;
    a->len = ev->response.body.len;
    if (a->len != 0)
        memcpy(a->body, ev->response.body.at, a->len);
    c->answered++;
}

void world_send(struct world_client *c, uint32_t id, struct elv_request request, bool reliable)
{
    const struct elv_action a = {
        .kind = ELV_DO_SEND, .id = id, .reliable = reliable, .request = request};
    struct elv_net net = elv_coap_client_net(c->coap);
    net.act(net.self, &a);
}

void world_act(struct world_client *c, enum elv_action_kind kind, uint32_t id)
{
    const struct elv_action a = {.kind = kind, .id = id};
    struct elv_net net = elv_coap_client_net(c->coap);
    net.act(net.self, &a);
}

/* ---- opening and closing */

void world_init(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->manifest_len = 5000;
    w->ticket = 1;
}

static void stop(const char *what, const struct elv_coap_problem *problem)
{
    fprintf(stderr, "%s: %s\n", what, problem->text);
    abort();
}

void world_open_server(struct world *w, struct elv_coap_server_cfg cfg)
{
    static const char *const any[] = {"127.0.0.1:0"};
    struct elv_coap_problem problem;
    if (cfg.n_listen == 0) {
        cfg.listen = any;
        cfg.n_listen = 1;
    }
    if (cfg.job.len == 0)
        cfg.job = (struct elv_text){"demo", 4};
    cfg.sink = (struct elv_sink){w, on_request};
    cfg.keys = (struct elv_coap_keys){w, find_key, used_key};
    if (elv_coap_server_open(&cfg, &w->server, &problem) != ELV_OK)
        stop("server", &problem);
}

static uint16_t server_port(const struct world *w)
{
    return elv_coap_server_info(w->server)->port[0];
}

void world_restart_server(struct world *w, struct elv_coap_server_cfg cfg)
{
    char text[32];
    const char *const same[] = {text};
    snprintf(text, sizeof text, "127.0.0.1:%u", (unsigned)server_port(w));
    elv_coap_server_close(w->server);
    cfg.listen = same;
    cfg.n_listen = 1;
    w->n_kept = 0;
    world_open_server(w, cfg);
}

void world_open_relay(struct world *w, struct relay_cfg cfg)
{
    cfg.server_host = "127.0.0.1";
    cfg.server_port = server_port(w);
    w->relay = relay_open(&cfg);
    if (w->relay == NULL) {
        perror("relay");
        abort();
    }
}

struct world_client *world_open_client(struct world *w, struct elv_coap_client_cfg cfg,
                                       const char *identity, const char *psk)
{
    char uri[64];
    struct elv_coap_problem problem;
    struct world_client *c = calloc(1, sizeof *c);
    uint32_t i = 0;
    while (w->client[i] != NULL)
        i++;
    ELV_ASSERT(c != NULL && i < WORLD_CLIENTS_MAX);
    w->client[i] = c;
    c->world = w;
    if (cfg.server == NULL) {
        const uint16_t port = w->relay != NULL ? relay_port(w->relay) : server_port(w);
        snprintf(uri, sizeof uri, "coaps://127.0.0.1:%u", (unsigned)port);
        cfg.server = uri;
    }
    if (cfg.job.len == 0)
        cfg.job = (struct elv_text){"demo", 4};
    if (identity != NULL) {
        cfg.identity = (struct elv_text){identity, strlen(identity)};
        cfg.psk = (struct elv_bytes){(const uint8_t *)psk, strlen(psk)};
    }
    cfg.sink = (struct elv_sink){c, on_response};
    if (elv_coap_client_open(&cfg, &c->coap, &problem) != ELV_OK)
        stop("client", &problem);
    return c;
}

void world_close(struct world *w)
{
    for (uint32_t i = 0; i < WORLD_CLIENTS_MAX; i++) {
        if (w->client[i] == NULL)
            continue;
        elv_coap_client_close(w->client[i]->coap);
        free(w->client[i]);
    }
    relay_close(w->relay);
    elv_coap_server_close(w->server);
}

/* ---- running */

struct waiting {
    struct elv_source source[WORLD_CLIENTS_MAX + 1];
    struct pollfd fd[WORLD_CLIENTS_MAX + 2];
    nfds_t n_sources, n_fds;
    bool now;
};

static void add(struct waiting *p, struct elv_source source)
{
    p->source[p->n_sources++] = source;
    p->fd[p->n_fds++] = (struct pollfd){.fd = (int)source.handle, .events = POLLIN};
    if (source.deadline(source.self) != ELV_NEVER)
        p->now = true;
}

static void step(struct world *w, int64_t until)
{
    struct waiting p = {0};
    if (w->server != NULL)
        add(&p, elv_coap_server_source(w->server));
    for (uint32_t i = 0; i < WORLD_CLIENTS_MAX; i++) {
        if (w->client[i] != NULL)
            add(&p, elv_coap_client_source(w->client[i]->coap));
    }
    if (w->relay != NULL) {
        p.fd[p.n_fds++] = (struct pollfd){.fd = relay_fd(w->relay), .events = POLLIN};
        if (relay_deadline(w->relay) < until)
            until = relay_deadline(w->relay);
    }
    int64_t left = p.now ? 0 : until - relay_now();
    if (left < 0)
        left = 0;
    const struct timespec wait = {left / 1000000, left % 1000000 * 1000};
    (void)ppoll(p.fd, p.n_fds, &wait, NULL);
    if (w->relay != NULL)
        relay_step(w->relay);
    for (nfds_t i = 0; i < p.n_sources; i++) {
        if (p.fd[i].revents != 0 || p.source[i].deadline(p.source[i].self) != ELV_NEVER)
            p.source[i].ready(p.source[i].self);
    }
}

bool world_run(struct world *w, bool (*done)(const void *ctx), const void *ctx, uint32_t ms)
{
    const int64_t until = relay_now() + (int64_t)ms * 1000;
    for (;;) {
        if (done(ctx))
            return true;
        if (relay_now() >= until)
            return false;
        step(w, until);
    }
}

struct goal {
    const uint32_t *counter;
    uint32_t n;
};

static bool reached(const void *ctx)
{
    const struct goal *g = ctx;
    return *g->counter >= g->n;
}

static bool never(const void *ctx)
{
    (void)ctx;
    return false;
}

bool world_answered(struct world *w, struct world_client *c, uint32_t n, uint32_t ms)
{
    const struct goal g = {&c->answered, n};
    return world_run(w, reached, &g, ms);
}

bool world_unanswered(struct world *w, struct world_client *c, uint32_t n, uint32_t ms)
{
    const struct goal g = {&c->unanswered, n};
    return world_run(w, reached, &g, ms);
}

void world_pass(struct world *w, uint32_t ms) { (void)world_run(w, never, NULL, ms); }
