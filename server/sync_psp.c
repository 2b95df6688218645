/* SPDX-License-Identifier: Apache-2.0 */
/* Probabilistic synchronous parallel: like ssp, but a client compares itself with a few others
 * drawn at random, not with all.
 *
 *     policy = psp
 *     beta = 0.01            ; how many: a share of those there, at least one; 1 and more: a count
 *     barrier = pssp         ; pbsp: it may not be ahead of the slowest of them at all
 *     threshold = 4          ; with pssp: so many updates
 *     resample = on          ; off: who waits looks again at the same ones, not at others
 *     staleness = constant   ; what old updates are worth; see staleness.h
 *
 * beta = 0 is asp, and as many as there are is ssp; a percent already keeps the clients together,
 * while few wait. Who is drawn depends on the client, its clock and how often it drew, so asking
 * again gets the same answer. A client that must wait watches the slowest of its sample and looks
 * again when that one has delivered or gone: an update costs O(beta) and a look at those who watch
 * its sender. Source: Wang, Catterall, Mortier, "Probabilistic Synchronous Parallel",
 * arXiv:1709.07772. */
#include "server/clocks.h"
#include "server/param.h"
#include "server/sample.h"
#include "server/stream.h"

static const char *const params[] = {"beta",     "threshold",          "barrier",
                                     "resample", ELV_STALENESS_PARAMS, NULL};
static const char *const barriers[] = {"pssp", "pbsp", NULL};

/* One client, and one place in the list of those that count. */
struct peer {
    uint32_t place;         /* in the list, + 1; 0: it does not count */
    uint32_t row;           /* of the client in this place */
    uint32_t watched;       /* the row + 1 it waits for; 0: none */
    uint32_t next, prev;    /* rows + 1: others that watch the same, or the queue */
    uint32_t first_watcher; /* row + 1 */
    uint32_t n_draws;       /* since its latest update, before the one that counts */
    bool queued;            /* to look at its sample again */
};

/* The state: this, the clocks, the peers. */
struct head {
    uint32_t n; /* that count */
    uint32_t queue;
};

struct psp {
    struct head *head;
    struct elv_clocks *clocks;
    struct peer *peers;
    const struct elv_sync_cfg *cfg;
    uint32_t threshold;
    double beta;
    bool resample;
};

static size_t state_len(const struct elv_sync_cfg *cfg)
{
    return sizeof(struct head) + elv_clocks_len(cfg->clients_max) +
           (size_t)cfg->clients_max * sizeof(struct peer);
}

static struct psp psp_of(void *state, const struct elv_sync_cfg *cfg)
{
    const bool pssp = elv_param_word(cfg->params, "barrier", barriers, 0) == 0;
    const uint32_t threshold = pssp ? (uint32_t)elv_param_get(cfg->params, "threshold", 4.0) : 0;
    char *clocks = (char *)state + sizeof(struct head);
    return (struct psp){
        .head = state,
        .clocks = elv_clocks_of(clocks, threshold),
        .peers = (struct peer *)(void *)(clocks + elv_clocks_len(cfg->clients_max)),
        .cfg = cfg,
        .threshold = threshold,
        .beta = elv_param_get(cfg->params, "beta", 0.01),
        .resample = elv_param_get(cfg->params, "resample", 1.0) != 0.0,
    };
}

static enum elv_err check_beta(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                               uint32_t *line)
{
    const struct elv_param *p = elv_param_find(cfg->params, "beta");
    const bool fine = p == NULL || elv_param_is_count(p, 0, 1e6) || elv_param_is_number(p, 0, 1);
    if (fine && (p == NULL || cfg->clients_max == 0 || p->value <= (double)cfg->clients_max))
        return ELV_OK;
    *line = p->line;
    if (fine)
        return elv_param_refuse(why, "beta is at most the number of clients there can be");
    return elv_param_refuse(why, "beta is a share of the clients below 1, or a whole number of "
                                 "them up to 1000000");
}

static enum elv_err check_barrier(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                                  uint32_t *line)
{
    const int barrier = elv_param_word(cfg->params, "barrier", barriers, 0);
    const struct elv_param *threshold = elv_param_find(cfg->params, "threshold");
    if (barrier < 0) {
        *line = elv_param_find(cfg->params, "barrier")->line;
        return elv_param_refuse(why, "barrier is pssp or pbsp");
    }
    if (barrier == 0 || threshold == NULL)
        return elv_stream_count(cfg, "threshold", 0, 1e6,
                                "threshold is a whole number of updates from 0 to 1000000", why,
                                line);
    *line = threshold->line;
    return elv_param_refuse(why, "threshold is for barrier = pssp; with pbsp nobody may be ahead");
}

static enum elv_err check(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line)
{
    enum elv_err err = check_beta(cfg, why, line);
    if (err == ELV_OK)
        err = check_barrier(cfg, why, line);
    if (err == ELV_OK)
        err = elv_stream_switch(cfg, "resample", "resample is on or off", why, line);
    return err != ELV_OK ? err : elv_stream_check(cfg, why, line);
}

/* Puts `row` in front of a list that starts at `*first`. */
static void push(const struct psp *p, uint32_t *first, uint32_t row)
{
    struct peer *peer = &p->peers[row];
    peer->prev = 0;
    peer->next = *first;
    if (*first)
        p->peers[*first - 1].prev = row + 1;
    *first = row + 1;
}

static void cut(const struct psp *p, uint32_t *first, uint32_t row)
{
    const struct peer *peer = &p->peers[row];
    *(peer->prev ? &p->peers[peer->prev - 1].next : first) = peer->next;
    if (peer->next)
        p->peers[peer->next - 1].prev = peer->prev;
}

/* It waits for nobody and is not in the queue. */
static void unwatch(const struct psp *p, uint32_t row)
{
    struct peer *peer = &p->peers[row];
    if (peer->queued)
        cut(p, &p->head->queue, row);
    else if (peer->watched)
        cut(p, &p->peers[peer->watched - 1].first_watcher, row);
    peer->queued = false;
    peer->watched = 0;
}

static bool too_far(const struct psp *p, uint32_t row, uint32_t other)
{
    return elv_clocks_value(p->clocks, row) >
           (uint64_t)elv_clocks_value(p->clocks, other) + p->threshold;
}

/* Those that watch `row`, which has delivered or is `gone`, look again; at the same sample only
 * when it is near enough now. */
static void wake_watchers(const struct psp *p, uint32_t row, bool gone)
{
    for (uint32_t link = p->peers[row].first_watcher; link;) {
        const uint32_t watcher = link - 1;
        link = p->peers[watcher].next;
        if (!gone && !p->resample && too_far(p, watcher, row))
            continue;
        p->peers[watcher].n_draws += p->resample;
        unwatch(p, watcher);
        push(p, &p->head->queue, watcher);
        p->peers[watcher].queued = true;
    }
}

/* Its clock counts. */
static void take_in(const struct psp *p, uint32_t row)
{
    if (p->peers[row].place)
        return;
    p->peers[p->head->n].row = row;
    p->peers[row].place = ++p->head->n;
}

static void let_go(const struct psp *p, uint32_t row)
{
    const uint32_t place = p->peers[row].place;
    elv_clocks_leave(p->clocks, row);
    if (place == 0)
        return;
    const uint32_t last = p->peers[--p->head->n].row;
    p->peers[place - 1].row = last;
    p->peers[last].place = place;
    p->peers[row].place = p->peers[row].n_draws = 0;
    unwatch(p, row);
    wake_watchers(p, row, true);
}

static void forget(void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client who,
                   elv_time_us now)
{
    (void)now;
    const struct psp p = psp_of(state, cfg);
    let_go(&p, who.row);
}

static void on_timer(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                     elv_time_us now)
{
    (void)r;
    const struct psp p = psp_of(state, cfg);
    uint32_t row;
    while (elv_clocks_drop_silent(p.clocks, elv_stream_patience(cfg), now, &row))
        let_go(&p, row);
}

static elv_time_us timer(const void *state, const struct elv_sync_cfg *cfg)
{
    const void *clocks = (const char *)state + sizeof(struct head);
    return elv_clocks_silent_at(clocks, elv_stream_patience(cfg));
}

static uint32_t sample_len(const struct psp *p)
{
    if (p->beta >= 1.0 || p->beta <= 0.0)
        return (uint32_t)p->beta;
    const uint32_t share = (uint32_t)(p->beta * (double)p->head->n);
    return share > 0 ? share : 1;
}

/* The slowest of the client's sample, which has somebody in it. Selection draws for client 0, so
 * the streams of others are free. */
static uint32_t slowest_drawn(const struct psp *p, struct elv_sync_client who, uint32_t n_drawn)
{
    const uint32_t own = p->peers[who.row].place - 1;
    const struct elv_rng_key key = {.seed = p->cfg->seed,
                                    .client = who.client,
                                    .round = elv_clocks_value(p->clocks, who.row),
                                    .purpose = ELV_RNG_SELECT};
    struct elv_rng rng = elv_rng_of(key);
    elv_rng_seek(&rng, (uint64_t)ELV_SAMPLE_WORDS * p->peers[who.row].n_draws);
    const struct elv_sample s = elv_sample_of(p->head->n - 1, &rng);
    uint32_t slowest = who.row;
    for (uint32_t i = 0; i < n_drawn; i++) {
        const uint32_t other = elv_sample_at(&s, i);
        const uint32_t row = p->peers[other < own ? other : other + 1].row;
        if (elv_clocks_value(p->clocks, row) < elv_clocks_value(p->clocks, slowest))
            slowest = row;
    }
    return slowest;
}

/* Whether it may go on. Else it is parked, so that it is free once it is near the slowest of all,
 * and unless its sample is all, it watches somebody whose progress may free it earlier. */
static bool passes(const struct psp *p, struct elv_sync_client who, elv_time_us now)
{
    const uint32_t n_drawn = sample_len(p);
    unwatch(p, who.row);
    if (n_drawn == 0 || elv_clocks_ahead(p->clocks, who.row) <= p->threshold) {
        elv_clocks_resume(p->clocks, who.row, now);
        return true;
    }
    if (n_drawn < p->head->n - 1) {
        const uint32_t slowest = slowest_drawn(p, who, n_drawn);
        if (!too_far(p, who.row, slowest)) {
            elv_clocks_resume(p->clocks, who.row, now);
            return true;
        }
        p->peers[who.row].watched = slowest + 1;
        push(p, &p->peers[slowest].first_watcher, who.row);
    }
    elv_clocks_park(p->clocks, who.row);
    return false;
}

static struct elv_sync_grant on_pull(void *state, const struct elv_sync_cfg *cfg,
                                     const struct elv_sync_round *r, struct elv_sync_client who,
                                     elv_time_us now)
{
    (void)r;
    const struct psp p = psp_of(state, cfg);
    const struct peer *peer = &p.peers[who.row];
    if (!elv_clocks_enter(p.clocks, who, now))
        return (struct elv_sync_grant){.start = ELV_SYNC_START};
    take_in(&p, who.row);
    const bool waits = peer->watched && !peer->queued && elv_clocks_is_parked(p.clocks, who.row);
    return (struct elv_sync_grant){.start = waits || !passes(&p, who, now) ? ELV_SYNC_HOLD
                                                                           : ELV_SYNC_START};
}

static bool next(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                 struct elv_sync_client *who, elv_time_us now)
{
    (void)r;
    const struct psp p = psp_of(state, cfg);
    if (elv_clocks_next(p.clocks, who, now)) {
        unwatch(&p, who->row);
        return true;
    }
    while (p.head->queue) {
        *who = elv_clocks_client(p.clocks, p.head->queue - 1);
        if (passes(&p, *who, now))
            return true;
    }
    return false;
}

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    (void)r;
    const struct psp p = psp_of(state, cfg);
    unwatch(&p, u->from.row);
    p.peers[u->from.row].n_draws = 0;
    elv_clocks_tick(p.clocks, u->from, now);
    take_in(&p, u->from.row);
    wake_watchers(&p, u->from.row, false);
    return elv_stream_worth(cfg, u->staleness);
}

const struct elv_sync elv_sync_psp = {
    .name = "psp",
    .params = params,
    .flow = ELV_SYNC_STREAM,
    .single = true,
    .check = check,
    .state_len = state_len,
    .on_join = forget,
    .on_leave = forget,
    .on_timer = on_timer,
    .on_pull = on_pull,
    .next = next,
    .on_update = on_update,
    .should_commit = elv_stream_may,
    .scale = elv_stream_share,
    .timer = timer,
};
