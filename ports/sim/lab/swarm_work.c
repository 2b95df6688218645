/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "ports/sim/lab/swarm_parts.h"
#include "ports/sim/queue.h"

static struct elv_swarm_work *take(struct elv_swarm_works *p)
{
    if (p->free != ELV_SWARM_NONE) {
        struct elv_swarm_work *w = &p->at[p->free];
        p->free = w->next;
        return w;
    }
    if (p->n == p->cap) {
        p->cap = p->cap == 0 ? 64 : p->cap * 2;
        p->at = elv_sim_grow(p->at, p->cap, sizeof *p->at);
    }
    return &p->at[p->n++];
}

static uint32_t samples(const struct elv_swarm *s, uint32_t c)
{
    if (s->learner && s->learner->samples)
        return s->learner->samples(s->learner->self, c + 1);
    return s->world->samples > 0 ? s->world->samples : 1;
}

struct elv_candidate elv_swarm_candidate(const struct elv_swarm *s, uint32_t c)
{
    return (struct elv_candidate){.client = c + 1, .row = c, .samples = samples(s, c)};
}

static uint64_t version_bytes(const struct elv_swarm *s)
{
    return s->learner ? s->learner->bytes_down : 0;
}

void elv_swarm_measure(const struct elv_swarm *s, struct elv_swarm_work *w, struct elv_size size)
{
    w->samples = samples(s, w->client);
    if (s->learner && s->learner->effort) {
        s->learner->effort(s->learner->self, w->client + 1, size, &w->steps, &w->seen);
        return;
    }
    const uint32_t batch = size.batch > 0 ? size.batch : 1;
    const uint32_t epoch = (w->samples + batch - 1) / batch;
    w->steps = size.local_steps > 0 ? size.local_steps : size.local_epochs * epoch;
    w->seen = size.local_steps > 0 ? size.local_steps * batch : size.local_epochs * w->samples;
}

static struct elv_lab_piece piece_of(const struct elv_swarm *s, const struct elv_swarm_work *w)
{
    return (struct elv_lab_piece){
        .client = w->client + 1,
        .piece = w->piece,
        .n_clients = s->cfg.n_clients,
        .steps = w->steps,
        .seen = w->seen,
        .at = s->now,
        .facts = s->clients[w->client].facts,
    };
}

/* The version is pushed while the client is busy, or fetched once it is free. */
static elv_time_us base_is_there(const struct elv_swarm *s, const struct elv_lab_piece *p,
                                 uint64_t bytes)
{
    const elv_time_us from = s->pushes ? s->round.opened : s->now;
    const elv_time_us at = from + elv_lab_transfer(s->world, s->cfg.seed, p, ELV_LAB_DOWN, bytes);
    return at > s->now ? at : s->now;
}

/* Training tells how long the upload is; where that makes no difference it can wait. */
static bool upload_depends(const struct elv_swarm *s, const struct elv_lab_piece *p)
{
    return s->learner && s->learner->n_params > 0 && (s->world->trace || p->facts.up > 0.0f);
}

static void count_wire(struct elv_swarm *s, struct elv_lab_wire wire)
{
    s->sum.wire_up += wire.up;
    s->sum.wire_down += wire.down;
    s->round.rec.wire_up += wire.up;
    s->round.rec.wire_down += wire.down;
}

static struct elv_text job_name(const struct elv_swarm *s)
{
    return (struct elv_text){s->job->name, strlen(s->job->name)};
}

static void count_down(struct elv_swarm *s, uint64_t bytes)
{
    s->sum.bytes_down += bytes;
    s->round.rec.bytes_down += bytes;
    if (bytes != s->fetch_bytes || s->fetch.down == 0)
        s->fetch = elv_lab_wire_fetch(job_name(s), bytes);
    s->fetch_bytes = bytes;
    count_wire(s, s->fetch);
}

void elv_swarm_count_up(struct elv_swarm *s, const struct elv_swarm_work *w)
{
    s->sum.bytes_up += w->bytes_up;
    s->round.rec.bytes_up += w->bytes_up;
    if (w->bytes_up != s->send_bytes)
        s->send = elv_lab_wire_send(job_name(s), w->bytes_up);
    s->send_bytes = w->bytes_up;
    count_wire(s, s->send);
}

void elv_swarm_start(struct elv_swarm *s, uint32_t c, uint32_t assignment)
{
    struct elv_swarm_client *cl = &s->clients[c];
    ELV_ASSERT(cl->work == ELV_SWARM_NONE && cl->there);
    struct elv_swarm_work *w = take(&s->works);
    *w = (struct elv_swarm_work){.client = c,
                                 .piece = ++cl->pieces,
                                 .seq = s->round.seq,
                                 .assignment = assignment,
                                 .base = s->versions.newest,
                                 .started = s->now,
                                 .bytes_up = version_bytes(s)};
    const struct elv_candidate who = elv_swarm_candidate(s, c);
    elv_swarm_measure(s, w, s->policies.sizing->size(s->job, &who));
    s->versions.at[w->base].refs++;
    cl->work = (uint32_t)(w - s->works.at);
    cl->assignment = assignment;

    struct elv_lab_piece p = piece_of(s, w);
    const uint64_t bytes = elv_swarm_fetch(s, c);
    p.at = base_is_there(s, &p, bytes);
    const elv_time_us compute = elv_lab_compute(s->world, s->cfg.seed, &p);
    w->compute_ms = compute < 1000                             ? 1
                    : compute < (elv_time_us)UINT32_MAX * 1000 ? (uint32_t)(compute / 1000)
                                                               : UINT32_MAX;
    w->dropped = elv_lab_is_dropped(s->world, s->cfg.seed, &p);
    w->uploads = w->dropped || !upload_depends(s, &p);
    w->ends = p.at + compute;
    if (w->uploads)
        w->ends += elv_lab_transfer(s->world, s->cfg.seed, &p, ELV_LAB_UP, w->bytes_up);
    elv_swarm_later(s, w->ends, c, elv_swarm_what(ELV_SWARM_WORK, w->piece));
    elv_swarm_set_waits(s, c, false);
    s->n_working++;
    count_down(s, bytes);
    elv_swarm_tell(s, ELV_LAB_STARTED, c, w, 0, 0);
}

static void upload(struct elv_swarm *s, struct elv_swarm_work *w)
{
    elv_swarm_train(s, w);
    const struct elv_lab_piece p = piece_of(s, w);
    w->uploads = true;
    w->ends = s->now + elv_lab_transfer(s->world, s->cfg.seed, &p, ELV_LAB_UP, w->bytes_up);
    elv_swarm_later(s, w->ends, w->client, elv_swarm_what(ELV_SWARM_WORK, w->piece));
}

void elv_swarm_work_due(struct elv_swarm *s, uint32_t c, uint32_t number)
{
    if (s->clients[c].work == ELV_SWARM_NONE || !elv_swarm_is(s->clients[c].pieces, number))
        return;
    struct elv_swarm_work *w = &s->works.at[s->clients[c].work];
    if (!w->uploads)
        upload(s, w);
    else
        s->flow->arrived(s, w);
}

void elv_swarm_end_work(struct elv_swarm *s, struct elv_swarm_work *w)
{
    const uint32_t i = s->clients[w->client].work;
    ELV_ASSERT(&s->works.at[i] == w);
    if (w->trained && w->err == ELV_OK && s->learner->decided != NULL)
        s->learner->decided(s->learner->self, w->client + 1, w->fate,
                            s->versions.at[s->versions.newest].version);
    s->clients[w->client].work = ELV_SWARM_NONE;
    s->n_working -= !w->delivered;
    elv_swarm_release(s, w->base);
    if (w->update)
        elv_swarm_give_vector(s, w->update);
    free(w->eval);
    *w = (struct elv_swarm_work){.client = ELV_SWARM_NONE, .next = s->works.free};
    s->works.free = i;
}

void elv_swarm_lose_work(struct elv_swarm *s, struct elv_swarm_work *w)
{
    elv_swarm_tell(s, ELV_LAB_DROPPED, w->client, w, 0, 0);
    elv_swarm_end_work(s, w);
}

elv_time_us elv_swarm_notice(const struct elv_swarm *s, const struct elv_swarm_work *w)
{
    const struct elv_lab_piece p = piece_of(s, w);
    return elv_lab_transfer(s->world, s->cfg.seed, &p, ELV_LAB_TELL, 0);
}
