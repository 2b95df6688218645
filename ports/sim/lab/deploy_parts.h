/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/deploy_parts.h - what the files of a deployment share; nobody else includes it.
 *
 *     deploy.c          made, run, freed
 *     deploy_server.c   the server's node, its disk and its test set
 *     deploy_clients.c  the clients' nodes, and what they do as seen from outside
 *     deploy_park.c     the memory of those that have no work
 *     deploy_train.c    one trainer for all of them
 *     deploy_world.c    devices, links, faults, who is there when
 *     deploy_tell.c     the server's notes as records, the summary */
#ifndef ELV_PORTS_SIM_LAB_DEPLOY_PARTS_H
#define ELV_PORTS_SIM_LAB_DEPLOY_PARTS_H

#include "client/client.h"
#include "ports/sim/faults.h"
#include "ports/sim/lab/deploy.h"
#include "ports/sim/lab/learn_network.h"
#include "server/follow.h"

struct elv_deploy_kept;

struct elv_deploy_client {
    struct elv_deploy *deploy;
    struct elv_client *node;      /* and its memory, in one block; NULL: it is down */
    struct elv_deploy_kept *kept; /* parked: the version it holds; NULL: none, or by itself */
    uint32_t number, starts;
    uint32_t pieces;            /* of work it took up so far; names what is drawn for them */
    uint32_t comings, turns;    /* times it came; times it went away or returned since */
    uint32_t assignment;        /* open: what it works on */
    uint32_t round, version;    /* open: of that */
    elv_time_us begun;          /* open: since when */
    uint32_t used, used_last;   /* updates that counted; the assignment of the last one */
    struct elv_lab_facts facts; /* of its device */
    bool there;                 /* neither away nor gone */
    bool asleep;                /* it dropped out, until its work is of no use */
    bool ever;                  /* has joined */
    bool open;                  /* has work in hand */
    bool dropped;               /* open: will not deliver it */
    bool trained;               /* open: the training is over */
    bool told;                  /* open: the server has decided */
    bool working;               /* open, and not decided */
    bool waits;                 /* decided, and nothing new yet */
    bool parked;                /* it has no work and no memory for it */
};

struct elv_deploy_school { /* the trainer that all clients share */
    struct elv_local trainer;
    uint32_t batch; /* it is planned for; 0: none */
    void *mem;
    size_t len;
    struct elv_lab_part train_part, test_part; /* of the client whose turn it is */
    struct elv_feed train, test;
};

struct elv_deploy_exam { /* the learner's test set as the server's scorer */
    struct elv_scorer scorer;
    const float *w;
    struct elv_lab_score score;
};

struct elv_deploy_churn {
    uint32_t n_come, n_new; /* gaps drawn, numbers given */
    uint32_t *gone;         /* ring of those that left, to come again; [n_clients] */
    uint32_t from, n_gone;
};

struct elv_deploy {
    struct elv_deploy_cfg cfg;
    struct elv_job job; /* with the run's seed and end */
    const struct elv_lab_world *world;
    struct elv_lab_learner *learner;
    const struct elv_lab_network_cfg *network;
    const struct elv_lab_split *split;
    bool streams;      /* the policy has no rounds */
    uint32_t capacity; /* clients the server has room for; in a stream that bounds a version, too */

    struct elv_sim *w;
    struct elv_sim_faults *faults;
    struct elv_sim_disk *disk;
    uint32_t server_node; /* clients follow in the order of their numbers */

    struct elv_server *server; /* and its memory, in one block; NULL: it is down */
    struct elv_server_cfg server_cfg;
    float *start; /* the first version; NULL: from the seed */
    uint64_t seen_notes;
    struct elv_deploy_exam exam;

    struct elv_deploy_client *clients; /* [n_clients] */
    struct elv_client_cfg client_cfg;
    size_t client_len;
    struct elv_deploy_kept *kept;
    struct elv_deploy_school school;
    const struct elv_client_train **cohort; /* [cohort_cap] */
    enum elv_err *cohort_err;
    uint32_t cohort_cap;
    struct elv_deploy_churn churn;
    uint32_t n_working, n_waiting, n_asleep, n_ever;

    bool ended;
    enum elv_err err; /* ends the run */
    elv_time_us at;   /* up to here working and waiting are counted */
    struct elv_follow follow;
    struct elv_lab_round rec;    /* of the open round */
    bool round_open;             /* as the notes say */
    struct elv_lab_round closed; /* waits for its score */
    bool closed_waits;
    struct elv_lab_summary sum;
    uint64_t bytes_up, bytes_down; /* of the server's lives before this one */
    uint64_t wire_up, wire_down;   /* of the rounds that ended */
    double used_squares;
};

/* deploy_server.c */
enum elv_err elv_deploy_add_server(struct elv_deploy *d, char *why);
void elv_deploy_free_server(struct elv_deploy *d);

/* deploy_clients.c */
enum elv_err elv_deploy_add_clients(struct elv_deploy *d);
static inline uint32_t elv_deploy_node(const struct elv_deploy_client *c)
{
    return c->deploy->server_node + c->number;
}
void elv_deploy_client_stepped(struct elv_deploy *d, uint32_t node);
/* The server has decided on its work. */
void elv_deploy_decided(struct elv_deploy_client *c);
void elv_deploy_set_waits(struct elv_deploy_client *c, bool waits);

/* deploy_park.c */
void *elv_deploy_take_block(struct elv_deploy *d);
void elv_deploy_give_block(struct elv_deploy_client *c);
/* After each step: its memory goes when it has become idle, and is back before work touches it. */
void elv_deploy_park(struct elv_deploy_client *c);

/* deploy_train.c */
enum elv_err elv_deploy_open_school(struct elv_deploy *d);
void elv_deploy_close_school(struct elv_deploy *d);
struct elv_trainer elv_deploy_trainer(struct elv_deploy_client *c);
struct elv_sim_gather elv_deploy_gather(struct elv_deploy *d);

/* deploy_world.c */
struct elv_sim_link elv_deploy_link(struct elv_deploy *d, const struct elv_deploy_client *c);
elv_time_us elv_deploy_cost(void *self, uint32_t node, const struct elv_compute *work,
                            uint32_t units, struct elv_rng *rng);
struct elv_lab_piece elv_deploy_piece(const struct elv_deploy_client *c);
/* Clients come and go, faults strike from now on. */
void elv_deploy_populate(struct elv_deploy *d);
/* Those that dropped out start again. */
void elv_deploy_wake(struct elv_deploy *d);

/* deploy_tell.c */
/* Time passes before anything changes. */
void elv_deploy_pass_time(struct elv_deploy *d);
void elv_deploy_take_notes(struct elv_deploy *d);
void elv_deploy_tell(struct elv_deploy_client *c, enum elv_lab_event_kind kind, uint32_t staleness,
                     uint32_t weight);
/* What still waits is told. */
void elv_deploy_flush(struct elv_deploy *d);

#endif
