/* SPDX-License-Identifier: Apache-2.0 */
/* server/make.h - making the next version from the sums; a work done in slices on any thread. */
#ifndef ELV_SERVER_MAKE_H
#define ELV_SERVER_MAKE_H

#include "../common/port.h"
#include "broadcast.h"
#include "kept.h"
#include "policies.h"

enum elv_make_phase {
    ELV_MAKE_MIX,    /* sums of updates -> sums of what is between w and the clients' models */
    ELV_MAKE_RULE,   /* sums -> w; the sums become zero */
    ELV_MAKE_DELTA,  /* w - b -> next */
    ELV_MAKE_PLAN,   /* the codec looks through next */
    ELV_MAKE_STEP,   /* next -> encoded step */
    ELV_MAKE_ADD,    /* b + decoded step -> next */
    ELV_MAKE_DIGEST, /* of next */
    ELV_MAKE_DONE,
};

/* A version that updates were made from, and what they weigh together. */
struct elv_make_base {
    struct elv_kept kept;
    uint64_t weight;
};

struct elv_make {
    const struct elv_job *job;
    const struct elv_rule *rule;
    const struct elv_kernels *kernels;
    const struct elv_squeeze *squeeze; /* borrowed; deflates step chunks. NULL: nothing does */
    struct elv_broadcast *cast;
    uint32_t version; /* being made */
    const struct elv_disk *disk;
    int value_bits;
    struct elv_make_base bases[ELV_KEPT_CAP]; /* where models are mixed; n_bases 0: they are not */
    uint32_t n_bases;
    double gain;      /* sum * gain is the step */
    double mean_gain; /* sum * mean_gain is the weighted mean of the updates */
    enum elv_make_phase phase;
    uint32_t at, index; /* coordinate and chunk the phase goes on with */
    double step_norm2;  /* squared L2 norm of the step, so far */
    struct elv_step *step;
    struct elv_codec_arg arg;                /* of the step; its seed is the version's own */
    struct elv_codec_plan plan;              /* arg.plan */
    struct elv_decoder decoder;              /* of chunk `index`, in ADD */
    uint8_t inflated[ELV_CHUNK_PAYLOAD_MAX]; /* what it reads, when the chunk is deflated */
    struct elv_sha256 sha;
    struct elv_body_digest digest;
    struct elv_rec_version rec; /* out: digests, step, master */
    double mean_norm2;          /* out: squared L2 norm of that mean */
};

/* Between start and the end nobody else touches cast's w, next, sum, rule and the step's place. */
void elv_make_start(struct elv_make *m);
/* ELV_ERR_BUSY: call again. ELV_ERR_RANGE: the model stopped being finite. */
enum elv_err elv_make_run(struct elv_make *m, uint32_t budget);
/* After ELV_OK: `next` becomes the published model. */
void elv_make_publish(struct elv_make *m);

#endif
