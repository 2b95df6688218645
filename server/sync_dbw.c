/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic backup workers: before each round the policy chooses how many updates k to wait for, so
 * that the expected fall of the loss per unit of time is greatest.
 *
 *     policy = dbw
 *     variant = pai  ; of a round that closed, the late clients ...
 *                    ; psw, pull: finish, are told so, and take the newest version then
 *                    ; psi, pai: are interrupted
 *     rule = gain    ; argmax G(k) / T(k); blind: argmax k / T(k); adasync: k0 * sqrt(F_0 / F_t)
 *     depth = 5      ; versions that the estimates of N, V and L are means of
 *     guard = 1.01   ; the loss rose by more than this factor: at least one more than last time
 *     memory = 50    ; rounds after which a time seen counts 1/e; 0: nothing is forgotten
 *     k_min = 1      ; never fewer, as far as so many are there
 *     slack = 3      ; a round that takes so many times T(k) closes with what there is; 0: never
 *
 * Nothing can be pushed over CoAP, so live psw is pull and psi is pai: a client interrupted by a
 * notification of one datagram fetches the model chunk by chunk. The simulator keeps them apart.
 *
 * G is server/gain.h, T server/time_table.h. Clients that report no loss leave L unknown; then L is
 * taken as 1 / rate, for which a step of that rate is the best there is: G(k) = N - V / k.
 *
 * Sources: Xu, Neglia, Sebastianelli, "Dynamic Backup Workers for Parallel Machine Learning", IFIP
 * Networking 2020, arXiv:2004.14696; Dutta, Joshi, Ghosh, Dube, Nagpurkar, "Slow and Stale
 * Gradients Can Win the Race: Error-Runtime Trade-offs in Distributed SGD", AISTATS 2018,
 * arXiv:1803.01113, for adasync. */
#include <math.h>

#include "common/assert.h"
#include "server/gain.h"
#include "server/param.h"
#include "server/sync.h"
#include "server/time_table.h"

enum { PAST = 8, SWEEPS = 20 };

static const char *const params[] = {"variant", "rule",  "k0",    "depth", "guard",
                                     "memory",  "k_min", "slack", NULL};
static const char *const variants[] = {"psw", "psi", "pull", "pai", NULL};
static const char *const rules[] = {"gain", "blind", "adasync", NULL};
enum variant { PSW, PSI, PULL, PAI };
enum rule { GAIN, BLIND, ADASYNC };

/* A round whose updates still come in. */
struct past {
    uint32_t version;
    uint32_t h, n;
    uint32_t n_came; /* updates, used or not */
    elv_time_us opened;
};

struct dbw {
    bool begun;
    bool expired;  /* the open round took slack * T(k) */
    bool short_of; /* the round before did */
    uint32_t k, k_last;
    uint32_t h; /* updates that the round before used; 0: there was none */
    uint32_t newest;
    struct past past[PAST];
    elv_time_us expires;
    struct elv_gain gain;
    /* then the struct elv_time_table */
};

static struct elv_time_table *table(struct dbw *d) { return (struct elv_time_table *)(d + 1); }

static enum variant variant_of(const struct elv_sync_cfg *cfg)
{
    return (enum variant)elv_param_word(cfg->params, "variant", variants, PAI);
}

static enum rule rule_of(const struct elv_sync_cfg *cfg)
{
    return (enum rule)elv_param_word(cfg->params, "rule", rules, GAIN);
}

static bool interrupting(const struct elv_sync_cfg *cfg)
{
    const enum variant v = variant_of(cfg);
    return v == PSI || v == PAI;
}

static enum elv_err check(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line)
{
    static const struct {
        const char *name;
        bool whole;
        double zero, least, most; /* `zero` or from `least` to `most` */
        const char *sentence;
    } ranges[] = {
        {"k0", false, 1, 1, 1e6, "k0 is a number from 1 to 1000000"},
        {"depth", true, 1, 1, ELV_GAIN_DEPTH_MAX, "depth is a whole number from 1 to 64"},
        {"guard", false, 1, 1, 1e6, "guard is a factor from 1 to 1000000"},
        {"memory", true, 0, 2, 1e6,
         "memory is a whole number of rounds from 2 to 1000000, or 0: "
         "nothing is forgotten"},
        {"k_min", true, 1, 1, 1e6, "k_min is a whole number from 1 to 1000000"},
        {"slack", false, 0, 1, 1e6, "slack is a factor from 1 to 1000000, or 0: no limit"},
    };
    const struct elv_param *p;
    if ((p = elv_param_find(cfg->params, "variant")) != NULL && (int)variant_of(cfg) < 0) {
        *line = p->line;
        return elv_param_refuse(why, "variant is psw, psi, pull or pai");
    }
    if ((p = elv_param_find(cfg->params, "rule")) != NULL && (int)rule_of(cfg) < 0) {
        *line = p->line;
        return elv_param_refuse(why, "rule is gain, blind or adasync");
    }
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        p = elv_param_find(cfg->params, ranges[i].name);
        if (p == NULL || (p->kind == ELV_PARAM_NUMBER && p->value == ranges[i].zero))
            continue;
        *line = p->line;
        if (!(ranges[i].whole ? elv_param_is_count : elv_param_is_number)(p, ranges[i].least,
                                                                          ranges[i].most))
            return elv_param_refuse(why, ranges[i].sentence);
    }
    p = elv_param_find(cfg->params, "k_min");
    if (p != NULL && p->value < (double)cfg->quorum) {
        *line = p->line;
        return elv_param_refuse(why, "k_min is at least the quorum");
    }
    p = elv_param_find(cfg->params, "k0");
    if (p != NULL && rule_of(cfg) != ADASYNC) {
        *line = p->line;
        return elv_param_refuse(why, "k0 belongs to rule = adasync");
    }
    return ELV_OK;
}

static size_t state_len(const struct elv_sync_cfg *cfg)
{
    return sizeof(struct dbw) + elv_time_table_len(cfg->clients_max, interrupting(cfg));
}

static void begin(struct dbw *d, const struct elv_sync_cfg *cfg)
{
    d->begun = true;
    d->expires = ELV_NEVER;
    elv_gain_init(&d->gain, (uint32_t)elv_param_get(cfg->params, "depth", 5.0));
    elv_time_table_init(table(d), cfg->clients_max, interrupting(cfg));
}

/* The greatest of all k's worth per time; the smaller k of two alike. */
static uint32_t best(struct dbw *d, enum rule rule, uint32_t h, uint32_t least, uint32_t n)
{
    uint32_t k_best = n;
    double most = 0.0;
    for (uint32_t k = least; k <= n; k++) {
        const double worth = rule == BLIND ? k : elv_gain_of(&d->gain, k);
        const double rate = worth / elv_time_table_at(table(d), h, k);
        if (worth > 0.0 && rate > most) {
            most = rate;
            k_best = k;
        }
    }
    return k_best; /* no step is expected to gain anything: the least noisy one there is */
}

static uint32_t adasync(const struct dbw *d, const struct elv_sync_cfg *cfg)
{
    const double k0 = elv_param_get(cfg->params, "k0", 1.0);
    const double now = elv_recent_mean(&d->gain.loss);
    const double k =
        d->gain.loss.n > 0 && now > 0.0 ? ceil(k0 * sqrt(d->gain.loss_first / now)) : ceil(k0);
    return k < 1e6 ? (uint32_t)k : 1000000;
}

static uint32_t choose(struct dbw *d, const struct elv_sync_cfg *cfg, uint32_t h, uint32_t least,
                       uint32_t n)
{
    const enum rule rule = rule_of(cfg);
    if (rule == ADASYNC)
        return adasync(d, cfg);
    if (elv_time_table_is_empty(table(d)) || (rule == GAIN && !elv_gain_is_known(&d->gain)))
        return n;
    uint32_t k = best(d, rule, h, least, n);
    const bool rose =
        rule == GAIN && elv_gain_rose(&d->gain, elv_param_get(cfg->params, "guard", 1.01));
    if ((rose || d->short_of) && k <= d->k_last)
        k = d->k_last + 1;
    return k;
}

static void on_open(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r)
{
    struct dbw *d = state;
    if (!d->begun)
        begin(d, cfg);
    const uint32_t n = r->n_asked < 1 ? 1 : r->n_asked;
    const uint32_t least = (uint32_t)elv_param_get(cfg->params, "k_min", cfg->quorum);
    const double memory = elv_param_get(cfg->params, "memory", 50.0);
    const uint32_t h = d->h >= 1 && d->h < n ? d->h : n;
    elv_time_table_resize(table(d), n);
    if (memory > 0.0)
        elv_time_table_forget(table(d), 1.0 - 1.0 / memory);
    elv_time_table_fit(table(d), SWEEPS);
    uint32_t k = choose(d, cfg, h, least < n ? least : n, n);
    k = k < least ? least : k;
    d->k = k < n ? k : n;
    d->k_last = d->k;
    d->short_of = false;
    d->expired = false;
    const double slack = elv_param_get(cfg->params, "slack", 3.0);
    d->expires = ELV_NEVER;
    if (slack > 0.0 && !elv_time_table_is_empty(table(d)))
        d->expires = r->opened + (elv_time_us)(slack * elv_time_table_at(table(d), h, d->k));
    d->newest = (d->newest + 1) % PAST;
    d->past[d->newest] = (struct past){
        .version = r->version, .h = h, .n = n, .n_came = r->n_got, .opened = r->opened};
}

static uint32_t wanted(const struct dbw *d, const struct elv_sync_round *r)
{
    const uint32_t there = r->n_got + r->n_waiting;
    return d->k < there || there == 0 ? d->k : there;
}

static void came(struct dbw *d, struct past *p, elv_time_us now)
{
    const uint32_t n = table(d)->n;
    if (p->n_came >= p->n)
        return;
    p->n_came++;
    if (p->n_came <= n && now >= p->opened)
        elv_time_table_add(table(d), p->h < n ? p->h : n, p->n_came, (double)(now - p->opened));
}

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    (void)cfg;
    struct dbw *d = state;
    const bool ours = u->version == r->version;
    if (ours)
        came(d, &d->past[d->newest], now);
    return (struct elv_sync_worth){.counts = ours && r->n_got < d->k, .weight = 1.0};
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
    d->expired = true;
    d->short_of = true;
    d->expires = ELV_NEVER;
    if (!interrupting(cfg))
        return;
    struct past p = d->past[d->newest];
    while (p.n_came < d->k)
        came(d, &p, now);
}

static elv_time_us timer(const void *state, const struct elv_sync_cfg *cfg)
{
    (void)cfg;
    const struct dbw *d = state;
    return d->begun ? d->expires : ELV_NEVER;
}

static void on_commit(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_commit *c,
                      elv_time_us now)
{
    (void)cfg, (void)now;
    struct dbw *d = state;
    d->h = c->round.n_got;
    d->expires = ELV_NEVER;
    elv_gain_add(&d->gain, c);
}

static enum elv_sync_commit_when should_commit(const void *state, const struct elv_sync_cfg *cfg,
                                               const struct elv_sync_round *r, elv_time_us now)
{
    (void)cfg, (void)now;
    const struct dbw *d = state;
    return d->expired || r->n_got >= wanted(d, r) ? ELV_SYNC_MUST : ELV_SYNC_NO;
}

static uint32_t wants(const void *state, const struct elv_sync_cfg *cfg,
                      const struct elv_sync_round *r)
{
    (void)cfg;
    return wanted(state, r);
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
    .on_update = on_update,
    .on_late = on_late,
    .on_timer = on_timer,
    .on_commit = on_commit,
    .should_commit = should_commit,
    .wanted = wants,
    .timer = timer,
    .interrupts = interrupts,
};
