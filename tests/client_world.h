/* SPDX-License-Identifier: Apache-2.0 */
/* tests/client_world.h - a scripted server and a virtual network around one client node.
 *
 * The server is plain functions over real messages and chunks. It offers whatever `ticket` says,
 * keeps what is uploaded, and says no when told to. Time is virtual; messages take `delay_us`, and
 * `fate` decides about each one. Work takes `work_us`, is really done, and can be cancelled. */
#ifndef ELV_TESTS_CLIENT_WORLD_H
#define ELV_TESTS_CLIENT_WORLD_H

#include "client/client.h"
#include "tests/fake_disk.h"

enum {
    MS = 1000,
    SEC = 1000 * MS,
    VERSIONS = 5,
    PARAMS_MAX = 8192,
    CHUNKS_MAX = 64,
    QUEUE_MAX = 512,
    OPS = ELV_OP_COMMIT + 1,
    ARENA = 1 << 18,
};

struct body {
    struct elv_body_ref ref;
    uint8_t bytes[CHUNKS_MAX][ELV_CHUNK_MAX];
    size_t len[CHUNKS_MAX];
};

/* A trainer whose result depends on seed, client, round and step only. */
struct fake_trainer {
    uint32_t samples;
    uint32_t steps; /* of a training by epochs */
    float size;     /* of one step's change */
    enum elv_err begin_err, run_err, evaluate_err;
    bool nan_loss, nan_weight, odd_sums;
    uint32_t n_begun, n_aborted, n_evaluated, largest_slice;
    struct elv_task task;
    float *weights;
    uint32_t n_params, at, n_steps;
    bool evaluating;
    struct elv_train_result result;
};

/* An answer other than the usual one. */
struct refusal_script {
    uint8_t code; /* 0: none */
    enum elv_reason reason;
    uint32_t retry_ms;
    uint32_t times; /* that often; UINT32_MAX: for ever */
};

struct message;

struct fake_server {
    /* Answers in the server's place, unless it returns false; NULL: never. */
    bool (*lie)(struct fake_server *s, const struct elv_request *r, struct message *out);
    struct elv_manifest manifest;
    struct elv_model model;
    uint8_t manifest_bytes[ELV_MANIFEST_MAX];
    size_t manifest_len;
    float version[VERSIONS][PARAMS_MAX]; /* shared coordinates */
    struct body full[VERSIONS], step[VERSIONS];
    struct elv_ticket ticket;
    struct refusal_script refuse[OPS];
    uint32_t garble_every; /* every nth chunk answer is cut short or of another body; 0: none */
    bool lists_nothing;    /* what is answered to a chunk never says which are there */
    bool silent;           /* nothing gets through in either direction */

    struct elv_join join; /* the last one; texts are gone */
    uint32_t asked[OPS];
    uint32_t n_reliable, n_chunk_puts;

    /* The upload of the current assignment. */
    struct body up;
    uint32_t n_up; /* distinct chunks */
    uint32_t times[CHUNKS_MAX];
    uint8_t tag[ELV_CHUNK_TAG_LEN];
    uint32_t lose_at_commit; /* the server forgets this many chunks before the first commit */
    struct elv_commit commit;
    uint32_t n_commits;
    struct elv_verdict verdict; /* what is answered when all is there; 0: accepted */
    uint32_t n_decided;
    uint32_t last_decided; /* its commit gets the same answer for ever */
    struct elv_verdict last_verdict;
    bool wait_when_decided; /* then the ticket says WAIT */
};

enum { FATE_LOST = -1 };

struct message {
    elv_time_us at;
    uint32_t id;
    bool unanswered;
    enum elv_err err;
    uint8_t code;
    uint8_t body[ELV_MANIFEST_MAX];
    size_t len;
};

struct client_world {
    struct elv_client client;
    struct elv_node node;
    struct fake_trainer trainer;
    struct fake_server server;
    struct elv_client_cfg cfg;
    uint8_t *mem;
    size_t mem_len;

    elv_time_us now;
    elv_time_us delay_us, work_us;
    /* Extra copies (0 or more) of message `n`, or FATE_LOST; and its extra delay. */
    int (*fate)(uint32_t n, elv_time_us *late);
    uint32_t n_messages;
    struct message queue[QUEUE_MAX];
    uint32_t n_queue;
    uint32_t observed; /* id of the observation */

    struct elv_compute work;
    uint32_t work_id;
    elv_time_us work_at;
    bool work_cancelled;
    elv_time_us worked_us;

    struct fake_disk *disk; /* borrowed; NULL: the client has none */
    elv_time_us store_us;   /* how long a STORE takes */
    elv_time_us store_at;
    bool storing;

    uint32_t n_stores, n_appends;
    uint32_t n_sends, n_relinks, n_cancels, n_computes, n_forgets, n_steps;
    bool ended;
    uint32_t exit_code;
    uint64_t log; /* hash over all actions */
};

/* Fills in what a usual test wants: a job, five versions, a ticket for version 0, a client. Tests
 * change fields and then call `world_start`. */
void world_init(struct client_world *w, const char *layers, uint8_t up, uint8_t down);
void world_start(struct client_world *w);
void world_free(struct client_world *w);
/* The client process dies and another one starts; what was stored stays. */
void world_restart(struct client_world *w, uint64_t boot);

/* One event. False: nothing will ever happen again. */
bool world_step(struct client_world *w);
/* Until `done` holds; fails the test when it does not within an hour of virtual time. */
void world_until(struct client_world *w, bool (*done)(const struct client_world *));
void world_run(struct client_world *w, elv_time_us how_long);
void world_event(struct client_world *w, struct elv_event ev);

/* The server's next version and assignment, to be trained on. */
void server_offer(struct fake_server *s, uint32_t assignment, uint32_t version);
void server_encode_manifest(struct fake_server *s);
/* The ticket reaches an observer. */
void world_notify(struct client_world *w);
/* The update as uploaded, decoded: f32 [n_shared]. */
void server_update(const struct fake_server *s, float *out);

bool decided(const struct client_world *w);
bool ended(const struct client_world *w);

#endif
