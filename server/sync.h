/* SPDX-License-Identifier: Apache-2.0 */
/* server/sync.h - when does a version close, who may start, and what is an update worth?
 *
 * A policy sees events and read-only facts and answers with values; it never touches the model, the
 * network or a clock. Whoever drives it - the server, or the simulator's world of many clients -
 * keeps what all policies share: an update counts once, a client that left is not waited for, and
 * every open round ends at its deadline, with the quorum or abandoned, whatever the policy thinks;
 * in STREAM also when no more updates fit in it.
 * What a policy wants to remember lives in its state, whose size it declares and which holds no
 * pointers. A new policy is one file and one line in policies.c.
 *
 * There are two flows. In ROUNDS a round asks the selected clients when it opens, all from one
 * version; whoever has not delivered when it closes is late, and that update no longer counts. In
 * STREAM a client gets work of its own whenever the policy lets it start, from the version
 * published then, and its update counts in whatever version is being made when it arrives. A round
 * is then the time from one published version to the next.
 *
 * The order of calls. `on_join` comes before anything else about a client; `on_leave` ends it: the
 * client left, was revoked, or (STREAM) was silent past the deadline of its work or failed at it,
 * and joins again when it next asks. Then per round: on_open, any number of on_update, on_late,
 * on_pull and on_timer, and, unless it is abandoned, on_commit once its version is made. A server
 * that starts again remembers nothing of a policy's: on_join comes for all who are there, then
 * on_open for the round that was open, whose n_got counts what it had. */
#ifndef ELV_SERVER_SYNC_H
#define ELV_SERVER_SYNC_H

#include "../common/node.h"
#include "job.h"

enum elv_sync_flow { ELV_SYNC_ROUNDS, ELV_SYNC_STREAM };

struct elv_sync_cfg {
    uint32_t clients_max; /* clients are known by `row`, below this */
    uint32_t quorum;      /* updates without which no version closes; 1 or more */
    elv_time_us deadline_us;
    elv_time_us publish_us; /* STREAM: MAY publishes no sooner after the version before; may be 0 */
    uint64_t seed;          /* of the run, for random choices */
    const struct elv_params *params; /* the policy's own */
};

/* What every policy may know about the open round. */
struct elv_sync_round {
    uint32_t seq;       /* rises by one with each round */
    uint32_t version;   /* that the round starts from */
    uint32_t n_asked;   /* clients given work in it; STREAM: pieces of work handed out */
    uint32_t n_got;     /* updates that count */
    uint32_t n_waiting; /* clients with work, not decided yet, and still there */
    uint32_t n_joined;  /* clients there */
    elv_time_us opened; /* ELV_NEVER while no round is open */
    elv_time_us deadline;
};

struct elv_sync_client {
    uint32_t row, client;
};

struct elv_sync_update {
    struct elv_sync_client from;
    uint32_t version;   /* the client trained from */
    uint32_t staleness; /* updates that counted since that version was published; ROUNDS: 0 */
    uint32_t samples, seen, steps;
    double loss_sum;     /* over `seen` */
    double norm2;        /* squared L2 norm, as the server computed it */
    uint64_t bytes;      /* chunks as they travelled */
    uint32_t compute_ms; /* the client's claim; 0: not measured */
    elv_time_us started; /* when the work was handed out; ROUNDS: when the round opened */
};

enum elv_sync_start {
    ELV_SYNC_HOLD,  /* not now; `next` hands it out, or it asks again */
    ELV_SYNC_START, /* take part */
    ELV_SYNC_REJECT /* and do not ask again before `retry_ms` */
};

struct elv_sync_grant {
    enum elv_sync_start start;
    uint32_t retry_ms;
};

struct elv_sync_worth {
    bool counts;   /* false: too late to be of use */
    double weight; /* factor on the update's weight, in (0, 1] */
};

enum elv_sync_commit_when {
    ELV_SYNC_NO,
    ELV_SYNC_MAY, /* STREAM: as soon as publish_us have passed; ROUNDS: now */
    ELV_SYNC_MUST /* now */
};

/* By what a version's weighted sum of updates is divided. With weights u = claim * factor: */
enum elv_sync_divisor {
    ELV_SYNC_BY_USED,    /* the u of those used: a weighted mean */
    ELV_SYNC_BY_CLAIMED, /* their claims: a factor below 1 makes the step smaller */
    ELV_SYNC_BY_FLEET /* the claims of all clients there, or of those used if that is more: updates
                         are applied one by one, one from each equals one averaged step, and who
                         delivers over and over from one version does not overshoot */
};

struct elv_sync_scale {
    enum elv_sync_divisor by;
    double step; /* factor on the result */
    bool mixes;  /* the models move, not the steps: new = w + step * (sum u (base + delta) / sum u -
                    w), where base is the version each client trained from; BY_USED only */
};

/* ROUNDS: whom a round needs before it opens. */
struct elv_sync_call {
    uint32_t ask;        /* clients to ask; 0: as the job selects */
    uint32_t least;      /* it opens with so many there once `wait_us` have passed; 0: never */
    elv_time_us wait_us; /* ... since the round before ended */
};

/* A version was made. Scalars only: all of them survive when single updates are hidden in sums. */
struct elv_sync_commit {
    struct elv_sync_round round; /* as it closed */
    uint32_t version;            /* made */
    double loss;                 /* mean training loss of those used; NAN: none reported */
    double norm2;                /* weighted mean of the updates' squared norms */
    double mean_norm2;           /* squared norm of their weighted mean, before any step factor */
    double n_effective;          /* 1 / sum of squared normalised weights: n for equal weights */
    double rate; /* learning rate times local steps, mean over those used: an update is about
                    -rate * gradient */
};

struct elv_sync {
    const char *name;
    const char *const *params; /* names it accepts, then NULL */
    enum elv_sync_flow flow;
    bool single; /* a version may hold one client's update alone, so sums cannot hide it */

    /* The parameters' ranges; `clients_max` 0: not known yet. On failure `why` is a sentence and
     * `*line` the job file's. */
    enum elv_err (*check)(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line);

    /* NULL: no state. `state` starts as zeros. */
    size_t (*state_len)(const struct elv_sync_cfg *cfg);

    /* ROUNDS; NULL: as the job says. */
    struct elv_sync_call (*call)(const struct elv_sync_cfg *cfg);

    /* Events; each may be NULL. */
    void (*on_open)(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r);
    void (*on_join)(void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c,
                    elv_time_us now);
    void (*on_leave)(void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c,
                     elv_time_us now);
    void (*on_timer)(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                     elv_time_us now);
    void (*on_commit)(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_commit *c,
                      elv_time_us now);

    /* ROUNDS: work of an earlier round, from `version`, has come to its end too late; called once
     * per client and round, `r` is the open round or the last. */
    void (*on_late)(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                    struct elv_sync_client c, uint32_t version, elv_time_us now);

    /* A client without work wants some: in ROUNDS one that this round did not ask, in STREAM also
     * one whose update was just decided. The same answer until something happens: a client may ask
     * over and over. NULL: it holds in ROUNDS, and in STREAM where there is `room`; else it starts.
     */
    struct elv_sync_grant (*on_pull)(void *state, const struct elv_sync_cfg *cfg,
                                     const struct elv_sync_round *r, struct elv_sync_client c,
                                     elv_time_us now);

    /* STREAM: the next of the clients that on_pull held and that may start now; it counts as
     * started. Asked while a round is open, after every event, until false. NULL: those held ask
     * again by themselves. */
    bool (*next)(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                 struct elv_sync_client *c, elv_time_us now);

    /* STREAM: how many more clients may start now. The driver chooses which, at random among those
     * without work. NULL: any number. */
    uint32_t (*room)(const void *state, const struct elv_sync_cfg *cfg,
                     const struct elv_sync_round *r);

    /* An update passed every check. */
    struct elv_sync_worth (*on_update)(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now);

    /* Asked while a round is open, after every event, with at least the quorum there. */
    enum elv_sync_commit_when (*should_commit)(const void *state, const struct elv_sync_cfg *cfg,
                                               const struct elv_sync_round *r, elv_time_us now);

    /* How the version being closed is scaled. NULL: BY_USED, 1. */
    struct elv_sync_scale (*scale)(const void *state, const struct elv_sync_cfg *cfg,
                                   const struct elv_sync_round *r);

    /* How many updates the open round waits for, for whoever watches; 0: no number in particular.
     * NULL: all that were asked in ROUNDS, none in particular in STREAM. */
    uint32_t (*wanted)(const void *state, const struct elv_sync_cfg *cfg,
                       const struct elv_sync_round *r);

    /* The next moment at which it wants on_timer, which the driver calls then, or as soon as a
     * round is open, and which moves that moment on. NULL: never. */
    elv_time_us (*timer)(const void *state, const struct elv_sync_cfg *cfg);

    /* ROUNDS: the version closed without this client: true interrupts it now, false lets it finish
     * and find out. NULL: false. */
    bool (*interrupts)(const void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c);
};

/* NULL when there is no such policy. */
const struct elv_sync *elv_sync_by_name(const char *name);
size_t elv_sync_count(void);
const struct elv_sync *elv_sync_at(size_t i);

#endif
