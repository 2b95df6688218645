/* SPDX-License-Identifier: Apache-2.0 */
/* What the updates of a version add up to, and how the policy wants it scaled. */
#include "server/core.h"
#include "server/drive.h"

bool elv_core_has_place(const struct elv_server *s)
{
    return !s->round.stream || s->round.n_counted < s->roster.cap;
}

void elv_core_add_counted(struct elv_server *s, uint32_t row, const struct elv_rec_decision *d)
{
    struct elv_kept *v = elv_kept_find(&s->kept, d->version);
    s->counted[s->round.n_counted++] =
        (struct elv_counted){.row = row, .rate = v ? v->rate : s->learning_rate, .d = *d};
    if (v)
        v->n_used++;
}

struct elv_counted *elv_core_find_counted(struct elv_server *s, uint32_t assignment)
{
    for (uint32_t i = s->round.n_counted; i > 0; i--)
        if (s->counted[i - 1].d.assignment == assignment)
            return &s->counted[i - 1];
    return NULL;
}

/* What the round counted is in a version, or abandoned. */
void elv_core_clear_counted(struct elv_server *s, struct elv_actions *out)
{
    s->round.n_counted = 0;
    for (uint32_t i = s->kept.n; i > 0; i--) {
        s->kept.at[i - 1].n_used = 0;
        elv_core_release(s, &s->kept.at[i - 1], out);
    }
}

bool elv_core_counts(const struct elv_server *s, const struct elv_row *row)
{
    return row->last.assignment != 0 && row->last.seq == s->round.seq &&
           row->last.decision == ELV_ACCEPTED && row->last.status == ELV_STATUS_DONE;
}

double elv_core_effort(const struct elv_server *s, uint32_t steps)
{
    const struct elv_rule *rule = s->policies.rule;
    const double effort = rule->effort ? rule->effort(s->job, steps) : 1.0;
    return effort > 1.0 ? effort : 1.0;
}

struct elv_scales elv_core_scales(const struct elv_server *s)
{
    struct elv_scales scales = s->scales;
    scales.weight_bits = s->round.weight_bits;
    return scales;
}

static void add(const struct elv_server *s, struct elv_tally *t, const struct elv_scales *scales,
                const struct elv_rec_decision *d, double rate)
{
    const struct elv_tally_item item = {
        .weight = d->weight,
        .claim = elv_weight_claim(s->job->weight, d->samples, d->seen),
        .factor = d->factor,
        .effort = elv_core_effort(s, d->steps),
        .norm2 = d->norm2,
        .rate = rate,
        .steps = d->steps,
        .seen = d->seen,
        .staleness = d->staleness,
        .loss_sum = d->loss_sum,
    };
    elv_tally_add(t, scales, &item);
}

struct elv_tally elv_core_tally(const struct elv_server *s)
{
    const struct elv_scales scales = elv_core_scales(s);
    struct elv_tally t = {0};
    if (elv_core_is_survey(s))
        return t;
    for (uint32_t i = 0; i < s->round.n_counted; i++)
        if (s->counted[i].d.assignment != 0)
            add(s, &t, &scales, &s->counted[i].d, s->counted[i].rate);
    for (uint32_t i = 0; i < s->roster.n && !s->round.stream; i++) {
        const struct elv_row *row = &s->roster.rows[s->roster.order[i]];
        if (elv_core_counts(s, row))
            add(s, &t, &scales, &row->last, s->learning_rate);
    }
    return t;
}

struct elv_sync_scale elv_core_scale(const struct elv_server *s)
{
    const struct elv_sync_round view = elv_core_view(s);
    return elv_drive_scale(s->policies.sync, s->sync_state, &s->sync_cfg, &view);
}

/* What the row would weigh; 0: unknown. Its last update says it best, but no less than what counts
 * of it: a client that claims much and then little would move the model by more than its share. */
static uint32_t claim_of(const struct elv_server *s, const struct elv_row *row)
{
    const struct elv_rec_decision *d = &row->last;
    const bool delivered = d->assignment != 0 && d->decision == ELV_ACCEPTED && d->weight > 0;
    const uint32_t claim = delivered ? elv_weight_claim(s->job->weight, d->samples, d->seen)
                                     : elv_weight_claim(s->job->weight, row->samples, row->samples);
    return row->used && row->claimed > claim ? row->claimed : claim;
}

struct claims {
    uint64_t known; /* weighed, of those known */
    double sum;     /* as claimed */
    uint32_t n_known, n_unknown;
};

static void add_claim(struct claims *c, const struct elv_scales *scales, uint32_t claim)
{
    c->n_known += claim > 0;
    c->n_unknown += claim == 0;
    if (claim == 0)
        return;
    c->known += elv_weight_of(scales, claim, 1.0);
    c->sum += (double)(claim < scales->weight_cap ? claim : scales->weight_cap);
}

/* Who never said how much it has is taken for an average one. */
static uint64_t total(const struct claims *c, const struct elv_scales *scales)
{
    const double mean = c->n_known > 0 ? c->sum / c->n_known : 1.0;
    return c->known + (uint64_t)c->n_unknown * elv_weight_of(scales, (uint32_t)(mean + 0.5), 1.0);
}

/* In a stream the last decision about a client does not tell: one before it may count. */
static void mark_used(struct elv_server *s)
{
    for (uint32_t i = 0; i < s->roster.n; i++) {
        struct elv_row *row = &s->roster.rows[i];
        row->used = !s->round.stream && elv_core_counts(s, row);
        row->claimed = 0;
    }
    for (uint32_t i = 0; i < s->round.n_counted; i++) {
        const struct elv_rec_decision *d = &s->counted[i].d;
        struct elv_row *row = &s->roster.rows[s->counted[i].row];
        const uint32_t claim = elv_weight_claim(s->job->weight, d->samples, d->seen);
        if (d->assignment == 0)
            continue;
        row->used = true;
        row->claimed = claim > row->claimed ? claim : row->claimed;
    }
}

uint64_t elv_core_fleet(struct elv_server *s)
{
    const struct elv_scales scales = elv_core_scales(s);
    struct claims there = {0}, used = {0};
    mark_used(s);
    for (uint32_t i = 0; i < s->roster.n; i++) {
        const struct elv_row *row = &s->roster.rows[i];
        if (row->joined && !row->lapsed)
            add_claim(&there, &scales, claim_of(s, row));
        if (row->used)
            add_claim(&used, &scales, claim_of(s, row));
    }
    const uint64_t all = total(&there, &scales), least = total(&used, &scales);
    return all > least ? all : least;
}
