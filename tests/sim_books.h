/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim_books.h - what the files of the history share; nobody else includes it.
 *
 *     sim_history.c    requests and answers, what the disk took and lost, restarts
 *     sim_updates.c    what clients sent, and what was decided about it
 *     sim_versions.c   what versions are made of */
#ifndef ELV_TESTS_SIM_BOOKS_H
#define ELV_TESTS_SIM_BOOKS_H

#include "server/ledger.h"
#include "tests/sim_history.h"
#include "tests/sim_recipe.h"

enum { ATTEMPTS = 48, PIECES = 64, CLAIMS = 8, WRONG_MAX = 240 };

struct piece { /* one chunk of an attempt; count 0: not sent */
    uint32_t first, count;
    uint8_t hash[ELV_CHUNK_HASH_LEN];
};

/* What a client sent, decoded; a restarted attempt has another nonce. */
struct attempt {
    uint32_t assignment;
    uint64_t nonce;
    float *v; /* [n_params] */
    struct piece pieces[PIECES];
};

struct claim { /* the last commit that arrived */
    uint32_t assignment, n_chunks;
    uint64_t nonce;
    uint8_t digest[ELV_BODY_DIGEST_LEN];
};

struct decision {
    struct elv_rec_decision rec;
    uint64_t step; /* that stored it */
    bool acknowledged;
};

struct offer { /* a ticket with work */
    uint32_t assignment, version;
};

struct client {
    struct attempt attempts[ATTEMPTS];
    uint32_t next_attempt;
    struct claim claims[CLAIMS];
    uint32_t next_claim;
    struct decision *decisions; /* in order; assignments rise */
    uint32_t n, cap;
    struct decision ghost; /* the last one that the disk refused; it may have kept it */
    struct offer *offers;
    uint32_t n_offers, offers_cap;
};

struct version {
    struct elv_rec_version rec;
    uint64_t step;
    float *w; /* the master model: f32 [n_params] */
    float *b; /* the published one */
    float *v; /* the rule's momentum after it */
};

struct asked { /* a request that is owed a reply */
    uint32_t id, peer, assignment;
    enum elv_op op;
};

struct round { /* as it was opened */
    bool stream;
    int32_t weight_bits;
};

struct stored {
    uint32_t id;
    uint64_t step;
};

struct history {
    struct history_cfg cfg;
    struct recipe recipe;
    uint32_t n_params;
    char wrong[WRONG_MAX];
    uint64_t step;
    struct client *clients; /* [n_clients + 1] */
    struct version *versions;
    uint32_t n_versions, versions_cap; /* version i at place i */
    struct version ghost;              /* as for decisions; w NULL: none */
    struct asked *asked;
    uint32_t n_asked, asked_cap;
    struct stored *stored;
    uint32_t n_stored, stored_cap;
    struct round *rounds; /* by sequence number */
    uint32_t n_rounds, rounds_cap;
    uint32_t *given_up; /* rounds that ended without a version */
    uint32_t n_given_up, given_up_cap;
    uint32_t n_failures; /* of the disk: what the server took back is not known */
    struct history_sums sums;
};

/* sim_history.c */
void books_wrong(struct history *h, const char *format, ...);
void *books_more(void *at, uint32_t n, uint32_t *cap, size_t size);
void *books_zeroed(size_t n, size_t size);
struct recipe books_recipe(const struct history *h, uint32_t seq);
uint32_t books_versions(const struct history *h, uint32_t seq);

/* sim_updates.c */
struct client *books_client(struct history *h, uint64_t number);
struct attempt *books_attempt(struct client *c, uint32_t assignment, uint64_t nonce);
struct decision *books_decision(struct client *c, uint32_t assignment);
bool books_same(const struct elv_rec_decision *a, const struct elv_rec_decision *b);
bool books_counts(const struct decision *d, uint32_t seq);
void books_note_decision(struct history *h, const struct elv_store_op *s);

/* sim_versions.c */
void books_free_models(struct version *v);
void books_add_version(struct history *h, const struct version *v);
void books_note_version(struct history *h, const struct elv_store_op *s,
                        const struct elv_actions *did);

#endif
