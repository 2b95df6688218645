/* SPDX-License-Identifier: Apache-2.0 */
/* client/client.h - one participant of a federated run.
 *
 * A pure state machine (common/node.h): it reads the manifest, joins, asks for tickets, fetches the
 * model, trains, sends what it learnt and commits it, for as long as the server has work. It never
 * gives up on a server that does not answer; it ends when the job is over (code 0), when it is told
 * to stop (0), or when it is refused for good or the model does not fit its memory (3).
 *
 * The memory is the caller's, all of it, and nothing is allocated: `elv_client_mem` tells
 * beforehand what a run takes. Heavy work is COMPUTE actions (client/work.h); while one is out the
 * node touches nothing the work owns, and a new assignment, the end of the time for this one, STOP
 * or a refusal cancels it. With a disk it goes on where it was killed (persist.h). One thread steps
 * a client; `run` may be another; separate clients are independent. */
#ifndef ELV_CLIENT_CLIENT_H
#define ELV_CLIENT_CLIENT_H

#include "base.h"
#include "control.h"
#include "delta.h"
#include "link.h"
#include "memory.h"
#include "persist.h"
#include "settle.h"
#include "transfer.h"
#include "work.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_CLIENT_OVER 0u /* exit codes of END */
#define ELV_CLIENT_REFUSED 3u
#define ELV_CLIENT_REASONS 32u
#define ELV_CLIENT_BURST 4u

struct elv_client_cfg {
    struct elv_trainer trainer;        /* its `self` is borrowed */
    const struct elv_squeeze *squeeze; /* borrowed; NULL: no deflate, deflated chunks are refused */
    /* Where STORE actions go, for reading back after a restart (persist.h); borrowed. NULL: nothing
     * is kept, and no STORE comes. */
    const struct elv_disk *disk;
    struct elv_text software; /* borrowed; told when joining, e.g. "elver/0.1.0"; up to 64 bytes */
    uint64_t boot;            /* random, another one at each start of the process */
    uint64_t jitter_seed;     /* of every random delay */
    uint32_t speed;           /* measured samples per second; 0: unknown */
    const uint8_t *codecs;    /* [n_codecs] numbers of those it can run, borrowed; told when */
    uint32_t n_codecs;        /* joining. 0: all that are built in */
    uint32_t burst;           /* chunks sent per step, 1 to 32; 0: ELV_CLIENT_BURST */
    uint32_t window;          /* chunks in flight at most, 1 to 1024; 0: ELV_WINDOW_MAX */
    uint32_t duty;            /* percent of the time to work, 1 to 100; 0: 100 */
    bool observe;             /* have ticket changes told instead of asking for them */
    bool leave_on_stop;       /* tell the server when stopping, so that it forgets */
    bool once;                /* leave and end with code 0 after one accepted training */
};

enum elv_client_phase {
    ELV_CLIENT_IDLE, /* no assignment */
    ELV_CLIENT_FETCHING,
    ELV_CLIENT_LOADING,
    ELV_CLIENT_EVALUATING,
    ELV_CLIENT_TRAINING,
    ELV_CLIENT_ENCODING,
    ELV_CLIENT_UPLOADING,
    ELV_CLIENT_COMMITTING,
    ELV_CLIENT_LEAVING,
    ELV_CLIENT_ENDED,
};

struct elv_client_stats { /* only ever grow */
    uint64_t requests;    /* all, repeated ones too */
    uint64_t chunks_sent,
        chunks_repeated;           /* chunk requests of either direction, and of these again */
    uint64_t bytes_up, bytes_down; /* chunks as they travel; up: repeats too */
    uint64_t bad_chunks;           /* truncated, foreign or undecodable */
    uint64_t malformed;            /* other answers that made no sense */
    uint64_t relinks;
    uint64_t joins;
    uint64_t assignments, evaluations, trainings; /* begun; finished; finished */
    uint64_t cancelled;                           /* computations cut short */
    uint64_t restored;       /* versions read back from the disk, so not fetched again, */
    uint64_t replayed;       /* chunks of downloads read back, likewise, */
    uint64_t resumed;        /* and finished updates taken up again */
    uint64_t store_failures; /* STOREs that failed; what they were about is not kept */
    uint64_t superseded; /* assignments that ended without a decision: others took their place, */
    uint64_t expired;    /* or their time was up before there was anything to send */
    uint64_t accepted, failed, declined;  /* commits by what they said, once decided */
    uint64_t refused[ELV_CLIENT_REASONS]; /* by enum elv_reason; 0: none given */
};

struct elv_client { /* read what you like, change nothing */
    struct elv_client_cfg cfg;
    struct elv_client_stats stats;
    elv_time_us now;
    struct elv_rng rng;
    uint32_t last_id;
    uint32_t exit_code; /* ENDED: and why, for a refusal */
    enum elv_reason exit_reason;

    void *mem;
    size_t mem_len;
    struct elv_arena fixed; /* the block, cut as far as all runs share it */
    struct elv_memory memory;

    /* The run. */
    bool prepared; /* manifest read, memory planned */
    bool planned;  /* the memory stands as `manifest_digest` wants it */
    bool unfit;    /* the model does not fit; only this is still told */
    bool joined;
    struct elv_manifest manifest; /* without its texts */
    uint8_t manifest_digest[8];
    struct elv_model model;
    uint32_t number;  /* the client number */
    uint32_t samples; /* local examples */
    struct elv_pack pack;
    struct elv_base base;

    /* The server. */
    struct elv_control control;
    struct elv_link link;
    struct elv_transfer transfer;
    elv_time_us poll_us;     /* when to ask for the ticket */
    elv_time_us poll_min_us; /* the server does not want to be asked before */
    uint32_t n_auth;         /* links refused in a row before the first join */
    uint32_t n_rereads;      /* of the manifest, in a row, that did not help */
    bool notified;           /* an observed change was told: the server does that */
    bool renew;              /* open a new association before asking again */

    /* The assignment. */
    enum elv_client_phase phase;
    struct elv_ticket ticket;
    uint32_t decided;     /* the newest assignment that is done with */
    elv_time_us begun_us; /* when this one was taken up */
    elv_time_us due_us;   /* an update made later is of no use to anybody */
    bool fetching;        /* FETCHING: a plan is made */
    elv_time_us fetch_us; /* FETCHING: not before */
    uint32_t n_fetches;   /* failed ones, of this assignment */
    uint32_t n_bad;       /* useless chunks, of this fetch */
    struct elv_work work;
    struct elv_client_train train;
    struct elv_client_outcome outcome;
    bool train_begun;
    uint32_t train_left;
    elv_time_us train_us; /* spent training */
    struct elv_delta delta;
    struct elv_residual residual; /* outlives assignments */
    struct elv_settling settling;
    struct elv_commit commit;

    struct elv_persist persist;
    bool resuming; /* work of an earlier life is being checked */
    bool left_due; /* the residual has changed and is not stored yet */

    bool stopping;
    elv_time_us stop_us; /* stopping: end then at the latest */
    bool end_told;
};

/* Bytes a client needs for this run, training in batches up to `batch`, exactly. With less it may
 * still take part in a codec that needs no residual. 0: more than this machine can address. */
size_t elv_client_mem(const struct elv_client_cfg *cfg, const struct elv_manifest *manifest,
                      const struct elv_model *model, uint32_t batch);

/* Bytes without which not even a manifest can be read. */
size_t elv_client_mem_min(const struct elv_client_cfg *cfg);

/* Keeps `mem`, aligned to ELV_ARENA_ALIGN, for as long as the client is used; nothing to free. More
 * memory than a run needs is left alone. ELV_ERR_SPACE: `len` is below `elv_client_mem_min`.
 * ELV_ERR_ARG: a number out of the range its comment gives, or no trainer. */
enum elv_err elv_client_init(struct elv_client *c, const struct elv_client_cfg *cfg, void *mem,
                             size_t len);

struct elv_node elv_client_node(struct elv_client *c);

#ifdef __cplusplus
}
#endif
#endif
