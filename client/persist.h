/* SPDX-License-Identifier: Apache-2.0 */
/* client/persist.h - what a client must not lose when it is killed, and how it finds it again.
 *
 * A client with a disk (struct elv_client_cfg) keeps these on it by STORE actions and reads them
 * back when it has read the manifest after a start. Without a disk nothing here happens.
 *
 *     BASE     the version held: version, digest and the vector, f32 [n_params]
 *     LOG      chunks of the body on its way down, each appended as it comes
 *     WORK     the finished update of one assignment: the vector that is encoded, and with it
 *              assignment, nonce, codec and all that the commit says
 *     RESIDUAL, VELOCITY
 *              with error feedback (residual.h): what is left of the assignments up to one that is
 *              named, f32 or binary16 [n_shared], and f32 [n_shared]
 *
 * In this order:
 *
 *     a good chunk came                APPEND LOG
 *     the version stands               FILE BASE, DROP LOG
 *     the update is encoded            FILE WORK
 *     what is left of it is known      FILE VELOCITY, FILE RESIDUAL, UNLINK WORK
 *
 * so that whatever part of it a crash leaves behind is something that was true. Only once WORK is
 * durable the first chunk of the update leaves. Where layers stay on the device BASE is stored
 * before it once more: they are in it, and have learnt. Without error feedback nothing is left, and
 * the last row is UNLINK WORK with the decision, or once other work took its place. Progress within
 * a training is not kept. Everything names the run and the model's shape, and is nothing to a
 * client of another run or shape.
 *
 * After a restart a base that was held need not be fetched, nor a chunk that is in the log. Work is
 * taken up by sending its commit once more, before anything else: the server answers with the
 * decision, the same one if it was decided before, or refuses, as nobody waits for it any more, or
 * says what is missing; then the chunks that are missing are sent, the same bytes under the same
 * nonce. Work of an assignment that the residual speaks for is done with.
 *
 * What it wears off a flash memory, per round: the chunks of the download once (nothing when the
 * version is held already), 4 bytes per parameter for the base when the version changed, 4 bytes
 * per shared parameter for the work, 2 or 4 for the residual, 4 for momentum correction; two syncs,
 * and one for each of the last two. */
#ifndef ELV_CLIENT_PERSIST_H
#define ELV_CLIENT_PERSIST_H

#include "../common/arena.h"
#include "../common/port.h"
#include "base.h"
#include "residual.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of files and logs are a promise: a device's state outlives its software. */
enum elv_persist_file {
    ELV_PERSIST_BASE = 1,
    ELV_PERSIST_WORK = 2,
    ELV_PERSIST_RESIDUAL = 3,
    ELV_PERSIST_VELOCITY = 4,
};
#define ELV_PERSIST_LOG 1u

#define ELV_PERSIST_ACTIONS 7u /* STOREs of one step at most */

/* How it lies there: heads of files, and records of the log. */

#define ELV_PERSIST_HEAD_LEN 56u /* what every head begins with */
#define ELV_PERSIST_BASE_LEN (ELV_PERSIST_HEAD_LEN + 40u)
#define ELV_PERSIST_WORK_MAX (ELV_PERSIST_HEAD_LEN + 40u + ELV_MSG_MAX)
#define ELV_PERSIST_LEFT_LEN (ELV_PERSIST_HEAD_LEN + 18u)
#define ELV_PERSIST_RECORD_LEN 8u /* before the chunk */
#define ELV_PERSIST_RECORD_MAX (ELV_PERSIST_RECORD_LEN + ELV_CHUNK_MAX)

struct elv_persist_owner { /* whose state it is */
    uint8_t run[ELV_RUN_ID_LEN];
    uint8_t fingerprint[32];
};

struct elv_persist_base {
    uint32_t version, n_params;
    uint8_t digest[ELV_SHA256_LEN]; /* of the shared parameters */
};

struct elv_persist_work {
    uint8_t manifest[8];
    uint32_t assignment, round, version, n_shared;
    struct elv_codec_choice up;
    bool feeds_back, sparse;  /* it becomes a residual; see struct elv_residual_saved */
    double learnt;            /* likewise */
    struct elv_commit commit; /* names of the user's sums view the head */
};

struct elv_persist_left { /* RESIDUAL and VELOCITY */
    uint32_t assignment;  /* the last one in it */
    uint32_t n_shared;
    enum elv_feedback kind; /* of VELOCITY: F32 */
    bool held;
    double sent; /* see struct elv_residual_saved */
};

/* All return the head's length. */
size_t elv_persist_base_encode(const struct elv_persist_owner *o, const struct elv_persist_base *b,
                               uint8_t out[ELV_PERSIST_BASE_LEN]);
/* 0: the commit cannot be said. */
size_t elv_persist_work_encode(const struct elv_persist_owner *o, const struct elv_persist_work *w,
                               uint8_t out[ELV_PERSIST_WORK_MAX]);

size_t elv_persist_left_encode(const struct elv_persist_owner *o, enum elv_persist_file file,
                               const struct elv_persist_left *l, uint8_t out[ELV_PERSIST_LEFT_LEN]);

/* `in` starts with a head; `*len` is how long that is. ELV_ERR_MISMATCH: of another owner; any
 * other failure: no such head. */
enum elv_err elv_persist_base_decode(struct elv_bytes in, const struct elv_persist_owner *o,
                                     struct elv_persist_base *b, size_t *len);
enum elv_err elv_persist_work_decode(struct elv_bytes in, const struct elv_persist_owner *o,
                                     struct elv_persist_work *w, size_t *len);

enum elv_err elv_persist_left_decode(struct elv_bytes in, const struct elv_persist_owner *o,
                                     enum elv_persist_file file, struct elv_persist_left *l,
                                     size_t *len);

/* Returns the record's length. `chunk` is at most ELV_CHUNK_MAX. */
size_t elv_persist_record_encode(struct elv_bytes chunk, uint8_t out[ELV_PERSIST_RECORD_MAX]);
/* The chunk of the record that `in` starts with. ELV_ERR_SHORT: it is cut off; ELV_ERR_FORMAT:
 * there is none. */
enum elv_err elv_persist_record_decode(struct elv_bytes in, struct elv_bytes *chunk);

/* The state machine's part. */

enum elv_persist_pass { /* of RESTORE, in order; private to persist_restore.c */
                        ELV_RESTORE_BASE,
                        ELV_RESTORE_BASE_VALUES,
                        ELV_RESTORE_BASE_DIGEST,
                        ELV_RESTORE_RESIDUAL,
                        ELV_RESTORE_RESIDUAL_VALUES,
                        ELV_RESTORE_VELOCITY,
                        ELV_RESTORE_VELOCITY_VALUES,
                        ELV_RESTORE_WORK,
                        ELV_RESTORE_WORK_VALUES,
                        ELV_RESTORE_LOG,
                        ELV_RESTORE_DONE,
};

struct elv_persist {
    const struct elv_disk *disk; /* borrowed; NULL: nothing is kept */
    struct elv_persist_owner owner;
    uint8_t *record;       /* [ELV_PERSIST_RECORD_MAX] */
    uint8_t *base_head;    /* [ELV_PERSIST_BASE_LEN] */
    uint8_t *work_head;    /* [ELV_PERSIST_WORK_MAX]; names in the commit may view it */
    uint8_t *left_head[2]; /* [ELV_PERSIST_LEFT_LEN] of RESIDUAL and VELOCITY */

    /* To be stored with this step. */
    size_t append_len; /* of `record` */
    struct elv_store_op base, work, residual, velocity;
    bool put_base, put_work, put_residual, put_velocity, drop_log, drop_work;

    /* What is there, or about to be. */
    uint32_t pending;  /* id of a STORE that reads the vectors; 0: none */
    bool pending_drop; /* it drops the log */
    bool work_kept;
    bool work_over; /* there is no more to send of it */
    uint64_t log_len;

    /* RESTORE and REPLAY. */
    bool restore_due;
    enum elv_persist_pass at;
    uint64_t done; /* of the pass, or of the log */
    uint32_t skipped;
    struct elv_sha256 sha;
    struct elv_persist_base found_base;
    struct elv_persist_work found_work;
    struct elv_persist_left found_left;
    size_t found_head; /* length of the head of the file being read */
    bool has_base, has_work, has_left;
    struct elv_bitmap have; /* REPLAY: the transfer's words */
    uint32_t n_replayed;
};

/* Cuts the buffers, nothing when `disk` is NULL. */
void elv_persist_layout(struct elv_persist *p, const struct elv_disk *disk, struct elv_arena *a);

/* Another run begins, or the same anew: what is on the disk is to be looked at. */
void elv_persist_begin(struct elv_persist *p, const struct elv_manifest *m);

/* A good chunk came. `bytes` is copied. */
void elv_persist_chunk(struct elv_persist *p, struct elv_bytes chunk);
/* Chunks that came so far are no good. */
void elv_persist_spoilt(struct elv_persist *p);
/* `values`, borrowed until STORED, is the version held, and the log is of no use any more. */
void elv_persist_base(struct elv_persist *p, const struct elv_persist_base *b, const float *values);
/* The update is ready; `values` is borrowed until STORED. */
void elv_persist_work(struct elv_persist *p, const struct elv_persist_work *w, const float *values);
/* Work that was found is taken up. */
void elv_persist_taken_up(struct elv_persist *p);
/* It is decided, refused or replaced. */
void elv_persist_over(struct elv_persist *p);
/* What is left of it is in `r`, whose memory is borrowed until STORED. */
void elv_persist_left(struct elv_persist *p, const struct elv_residual *r);
/* Nobody needs the vector of work that is over any more. */
void elv_persist_forget(struct elv_persist *p);
/* Work lies there for the next start. The node ends, and leaves it there. */
bool elv_persist_parks(const struct elv_persist *p);
void elv_persist_park(struct elv_persist *p);

/* Emits what is to be stored; `id` is the next free id, and taken when it returns true. */
bool elv_persist_emit(struct elv_persist *p, uint32_t id, struct elv_actions *out);
/* STORED. False: not ours. */
bool elv_persist_stored(struct elv_persist *p, uint32_t id, enum elv_err err);
/* A download of chunks that `have` is for begins; true: there is a log that REPLAY is to read. */
bool elv_persist_replays(struct elv_persist *p, const struct elv_bitmap *have);
/* Vectors are being read by the store, or the log is being dropped: touch neither. */
bool elv_persist_waits(const struct elv_persist *p);

/* What is kept, from `run`. */

struct elv_restore_into { /* all borrowed */
    const struct elv_model *model;
    float *base;             /* f32 [n_params] */
    float *fresh;            /* f32 [n_params]; NULL: no work is wanted */
    const uint8_t *manifest; /* [8] the digest; work of another is left alone */
    /* Where a residual goes, and of which kind it is; NULL: none is wanted. Its state is the
     * caller's to change. */
    const struct elv_residual *residual;
};

/* RESTORE: reads what is whole and ours; work into `fresh`. Afterwards `has_base`, `has_left` and
 * `has_work` say what was found, and `log_len` is not 0 when there is a log.
 * ELV_ERR_BUSY: there is more. */
enum elv_err elv_persist_restore(struct elv_persist *p, const struct elv_restore_into *into,
                                 uint32_t budget);

/* REPLAY: gives chunks of the log to the base, which has a plan, and marks them in `p->have`, which
 * the caller has set up. */
enum elv_err elv_persist_replay(struct elv_persist *p, struct elv_base *base, uint32_t budget);

#ifdef __cplusplus
}
#endif
#endif
