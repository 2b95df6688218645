/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "common/assert.h"
#include "common/chunk.h"
#include "common/codec.h"
#include "common/exact.h"
#include "common/rng.h"
#include "common/sha256.h"
#include "ports/sim/lab/swarm_parts.h"
#include "ports/sim/queue.h"

float *elv_swarm_vector(struct elv_swarm *s)
{
    struct elv_swarm_vectors *v = &s->vectors;
    return v->n > 0 ? v->at[--v->n] : elv_sim_alloc((size_t)elv_swarm_n_params(s) * sizeof(float));
}

void elv_swarm_give_vector(struct elv_swarm *s, float *at)
{
    struct elv_swarm_vectors *v = &s->vectors;
    if (v->n == v->cap) {
        v->cap = v->cap == 0 ? 16 : v->cap * 2;
        v->at = elv_sim_grow(v->at, v->cap, sizeof *v->at);
    }
    v->at[v->n++] = at;
}

static uint32_t take(struct elv_swarm_versions *v)
{
    if (v->free != ELV_SWARM_NONE) {
        const uint32_t i = v->free;
        v->free = v->at[i].next;
        return i;
    }
    if (v->n == v->cap) {
        v->cap = v->cap == 0 ? 16 : v->cap * 2;
        v->at = elv_sim_grow(v->at, v->cap, sizeof *v->at);
    }
    return v->n++;
}

void elv_swarm_release(struct elv_swarm *s, uint32_t version)
{
    struct elv_swarm_version *v = &s->versions.at[version];
    ELV_ASSERT(v->refs > 0);
    if (--v->refs > 0)
        return;
    if (v->w)
        elv_swarm_give_vector(s, v->w);
    v->w = NULL;
    v->next = s->versions.free;
    s->versions.free = version;
}

void elv_swarm_mix(struct elv_swarm *s, uint32_t version, uint32_t weight)
{
    struct elv_swarm_version *v = &s->versions.at[version];
    v->refs += v->mixed == 0;
    v->mixed += weight;
}

static enum elv_err mix_version(struct elv_swarm *s, const struct elv_swarm_version *v)
{
    const float *w = elv_swarm_master(s);
    const double most = ldexp(2.0, 30 - s->scales.value_bits); /* 2^30 is the bound, or more */
    const double scale = ldexp((double)v->mixed, s->scales.value_bits);
    for (uint32_t i = 0; i < elv_swarm_n_params(s); i++) {
        const double off = (double)v->w[i] - (double)w[i];
        if (!(off >= -most && off <= most))
            return ELV_ERR_RANGE;
        s->round.sum[i] += (int64_t)rint(off * scale);
    }
    return ELV_OK;
}

enum elv_err elv_swarm_mix_all(struct elv_swarm *s)
{
    enum elv_err err = ELV_OK;
    for (uint32_t i = 0; i < s->versions.n && err == ELV_OK; i++)
        if (s->versions.at[i].mixed > 0)
            err = mix_version(s, &s->versions.at[i]);
    return err;
}

void elv_swarm_mix_nothing(struct elv_swarm *s)
{
    for (uint32_t i = 0; i < s->versions.n; i++)
        if (s->versions.at[i].mixed > 0) {
            s->versions.at[i].mixed = 0;
            elv_swarm_release(s, i);
        }
}

static void digest(const struct elv_swarm *s, const float *w, uint8_t out[32])
{
    struct elv_sha256 sha;
    if (w == NULL)
        return;
    elv_sha256_init(&sha); /* little-endian machines only, as all servers are */
    elv_sha256_update(&sha, (const uint8_t *)w, (size_t)elv_swarm_n_params(s) * sizeof *w);
    elv_sha256_final(&sha, out);
}

void elv_swarm_first_version(struct elv_swarm *s)
{
    const uint32_t i = s->versions.newest = take(&s->versions);
    s->rate = (double)s->job->learning_rate;
    s->versions.at[i] = (struct elv_swarm_version){.refs = 1, .rate = s->rate};
    if (elv_swarm_n_params(s) == 0)
        return;
    s->versions.at[i].w = elv_swarm_vector(s);
    s->learner->init(s->learner->self, s->versions.at[i].w);
    digest(s, s->versions.at[i].w, s->sum.model);
}

/* What clients get of the master model `w`: the version before and a step that the codec may round,
 * as server/make.c makes it. ELV_ERR_RANGE: not finite. */
static enum elv_err broadcast(struct elv_swarm *s, const float *w, float *out)
{
    const struct elv_codec *codec = elv_codec_by_id(s->job->down.id);
    const float *b = s->versions.at[s->versions.newest].w;
    const uint32_t n = elv_swarm_n_params(s);
    struct elv_rng dice = elv_rng_of((struct elv_rng_key){
        .seed = s->cfg.seed, .round = s->round.version + 1, .purpose = ELV_RNG_CODEC});
    struct elv_codec_plan plan;
    struct elv_codec_arg arg = {.param = s->job->down.param, .seed = elv_rng_u64(&dice)};
    uint8_t payload[ELV_CHUNK_PAYLOAD_MAX];
    enum elv_err err = ELV_OK;
    s->step = 0;
    s->cfg.kernels->sub(s->mean, w, b, n);
    elv_codec_plan(codec, &plan, s->mean, n, &arg);
    for (uint32_t at = 0, index = 0, count = 0; err == ELV_OK && at < n; at += count, index++) {
        size_t len = 0;
        err = codec->encode(s->mean, n, at, index, &arg, payload, sizeof payload, &len, &count);
        if (err == ELV_OK)
            err = elv_codec_decode(codec, (struct elv_bytes){payload, len}, count, out + at);
        for (uint32_t i = at; err == ELV_OK && i < at + count; i++)
            out[i] = b[i] + out[i];
        s->step += ELV_CHUNK_HEAD_LEN + len;
    }
    return err == ELV_OK && !elv_swarm_all_finite(out, n) ? ELV_ERR_RANGE : err;
}

bool elv_swarm_all_finite(const float *v, uint32_t n)
{
    bool fine = true;
    for (uint32_t i = 0; i < n; i++)
        fine = fine && elv_finite_f32(v[i]);
    return fine;
}

static void count_step(struct elv_swarm_versions *v, uint64_t bytes)
{
    if (v->n_steps + 1 >= v->cap_steps) {
        v->cap_steps = v->cap_steps == 0 ? 64 : v->cap_steps * 2;
        v->steps = elv_sim_grow(v->steps, v->cap_steps, sizeof *v->steps);
    }
    if (v->n_steps == 0)
        v->steps[v->n_steps++] = 0; /* version 0 is made from the seed */
    v->steps[v->n_steps] = v->steps[v->n_steps - 1] + bytes;
    v->n_steps++;
}

static void add_version(struct elv_swarm *s, float *w)
{
    count_step(&s->versions, s->step);
    const uint32_t before = s->versions.newest, i = take(&s->versions);
    s->rate *= (double)s->job->learning_rate_decay;
    s->versions.at[i] = (struct elv_swarm_version){.version = s->versions.at[before].version + 1,
                                                   .refs = 1,
                                                   .counted = s->counted,
                                                   .rate = s->rate,
                                                   .w = w};
    s->versions.newest = i;
    elv_swarm_release(s, before);
    digest(s, w, s->sum.model);
}

static bool is_lossy(const struct elv_swarm *s) { return s->job->down.id != ELV_CODEC_F32; }

/* As client/base.c chooses: steps when they reach from what it has and are fewer bytes. */
static uint64_t fetched(const struct elv_swarm *s, uint32_t from, uint32_t to)
{
    const uint64_t full = s->learner->bytes_full;
    if (from == to)
        return 0;
    if (!is_lossy(s) || to - from > ELV_STEPS_MAX)
        return full;
    const uint64_t steps = s->versions.steps[to] - s->versions.steps[from];
    return steps < full ? steps : full;
}

uint64_t elv_swarm_fetch(struct elv_swarm *s, uint32_t c)
{
    struct elv_swarm_client *cl = &s->clients[c];
    const uint32_t from = cl->holds > 0 ? cl->holds - 1 : 0;
    const uint32_t to = s->versions.at[s->versions.newest].version;
    cl->holds = to + 1;
    if (s->learner == NULL)
        return 0;
    return s->learner->bytes_full > 0 ? fetched(s, from, to) : s->learner->bytes_down;
}

const float *elv_swarm_master(const struct elv_swarm *s)
{
    return s->master ? s->master : s->versions.at[s->versions.newest].w;
}

enum elv_err elv_swarm_publish(struct elv_swarm *s, float *w)
{
    if (w == NULL || !is_lossy(s)) {
        add_version(s, w);
        return ELV_OK;
    }
    float *b = elv_swarm_vector(s);
    const enum elv_err err = broadcast(s, w, b);
    if (err != ELV_OK) {
        elv_swarm_give_vector(s, b);
        elv_swarm_give_vector(s, w);
        return err;
    }
    if (s->master)
        elv_swarm_give_vector(s, s->master);
    s->master = w;
    add_version(s, b);
    return ELV_OK;
}

void elv_swarm_forget_master(struct elv_swarm *s)
{
    if (s->master)
        elv_swarm_give_vector(s, s->master);
    s->master = NULL;
}
