/* SPDX-License-Identifier: Apache-2.0 */
/* server/server.h - one federated training run, as the server sees it.
 *
 * A pure state machine: it reads no clock, opens nothing, allocates nothing and prints nothing.
 * Feed it events through `elv_server_node`, carry out the actions it returns, call again at its
 * deadline. One thread steps it; its COMPUTE works may run on others, at most two at the same time:
 * one of VERIFY, FOLD, REFOLD and MAKE, and beside it EVALUATE. Hostile input cannot make it fail:
 * it is refused, with a reason, and counted.
 *
 * Acknowledged means durable: a join, a leave and a commit are answered once their record is
 * stored. An accepted update counts exactly once, also over restarts. `elv_server_init` takes up
 * whatever state the disk holds.
 *
 * What the server relies on in its store: APPEND is carried out at once and can be read from then
 * on; when one fails, so do all STOREs with an id, until one drops that log. A failed STORE takes
 * with it what was submitted after it until its STORED event is delivered. */
#ifndef ELV_SERVER_SERVER_H
#define ELV_SERVER_SERVER_H

#include "../common/port.h"
#include "../kernels/kernels.h"
#include "answer.h"
#include "fold.h"
#include "kept.h"
#include "make.h"
#include "note.h"
#include "policies.h"
#include "roster.h"
#include "round.h"
#include "score.h"
#include "verify.h"
#include "weigh.h"

/* `kind` of the node's COMPUTE actions. `input` is the work's own struct. */
enum elv_server_work {
    ELV_WORK_VERIFY = 1, /* struct elv_verify */
    ELV_WORK_FOLD,       /* struct elv_fold */
    ELV_WORK_REFOLD,     /* struct elv_refold */
    ELV_WORK_MAKE,       /* struct elv_make */
    ELV_WORK_EVALUATE,   /* struct elv_scorer */
};

#define ELV_CLIENTS_USUAL 1024u
struct elv_server_limits {  /* 0: the default */
    uint32_t clients_max;   /* ever joined; ELV_CLIENTS_USUAL */
    uint32_t uploads_max;   /* clients uploading at the same time; what fits in 8 MiB, at least 8 */
    uint64_t log_bytes_max; /* of one round's upload log; 1 GiB */
    uint32_t window;        /* chunk requests in flight granted to one client; 64 */
    uint32_t window_total;  /* and to all that are at work together; 512 */
};

struct elv_server_cfg {
    const struct elv_job *job;   /* checked; borrowed for the life of the server */
    uint8_t run[ELV_RUN_ID_LEN]; /* random; ignored when there is state to restore */
    struct elv_server_limits limits;
    const char *software_min;          /* "elver/0.1.0"; NULL: any */
    const struct elv_kernels *kernels; /* NULL: the best built in */
    struct elv_disk disk;
    const struct elv_scorer *scorer; /* borrowed; NULL: no test set here */
    /* Borrowed; used by one work at a time. NULL: deflated chunks are refused, and no steps are
     * deflated. With it they are when the job says so, but the full model never is: its f32 values
     * hardly shrink, and to keep it encoded would take the memory of two more models. A step is
     * deflated once and then stored and served as it is, so another library, or none, at the next
     * start changes no digest. */
    const struct elv_squeeze *squeeze;
    const float *start; /* f32 [n_shared], read by init; NULL: values from the seed */
    /* Borrowed: policies of the caller's own, whose parameters it has checked. NULL: those that the
     * job names. */
    const struct elv_sync *sync;
    const struct elv_rule *rule;
};

/* Counters only grow, but for updates_used: an update that could not be made durable, and so was
 * acknowledged to nobody, is taken back. The others say how things are. */
struct elv_server_stats {
    uint64_t requests, malformed;
    uint64_t refused[32]; /* refusals given, by enum elv_reason */
    uint64_t joins, leaves, twins, capped;
    uint64_t updates_before; /* accepted before this process started; not in the next */
    uint64_t updates_used, updates_late, updates_refused, updates_declined, updates_failed;
    uint64_t chunks_up, chunks_repeated, bytes_up, chunks_down, bytes_down;
    uint64_t rounds_opened, rounds_closed, rounds_abandoned;
    uint64_t store_failures, log_losses;
    elv_time_us worst_overrun;
    uint32_t n_clients, n_joined, n_uploads;
    uint64_t log_bytes;
    uint32_t version, round;
    bool round_open;
    bool over, target_reached;
    uint32_t best_version;
    double best_accuracy;            /* negative: never evaluated */
    int32_t value_bits, weight_bits; /* the scales of the sums */
    uint32_t weight_cap;
    uint8_t model[32];          /* digest of the version */
    uint64_t evaluations;       /* that clients made because they were asked for nothing else */
    uint64_t updates_discarded; /* of those refused, by the policy */
    uint32_t wanted;            /* updates the open round waits for; 0: no number in particular */
    uint64_t lapsed;            /* clients that were silent past the time of their own work */
};

struct elv_lane { /* one COMPUTE at a time */
    uint32_t id;  /* 0: free */
    enum elv_server_work work;
    bool verified_last;
};

struct elv_server { /* read freely; written only by server/ */
    struct elv_server_cfg cfg;
    const struct elv_job *job;
    struct elv_policies policies;
    struct elv_sync_cfg sync_cfg;
    void *sync_state;
    struct elv_scales scales;
    struct elv_disk disk;
    struct elv_rec_run run;
    uint8_t *manifest;
    size_t manifest_len;
    uint8_t manifest_digest[8];

    elv_time_us now;
    bool step_puts;       /* this step changes records */
    uint32_t last_id;     /* of STORE and COMPUTE actions */
    uint32_t step_store;  /* the id this step's transaction will have; 0: none asked for */
    uint32_t first_store; /* the STORE that makes the fresh state; 0: it is durable */
    bool fresh;           /* nothing stored yet */
    bool settled;         /* the first step has set the clocks */
    bool stopping;
    struct elv_rec_head head;
    uint32_t over_store;    /* the STORE that makes the end durable; 0: not asked for */
    uint32_t stop_store;    /* after which an orderly stop ends */
    bool over;              /* durable */
    bool ended;             /* END was returned */
    elv_time_us retry_at;   /* when what failed to be stored is stored again */
    elv_time_us clock_at;   /* when the open round's elapsed time is stored next */
    uint64_t elapsed;       /* restored; used up by the first step */
    double learning_rate;   /* of head.version */
    elv_time_us round_took; /* the last one: what pollers should expect; 0: unknown */

    struct elv_roster roster;
    struct elv_uploads uploads;
    bool log_lost;      /* its length must be measured again */
    uint32_t log_store; /* when this STORE is through; 0: not asked for yet */
    uint32_t log_drop;  /* no longer of use: goes with the next STORE that ends or opens a round */
    uint32_t
        log_before; /* a stream's log and its void_below, as the disk has them until the STORE */
    uint32_t void_before; /* that turns to another is through; 0: it is */
    bool log_stands;      /* that STORE failed, and is not under way again */
    uint32_t log_left;    /* left behind by a process that died; 0: none */
    struct elv_round round;
    struct elv_counted *counted; /* [clients_max] of the open round of a stream, by arrival */
    struct elv_row_queue wants;  /* clients that want work of their own */
    bool head_due;               /* this step handed out work: the head goes with it */
    bool hand_again;             /* there may be more to hand out */
    elv_time_us lapse_at;        /* when somebody's own work is over; ELV_NEVER */
    elv_time_us run_began;       /* on this clock, had the run never stopped */
    uint64_t run_us;             /* restored; used up by the first step */
    struct elv_kepts kept;
    struct elv_closed closed; /* the last one that made a version */
    uint32_t version_store;   /* the STORE that makes head.version durable; 0: it is, or failed */
    bool version_failed;      /* and must be stored again */
    struct elv_answers answers;
    struct elv_broadcast cast;
    uint32_t n_to_notify, notify_from; /* rows left to tell, where to go on */
    elv_time_us notify_at;
    uint32_t n_retries; /* in a row that stored nothing */
    uint32_t n_unsaved; /* decisions whose STORE failed: to be stored again */
    uint32_t n_unmixed; /* times in a row that an older version could not be read */

    struct elv_lane lane, eval_lane;
    struct elv_unpack unpack;
    struct elv_verify verify;
    struct elv_fold fold;
    struct elv_refold refold;
    struct elv_make make;
    bool must_refold;
    float *flat;   /* [n_params] for initial values; NULL unless layers stay on the devices */
    bool eval_due; /* the published version is to be evaluated */
    uint32_t eval_version;           /* being evaluated */
    struct elv_rec_version eval_rec; /* its record */
    const float *eval_on;            /* what a worker reads; NULL: none does */

    uint8_t *text; /* bodies of this step's actions */
    size_t text_used;
    uint8_t *model_head; /* head of the model file being stored */
    size_t model_head_len;
    struct elv_server_stats stats;
    struct elv_notes notes;
};

/* Bytes `elv_server_init` needs. 0: the job's policies or limits are not valid. */
size_t elv_server_mem(const struct elv_server_cfg *cfg);

/* Keeps `mem`, aligned to ELV_ARENA_ALIGN, for as long as the server is used; there is nothing to
 * free. Reads the disk. ELV_ERR_SPACE: `len` is below `elv_server_mem`. ELV_ERR_ARG: the
 * configuration is not valid. ELV_ERR_MISMATCH: the state belongs to another job, seed or model.
 * ELV_ERR_VERSION: it is of a newer schema. ELV_ERR_FORMAT, ELV_ERR_IO: it cannot be read. */
enum elv_err elv_server_init(struct elv_server *s, const struct elv_server_cfg *cfg, void *mem,
                             size_t len);

struct elv_node elv_server_node(struct elv_server *s);

/* Up to date after each step. */
const struct elv_server_stats *elv_server_stats(const struct elv_server *s);

/* The published model: f32 [n_shared], until the next step. */
const float *elv_server_model(const struct elv_server *s);

#endif
