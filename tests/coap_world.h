/* SPDX-License-Identifier: Apache-2.0 */
/* tests/coap_world.h - a fake server node and fake client nodes on real sockets.
 *
 * The server node answers as its fields say; client nodes only remember what came back. One thread
 * runs everything: waiting means running the world until something is true or time is up. */
#ifndef ELV_TESTS_COAP_WORLD_H
#define ELV_TESTS_COAP_WORLD_H

#include "ports/libcoap/client.h"
#include "ports/libcoap/server.h"
#include "tests/relay.h"

enum { WORLD_CLIENTS_MAX = 8, WORLD_IDS_MAX = 1024, WORLD_KEYS_MAX = 8 };

struct world_key {
    const char *identity;
    const char *psk;
    uint32_t client;
    bool revoked;
    uint32_t used;        /* handshakes */
    const char *replaces; /* the identity that the first of them revokes */
};

struct world_later {
    uint32_t id;
    enum elv_op op;
};

struct world_answer {
    uint32_t n;         /* responses with this id */
    uint32_t no_answer; /* NO_ANSWER with this id */
    enum elv_err err;   /* of the last of them */
    uint8_t code;
    uint32_t max_age_s;
    size_t len;
    uint8_t body[ELV_MANIFEST_MAX];
};

struct world;

struct world_client {
    struct world *world;
    struct elv_coap_client *coap;
    uint32_t answered, unanswered;
    struct world_answer answer[WORLD_IDS_MAX];
};

struct world {
    struct elv_coap_server *server;
    struct relay *relay; /* NULL: none between them */
    struct world_client *client[WORLD_CLIENTS_MAX];
    struct world_key key[WORLD_KEYS_MAX];
    uint32_t n_keys;
    /* The server node. */
    bool later; /* keep requests instead of answering them */
    struct world_later kept[4096];
    uint32_t n_kept;
    uint32_t requests, peer; /* of the last request */
    struct elv_request last;
    uint8_t body[2048];
    size_t manifest_len;
    uint32_t ticket;
    uint32_t refuse; /* an elv_reason to refuse everything with */
};

/* The pattern that fills body number `n`. */
uint8_t world_byte(uint32_t n, size_t i);

void world_init(struct world *w);
void world_add_key(struct world *w, const char *identity, const char *psk, uint32_t client);
void world_open_server(struct world *w, struct elv_coap_server_cfg cfg); /* fills what is empty */
void world_open_relay(struct world *w, struct relay_cfg cfg);
struct world_client *world_open_client(struct world *w, struct elv_coap_client_cfg cfg,
                                       const char *identity, const char *psk);
void world_close(struct world *w);
void world_restart_server(struct world *w, struct elv_coap_server_cfg cfg); /* same port */

void world_send(struct world_client *c, uint32_t id, struct elv_request request, bool reliable);
void world_act(struct world_client *c, enum elv_action_kind kind, uint32_t id);
void world_answer_kept(struct world *w); /* the newest first */

/* Runs until `done` or for `ms`; true when done. */
bool world_run(struct world *w, bool (*done)(const void *ctx), const void *ctx, uint32_t ms);
bool world_answered(struct world *w, struct world_client *c, uint32_t n, uint32_t ms);
bool world_unanswered(struct world *w, struct world_client *c, uint32_t n, uint32_t ms);
void world_pass(struct world *w, uint32_t ms);

#endif
