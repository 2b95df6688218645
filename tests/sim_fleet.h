/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim_fleet.h - one server and its clients in the simulated world: the production nodes, the
 * real trainer, toy data that each client makes from its number. */
#ifndef ELV_TESTS_SIM_FLEET_H
#define ELV_TESTS_SIM_FLEET_H

#include "client/builtin.h"
#include "client/client.h"
#include "ports/sim/world.h"
#include "ports/zlib/squeeze.h"
#include "server/server.h"
#include "tests/sim_history.h"
#include "tests/sim_vandal.h"

struct fleet_key { /* one line of a job file */
    const char *section, *key, *value;
};

struct fleet_cfg {
    uint64_t seed;
    uint32_t n_clients;           /* vandals included */
    uint32_t n_vandals;           /* the last so many */
    uint64_t absent;              /* a bit for each place whose client never starts */
    uint64_t keeps;               /* and for each whose client has a disk */
    const struct fleet_key *keys; /* on top of those every fleet has; ends with section NULL */
    struct elv_sim_link link;
    struct elv_sim_disk_cfg disk;        /* clock, seed and number are filled in */
    struct elv_sim_disk_cfg client_disk; /* likewise */
    uint32_t slice;                      /* see struct elv_sim_node_cfg */
    elv_time_us step_us;                 /* a training step on the fastest device */
    uint32_t slow; /* the slowest device takes so many times longer; 0: all alike */
    bool odd_clocks;
    bool observe;                    /* every second client is told of its tickets */
    bool steady;                     /* all are, and a step always takes a device as long */
    elv_time_us join_spread_us;      /* clients start within this */
    struct elv_server_limits limits; /* clients_max is filled in */
    bool scores;                     /* the server has a test set */
    const uint32_t *numbers;         /* client number by place, to start them in another order */
    uint64_t plain;                  /* a bit for each place whose client can run f32 only */
    void (*line)(void *ctx, const char *text); /* trace; NULL: none */
    void *line_ctx;
};

struct fleet;

struct fleet_there { /* what the server had of a client's update when that came back */
    uint32_t assignment;
    uint64_t nonce;
    uint64_t mask; /* of the first chunks, as far as it still has them */
};

struct fleet_client {
    struct fleet *fleet;
    uint32_t node, number, starts;
    uint32_t checked; /* assignment whose model was looked at */
    bool revoked;     /* need not end */
    struct elv_feed train, test;
    struct elv_builtin trainer;
    struct elv_client client; /* meaningful while it is up */
    struct vandal vandal;     /* likewise, of the last few */
    void *mem;
    struct elv_sim_disk *disk; /* NULL: it keeps nothing */
    struct elv_disk view;
    struct fleet_there there;
};

#define FLEET_CLIENTS_MAX 64u
#define FLEET_WRONG_MAX 240u
#define FLEET_TESTS 6u /* examples that each client evaluates */

struct fleet_sums {
    uint64_t abandoned, late, log_losses, declined, failed, evaluations, lapsed;
    uint64_t restored, replayed, resumed; /* by clients, after a restart */
    /* Models that clients started from, by how they came: whole, by steps from one held, or from
     * the first. */
    uint64_t by_full, by_steps, by_seed;
};

struct fleet_scorer { /* pretends to evaluate: three slices, then sums that follow the model */
    const float *w;
    uint32_t n, slices;
    double sum;
};

struct fleet_round { /* the open one, and for how long it has been while the server was up */
    uint32_t seq, life, crashes;
    elv_time_us last_us, open_us;
};

struct fleet {
    struct fleet_cfg cfg;
    struct fleet_round round;
    struct fleet_scorer scoring;
    struct elv_scorer scorer;
    struct elv_job job;
    struct elv_model model;
    struct elv_sim *w;
    uint32_t server_node;
    struct elv_server *server; /* NULL while it is down */
    struct elv_server_cfg server_cfg;
    void *mem;
    struct elv_zlib *zlib; /* nothing runs at the same time here, so one does for all */
    struct elv_squeeze squeeze;
    struct elv_sim_disk *disk;
    struct history *history;
    struct fleet_client clients[FLEET_CLIENTS_MAX];
    char wrong[FLEET_WRONG_MAX]; /* empty: nothing */

    struct fleet_sums sums; /* of the lives before this one */
    uint64_t seen_notes;    /* of this life */
    bool changes;           /* it starts with another job next time */
    bool over;
    elv_time_us over_us, dead_us;
    elv_time_us waits[FLEET_CLIENTS_MAX]; /* by row: for how long it wants work; ELV_NEVER */
    elv_time_us waits_at, worst_wait_us;
};

/* Gives a client of this number its toy data; nothing else of it is touched. */
void fleet_feeds(struct fleet_client *c);

/* Stops the program when the job cannot be: that is a mistake in the test. */
struct fleet *fleet_new(const struct fleet_cfg *cfg);
void fleet_free(struct fleet *f);

/* From its next start on the server has these keys, which differ in what a job may change. */
void fleet_change(struct fleet *f, const struct fleet_key *keys);

/* Runs until the job is over and every client has ended, or until `limit`, or until something is
 * wrong. True: over. */
bool fleet_run(struct fleet *f, elv_time_us limit);

/* Of all lives of the server together. */
struct fleet_sums fleet_sums(const struct fleet *f);

/* sim_watch.c: all that must be true of the server now. */
void fleet_check(struct fleet *f);
/* A client ended as if it were refused for good, and was not revoked. */
bool fleet_sent_away(const struct fleet *f);
/* For how long a round may keep everybody, from the end of the one before. */
elv_time_us fleet_round_max(const struct elv_job *job);
/* sim_resume.c: what a client that came back must not do. */
void fleet_resume_began(struct fleet *f, struct fleet_client *c);
void fleet_resume_server(struct fleet *f);
void fleet_resume_client(struct fleet *f, const struct fleet_client *c,
                         const struct elv_actions *did);
/* Something is wrong; the first is kept. */
void fleet_blame(struct fleet *f, const char *format, ...);

/* NULL, or what is wrong: with the world, the books, or the server's bounds. */
const char *fleet_wrong(const struct fleet *f);

#endif
