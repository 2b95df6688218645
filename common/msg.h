/* SPDX-License-Identifier: Apache-2.0 */
/* common/msg.h - control messages: what client and server tell each other besides chunks.
 *
 * CBOR maps with integer keys in deterministic encoding (RFC 8949, section 4.2.1); the CDDL and the
 * keys are in common/WIRE.md. Unknown keys are skipped. Encoders write at most `cap` bytes and on
 * ELV_ERR_SPACE report in `*len` what would have sufficed; what the decoder would refuse is
 * ELV_ERR_RANGE there too. Decoders accept exactly one message and nothing after it, check every
 * range named here, write `*m` only on ELV_OK, and leave views into the input. Fields a message
 * does not carry, because others say they have no meaning, decode as zero. All times are relative
 * milliseconds. */
#ifndef ELV_COMMON_MSG_H
#define ELV_COMMON_MSG_H

#include <stdbool.h>

#include "chunk.h"
#include "cursor.h"
#include "model.h"
#include "node.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_WIRE_MIN 1u
#define ELV_WIRE_MAX 1u

#define ELV_NAME_MAX 64u /* an identity; jobs: ELV_JOB_NAME_MAX; [A-Za-z0-9._:-] */
#define ELV_JOB_NAME_MAX 32u
#define ELV_RUN_ID_LEN 16u
#define ELV_TEXT_MAX 1024u /* the longest text in any message */
#define ELV_MSG_MAX 1024u  /* every message but the manifest */
#define ELV_MANIFEST_MAX 8192u
#define ELV_CODECS_MAX 8u   /* in a job's list */
#define ELV_STEPS_MAX 8u    /* steps offered in one ticket */
#define ELV_CLASSES_MAX 32u /* with per-class evaluation sums */
#define ELV_USER_SUMS_MAX 8u
#define ELV_USER_SUM_NAME_MAX 16u

/* A length-counted, not terminated text; borrowed. */
struct elv_text {
    const char *at;
    size_t len;
};

/* True for 1..max characters of the identity alphabet. */
bool elv_name_ok(struct elv_text name, size_t max);

struct elv_codec_choice {
    uint8_t id;  /* enum elv_codec_id */
    float param; /* 0 when the codec has none; finite */
};

enum elv_arithmetic { ELV_ARITHMETIC_FAST = 1, ELV_ARITHMETIC_REFERENCE = 2 };
enum elv_optimizer { ELV_OPT_SGD = 1 }; /* with momentum and weight decay, both may be 0 */

/* What a client keeps of what a lossy codec left out of its updates; see client/residual.h. */
enum elv_feedback { ELV_FEEDBACK_NONE = 0, ELV_FEEDBACK_F32 = 1, ELV_FEEDBACK_F16 = 2 };

/* GET /j/{job}: what every client of a run trains by. */
struct elv_manifest {
    uint32_t wire_min, wire_max;
    uint8_t run[ELV_RUN_ID_LEN];
    uint64_t seed;
    struct elv_text job;
    struct elv_text input; /* model text, as in the job file */
    struct elv_text layers;
    uint32_t n_params;       /* shared coordinates; the wire counts these */
    uint8_t fingerprint[32]; /* of the model's shape */
    enum elv_loss loss;
    enum elv_optimizer optimizer;
    float momentum, weight_decay;
    float scale, mean, std;    /* x = (raw * scale - mean) / std; std > 0 */
    struct elv_text partition; /* as in the job file; empty: the device's own data */
    float holdout;             /* share of local examples kept for evaluation, [0, 1) */
    enum elv_arithmetic arithmetic;
    struct elv_codec_choice up[ELV_CODECS_MAX];
    uint32_t n_up;
    struct elv_codec_choice down;
    bool deflate; /* senders may deflate chunks; receivers always understand it */
    float bound;  /* R: a decoded value beyond it refuses the update; > 0 */
    float clip;   /* L2 norm of an update as it is decoded, enforced by the client; 0: none */
    uint32_t weight_max;
    float proximal;             /* mu: mu/2 * |w - base|^2 is added to the local loss; 0: none */
    enum elv_feedback feedback; /* how the residual is kept; NONE: the next two are 0, too */
    uint32_t feedback_age;      /* versions a refused update may be old and still be kept */
    float momentum_correction;  /* [0, 1); 0: none */
};

struct elv_join {
    uint32_t wire_min, wire_max;
    struct elv_text software;       /* "elver/0.1.0" */
    uint64_t boot;                  /* random, per start of the process */
    uint64_t memory;                /* bytes for training; 0: unknown */
    uint32_t speed;                 /* measured training samples per second; 0: unknown */
    uint32_t samples;               /* local examples */
    uint8_t codecs[ELV_CODECS_MAX]; /* ids it can encode, best first */
    uint32_t n_codecs;
    uint8_t manifest[8]; /* digest of the manifest it read: SHA-256 cut to 8 */
};

/* Why the server says no. Numbers are part of the wire: add, never reuse. */
enum elv_reason {
    ELV_REASON_NONE = 0,
    ELV_REASON_WIRE_VERSION = 1,  /* no common wire version */
    ELV_REASON_SOFTWARE_OLD = 2,  /* below the job's minimum client version */
    ELV_REASON_NO_CODEC = 3,      /* none of the job's codecs can be encoded */
    ELV_REASON_MODEL_TOO_BIG = 4, /* the model does not fit the device */
    ELV_REASON_MANIFEST_OLD = 5,  /* trained by another manifest: read it again */
    ELV_REASON_FULL = 6,          /* no room for another client or upload now */
    ELV_REASON_REVOKED = 7,
    ELV_REASON_NOT_JOINED = 8, /* join first */
    ELV_REASON_UNKNOWN_ASSIGNMENT = 9,
    ELV_REASON_SUPERSEDED = 10,   /* a newer assignment exists */
    ELV_REASON_ROUND_CLOSED = 11, /* the version closed without it */
    ELV_REASON_DUPLICATE = 12,    /* already decided */
    ELV_REASON_MALFORMED = 13,
    ELV_REASON_WRONG_SHAPE = 14,  /* ranges do not tile the model */
    ELV_REASON_OUT_OF_RANGE = 15, /* a value beyond the bound */
    ELV_REASON_NOT_FINITE = 16,
    ELV_REASON_OVER_NORM = 17,
    ELV_REASON_DIGEST = 18,   /* digest differs from the chunks received */
    ELV_REASON_CODEC = 19,    /* not the codec assigned */
    ELV_REASON_QUOTA = 20,    /* the upload log or this client's share is full */
    ELV_REASON_NO_DATA = 21,  /* client: nothing to train on */
    ELV_REASON_BUSY = 22,     /* client declines: no time or energy now */
    ELV_REASON_TRAINER = 23,  /* client: the trainer failed */
    ELV_REASON_STOPPING = 24, /* client: it is being shut down */
    ELV_REASON_STORAGE = 25,  /* server: the disk refused; try again */
    ELV_REASON_POLICY = 26,   /* the synchronisation policy has no use for it */
    ELV_REASON_JOB_OVER = 27,
    ELV_REASON_NO_SUCH_JOB = 28,
    ELV_REASON_PATH = 29, /* client: small messages get through, chunks do not */
};
const char *elv_reason_text(enum elv_reason reason); /* one word, snake_case, for logs */

/* Body of every 4.xx and 5.xx answer. */
struct elv_refusal {
    enum elv_reason reason;
    uint32_t retry_ms; /* 0: do not retry the same */
};

struct elv_joined {
    uint32_t client;    /* the client number */
    uint32_t wire;      /* version to use */
    uint32_t window;    /* chunk requests granted in flight, 1 or more */
    uint32_t jitter_ms; /* wait up to this long at random before the first ticket */
    uint8_t codec;      /* the first of the job's list that the client can encode */
};

enum elv_what { ELV_WHAT_WAIT = 0, ELV_WHAT_TRAIN = 1, ELV_WHAT_EVALUATE = 2, ELV_WHAT_STOP = 3 };

struct elv_body_ref {
    uint8_t digest[ELV_BODY_DIGEST_LEN];
    uint32_t n_chunks;
    uint8_t codec;
};

/* GET /j/{job}/t */
struct elv_ticket {
    enum elv_what what;
    uint32_t poll_ms; /* ask again no sooner than this */
    uint32_t window;
    uint8_t manifest[8];
    /* The rest is meaningful for TRAIN and EVALUATE only, what trains for TRAIN only. */
    uint32_t assignment; /* 1 or more */
    uint32_t round;      /* keys the random numbers of local training */
    uint32_t version;
    uint8_t model[32];        /* SHA-256 of the little-endian f32 vector of shared parameters */
    struct elv_body_ref full; /* n_chunks and codec 0: not served, every client makes it */
    struct elv_body_ref step[ELV_STEPS_MAX]; /* step[i] leads to version - i */
    uint32_t n_steps;
    uint32_t local_epochs; /* one of the two is 0 */
    uint32_t local_steps;
    uint32_t batch;
    float learning_rate;
    struct elv_codec_choice up;
    uint32_t deadline_ms; /* remaining, from the moment of receipt; 0: there is none */
    uint32_t newest;      /* WAIT and STOP: the version that is served; 0 also when not told */
};

/* PUT of an update chunk is answered with this, or with a refusal. */
struct elv_progress {
    struct elv_missing missing;
    uint32_t window;
};

enum elv_status { ELV_STATUS_DONE = 1, ELV_STATUS_FAILED = 2, ELV_STATUS_DECLINED = 3 };

struct elv_user_sum {
    struct elv_text name;
    double value;
};

/* Sums, never means; over the local evaluation set, with the weights received. */
struct elv_eval_sums {
    uint32_t n;
    double loss;
    uint32_t n_classes; /* 0: no classes */
    /* With classes: support and predicted each add up to n; correct is at most either. */
    uint32_t support[ELV_CLASSES_MAX], predicted[ELV_CLASSES_MAX], correct[ELV_CLASSES_MAX];
};

struct elv_commit {
    enum elv_status status;
    enum elv_reason reason; /* for FAILED and DECLINED */
    uint64_t nonce;         /* the attempt; first byte on the wire of a chunk's tag is the lowest */
    uint32_t samples;       /* distinct local examples */
    uint32_t seen;          /* examples processed, repeats counted */
    uint32_t steps;
    double loss_sum;   /* over `seen` */
    uint32_t n_chunks; /* 0 for evaluation, FAILED and DECLINED */
    uint8_t digest[ELV_BODY_DIGEST_LEN];
    uint32_t compute_ms; /* the client's own measure of training time; 0: not measured */
    struct elv_eval_sums eval;
    struct elv_user_sum user[ELV_USER_SUMS_MAX];
    uint32_t n_user;
};

enum elv_decision { ELV_ACCEPTED = 1, ELV_MISSING = 2, ELV_REFUSED = 3 };

struct elv_verdict {
    enum elv_decision decision;
    enum elv_reason reason;     /* REFUSED */
    struct elv_missing missing; /* MISSING */
};

#define ELV_MSG_PAIR(type)                                                                         \
    enum elv_err elv_##type##_encode(const struct elv_##type *m, uint8_t *out, size_t cap,         \
                                     size_t *len);                                                 \
    enum elv_err elv_##type##_decode(struct elv_bytes in, struct elv_##type *m)
ELV_MSG_PAIR(manifest);
ELV_MSG_PAIR(join);
ELV_MSG_PAIR(joined);
ELV_MSG_PAIR(refusal);
ELV_MSG_PAIR(ticket);
ELV_MSG_PAIR(progress);
ELV_MSG_PAIR(commit);
ELV_MSG_PAIR(verdict);

/* Uri-Path of a request, as text without a leading slash, e.g. "j/fashion/u/7/12". */
#define ELV_PATH_MAX 96u
enum elv_method { ELV_GET = 1, ELV_POST = 2, ELV_PUT = 3, ELV_DELETE = 4 }; /* CoAP's numbers */
enum elv_err elv_path_encode(const struct elv_request *r, struct elv_text job,
                             char out[ELV_PATH_MAX], size_t *len, enum elv_method *method);
/* `*job` views `path`. ELV_ERR_MISSING: no such resource; ELV_ERR_UNSUPPORTED: not that method. */
enum elv_err elv_path_decode(enum elv_method method, struct elv_text path, struct elv_text *job,
                             struct elv_request *r);

#ifdef __cplusplus
}
#endif
#endif
