/* SPDX-License-Identifier: Apache-2.0 */
/* server/sync.h - when does a version close, who may start, and what is an update worth?
 *
 * A policy sees events and read-only facts and answers with values; it never touches the model, the
 * network or a clock. The server keeps what all policies share: an update counts once, a client
 * that left is not waited for, and every open round ends at its deadline, with the quorum or
 * abandoned, whatever the policy thinks. What a policy wants to remember lives in its state, whose
 * size it declares. A new policy is one file and one line in policies.c. */
#ifndef ELV_SERVER_SYNC_H
#define ELV_SERVER_SYNC_H

#include "../common/node.h"
#include "job.h"

struct elv_sync_cfg {
    uint32_t clients_max; /* clients are known by `row`, below this */
    uint32_t quorum;      /* updates without which no version closes; 1 or more */
    elv_time_us deadline_us;
    const struct elv_params *params; /* the policy's own */
};

/* What every policy may know about the open round. */
struct elv_sync_round {
    uint32_t version;   /* that the round starts from */
    uint32_t n_asked;   /* clients given work */
    uint32_t n_got;     /* updates that count */
    uint32_t n_waiting; /* asked, not decided yet, and still there */
    elv_time_us opened; /* ELV_NEVER while no round is open */
    elv_time_us deadline;
};

struct elv_sync_client {
    uint32_t row, client;
};

struct elv_sync_update {
    struct elv_sync_client from;
    uint32_t version; /* the client trained from */
    uint32_t samples, seen, steps;
    double loss_sum;     /* over `seen` */
    double norm2;        /* squared L2 norm, as the server computed it */
    uint64_t bytes;      /* chunks as they travelled */
    uint32_t compute_ms; /* the client's claim; 0: not measured */
};

enum elv_sync_start {
    ELV_SYNC_HOLD,  /* wait for the next round */
    ELV_SYNC_START, /* take part in this one */
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

struct elv_sync {
    const char *name;
    const char *const *params; /* names it accepts, then NULL */

    /* The parameters' ranges. On failure `why` is a sentence and `*line` the job file's. */
    enum elv_err (*check)(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line);

    /* NULL: no state. `state` starts as zeros. */
    size_t (*state_len)(const struct elv_sync_cfg *cfg);

    /* Events; each may be NULL. */
    void (*on_open)(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r);
    void (*on_join)(void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c,
                    elv_time_us now);
    void (*on_leave)(void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c,
                     elv_time_us now);
    void (*on_timer)(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                     elv_time_us now);

    /* A client that this round did not ask wants work. NULL: it holds. */
    struct elv_sync_grant (*on_pull)(void *state, const struct elv_sync_cfg *cfg,
                                     const struct elv_sync_round *r, struct elv_sync_client c,
                                     elv_time_us now);

    /* An update passed every check. */
    struct elv_sync_worth (*on_update)(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now);

    /* Asked after every event with at least the quorum there. */
    bool (*should_commit)(const void *state, const struct elv_sync_cfg *cfg,
                          const struct elv_sync_round *r, elv_time_us now);

    /* The next moment `on_timer` wants to be called. NULL: never. */
    elv_time_us (*timer)(const void *state, const struct elv_sync_cfg *cfg);

    /* The version closed without this client: true interrupts it now, false lets it find out. */
    bool (*interrupts)(const void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c);
};

/* NULL when there is no such policy. */
const struct elv_sync *elv_sync_by_name(const char *name);
size_t elv_sync_count(void);
const struct elv_sync *elv_sync_at(size_t i);

#endif
