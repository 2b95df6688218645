/* SPDX-License-Identifier: Apache-2.0 */
/* client/residual.h - error feedback: what was learnt and not yet sent.
 *
 * A codec that loses what it rounds away is told about it the next time: the vector that is encoded
 * is the update plus the residual, and the residual is what the server did not get of it. It moves
 * only when the server has decided. While an assignment is undecided the device keeps vector and
 * old residual side by side. Accepted: residual = vector - decode(what was sent). Refused or late:
 * residual = vector if the version it was trained from is at most `age_max` versions old when the
 * client learns of it, else it stays as it was. Its L2 norm is at most ELV_RESIDUAL_CAP times that
 * of the last vector accepted (before the first: of the update in the vector), so that refusals in
 * a row do not heap up what is stale; what an accepted vector leaves over is shorter than that
 * anyway.
 *
 * Momentum correction: u = momentum * u + update is accumulated in place of the update, and u is
 * forgotten at the coordinates that were sent. The old u is kept until the decision, too; the new
 * one follows from vector and residual, so it needs no memory of its own.
 *
 * Sources: Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient Compression
 * Schemes", ICML 2019; Lin et al., "Deep Gradient Compression", ICLR 2018, sections 3.1 and 3.2. */
#ifndef ELV_CLIENT_RESIDUAL_H
#define ELV_CLIENT_RESIDUAL_H

#include "../common/msg.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_RESIDUAL_CAP 4.0

struct elv_residual_cfg {
    enum elv_feedback kind; /* NONE: there is no residual, and nothing below has a meaning */
    uint32_t n;             /* shared coordinates */
    void *values;           /* f32 or binary16 [n]; need not be cleared */
    float *velocity;        /* f32 [n]; NULL: no momentum correction */
    float momentum;
    uint32_t age_max;
};

enum elv_vector_state {
    ELV_VECTOR_NONE,      /* there is no vector, or it is done with */
    ELV_VECTOR_UNDECIDED, /* it is what is being sent */
    ELV_VECTOR_LATE,      /* it does not count; how old it is the next version heard of tells */
    ELV_VECTOR_KEPT,      /* it is to become the residual, whole, */
    ELV_VECTOR_ACCEPTED,  /* or but for what was sent */
};

/* What brings a residual back after a restart, beside values, velocity and, unless the state is
 * NONE, the vector. After KEPT or ACCEPTED settling has to begin again from all three as they were;
 * values and velocity change only while `elv_settle_run` runs. */
struct elv_residual_saved {
    bool held; /* false: all zero, whatever values and velocity say */
    enum elv_vector_state vector;
    bool sparse; /* the vector's codec sends few coordinates: momentum correction applies */
    uint32_t assignment, base; /* the vector's, and the version it was trained from */
    double learnt;             /* norm of the update in the vector */
    double sent;               /* norm of the last vector accepted; 0: none yet */
};

struct elv_residual {
    struct elv_residual_cfg cfg; /* borrowed memory; see above */
    struct elv_residual_saved saved;
};

/* Bytes of a coordinate: 4, 2 or 0. */
size_t elv_residual_size(enum elv_feedback kind);
/* Whether updates of this codec take part: only those that lose something, and always the same. */
bool elv_residual_helps(const struct elv_codec_choice *codec);

/* All zero, without touching the memory. */
void elv_residual_init(struct elv_residual *r, const struct elv_residual_cfg *cfg);

/* v[i] += residual + momentum * velocity of coordinate first + i. `v` f32 [n] */
void elv_residual_add(const struct elv_residual *r, uint32_t first, float *v, uint32_t n);

/* The vector is made, from version `base`; `learnt`: norm of the update in it. */
void elv_residual_made(struct elv_residual *r, uint32_t assignment, uint32_t base, double learnt);
/* The server counts it. These three do nothing unless it is undecided. */
void elv_residual_accepted(struct elv_residual *r);
/* It does not, or nobody will learn: the next version heard of tells what becomes of it. */
void elv_residual_late(struct elv_residual *r);
/* It refused it for what it holds, and would again: vector and residual are forgotten. */
void elv_residual_spoilt(struct elv_residual *r);
/* A version is heard of: decides what becomes of a late vector. */
void elv_residual_heard(struct elv_residual *r, uint32_t version);
/* Work on a version begins. If it is the late vector's own that is taken up again, the vector will
 * be made again, too. */
void elv_residual_begins(struct elv_residual *r, uint32_t assignment, uint32_t version);
/* The vector has to become the residual before its memory is used again. */
bool elv_residual_unsettled(const struct elv_residual *r);

/* For client/settle.c: `n` coordinates of the vector times `whole` from `first` on, and what the
 * server got of them (NULL: nothing), become residual and velocity. Adds their squares to
 * `*left2`. */
void elv_residual_move(struct elv_residual *r, uint32_t first, const float *vector, double whole,
                       const float *sent, uint32_t n, double *left2);
void elv_residual_scale(struct elv_residual *r, uint32_t first, uint32_t n, double factor);

#ifdef __cplusplus
}
#endif
#endif
