/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic backup workers: before each round the policy chooses for how many updates k to wait, so
 * that the expected fall of the loss per unit of time is greatest.
 *
 *     policy = dbw
 *     variant = pai  ; what becomes of those who are late when a round closes: with psw and pull
 *                    ; they finish and then take the newest version, with psi and pai they are
 *                    ; interrupted and take it at once
 *     rule = gain    ; k has the greatest G(k) / T(k); blind: the greatest k / T(k);
 *                    ; adasync: k = k0 * sqrt(first loss / loss now)
 *     k0 = 1         ; with adasync
 *     depth = 15     ; versions over which G's estimates are means
 *     guard = 1.01   ; at least one more than last time when the loss rose by more than this factor
 *     memory = 50    ; a time seen so many rounds ago counts 1/e; 0: nothing is forgotten
 *     k_min = 1      ; never fewer, where so many are there; the quorum unless given
 *     slack = 3      ; a round closes after so many times T(k) with what is there, and the next one
 *                    ; waits for more than were there; 0: it does not
 *
 * G is the gain of a step (server/gain.h) and T the time to the k-th update after a round that used
 * h (server/time_table.h). The first round waits for all; T(n) is taken there as twice the time
 * that half of them took. Where nobody ever delivers, such as the last of many when some always
 * fail, a round that waited till its deadline says that it takes at least so long. Where clients
 * report no loss, or one that says little of the version, G assumes the best smoothness for the
 * rate, so k still follows the noise of the updates.
 *
 * Nothing can be pushed over CoAP: there psw is pull, and psi is pai, where a notification of one
 * datagram interrupts and the client fetches the model itself. A simulation may tell them apart.
 *
 * Sources: Xu, Neglia, Sebastianelli, "Dynamic Backup Workers for Parallel Machine Learning", IFIP
 * Networking 2020, arXiv:2004.14696; adasync: Dutta, Joshi, Ghosh, Dube, Nagpurkar, "Slow and Stale
 * Gradients Can Win the Race", AISTATS 2018, arXiv:1803.01113. The deadline by T(k), forgetting and
 * interruption by notification are additions. */
#include <math.h>
#include <string.h>

#include "server/gain.h"
#include "server/param.h"
#include "server/sync.h"
#include "server/time_table.h"

enum { PAST = 8, K_MAX = 1000000 };

static const char *const params[] = {"variant", "rule",  "k0",    "depth", "guard",
                                     "memory",  "k_min", "slack", NULL};
static const char *const variants[] = {"psw", "psi", "pull", "pai", NULL};
static const char *const rules[] = {"gain", "blind", "adasync", NULL};
enum { PSW, PSI, PULL, PAI };
enum { GAIN, BLIND, ADASYNC };

/* A round whose updates may still come in. */
struct past {
    uint32_t version;
    uint32_t h;      /* updates that the round before it used */
    uint32_t n;      /* clients asked; 0: there was no such round */
    uint32_t n_came; /* updates, used or not */
    elv_time_us opened;
};

struct dbw {
    struct elv_gain gain;
    struct past past[PAST];
    uint32_t newest; /* place in `past` of the last round opened */
    uint32_t k, h;   /* of the last round opened, of the last that made a version; 0: none yet */
    uint32_t half;   /* half of those asked while no time is known; else 0 */
    bool chosen;     /* its k was, it is not n for want of anything known */
    bool expired;    /* the last round opened took `slack` times its T(k) */
    struct elv_gain_work work; /* of its updates that count; covered: the sum */
    elv_time_us expires;
    /* then the struct elv_time_table */
};

static int variant_of(const struct elv_sync_cfg *cfg)
{
    return elv_param_word(cfg->params, "variant", variants, PAI);
}

static int rule_of(const struct elv_sync_cfg *cfg)
{
    return elv_param_word(cfg->params, "rule", rules, GAIN);
}

/* Then everybody starts a round at once, so T does not depend on h, and who is late is never seen
 * to finish. */
static bool interrupting(const struct elv_sync_cfg *cfg)
{
    return variant_of(cfg) == PSI || variant_of(cfg) == PAI;
}

struct range {
    const char *name;
    bool whole;
    double off, least, most; /* accepted: `off`, and from `least` to `most` */
    const char *sentence;
};
static const struct range ranges[] = {
    {"k0", false, 1, 1, K_MAX, "k0 is a number from 1 to 1000000"},
    {"depth", true, 1, 1, ELV_GAIN_DEPTH_MAX, "depth is a whole number of versions from 1 to 64"},
    {"guard", false, 1, 1, K_MAX, "guard is a factor from 1 to 1000000"},
    {"memory", true, 0, 2, K_MAX,
     "memory is a whole number of rounds from 2 to 1000000, or 0: nothing is forgotten"},
    {"k_min", true, 1, 1, K_MAX, "k_min is a whole number from 1 to 1000000"},
    {"slack", false, 0, 1, K_MAX, "slack is a factor from 1 to 1000000, or 0: no limit"},
};

static bool is_within(const struct elv_param *p, const struct range *r)
{
    return elv_param_is_number(p, r->off, r->off) ||
           (r->whole ? elv_param_is_count(p, r->least, r->most)
                     : elv_param_is_number(p, r->least, r->most));
}

/* NULL, or what is wrong with the parameter. */
static const char *fault_of(const struct elv_sync_cfg *cfg, const struct elv_param *p)
{
    if (strcmp(p->name, "variant") == 0)
        return variant_of(cfg) < 0 ? "variant is psw, psi, pull or pai" : NULL;
    if (strcmp(p->name, "rule") == 0)
        return rule_of(cfg) < 0 ? "rule is gain, blind or adasync" : NULL;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (strcmp(p->name, ranges[i].name) == 0 && !is_within(p, &ranges[i]))
            return ranges[i].sentence;
    if (strcmp(p->name, "k_min") == 0 && p->value < (double)cfg->quorum)
        return "k_min is at least the quorum";
    const bool too_many = cfg->clients_max > 0 && p->value > (double)cfg->clients_max;
    if (strcmp(p->name, "k_min") == 0 && too_many)
        return "k_min is at most the number of clients asked: [select] count, or all there are";
    if (strcmp(p->name, "k0") == 0 && too_many)
        return "k0 is at most the number of clients asked: [select] count, or all there are";
    if (strcmp(p->name, "k0") == 0 && rule_of(cfg) != ADASYNC)
        return "k0 is for rule = adasync";
    return NULL;
}

static enum elv_err check(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line)
{
    for (uint32_t i = 0; cfg->params && i < cfg->params->n; i++) {
        const char *fault = fault_of(cfg, &cfg->params->at[i]);
        *line = cfg->params->at[i].line;
        if (fault)
            return elv_param_refuse(why, fault);
    }
    return ELV_OK;
}

static struct elv_time_table *table(struct dbw *d) { return (struct elv_time_table *)(d + 1); }

static size_t state_len(const struct elv_sync_cfg *cfg)
{
    return sizeof(struct dbw) + elv_time_table_len(cfg->clients_max, interrupting(cfg));
}

static void begin(struct dbw *d, const struct elv_sync_cfg *cfg)
{
    d->expires = ELV_NEVER;
    elv_gain_init(&d->gain, (uint32_t)elv_param_get(cfg->params, "depth", 15.0));
    elv_time_table_init(table(d), cfg->clients_max, interrupting(cfg));
}

/* The k worth most per time; of two alike the smaller. Without any gain to be expected n, the least
 * noisy step there is. */
static uint32_t best(struct dbw *d, int rule, uint32_t h, uint32_t least, uint32_t n)
{
    uint32_t k_best = n;
    double most = 0.0;
    for (uint32_t k = least; k <= n; k++) {
        const double time = elv_time_table_at(table(d), h, k);
        const double worth = rule == BLIND ? k : elv_gain_of(&d->gain, k);
        const double rate = worth / (time > 1.0 ? time : 1.0);
        if (rate > most) {
            most = rate;
            k_best = k;
        }
    }
    return k_best;
}

static uint32_t adasync(const struct dbw *d, const struct elv_sync_cfg *cfg)
{
    const double k = ceil(elv_param_get(cfg->params, "k0", 1.0) * sqrt(elv_gain_fall(&d->gain)));
    return k < K_MAX ? (uint32_t)k : K_MAX;
}

static bool knows(struct dbw *d, int rule)
{
    return rule == ADASYNC ||
           (!elv_time_table_is_empty(table(d)) && (rule == BLIND || elv_gain_is_known(&d->gain)));
}

/* More than last time, where that was not enough. */
static uint32_t at_least(const struct dbw *d, const struct elv_sync_cfg *cfg, int rule)
{
    if (rule == GAIN && elv_gain_rose(&d->gain, elv_param_get(cfg->params, "guard", 1.01)))
        return d->k + 1;
    return d->expired && d->chosen ? d->h + 1 : 0;
}

static uint32_t choose(struct dbw *d, const struct elv_sync_cfg *cfg, uint32_t h, uint32_t least,
                       uint32_t n)
{
    const int rule = rule_of(cfg);
    if (rule == ADASYNC)
        return adasync(d, cfg);
    if (!knows(d, rule))
        return n;
    const uint32_t k = best(d, rule, h, least, n), floor = at_least(d, cfg, rule);
    return k < floor ? floor : k;
}

static uint32_t within(uint32_t x, uint32_t least, uint32_t most)
{
    return x > most ? most : x < least ? least : x;
}

/* When the round closes with what is there, its T(k) being so many microseconds. */
static elv_time_us expires_after(const struct dbw *d, const struct elv_sync_cfg *cfg, double time)
{
    const double slack = elv_param_get(cfg->params, "slack", 3.0);
    return slack > 0.0 ? d->past[d->newest].opened + (elv_time_us)(slack * time) : ELV_NEVER;
}

static void on_open(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r)
{
    struct dbw *d = state;
    struct elv_time_table *t = table(d);
    if (d->k == 0)
        begin(d, cfg);
    const uint32_t n = within(r->n_asked, 1, cfg->clients_max);
    const uint32_t h = d->h >= 1 && d->h <= n ? d->h : n;
    const double memory = elv_param_get(cfg->params, "memory", 50.0);
    const uint32_t least = within((uint32_t)elv_param_get(cfg->params, "k_min", cfg->quorum), 1, n);
    elv_time_table_resize(t, n);
    if (memory > 0.0)
        elv_time_table_forget(t, 1.0 - 1.0 / memory);
    elv_time_table_fit(t);
    d->k = within(choose(d, cfg, h, least, n), least, n);
    d->chosen = knows(d, rule_of(cfg));
    d->expired = false;
    d->work = (struct elv_gain_work){0};
    d->newest = (d->newest + 1) % PAST;
    d->past[d->newest] = (struct past){
        .version = r->version, .h = h, .n = n, .n_came = r->n_got, .opened = r->opened};
    d->half = elv_time_table_is_empty(t) ? (n + 1) / 2 : 0;
    d->expires = d->half > 0 ? ELV_NEVER : expires_after(d, cfg, elv_time_table_at(t, h, d->k));
}

/* One more update of that round. The table may speak of other numbers of clients by now. */
static void came(struct dbw *d, struct past *p, elv_time_us now)
{
    const uint32_t n = table(d)->n;
    if (p->n_came >= p->n)
        return;
    p->n_came++;
    if (p->n_came <= n)
        elv_time_table_add(table(d), within(p->h, 1, n), p->n_came, (double)(now - p->opened));
}

/* What did not come until now would have taken at least so long. Only interrupted clients will not
 * say it themselves. */
static void did_not_come(struct dbw *d, const struct elv_sync_cfg *cfg, elv_time_us now)
{
    struct past p = d->past[d->newest];
    for (uint32_t i = p.n_came; interrupting(cfg) && i < d->k; i++)
        came(d, &p, now);
}

static void note_work(struct elv_gain_work *w, const struct elv_sync_update *u)
{
    if (u->steps > w->steps)
        w->steps = u->steps;
    if (u->samples > 0)
        w->covered += u->seen < u->samples ? (double)u->seen / u->samples : 1.0;
}

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    struct dbw *d = state;
    struct past *p = &d->past[d->newest];
    const bool ours = u->version == r->version, counts = ours && r->n_got < d->k;
    if (ours)
        came(d, p, now);
    if (ours && d->half > 0 && p->n_came == d->half)
        d->expires = expires_after(d, cfg, 2.0 * (double)(now - p->opened));
    if (counts)
        note_work(&d->work, u);
    return (struct elv_sync_worth){.counts = counts, .weight = 1.0};
}

static void on_late(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                    struct elv_sync_client c, uint32_t version, elv_time_us now)
{
    (void)cfg, (void)r, (void)c;
    struct dbw *d = state;
    for (uint32_t i = 0; i < PAST; i++) {
        struct past *p = &d->past[(d->newest + PAST - i) % PAST];
        if (p->n == 0 || p->version != version)
            continue;
        came(d, p, now);
        return;
    }
}

static void on_timer(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                     elv_time_us now)
{
    (void)r;
    struct dbw *d = state;
    if (now < d->expires)
        return;
    d->expires = ELV_NEVER;
    d->expired = true;
    did_not_come(d, cfg, now);
}

static elv_time_us timer(const void *state, const struct elv_sync_cfg *cfg)
{
    (void)cfg;
    const struct dbw *d = state;
    return d->k > 0 ? d->expires : ELV_NEVER;
}

static void on_commit(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_commit *c,
                      elv_time_us now)
{
    struct dbw *d = state;
    if (d->k == 0) /* it opened before a restart */
        return;
    if (now >= c->round.deadline && !d->expired)
        did_not_come(d, cfg, now);
    d->h = c->round.n_got;
    d->expires = ELV_NEVER;
    d->work.covered /= d->h > 0 ? d->h : 1;
    elv_gain_add(&d->gain, c, d->work);
}

/* Clients that left are not waited for. */
static uint32_t wanted(const void *state, const struct elv_sync_cfg *cfg,
                       const struct elv_sync_round *r)
{
    (void)cfg;
    const struct dbw *d = state;
    const uint32_t there = r->n_got + r->n_waiting;
    return there > 0 && there < d->k ? there : d->k;
}

static enum elv_sync_commit_when should_commit(const void *state, const struct elv_sync_cfg *cfg,
                                               const struct elv_sync_round *r, elv_time_us now)
{
    (void)now;
    const struct dbw *d = state;
    return d->expired || r->n_got >= wanted(state, cfg, r) ? ELV_SYNC_MUST : ELV_SYNC_NO;
}

static bool interrupts(const void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c)
{
    (void)state, (void)c;
    return interrupting(cfg);
}

const struct elv_sync elv_sync_dbw = {
    .name = "dbw",
    .params = params,
    .check = check,
    .state_len = state_len,
    .on_open = on_open,
    .on_timer = on_timer,
    .on_commit = on_commit,
    .on_late = on_late,
    .on_update = on_update,
    .should_commit = should_commit,
    .wanted = wanted,
    .timer = timer,
    .interrupts = interrupts,
};
