/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ports/sim/lab/swarm_parts.h"

/* One multiplication and a shift per word: fast, and any difference in what happened shows. */
static void mix(uint64_t *h, uint64_t v)
{
    *h = (*h ^ v) * 0x9E3779B97F4A7C15u;
    *h ^= *h >> 32;
}

static uint64_t two(uint32_t high, uint32_t low) { return (uint64_t)high << 32 | low; }

static void mix_double(uint64_t *h, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    mix(h, bits);
}

void elv_swarm_tell(struct elv_swarm *s, enum elv_lab_event_kind kind, uint32_t c,
                    const struct elv_swarm_work *w, uint32_t staleness, uint32_t weight)
{
    uint64_t *h = &s->sum.hash;
    const struct elv_lab_event e = {
        .at = s->now,
        .kind = kind,
        .client = c + 1,
        .round = w ? w->seq : s->round.seq,
        .version = s->versions.at[w ? w->base : s->versions.newest].version,
        .assignment = w ? w->assignment : 0,
        .staleness = staleness,
        .weight = weight,
    };
    elv_lab_count(&s->sum, &s->round.rec, kind);
    mix(h, (uint64_t)e.at);
    mix(h, two(e.client, (uint32_t)kind));
    mix(h, two(e.round, e.version));
    mix(h, two(e.assignment, staleness) ^ (uint64_t)weight << 16);
    if (s->cfg.sink.event)
        s->cfg.sink.event(s->cfg.sink.self, &e);
}

void elv_swarm_tell_round(struct elv_swarm *s, const struct elv_lab_round *r)
{
    uint64_t *h = &s->sum.hash;
    s->sum.rounds++;
    mix(h, (uint64_t)r->closed);
    mix(h, two(r->seq, r->version));
    mix(h, two(r->n_asked, r->n_used));
    mix(h, two(r->n_late, r->abandoned));
    mix_double(h, r->train_loss);
    mix_double(h, r->score.loss);
    for (size_t i = 0; i < sizeof r->model; i += 8) {
        uint64_t word;
        memcpy(&word, r->model + i, sizeof word);
        mix(h, word);
    }
    if (s->cfg.sink.round)
        s->cfg.sink.round(s->cfg.sink.self, r);
}

void elv_swarm_summary(const struct elv_swarm *s, struct elv_lab_summary *out)
{
    *out = s->sum;
    out->ended = s->now;
    out->version = s->versions.at[s->versions.newest].version;
    out->fairness = elv_lab_fairness((double)s->sum.used, s->n_ever, s->used_squares);
    out->stale_mean = s->sum.used > 0 ? s->sum.stale_mean / (double)s->sum.used : 0.0;
}
