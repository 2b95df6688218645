/* SPDX-License-Identifier: Apache-2.0 */
/* tests/server_world.h - one server on virtual time, a fake disk, and peers that do as they are
 * told.
 *
 * Works run, STOREs become durable and their events arrive inside `world_settle`, unless a test
 * holds them back. Peers train nothing: their update is a function of client, round and place. */
#ifndef ELV_TESTS_SERVER_WORLD_H
#define ELV_TESTS_SERVER_WORLD_H

#include "server/server.h"
#include "tests/fake_disk.h"

#define WORLD_REPLIES 512u
#define WORLD_NOTIFIED 4096u

struct world_reply {
    bool there;
    uint8_t code;
    uint32_t max_age_s;
    uint8_t body[8192];
    size_t len;
};

struct world {
    struct elv_job job;
    struct elv_server_cfg cfg;
    struct elv_server *s; /* on the heap, as large as it is */
    void *block;
    size_t len;
    struct elv_node node;
    struct elv_actions out;
    struct fake_disk disk;
    elv_time_us now;

    bool hold_stores;               /* leave them in the queue */
    bool hold_computes;             /* start no work */
    enum elv_server_work hold_work; /* start none of this kind */
    bool halt_storing;              /* settle no further once a version is on its way to the disk */
    uint32_t budget;                /* per slice; 0: 1000 */
    struct elv_action work[4];
    uint32_t n_work;

    uint32_t requests_left; /* the process dies at this request from now; 0: never */
    uint32_t last_request;
    struct world_reply *replies; /* by request id */
    uint32_t notified[WORLD_NOTIFIED], n_notified;
    struct elv_scorer scorer; /* a fake one, if the test set w.cfg.scorer to it */
    double accuracy[16];      /* it finds, by version */
    uint32_t scored;          /* version in its hands */
    float scored_sum;         /* of the weights it was given */
    uint32_t score_slices;
    enum elv_err score_err; /* how it ends */
    bool ended;
    uint32_t exit_code;
    uint64_t seen_notes;
};

/* A job with 1,020 shared parameters: 5 chunks of f32, 2 of q8. Call `world_start` after changing
 * it. */
void world_init(struct world *w);
void world_set(struct world *w, const char *section, const char *key, const char *value);
void world_start(struct world *w); /* checks the job and starts the server on the disk */
enum elv_err world_try_start(struct world *w);
void world_crash(struct world *w, bool power);
void world_free(struct world *w);

void world_event(struct world *w, struct elv_event *ev); /* nothing more than that step */
void world_settle(struct world *w);                      /* until it only waits for time or peers */
void world_advance(struct world *w, elv_time_us us);

/* Sends a request, and settles. The reply may still be missing. */
uint32_t world_send(struct world *w, uint32_t peer, const struct elv_request *r);
struct world_reply *world_ask(struct world *w, uint32_t peer, const struct elv_request *r);
bool world_refused(const struct world_reply *r, uint8_t code, enum elv_reason reason);

struct elv_join world_join_of(const struct world *w, uint32_t peer);
struct world_reply *world_join_as(struct world *w, uint32_t peer, const struct elv_join *join);
void world_join(struct world *w, uint32_t peer); /* and it must work */
void world_leave(struct world *w, uint32_t peer);
/* False, and `t` untouched: no answer, or a refusal. */
bool world_ticket(struct world *w, uint32_t peer, struct elv_ticket *t);

/* The update a peer makes for a ticket: f32 [n_shared], small. */
void world_update(const struct world *w, uint32_t peer, const struct elv_ticket *t, float *v);

struct upload { /* an update in chunks, and its commit */
    uint32_t peer, assignment;
    uint64_t nonce;
    uint8_t codec;
    uint32_t n_chunks;
    uint8_t chunk[64][ELV_CHUNK_MAX];
    size_t len[64];
    struct elv_commit commit;
};
void world_encode(const struct world *w, struct upload *u, uint32_t peer,
                  const struct elv_ticket *t, const float *v, uint64_t nonce);
/* The same for the ticket that the peer has now. False: it has none. */
bool world_make(struct world *w, struct upload *u, uint32_t peer, uint64_t nonce);
void upload_seal(struct upload *u); /* digest and number of chunks into the commit */
struct world_reply *world_put(struct world *w, const struct upload *u, uint32_t index);
struct world_reply *world_commit(struct world *w, const struct upload *u);
enum elv_decision world_verdict(const struct world_reply *r, enum elv_reason *reason);

/* Ticket, update, chunks, commit. True when it was accepted. `attempt` makes the nonce another. */
bool world_attempt(struct world *w, uint32_t peer, uint32_t attempt);
bool world_contribute(struct world *w, uint32_t peer);

/* The commit of an evaluation: of `n` examples of one class `right` were right. */
void world_sums(struct elv_eval_sums *sums, uint32_t n, uint32_t right);
/* Ticket to evaluate, commit with sums. True when it was accepted. */
bool world_evaluate(struct world *w, uint32_t peer, uint32_t n, uint32_t right);
/* Ticket, then a commit that says why there is nothing to send. */
bool world_decline(struct world *w, uint32_t peer, enum elv_status status, enum elv_reason reason);

/* Evaluates with what `accuracy` says, in three slices, and checks that the weights stay put. */
void world_add_scorer(struct world *w);

/* How many notes of a kind came since the last time. */
uint32_t world_notes(struct world *w, enum elv_note_kind kind);

#endif
