/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/swarm_parts.h - what the files of the swarm share; nobody else includes it.
 *
 *     swarm.c          memory, time, what happens next
 *     swarm_clients.c  who comes, goes, is there and away
 *     swarm_work.c     pieces of work from start to end
 *     swarm_update.c   what becomes of an update: trained, judged, added up
 *     swarm_version.c  versions, kept while somebody works on them
 *     swarm_close.c    how rounds end, and versions are made
 *     swarm_eval.c     how good versions are, and who says so
 *     swarm_rounds.c   the flow of policies that ask
 *     swarm_stream.c   the flow of policies that let clients start
 *     swarm_tell.c     records, the hash, the summary */
#ifndef ELV_PORTS_SIM_LAB_SWARM_PARTS_H
#define ELV_PORTS_SIM_LAB_SWARM_PARTS_H

#include "kernels/kernels.h"
#include "ports/sim/lab/swarm.h"
#include "ports/sim/lab/swarm_queue.h"
#include "ports/sim/lab/swarm_set.h"
#include "ports/sim/lab/wire.h"
#include "server/tally.h"

#define ELV_SWARM_NONE UINT32_MAX

struct elv_swarm_client {
    uint32_t work;              /* its place in the pool; NONE: it has none under way */
    uint32_t pieces;            /* of work it was given so far; names what is drawn for them */
    uint32_t used;              /* updates that counted */
    uint32_t seq;               /* ROUNDS: the round that asked it last */
    uint32_t assignment;        /* that it was given last */
    uint32_t place;             /* STREAM: among those without work */
    uint32_t holds;             /* one more than the version it fetched last; 0: none */
    uint32_t comings, turns;    /* times it came; times it went away or returned since */
    struct elv_lab_facts facts; /* of its device */
    bool joined;                /* the server counts it in */
    bool there;                 /* joined, and not away */
    bool open;                  /* has work, as the server sees it, and is not decided */
    bool waits;                 /* has delivered and waits for others */
    bool ever;                  /* has joined before */
    bool lapsed;                /* STREAM: was silent for too long */
    bool idle;                  /* STREAM: in the list of those without work */
};
_Static_assert(sizeof(struct elv_swarm_client) <= 64, "a million of them fit in a cache line each");

/* What a heap entry is; the rest of its `what` is the number of the client's piece of work, or of
 * its coming, that it is about: entries about an earlier one mean nothing any more. */
enum elv_swarm_due_kind {
    ELV_SWARM_WORK,  /* its next phase */
    ELV_SWARM_ABORT, /* it learns that its work is in vain */
    ELV_SWARM_LAPSE, /* STREAM: its time is over */
    ELV_SWARM_RETRY, /* STREAM: it asks again */
    ELV_SWARM_TURN,  /* it goes away, or is back */
    ELV_SWARM_LEAVE, /* for good */
    ELV_SWARM_JOIN,
    ELV_SWARM_COME /* a new device */
};
#define ELV_SWARM_KIND_BITS 3u
static inline uint32_t elv_swarm_what(enum elv_swarm_due_kind kind, uint32_t number)
{
    return number << ELV_SWARM_KIND_BITS | (uint32_t)kind;
}

/* Whether an entry is about this number: of it, the entry has lost the upper bits. */
static inline bool elv_swarm_is(uint32_t number, uint32_t entry)
{
    return (number << ELV_SWARM_KIND_BITS) >> ELV_SWARM_KIND_BITS == entry;
}

/* A piece of work under way. */
struct elv_swarm_work {
    uint32_t client; /* place; NONE: this entry of the pool is free */
    uint32_t piece;  /* the client's, from 1 */
    uint32_t seq, assignment;
    uint32_t base; /* place of the version it trains from */
    uint32_t next; /* free */
    uint32_t steps, seen, samples, compute_ms;
    elv_time_us started, ends; /* ends: of this phase */
    bool uploads;              /* this phase is the last */
    bool delivered;            /* STREAM: the update is there, and waits for a round to open */
    bool dropped;              /* will not be delivered */
    bool trained;
    enum elv_lab_fate fate;
    enum elv_err err;
    float *update;              /* NULL: not trained, or nothing is learnt */
    struct elv_eval_sums *eval; /* of its base, by the client; NULL: none */
    double loss_sum;
    uint64_t bytes_up;
};

struct elv_swarm_works {
    struct elv_swarm_work *at;
    uint32_t n, cap, free; /* n: ever used at once */
};

struct elv_swarm_version {
    uint32_t version, refs, next;
    uint64_t counted; /* updates that had counted when it was published */
    uint64_t mixed;   /* what clients weigh whose models of it the open round mixes */
    double rate;      /* learning rate */
    float *w;
};

struct elv_swarm_versions {
    uint64_t *steps; /* [version] bytes of all steps up to there; what is not counted is 0 */
    uint32_t n_steps, cap_steps;
    struct elv_swarm_version *at;
    uint32_t n, cap, free;
    uint32_t newest;
};

struct elv_swarm_round {
    bool open;
    uint32_t seq, assignment, version;
    uint32_t n_asked, n_got, n_waiting;
    uint32_t n_abandoned; /* in a row */
    elv_time_us opened, deadline, not_before, ended;
    elv_time_us timer_done;   /* up to here on_timer was called */
    uint32_t *asked, *before; /* ROUNDS: clients' places, of this and the round before */
    uint32_t n_before, cap, cap_before;
    struct elv_tally tally;
    int64_t *sum;               /* [n_params] of the updates that count, in fixed point */
    struct elv_eval_sums *eval; /* what their clients found of their bases; NULL: nothing yet */
    struct elv_lab_round rec;
};

struct elv_swarm_parked { /* clients whose updates are there, in that order */
    uint32_t *at;
    uint32_t n, cap, next;
};

struct elv_swarm_vectors { /* spare ones */
    float **at;
    uint32_t n, cap;
};

struct elv_swarm_flow {
    /* What follows from where things stand. */
    void (*settle)(struct elv_swarm *s);
    /* When that changes by itself; ELV_NEVER: it does not. */
    elv_time_us (*next)(const struct elv_swarm *s);
    /* A client is there (again) and has no work. */
    void (*came)(struct elv_swarm *s, uint32_t c);
    /* It is away; `good`: it left for good. Its work is lost already. */
    void (*went)(struct elv_swarm *s, uint32_t c, bool good);
    /* Its work came to its end: an update, or silence. Still in the pool. */
    void (*arrived)(struct elv_swarm *s, struct elv_swarm_work *w);
    /* ABORT, LAPSE and RETRY. */
    void (*due)(struct elv_swarm *s, uint32_t c, enum elv_swarm_due_kind kind, uint32_t number);
};
extern const struct elv_swarm_flow elv_swarm_rounds, elv_swarm_stream;

struct elv_swarm {
    struct elv_swarm_cfg cfg;
    const struct elv_job *job;
    const struct elv_lab_world *world;
    struct elv_lab_learner *learner;
    struct elv_policies policies;
    const struct elv_swarm_flow *flow;
    struct elv_sync_cfg sync_cfg;
    void *sync_state;
    struct elv_scales scales;
    uint32_t counted_max; /* updates in one version */
    bool pushes;          /* versions are sent, not fetched */

    elv_time_us now;
    bool ended;
    enum elv_err err; /* the learner's, which ends the run */
    struct elv_swarm_queue queue;
    struct elv_swarm_client *clients; /* [n_clients] */
    struct elv_swarm_set there;
    uint32_t n_joined, n_ever;
    uint32_t n_working, n_waiting; /* clients, now */
    uint64_t fleet;                /* claims of all that joined, as integer weights */
    uint32_t n_come;               /* churn: gaps drawn */
    uint32_t n_new;                /* churn: numbers given */
    uint32_t *gone;                /* churn: ring of those that left, to come again; [n_clients] */
    uint32_t gone_from, n_gone;
    uint32_t *idle; /* STREAM: those without work; [n_clients] */
    uint32_t n_idle, n_picked;
    uint32_t freed; /* STREAM: whose update was just decided; NONE */
    struct elv_swarm_parked parked;

    struct elv_swarm_works works;
    struct elv_swarm_versions versions;
    struct elv_swarm_vectors vectors;
    struct elv_swarm_round round;
    uint32_t next_assignment;
    uint64_t counted; /* updates, ever */
    double rate;
    float *mean, *state;         /* scratch and memory of the rule */
    uint64_t step;               /* bytes of the newest step, chunks as they travel */
    float *master;               /* NULL: it is the newest version */
    struct elv_lab_task *tasks;  /* [gather_max] */
    struct elv_swarm_work **due; /* [gather_max] */
    struct elv_lab_summary sum;
    struct elv_lab_wire fetch, send; /* of so many bytes; most pieces of work are alike */
    uint64_t fetch_bytes, send_bytes;
    struct elv_lab_round held; /* the newest version's record, if it waits for its score */
    bool held_back;
    double used_squares; /* for the fairness: kept up to date with each update used */
};

static inline uint32_t elv_swarm_n_params(const struct elv_swarm *s)
{
    return s->learner ? s->learner->n_params : 0;
}

/* swarm.c */
struct elv_sync_round elv_swarm_view(const struct elv_swarm *s);
static inline struct elv_sync_client elv_swarm_id(uint32_t c)
{
    return (struct elv_sync_client){.row = c, .client = c + 1};
}
/* Calls on_timer when it is due; the time it wants next. */
void elv_swarm_run_timer(struct elv_swarm *s);
elv_time_us elv_swarm_timer(const struct elv_swarm *s);
void elv_swarm_later(struct elv_swarm *s, elv_time_us at, uint32_t c, uint32_t what);

/* swarm_clients.c */
void elv_swarm_populate(struct elv_swarm *s);
void elv_swarm_client_due(struct elv_swarm *s, uint32_t c, enum elv_swarm_due_kind kind,
                          uint32_t number);
/* As the server learns of it. */
void elv_swarm_enlist(struct elv_swarm *s, uint32_t c);
void elv_swarm_discharge(struct elv_swarm *s, uint32_t c);
void elv_swarm_set_waits(struct elv_swarm *s, uint32_t c, bool waits);

/* swarm_work.c */
void elv_swarm_start(struct elv_swarm *s, uint32_t c, uint32_t assignment);
void elv_swarm_work_due(struct elv_swarm *s, uint32_t c, uint32_t number);
/* Gives the entry back; its client has no work. */
void elv_swarm_end_work(struct elv_swarm *s, struct elv_swarm_work *w);
/* Never delivered, because its client is gone, away or dropped. */
void elv_swarm_lose_work(struct elv_swarm *s, struct elv_swarm_work *w);
/* After a notice's way over the link. */
elv_time_us elv_swarm_notice(const struct elv_swarm *s, const struct elv_swarm_work *w);
struct elv_candidate elv_swarm_candidate(const struct elv_swarm *s, uint32_t c);
/* Fills in the samples, and the steps that work of this size will take. */
void elv_swarm_measure(const struct elv_swarm *s, struct elv_swarm_work *w, struct elv_size size);
void elv_swarm_count_up(struct elv_swarm *s, const struct elv_swarm_work *w); /* it was sent */

/* swarm_update.c */
/* Trains it now, and with it what will be needed soon. */
void elv_swarm_train(struct elv_swarm *s, struct elv_swarm_work *w);
/* The update came too late to count. Its client may keep what it learnt, and so has to learn it. */
void elv_swarm_miss(struct elv_swarm *s, struct elv_swarm_work *w);
/* The update is there: used or discarded. */
void elv_swarm_judge(struct elv_swarm *s, struct elv_swarm_work *w);

/* swarm_version.c */
void elv_swarm_first_version(struct elv_swarm *s);
void elv_swarm_release(struct elv_swarm *s, uint32_t version);
float *elv_swarm_vector(struct elv_swarm *s);
void elv_swarm_give_vector(struct elv_swarm *s, float *v);
bool elv_swarm_all_finite(const float *v, uint32_t n);
/* A model made from this version is mixed in by its weight. Its update is in the sums; for all that
 * were made from one version, mix_all adds how far that is from the newest, as server/make.c does.
 * ELV_ERR_RANGE: too far. */
void elv_swarm_mix(struct elv_swarm *s, uint32_t version, uint32_t weight);
enum elv_err elv_swarm_mix_all(struct elv_swarm *s);
void elv_swarm_mix_nothing(struct elv_swarm *s); /* the next round begins */
/* What rules change: the newest version, or, with a codec that rounds, what it stands for. */
const float *elv_swarm_master(const struct elv_swarm *s);
/* Makes `w`, or NULL, the newest version's and keeps it. On failure it is gone. */
enum elv_err elv_swarm_publish(struct elv_swarm *s, float *w);
/* Bytes client `c` fetches to have the newest version, which it has from now on. */
uint64_t elv_swarm_fetch(struct elv_swarm *s, uint32_t c);
/* The published version is all there is. */
void elv_swarm_forget_master(struct elv_swarm *s);

/* swarm_close.c */
/* How the version would be scaled that is being made. */
struct elv_sync_scale elv_swarm_scale(const struct elv_swarm *s);
/* Updates that the open round waits for; 0: no number in particular. */
uint32_t elv_swarm_wanted(const struct elv_swarm *s);
/* Closes the round with a version made of its sums, or, when the model stops being finite, abandons
 * it. `left`: in ROUNDS, clients still at work on what they were asked for. */
void elv_swarm_close(struct elv_swarm *s, uint32_t left);
void elv_swarm_abandon(struct elv_swarm *s, uint32_t left);

/* swarm_eval.c */
bool elv_swarm_clients_evaluate(const struct elv_swarm *s);
/* The version just made, into the round's record. */
void elv_swarm_evaluate(struct elv_swarm *s);
/* Tells the record, or holds it back until the clients have scored its version. */
void elv_swarm_record(struct elv_swarm *s, const struct elv_lab_round *r);
void elv_swarm_release_record(struct elv_swarm *s);
/* What a client found while it trained; it counts when its update does. */
void elv_swarm_keep_eval(const struct elv_swarm *s, struct elv_swarm_work *w,
                         const struct elv_eval_sums *eval);
void elv_swarm_add_eval(struct elv_swarm *s, const struct elv_swarm_work *w);
void elv_swarm_forget_eval(struct elv_swarm *s);
/* The round closes: the score of the version it started from. */
void elv_swarm_hear_clients(struct elv_swarm *s);
/* The last version was made. */
void elv_swarm_survey(struct elv_swarm *s);

/* swarm_tell.c */
void elv_swarm_tell(struct elv_swarm *s, enum elv_lab_event_kind kind, uint32_t c,
                    const struct elv_swarm_work *w, uint32_t staleness, uint32_t weight);
void elv_swarm_tell_round(struct elv_swarm *s, const struct elv_lab_round *r);

#endif
