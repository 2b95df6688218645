/* SPDX-License-Identifier: Apache-2.0 */
#include "client/residual.h"

#include "common/codec.h"
#include "common/half.h"

size_t elv_residual_size(enum elv_feedback kind)
{
    switch (kind) {
    case ELV_FEEDBACK_F32:
        return sizeof(float);
    case ELV_FEEDBACK_F16:
        return sizeof(uint16_t);
    default:
        return 0;
    }
}

bool elv_residual_helps(const struct elv_codec_choice *choice)
{
    const struct elv_codec *codec = elv_codec_by_id(choice->id);
    return codec != NULL && elv_codec_is_biased(codec, choice->param);
}

void elv_residual_init(struct elv_residual *r, const struct elv_residual_cfg *cfg)
{
    *r = (struct elv_residual){.cfg = *cfg};
}

static float get(const struct elv_residual *r, uint32_t i)
{
    if (!r->saved.held)
        return 0.0f;
    return r->cfg.kind == ELV_FEEDBACK_F16 ? elv_half_value(((const uint16_t *)r->cfg.values)[i])
                                           : ((const float *)r->cfg.values)[i];
}

static void put(struct elv_residual *r, uint32_t i, float v)
{
    if (r->cfg.kind == ELV_FEEDBACK_F16)
        ((uint16_t *)r->cfg.values)[i] = elv_half_of(v);
    else
        ((float *)r->cfg.values)[i] = v;
}

static bool has_velocity(const struct elv_residual *r)
{
    return r->cfg.velocity != NULL && r->saved.sparse;
}

void elv_residual_add(const struct elv_residual *r, uint32_t first, float *v, uint32_t n)
{
    if (!r->saved.held)
        return;
    for (uint32_t i = 0; i < n; i++)
        v[i] += get(r, first + i);
    for (uint32_t i = 0; has_velocity(r) && i < n; i++)
        v[i] += r->cfg.momentum * r->cfg.velocity[first + i];
}

/* Decisions. */

void elv_residual_made(struct elv_residual *r, uint32_t assignment, uint32_t base, double learnt)
{
    r->saved.vector = ELV_VECTOR_UNDECIDED;
    r->saved.assignment = assignment;
    r->saved.base = base;
    r->saved.learnt = learnt;
}

static void decide(struct elv_residual *r, enum elv_vector_state becomes)
{
    if (r->saved.vector == ELV_VECTOR_UNDECIDED)
        r->saved.vector = becomes;
}

void elv_residual_accepted(struct elv_residual *r) { decide(r, ELV_VECTOR_ACCEPTED); }

void elv_residual_late(struct elv_residual *r) { decide(r, ELV_VECTOR_LATE); }

void elv_residual_spoilt(struct elv_residual *r)
{
    if (r->saved.vector == ELV_VECTOR_UNDECIDED)
        r->saved.held = false;
    decide(r, ELV_VECTOR_NONE);
}

void elv_residual_heard(struct elv_residual *r, uint32_t version)
{
    struct elv_residual_saved *s = &r->saved;
    if (s->vector != ELV_VECTOR_LATE)
        return;
    const bool young = version >= s->base && version - s->base <= r->cfg.age_max;
    s->vector = young ? ELV_VECTOR_KEPT : ELV_VECTOR_NONE;
}

void elv_residual_begins(struct elv_residual *r, uint32_t assignment, uint32_t version)
{
    if (r->saved.vector == ELV_VECTOR_LATE && r->saved.assignment == assignment)
        r->saved.vector = ELV_VECTOR_NONE;
    elv_residual_heard(r, version);
}

bool elv_residual_unsettled(const struct elv_residual *r)
{
    return r->saved.vector == ELV_VECTOR_KEPT || r->saved.vector == ELV_VECTOR_ACCEPTED;
}

/* Settling. */

void elv_residual_move(struct elv_residual *r, uint32_t first, const float *vector, double whole,
                       const float *sent, uint32_t n, double *left2)
{
    double sum = *left2;
    for (uint32_t i = 0; i < n; i++) {
        const float got = sent != NULL ? sent[i] : 0.0f;
        const float v = (float)((double)vector[i] * whole), left = v - got;
        if (has_velocity(r))
            r->cfg.velocity[first + i] = got != 0.0f ? 0.0f : v - get(r, first + i);
        put(r, first + i, left);
        sum += (double)left * (double)left;
    }
    *left2 = sum;
}

void elv_residual_scale(struct elv_residual *r, uint32_t first, uint32_t n, double factor)
{
    for (uint32_t i = first; i < first + n; i++)
        put(r, i, (float)((double)get(r, i) * factor));
}
