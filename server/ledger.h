/* SPDX-License-Identifier: Apache-2.0 */
/* server/ledger.h - the server's durable records as values, and as bytes.
 *
 * Table and file numbers and the layouts are part of the state schema: add, never reuse. A record
 * is little-endian fields after one schema byte; `*_decode` accepts exactly what `*_encode` writes,
 * now or in an earlier release. */
#ifndef ELV_SERVER_LEDGER_H
#define ELV_SERVER_LEDGER_H

#include "../common/msg.h"
#include "job.h"
#include "sizing.h"
#include "sums.h"

enum elv_table {
    ELV_TABLE_META = 1,     /* enum elv_meta */
    ELV_TABLE_CLIENT = 2,   /* by client number */
    ELV_TABLE_ROUND = 3,    /* the open round, by its sequence number */
    ELV_TABLE_ASSIGN = 4,   /* whom it asked, by sequence number << 24 | block */
    ELV_TABLE_DECISION = 5, /* the last one about each client, by client number */
    ELV_TABLE_VERSION = 6,  /* by version */
    ELV_TABLE_OFFER = 7,    /* work of its own that each client was given last, by client number */
    ELV_TABLE_COUNTED = 8,  /* updates that count in the open round of a stream, by arrival from 0;
                               what is there of earlier rounds means nothing */
};

enum elv_meta { ELV_META_RUN = 1, ELV_META_HEAD = 2, ELV_META_CLOCK = 3 };

enum elv_file {
    ELV_FILE_MODEL = 1,  /* the model clients train from, safetensors, by version */
    ELV_FILE_MASTER = 2, /* the model before the broadcast was cut short; only if it differs */
    ELV_FILE_STEP = 3,   /* the encoded step that led to a version: 16-bit length, chunk, ... */
    ELV_FILE_RULE = 4,   /* the aggregation rule's own state: f32 */
};

#define ELV_REC_MAX 768u       /* every record but ASSIGN */
#define ELV_ASSIGN_BLOCK 256u  /* clients in one ASSIGN record */
#define ELV_ASSIGN_HEAD_LEN 9u /* its bytes before the first client */
#define ELV_ASSIGN_ITEM_LEN 16u

/* What the state belongs to; another job's cannot be mistaken for it. */
struct elv_rec_run {
    uint8_t run[ELV_RUN_ID_LEN];
    uint64_t seed;
    uint8_t fingerprint[32];
    uint32_t n_params;
    float bound;
    uint8_t down;
};

struct elv_rec_head {
    uint32_t version;
    uint32_t next_seq;        /* round sequence number */
    uint32_t next_assignment; /* one above every number given out */
    uint32_t n_abandoned;     /* in a row */
    uint32_t best_version;
    double best_accuracy; /* negative: never evaluated */
    bool over;            /* the job has ended with `version` */
    bool reached;         /* because the target was */
    uint32_t surveyed;    /* the last version that the clients were asked to evaluate; 0: none */
    uint32_t log;         /* of a stream: where uploads go; 0: none */
    uint32_t void_below;  /* work of its own with a lower number is void */
};

struct elv_rec_clock { /* how much of its deadline the open round has used */
    uint32_t seq;
    uint64_t elapsed_us;
    uint64_t run_us; /* for how long the server has run, all its lives together; 0: not kept */
};

struct elv_rec_client {
    bool joined, capped;
    uint64_t boot, memory;
    uint32_t speed, samples;
    uint8_t codec;
};

struct elv_rec_round {
    enum elv_what what; /* TRAIN or EVALUATE */
    uint32_t version, assignment, n_asked, n_blocks;
    int32_t weight_bits; /* scale of the weights decided so far */
    uint64_t deadline_us;
    bool stream; /* it asks nobody: clients have work of their own */
};

struct elv_rec_decision {
    uint32_t assignment, seq;
    enum elv_status status;
    enum elv_decision decision; /* ACCEPTED or REFUSED */
    enum elv_reason reason;
    uint32_t weight; /* 0: does not count */
    uint32_t n_chunks;
    uint64_t nonce;
    uint64_t from;  /* its chunks lie at this offset of the round's log or behind */
    uint64_t bytes; /* of its chunks */
    uint32_t samples, seen, steps;
    double loss_sum;
    double factor;      /* the policy's, in (0, 1]; 0: does not count, or of schema 1 */
    double norm2;       /* the update's squared norm; meaningful with a factor, as the rest */
    uint32_t version;   /* the client trained from */
    uint32_t staleness; /* updates that counted since that version was published */
};

struct elv_rec_version {
    uint8_t model[32];
    struct elv_body_ref full;
    struct elv_body_ref step; /* n_chunks 0: none kept */
    uint32_t seq;             /* of the round that made it; 0 for the first version */
    uint32_t n_used;
    uint64_t weight_sum;
    bool master;               /* ELV_FILE_MASTER exists */
    struct elv_eval_sums eval; /* n 0: not evaluated */
};

/* Work of its own. It stands until it is decided, or its time on the run's clock is over. */
struct elv_rec_offer {
    uint32_t assignment, seq, version;
    uint64_t granted_us; /* on the clock that `run_us` keeps */
    struct elv_size size;
};

/* One client's work in an ASSIGN record. */
struct elv_rec_assign {
    uint32_t client;
    struct elv_size size;
};

#define ELV_REC_PAIR(type)                                                                         \
    size_t elv_rec_##type##_encode(const struct elv_rec_##type *r, uint8_t out[ELV_REC_MAX]);      \
    enum elv_err elv_rec_##type##_decode(struct elv_bytes in, struct elv_rec_##type *r)
ELV_REC_PAIR(run);
ELV_REC_PAIR(head);
ELV_REC_PAIR(clock);
ELV_REC_PAIR(client);
ELV_REC_PAIR(round);
ELV_REC_PAIR(version);
ELV_REC_PAIR(offer);

/* The sums a client sent travel with the decision; an `n` of 0: none. */
size_t elv_rec_decision_encode(const struct elv_rec_decision *r, const struct elv_sums *sums,
                               uint8_t out[ELV_REC_MAX]);
enum elv_err elv_rec_decision_decode(struct elv_bytes in, struct elv_rec_decision *r,
                                     struct elv_sums *sums);

/* A decision in ELV_TABLE_COUNTED, and whom it is about. */
size_t elv_rec_counted_encode(uint32_t client, const struct elv_rec_decision *r,
                              const struct elv_sums *sums, uint8_t out[ELV_REC_MAX]);
enum elv_err elv_rec_counted_decode(struct elv_bytes in, uint32_t *client,
                                    struct elv_rec_decision *r, struct elv_sums *sums);

/* The number of an ASSIGN record. */
static inline uint64_t elv_assign_key(uint32_t seq, uint32_t block)
{
    return (uint64_t)seq << 24 | block;
}

/* Writes a block's head; items follow at ELV_ASSIGN_ITEM_LEN each. */
void elv_rec_assign_head(uint8_t *out, uint32_t assignment, uint32_t n);
void elv_rec_assign_item(uint8_t *out, const struct elv_rec_assign *item);
enum elv_err elv_rec_assign_open(struct elv_bytes in, uint32_t *assignment, uint32_t *n);
/* `i` below the `n` that `open` gave. */
void elv_rec_assign_at(struct elv_bytes in, uint32_t i, struct elv_rec_assign *item);

#endif
