/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim_case.h"

#include <stdio.h>
#include <string.h>

#include "common/assert.h"
#include "tests/sim_shrink.h"
#include "tests/sim_trouble.h"

#define SECOND ((elv_time_us)1000000)

enum {
    PATIENCE_ROUNDS = 40,
    GAP_ROUNDS = 8,
    BACK_OFF_S = 60, /* after rounds that failed */
    SPINS_MAX = 50
};

struct sim_case {
    struct sim_trouble trouble;
    const struct sim_case_cfg *cfg;
    struct sim_case_end *end;
};

/* The time of a fault has come. */
static bool happens(void *self, uint32_t number, const char *what)
{
    struct sim_case *c = self;
    const struct sim_case_cfg *cfg = c->cfg;
    ELV_ASSERT(number == c->end->n_faults && number < SIM_CASE_FAULTS_MAX);
    c->end->n_faults++;
    if (cfg->fault != NULL)
        cfg->fault(cfg->fault_ctx, number, what);
    return cfg->on == NULL || (number < cfg->n_on && cfg->on[number]);
}

static void struck(void *self, uint32_t number)
{
    ((struct sim_case *)self)->end->struck[number] = true;
}

static void begin(struct sim_case *c, const struct sim_case_cfg *cfg, struct sim_case_end *end)
{
    c->cfg = cfg;
    c->end = end;
    sim_trouble_draw(&c->trouble, cfg->seed);
    sim_trouble_begin(
        &c->trouble,
        &(struct elv_sim_faults_watch){.self = c, .happens = happens, .struck = struck}, cfg->line,
        cfg->line_ctx);
}

/* As an invariant that is checked after each step would be. */
static bool planted(const struct sim_case *c)
{
    const uint32_t *p = c->cfg->planted;
    return p[0] != p[1] && p[0] < c->end->n_faults && p[1] < c->end->n_faults &&
           c->end->struck[p[0]] && c->end->struck[p[1]];
}

static const char *at_the_end(const struct fleet *f)
{
    if (elv_sim_disk_stats(f->disk).logs > 0)
        return "I5: the job is over and an upload log is left";
    if (elv_sim_stats(f->w).requests > 0)
        return "I5: the job is over and a request was never answered";
    if (fleet_sent_away(f))
        return "a client ended as if it were refused for good";
    if (elv_sim_stats(f->w).spins_max > SPINS_MAX)
        return "a node asks to be called again at once, again and again";
    return history_unfinished(f->history);
}

/* Of a run that goes on after all was healed. */
static const char *progress(struct sim_case *c, elv_time_us *since, uint32_t *version,
                            struct sim_case_sums *sums)
{
    const struct fleet *f = c->trouble.fleet;
    const elv_time_us now = elv_sim_now(f->w), healed = SIM_TROUBLE_US;
    const uint32_t v = f->server != NULL ? elv_server_stats(f->server)->version : *version;
    if (now < healed || v != *version || f->over)
        *since = now;
    *version = v;
    const uint64_t gap = (uint64_t)(now - *since);
    if (gap > sums->worst_gap_us)
        sums->worst_gap_us = gap;
    return now - *since > GAP_ROUNDS * fleet_round_max(&f->job) + BACK_OFF_S * SECOND
               ? "I8: no version is made although all is healed"
               : NULL;
}

/* NULL, or what went wrong. */
static const char *run(struct sim_case *c, struct sim_case_sums *sums)
{
    struct fleet *f = c->trouble.fleet;
    elv_time_us since = 0;
    uint32_t version = 0;
    const char *why = NULL;
    while (why == NULL) { /* ends: virtual time passes, and patience does not grow */
        if (fleet_run(f, elv_sim_now(f->w) + SECOND))
            break;
        why = fleet_wrong(f);
        if (why == NULL && planted(c))
            why = "planted: both faults happened";
        if (why == NULL)
            why = progress(c, &since, &version, sums);
        const elv_time_us most = PATIENCE_ROUNDS * fleet_round_max(&f->job);
        if (why == NULL && elv_sim_now(f->w) >= SIM_TROUBLE_US + most)
            why = f->over ? "I8: the job is over, but not every client has ended"
                          : "I8: the run does not end although all is healed";
    }
    if (why != NULL)
        return why;
    elv_sim_run(f->w, elv_sim_now(f->w) + 10 * SECOND);
    return fleet_wrong(f) != NULL ? fleet_wrong(f) : at_the_end(f);
}

static void sum_up(const struct sim_case *c, struct sim_case_sums *sums)
{
    struct fleet *f = c->trouble.fleet;
    const struct elv_sim_stats s = elv_sim_stats(f->w);
    const struct history_sums h = history_sums(f->history);
    const struct fleet_sums server = fleet_sums(f);
    sums->seeds = 1;
    sums->events = s.events;
    sums->spins = s.spins;
    sums->crashes = s.crashes;
    sums->versions = h.versions;
    sums->updates = h.accepted;
    sums->refused = h.refused;
    sums->store_failures = elv_sim_disk_stats(f->disk).failed;
    sums->abandoned = server.abandoned;
    sums->late = server.late;
    sums->declined = server.declined;
    sums->failed = server.failed;
    sums->lapsed = server.lapsed;
    sums->log_losses = server.log_losses;
    sums->evaluations = server.evaluations;
    sums->restored = server.restored;
    sums->replayed = server.replayed;
    sums->resumed = server.resumed;
    sums->worst_wait_us = (uint64_t)f->worst_wait_us;
    sums->virtual_us = (uint64_t)elv_sim_now(f->w);
    for (uint32_t i = 0; i < c->end->n_faults; i++)
        sums->faults += c->end->struck[i];
}

void sim_case_run(const struct sim_case_cfg *cfg, struct sim_case_end *end)
{
    struct sim_case c;
    memset(end, 0, sizeof *end);
    begin(&c, cfg, end);
    const char *why = run(&c, &end->sums);
    if (why != NULL)
        snprintf(end->why, sizeof end->why, "%s", why);
    end->at = elv_sim_now(c.trouble.fleet->w);
    end->hash = elv_sim_hash(c.trouble.fleet->w);
    sum_up(&c, &end->sums);
    sim_trouble_end(&c.trouble);
}

bool sim_case_same(const struct sim_case_cfg *cfg, struct sim_case_end *end)
{
    struct sim_case_end again;
    sim_case_run(cfg, end);
    if (end->why[0] != '\0')
        return false;
    sim_case_run(cfg, &again);
    if (again.hash == end->hash)
        return true;
    snprintf(end->why, sizeof end->why, "two runs differ");
    return false;
}

void sim_case_add(struct sim_case_sums *to, const struct sim_case_sums *of)
{
    uint64_t *a = (uint64_t *)to;
    const uint64_t *b = (const uint64_t *)of;
    const uint64_t gap = to->worst_gap_us, hold = to->worst_wait_us;
    for (size_t i = 0; i < sizeof *to / sizeof *a; i++)
        a[i] += b[i];
    to->worst_gap_us = gap > of->worst_gap_us ? gap : of->worst_gap_us;
    to->worst_wait_us = hold > of->worst_wait_us ? hold : of->worst_wait_us;
}

void sim_case_title(uint64_t seed, char *text, uint32_t len)
{
    struct sim_trouble t;
    sim_trouble_draw(&t, seed);
    uint32_t used = (uint32_t)snprintf(text, len, "%s%s%s:", t.policy, t.changes ? ", then " : "",
                                       t.changes ? t.other_policy : "");
    for (const struct fleet_key *k = t.keys; k->section != NULL && used < len; k++)
        used += (uint32_t)snprintf(text + used, len - used, " %s=%s", k->key, k->value);
    if (used < len)
        snprintf(text + used, len - used, "; %u clients", t.n_honest + t.n_vandals);
}

struct telling {
    const bool *on;
    uint32_t n;
    void (*tell)(void *ctx, uint32_t number, const char *what);
    void *ctx;
};

static void tell(void *ctx, uint32_t number, const char *what)
{
    const struct telling *t = ctx;
    if (number < t->n && t->on[number])
        t->tell(t->ctx, number, what);
}

/* When a fault strikes does not depend on what it does, so nothing need happen. */
void sim_case_tell(uint64_t seed, const bool *on, uint32_t n,
                   void (*what)(void *ctx, uint32_t number, const char *what), void *ctx)
{
    static const bool none[1];
    struct telling t = {.on = on, .n = n, .tell = what, .ctx = ctx};
    const struct sim_case_cfg cfg = {.seed = seed, .on = none, .fault = tell, .fault_ctx = &t};
    struct sim_case c;
    struct sim_case_end end = {.n_faults = 0};
    begin(&c, &cfg, &end);
    elv_sim_run(c.trouble.fleet->w, SIM_TROUBLE_US);
    sim_trouble_end(&c.trouble);
}

/* Two sentences say the same but for their numbers. */
static bool alike(const char *a, const char *b)
{
    for (;;) { /* ends with the shorter one */
        while (*a >= '0' && *a <= '9')
            a++;
        while (*b >= '0' && *b <= '9')
            b++;
        if (*a != *b)
            return false;
        if (*a == '\0')
            return true;
        a++;
        b++;
    }
}

struct shrinking {
    struct sim_case_cfg cfg;
    const char *why;
};

static bool fails_alike(void *self, const bool *on, uint32_t n)
{
    struct shrinking *s = self;
    struct sim_case_end end;
    s->cfg.on = on;
    s->cfg.n_on = n;
    if (alike(s->why, "two runs differ"))
        sim_case_same(&s->cfg, &end);
    else
        sim_case_run(&s->cfg, &end);
    return alike(end.why, s->why);
}

uint32_t sim_case_shrink(const struct sim_case_cfg *cfg, const struct sim_case_end *end,
                         uint32_t tries, bool *on)
{
    struct shrinking s = {.cfg = *cfg, .why = end->why};
    struct shrink how = {.self = &s, .fails = fails_alike, .tries_max = tries};
    uint32_t left = 0;
    s.cfg.line = NULL;
    memcpy(on, end->struck, end->n_faults * sizeof *on); /* what never struck cannot be it */
    if (!fails_alike(&s, on, end->n_faults))
        for (uint32_t i = 0; i < end->n_faults; i++)
            on[i] = cfg->on == NULL || (i < cfg->n_on && cfg->on[i]);
    shrink(&how, on, end->n_faults);
    for (uint32_t i = 0; i < end->n_faults; i++)
        left += on[i];
    return left;
}
