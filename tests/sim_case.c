/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim_case.h"

#include <stdio.h>
#include <string.h>

#include "common/assert.h"
#include "common/rng.h"
#include "ports/sim/faults.h"
#include "tests/sim_job.h"
#include "tests/sim_shrink.h"

#define SECOND ((elv_time_us)1000000)

enum {
    CLIENTS_MIN = 6,
    CLIENTS_MAX = 9,
    VANDALS_MAX = 2,
    PLACES = CLIENTS_MAX + VANDALS_MAX,
    TROUBLE_S = 60,
    PATIENCE_DEADLINES = 40,
    GAP_DEADLINES = 8,
    BACK_OFF_S = 60, /* after rounds that failed */
    CALM_LOSS_PPM = 50000,
    SPINS_MAX = 50,
    STANDING_MAX = 64
};

/* What lasts all the time. */
enum standing_kind {
    LOSES,
    REPEATS,
    REORDERS,
    VANDAL,
    TWINS,
    ODD_CLOCKS,
    SLOW,
    TORN,
    DYING,
    FEW_UPLOADS,
    SHORT_LOG
};

struct standing {
    enum standing_kind kind;
    uint32_t place; /* of a client */
};

struct sim_case { /* how a seed was drawn */
    uint64_t seed;
    struct elv_rng rng;
    uint32_t n_honest, n_vandals;
    struct standing standing[STANDING_MAX];
    uint32_t n_standing;
    uint32_t loss_ppm;
    elv_time_us server_every, client_every, cut_every;
    bool revokes, disk_fails, disk_is_gone, at_once, observe, scores;
    elv_time_us revoked_at;
    struct fleet_key keys[SIM_JOB_KEYS];
    const char *policy;

    struct fleet *fleet;
    struct elv_sim_faults *faults;
    uint32_t numbers[PLACES];
    const struct sim_case_cfg *cfg;
    struct sim_case_end *end;
};

static bool one_in(struct sim_case *c, uint32_t n) { return elv_rng_below(&c->rng, n) == 0; }

static void add_standing(struct sim_case *c, enum standing_kind kind, uint32_t place)
{
    ELV_ASSERT(c->n_standing < STANDING_MAX);
    c->standing[c->n_standing++] = (struct standing){kind, place};
}

static void draw_links(struct sim_case *c)
{
    static const uint32_t losses[] = {50000, 150000, 200000};
    c->loss_ppm = losses[elv_rng_below(&c->rng, 3)];
    for (uint32_t i = 0; i < c->n_honest; i++) {
        add_standing(c, LOSES, i);
        add_standing(c, REPEATS, i);
        add_standing(c, REORDERS, i);
    }
}

static void draw_maybe(struct sim_case *c, enum standing_kind kind, uint32_t in)
{
    if (one_in(c, in))
        add_standing(c, kind, 0);
}

static void draw_standing(struct sim_case *c)
{
    draw_links(c);
    c->n_vandals = one_in(c, 4) ? VANDALS_MAX : 0;
    for (uint32_t i = 0; i < c->n_vandals; i++)
        add_standing(c, VANDAL, c->n_honest + i);
    draw_maybe(c, TWINS, 8);
    draw_maybe(c, ODD_CLOCKS, 2);
    draw_maybe(c, SLOW, 2);
    draw_maybe(c, TORN, 3);
    draw_maybe(c, DYING, 8);
    draw_maybe(c, FEW_UPLOADS, 10);
    draw_maybe(c, SHORT_LOG, 10);
}

static elv_time_us seconds(struct sim_case *c, uint32_t least, uint32_t most)
{
    return (elv_time_us)(least + elv_rng_below(&c->rng, most - least + 1)) * SECOND;
}

/* The job is drawn from a stream of its own. */
static void draw(struct sim_case *c, uint64_t seed)
{
    memset(c, 0, sizeof *c);
    c->seed = seed;
    c->rng = elv_rng_of((struct elv_rng_key){.seed = seed, .round = 56, .purpose = ELV_RNG_TEST});
    c->n_honest = CLIENTS_MIN + elv_rng_below(&c->rng, CLIENTS_MAX - CLIENTS_MIN + 1);
    draw_standing(c);
    c->server_every = seconds(c, 6, 30);
    c->client_every = seconds(c, 15, 60);
    c->cut_every = seconds(c, 20, 60);
    c->revokes = one_in(c, 7);
    c->disk_fails = one_in(c, 3);
    c->disk_is_gone = one_in(c, 5);
    c->at_once = one_in(c, 5);
    c->observe = one_in(c, 3);
    c->scores = one_in(c, 3);
    c->revoked_at = seconds(c, 10, TROUBLE_S - 10);
    c->policy = sim_job_of(seed, c->n_honest, c->keys);
}

static bool is_on(const struct sim_case *c, uint32_t number)
{
    const struct sim_case_cfg *cfg = c->cfg;
    return cfg->on == NULL || (number < cfg->n_on && cfg->on[number]);
}

static bool has(const struct sim_case *c, enum standing_kind kind, uint32_t place)
{
    for (uint32_t i = 0; i < c->n_standing; i++)
        if (c->standing[i].kind == kind && c->standing[i].place == place)
            return is_on(c, i);
    return false;
}

static struct fleet_cfg fleet_of(struct sim_case *c)
{
    struct fleet_cfg cfg = {
        .seed = c->seed,
        .n_clients = c->n_honest + c->n_vandals,
        .n_vandals = c->n_vandals,
        .keys = c->keys,
        .link = {.delay = {.min_us = 20000, .spread_us = 100000},
                 .held_back = {.spread_us = 500000}},
        .disk = {.sync = {.min_us = 2000, .spread_us = 8000},
                 .torn = has(c, TORN, 0),
                 .dies = has(c, DYING, 0)},
        .slice = c->at_once ? 0 : 4,
        .step_us = 30000,
        .slow = has(c, SLOW, 0) ? 6 : 0,
        .odd_clocks = has(c, ODD_CLOCKS, 0),
        .observe = c->observe,
        .join_spread_us = 10 * SECOND,
        .limits = {.uploads_max = has(c, FEW_UPLOADS, 0) ? 3 : 0,
                   .log_bytes_max = has(c, SHORT_LOG, 0) ? 60000 : 0},
        .scores = c->scores,
        .numbers = c->numbers,
        .line = c->cfg->line,
        .line_ctx = c->cfg->line_ctx,
    };
    for (uint32_t i = 0; i < PLACES; i++)
        c->numbers[i] = i + 1;
    if (has(c, TWINS, 0))
        c->numbers[c->n_honest - 1] = 1;
    for (uint32_t i = 0; i < c->n_vandals; i++)
        if (!has(c, VANDAL, c->n_honest + i))
            cfg.absent |= UINT64_C(1) << (c->n_honest + i);
    return cfg;
}

static void spoil_links(struct sim_case *c)
{
    for (uint32_t i = 0; i < c->n_honest; i++) {
        struct elv_sim_link *link = elv_sim_link(c->fleet->w, c->fleet->clients[i].node);
        link->loss_ppm = has(c, LOSES, i) ? c->loss_ppm : 0;
        link->duplicate_ppm = has(c, REPEATS, i) ? 100000 : 0;
        link->reorder_ppm = has(c, REORDERS, i) ? 100000 : 0;
    }
}

/* What is left of the trouble when all is healed. */
static void calm_links(void *ctx, uint32_t unused)
{
    struct sim_case *c = ctx;
    (void)unused;
    for (uint32_t i = 0; i < c->n_honest; i++) {
        struct elv_sim_link *link = elv_sim_link(c->fleet->w, c->fleet->clients[i].node);
        link->loss_ppm = link->loss_ppm < CALM_LOSS_PPM ? link->loss_ppm : CALM_LOSS_PPM;
    }
}

static struct elv_sim_delay about(elv_time_us mean)
{
    return (struct elv_sim_delay){.shape = ELV_SIM_EXPONENTIAL, .spread_us = mean};
}

static void revoke(void *ctx, uint32_t node)
{
    struct fleet *f = ctx;
    const uint32_t number = f->clients[node - f->server_node - 1].number;
    for (uint32_t k = 0; k < f->cfg.n_clients; k++)
        f->clients[k].revoked = f->clients[k].revoked || f->clients[k].number == number;
    elv_sim_revoke(f->w, f->server_node, number);
}

static void trouble_for_server(struct sim_case *c)
{
    struct fleet *f = c->fleet;
    elv_sim_faults_crash(c->faults, f->server_node,
                         (struct elv_sim_crashes){.every = about(c->server_every),
                                                  .down = about(2 * SECOND),
                                                  .power_ppm = ELV_SIM_PPM / 2,
                                                  .actions_max = 12});
    elv_sim_faults_leave(
        c->faults, f->server_node,
        (struct elv_sim_leaves){.every = about(60 * SECOND), .away = about(3 * SECOND)});
    elv_sim_faults_part(
        c->faults, f->clients[0].node, f->cfg.n_clients,
        (struct elv_sim_cuts){.every = about(60 * SECOND), .lasts = about(5 * SECOND)});
    if (c->disk_fails)
        elv_sim_faults_disk(
            c->faults, f->disk,
            (struct elv_sim_bad_spells){.every = about(15 * SECOND),
                                        .lasts = about((c->disk_is_gone ? 8 : 3) * SECOND),
                                        .fail_ppm = c->disk_is_gone ? ELV_SIM_PPM : 300000,
                                        .append_fail_ppm = c->disk_is_gone ? 0 : 50000,
                                        .read_fail_ppm = 50000});
}

static void trouble_for_client(struct sim_case *c, uint32_t i)
{
    const uint32_t node = c->fleet->clients[i].node;
    elv_sim_faults_crash(c->faults, node,
                         (struct elv_sim_crashes){.every = about(c->client_every),
                                                  .down = about(4 * SECOND),
                                                  .actions_max = 6});
    elv_sim_faults_cut(
        c->faults, node,
        (struct elv_sim_cuts){.every = about(c->cut_every), .lasts = about(5 * SECOND)});
    if (i % 3 == 1)
        elv_sim_faults_leave(
            c->faults, node,
            (struct elv_sim_leaves){.every = about(40 * SECOND), .away = about(10 * SECOND)});
}

static void standing_text(const struct standing *s, char text[SIM_CASE_TEXT_MAX])
{
    static const char *const names[] = {
        [LOSES] = "the link loses packets",
        [REPEATS] = "the link repeats packets",
        [REORDERS] = "the link reorders packets",
        [VANDAL] = "it is a vandal",
        [TWINS] = "the last honest client has the identity of the first",
        [ODD_CLOCKS] = "clocks start anywhere and drift",
        [SLOW] = "devices differ in speed",
        [TORN] = "a power loss tears what was appended",
        [DYING] = "the disk dies of its first error",
        [FEW_UPLOADS] = "there is room for three uploads",
        [SHORT_LOG] = "the upload log has 60000 bytes",
    };
    if (s->kind <= VANDAL)
        snprintf(text, SIM_CASE_TEXT_MAX, "client at place %u: %s", s->place, names[s->kind]);
    else
        snprintf(text, SIM_CASE_TEXT_MAX, "%s", names[s->kind]);
}

/* Its time has come. */
static bool happens(struct sim_case *c, uint32_t number, const char *what)
{
    ELV_ASSERT(number == c->end->n_faults && number < SIM_CASE_FAULTS_MAX);
    c->end->n_faults++;
    if (c->cfg->fault != NULL)
        c->cfg->fault(c->cfg->fault_ctx, number, what);
    return is_on(c, number);
}

static bool strikes(void *self, uint32_t number, const char *what)
{
    struct sim_case *c = self;
    return happens(c, c->n_standing + number, what);
}

static void struck(void *self, uint32_t number)
{
    struct sim_case *c = self;
    c->end->struck[c->n_standing + number] = true;
}

static void make(struct sim_case *c)
{
    char text[SIM_CASE_TEXT_MAX];
    const struct fleet_cfg cfg = fleet_of(c);
    c->fleet = fleet_new(&cfg);
    for (uint32_t i = 0; i < c->n_standing; i++) {
        standing_text(&c->standing[i], text);
        c->end->struck[i] = happens(c, i, text);
    }
    spoil_links(c);
    elv_sim_at(c->fleet->w, TROUBLE_S * SECOND, calm_links, c, 0);
    c->faults = elv_sim_faults_new(c->fleet->w, c->seed, TROUBLE_S * SECOND);
    elv_sim_faults_set_watch(
        c->faults, &(struct elv_sim_faults_watch){.self = c, .happens = strikes, .struck = struck});
    trouble_for_server(c);
    for (uint32_t i = 0; i < c->n_honest; i++)
        trouble_for_client(c, i);
    if (c->revokes)
        elv_sim_faults_once(c->faults, c->revoked_at, "revocation of node", revoke, c->fleet,
                            c->fleet->clients[c->n_honest - 1].node);
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
    for (uint32_t i = 0; i < f->cfg.n_clients; i++) {
        uint32_t code = 0;
        if (elv_sim_ended(f->w, f->clients[i].node, &code) && code != 0)
            return "a client ended as if it were refused for good";
    }
    if (elv_sim_stats(f->w).spins_max > SPINS_MAX)
        return "a node asks to be called again at once, again and again";
    return history_unfinished(f->history);
}

/* Of a run that goes on after all was healed. */
static const char *progress(struct sim_case *c, elv_time_us *since, uint32_t *version,
                            struct sim_case_sums *sums)
{
    const struct fleet *f = c->fleet;
    const elv_time_us now = elv_sim_now(f->w), healed = TROUBLE_S * SECOND;
    const uint32_t v = f->server != NULL ? elv_server_stats(f->server)->version : *version;
    if (now < healed || v != *version || f->over)
        *since = now;
    *version = v;
    const uint64_t gap = (uint64_t)(now - *since);
    if (gap > sums->worst_gap_us)
        sums->worst_gap_us = gap;
    return now - *since > GAP_DEADLINES * f->job.deadline_us + BACK_OFF_S * SECOND
               ? "I8: no version is made although all is healed"
               : NULL;
}

/* NULL, or what went wrong. */
static const char *run(struct sim_case *c, struct sim_case_sums *sums)
{
    struct fleet *f = c->fleet;
    const elv_time_us limit = TROUBLE_S * SECOND + PATIENCE_DEADLINES * f->job.deadline_us;
    elv_time_us since = 0;
    uint32_t version = 0;
    const char *why = NULL;
    while (why == NULL) { /* ends: virtual time passes, at the latest to `limit` */
        if (fleet_run(f, elv_sim_now(f->w) + SECOND))
            break;
        why = fleet_wrong(f);
        if (why == NULL && planted(c))
            why = "planted: both faults happened";
        if (why == NULL)
            why = progress(c, &since, &version, sums);
        if (why == NULL && elv_sim_now(f->w) >= limit)
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
    struct fleet *f = c->fleet;
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
    sums->worst_wait_us = (uint64_t)f->worst_wait_us;
    sums->virtual_us = (uint64_t)elv_sim_now(f->w);
    for (uint32_t i = 0; i < c->end->n_faults; i++)
        sums->faults += c->end->struck[i];
}

void sim_case_run(const struct sim_case_cfg *cfg, struct sim_case_end *end)
{
    struct sim_case c;
    memset(end, 0, sizeof *end);
    draw(&c, cfg->seed);
    c.cfg = cfg;
    c.end = end;
    make(&c);
    const char *why = run(&c, &end->sums);
    if (why != NULL)
        snprintf(end->why, sizeof end->why, "%s", why);
    end->at = elv_sim_now(c.fleet->w);
    end->hash = elv_sim_hash(c.fleet->w);
    sum_up(&c, &end->sums);
    fleet_free(c.fleet);
    elv_sim_faults_free(c.faults);
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
    struct sim_case c;
    draw(&c, seed);
    uint32_t used = (uint32_t)snprintf(text, len, "%s:", c.policy);
    for (const struct fleet_key *k = c.keys; k->section != NULL && used < len; k++)
        used += (uint32_t)snprintf(text + used, len - used, " %s=%s", k->key, k->value);
    if (used < len)
        snprintf(text + used, len - used, "; %u clients", c.n_honest + c.n_vandals);
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
    draw(&c, seed);
    c.cfg = &cfg;
    c.end = &end;
    make(&c);
    elv_sim_run(c.fleet->w, TROUBLE_S * SECOND);
    fleet_free(c.fleet);
    elv_sim_faults_free(c.faults);
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
