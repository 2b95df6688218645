/* SPDX-License-Identifier: Apache-2.0 */
/* Elastic bulk synchronous parallel: clients run freely, and now and then all of them meet at a
 * barrier whose moment is chosen so that nobody waits for long.
 *
 *     policy = ebsp
 *     lookahead = 15    ; a barrier lies within so many updates of each client from now ...
 *     r_min = 2         ; ... and no sooner than so many
 *     predictor = ema   ; of a client's interval: average of the gaps between being given work and
 *                       ; delivering it, kept from barrier to barrier, and after a jump to more
 *                       ; than twice or less than half the newest; or last: the newest gap between
 *                       ; two updates, as published
 *     slack = 0.5       ; a barrier waits for so much longer than it was foreseen, as a share of
 *                       ; the time to it
 *     tiers = auto      ; more clients than this are planned as this many groups of similar pace;
 *                       ; auto: more than 100 as 16; 0: never
 *
 * A super-step is the time between two barriers. It begins with monitoring: until everybody has
 * delivered twice, all run freely and their intervals are learnt. Then the next updates of each are
 * predicted, and one of each is chosen so that they arrive as close together as possible
 * (server/barrier.h). Who has delivered that one is parked; when all have, or time is up, the
 * version is made at once and all go on from it together. Who was late goes on with it after its
 * next update. Versions made in between let clients start from newer models.
 *
 * A client that comes during monitoring is waited for only while nobody has delivered twice, so
 * that a stream of newcomers cannot put the barrier off for ever; later ones run freely until a
 * plan is made after their second update.
 *
 * Source: Zhao, Papagelis, An, Chen, Liu, Hu, "Elastic Bulk Synchronous Parallel Model for
 * Distributed Deep Learning", ICDM 2019, arXiv:2001.01347. */
#include "common/assert.h"
#include "server/barrier.h"
#include "server/param.h"
#include "server/sync.h"
#include "server/zipline.h"

enum { ALONE_MAX = 100, TIERS = 16, TIERS_MAX = 1000, LOOKAHEAD_MAX = 10000, STAMPS = 2 };

/* Everybody there is in one of three rings. */
enum place { AWAY, RUNNING, PARKED, FREED, N_PLACES };

struct worker {
    elv_time_us pushed;   /* its last update since the barrier */
    elv_time_us interval; /* 0: not known */
    uint32_t client;
    uint32_t stamps; /* updates since the barrier, counted to STAMPS */
    uint32_t left;   /* updates until it is parked; 0: not in the plan */
    uint32_t next, prev;
    enum place place;
    bool expected; /* no plan without it */
    bool held;     /* PARKED: it asked for work */
};

struct ebsp {
    elv_time_us began; /* the super-step */
    elv_time_us limit; /* when the barrier is not waited for any longer */
    uint32_t n_there;
    uint32_t n_missing; /* expected, and fewer than STAMPS updates */
    uint32_t n_ready;   /* STAMPS updates */
    uint32_t n_aiming;  /* in the plan, and not parked */
    uint32_t reached;   /* the round in which the last one parked */
    bool begun, planned, overdue;
    struct worker at[]; /* [clients_max], and the ends of the rings */
};

static const char *const params[] = {"lookahead", "r_min", "predictor", "slack", "tiers", NULL};
static const char *const predictors[] = {"ema", "last", NULL};
static const char *const automatic[] = {"auto", NULL};

static struct elv_barrier_cfg barrier_of(const struct elv_sync_cfg *cfg)
{
    struct elv_barrier_cfg b = {
        .lookahead = (uint32_t)elv_param_get(cfg->params, "lookahead", 15.0),
        .r_min = (uint32_t)elv_param_get(cfg->params, "r_min", 2.0),
        .alone_max = ALONE_MAX,
        .tiers = TIERS,
    };
    const struct elv_param *tiers = elv_param_find(cfg->params, "tiers");
    if (tiers && tiers->kind == ELV_PARAM_NUMBER) {
        b.tiers = (uint32_t)tiers->value;
        b.alone_max = b.tiers > 0 ? b.tiers : UINT32_MAX;
    }
    return b;
}

static enum elv_err check_one(const struct elv_sync_cfg *cfg, const char *name, double least,
                              double most, bool whole, const char *sentence,
                              char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    const struct elv_param *p = elv_param_find(cfg->params, name);
    if (p == NULL ||
        (whole ? elv_param_is_count(p, least, most) : elv_param_is_number(p, least, most)))
        return ELV_OK;
    *line = p->line;
    return elv_param_refuse(why, sentence);
}

static enum elv_err check_words(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                                uint32_t *line)
{
    const struct elv_param *tiers = elv_param_find(cfg->params, "tiers");
    if (elv_param_word(cfg->params, "predictor", predictors, 0) < 0) {
        *line = elv_param_find(cfg->params, "predictor")->line;
        return elv_param_refuse(why, "predictor is ema or last");
    }
    if (tiers && !elv_param_is_count(tiers, 0, TIERS_MAX) &&
        elv_param_word(cfg->params, "tiers", automatic, 0) < 0) {
        *line = tiers->line;
        return elv_param_refuse(why, "tiers is auto, 0 for never, or at most 1000");
    }
    return ELV_OK;
}

static enum elv_err check_reach(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                                uint32_t *line)
{
    const struct elv_barrier_cfg b = barrier_of(cfg);
    const struct elv_param *p = elv_param_find(cfg->params, "r_min");
    if (b.r_min <= b.lookahead)
        return ELV_OK;
    *line = (p ? p : elv_param_find(cfg->params, "lookahead"))->line;
    return elv_param_refuse(why, "r_min, which is 2 unless given, is at most the lookahead, 15 "
                                 "unless given");
}

static enum elv_err check(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line)
{
    enum elv_err err = check_one(cfg, "lookahead", 1, LOOKAHEAD_MAX, true,
                                 "lookahead is a whole number from 1 to 10000", why, line);
    if (err == ELV_OK)
        err = check_one(cfg, "r_min", 1, LOOKAHEAD_MAX, true,
                        "r_min is a whole number from 1 to the lookahead", why, line);
    if (err == ELV_OK)
        err = check_reach(cfg, why, line);
    if (err == ELV_OK)
        err = check_one(cfg, "slack", 0, 100, false, "slack is a number from 0 to 100", why, line);
    return err != ELV_OK ? err : check_words(cfg, why, line);
}

/* Memory: workers, what the planner is asked, and its scratch. */

static size_t in_eights(size_t len) { return (len + 7) / 8 * 8; }

static size_t workers_len(const struct elv_sync_cfg *cfg)
{
    return in_eights(sizeof(struct ebsp) +
                     ((size_t)cfg->clients_max + N_PLACES) * sizeof(struct worker));
}

static size_t state_len(const struct elv_sync_cfg *cfg)
{
    const struct elv_barrier_cfg barrier = barrier_of(cfg);
    return workers_len(cfg) + cfg->clients_max * sizeof(struct elv_barrier_client) +
           elv_barrier_scratch_len(&barrier, cfg->clients_max);
}

static struct elv_barrier_client *asked_of(struct ebsp *s, const struct elv_sync_cfg *cfg)
{
    return (struct elv_barrier_client *)(void *)((uint8_t *)s + workers_len(cfg));
}

/* Rings. */

static uint32_t end_of(const struct elv_sync_cfg *cfg, enum place p)
{
    return cfg->clients_max + (uint32_t)p;
}

static void unlink(struct ebsp *s, struct worker *w)
{
    s->at[w->prev].next = w->next;
    s->at[w->next].prev = w->prev;
    w->place = AWAY;
}

static void move(struct ebsp *s, const struct elv_sync_cfg *cfg, struct worker *w, enum place to)
{
    if (w->place != AWAY)
        unlink(s, w);
    if (to == AWAY)
        return;
    struct worker *end = &s->at[end_of(cfg, to)];
    const uint32_t row = (uint32_t)(w - s->at);
    w->next = end_of(cfg, to);
    w->prev = end->prev;
    s->at[end->prev].next = row;
    end->prev = row;
    w->place = to;
}

static struct worker *first_of(struct ebsp *s, const struct elv_sync_cfg *cfg, enum place p)
{
    return &s->at[s->at[end_of(cfg, p)].next];
}

static struct worker *after(struct ebsp *s, const struct worker *w) { return &s->at[w->next]; }

static bool is_end(const struct ebsp *s, const struct elv_sync_cfg *cfg, const struct worker *w)
{
    return w >= s->at + cfg->clients_max;
}

static void begin(struct ebsp *s, const struct elv_sync_cfg *cfg, elv_time_us now)
{
    s->begun = true;
    s->began = now;
    for (uint32_t p = 0; p < N_PLACES; p++) {
        const uint32_t end = end_of(cfg, (enum place)p);
        s->at[end].next = s->at[end].prev = end;
    }
}

static struct worker *worker_of(struct ebsp *s, const struct elv_sync_cfg *cfg,
                                struct elv_sync_client c)
{
    ELV_ASSERT(c.row < cfg->clients_max);
    return &s->at[c.row];
}

/* The plan. */

static bool takes_part(const struct worker *w) { return w->stamps >= STAMPS; }

static uint32_t gather(struct ebsp *s, const struct elv_sync_cfg *cfg)
{
    struct elv_barrier_client *asked = asked_of(s, cfg);
    uint32_t n = 0;
    for (struct worker *w = first_of(s, cfg, RUNNING); !is_end(s, cfg, w); w = after(s, w))
        if (takes_part(w))
            asked[n++] = (struct elv_barrier_client){
                .row = (uint32_t)(w - s->at), .pushed = w->pushed, .interval = w->interval};
    return n;
}

static void plan(struct ebsp *s, const struct elv_sync_cfg *cfg, elv_time_us now)
{
    const struct elv_barrier_cfg barrier = barrier_of(cfg);
    const double slack = elv_param_get(cfg->params, "slack", 0.5);
    struct elv_barrier_client *asked = asked_of(s, cfg);
    const uint32_t n = gather(s, cfg);
    elv_time_us at;
    if (!elv_barrier_plan(&barrier, asked, n, s->began, now, asked + cfg->clients_max, &at))
        return;
    for (uint32_t i = 0; i < n; i++)
        s->at[asked[i].row].left = asked[i].updates;
    s->n_aiming = n;
    s->limit = at + (elv_time_us)(slack * (double)(at - now));
    s->planned = true;
}

static void plan_if_ready(struct ebsp *s, const struct elv_sync_cfg *cfg, elv_time_us now)
{
    if (!s->planned && s->n_missing == 0 && s->n_ready > 0)
        plan(s, cfg, now);
}

/* The protocol. */

static bool at_barrier(const struct ebsp *s)
{
    return s->planned && (s->n_aiming == 0 || s->overdue);
}

static void renew(struct worker *w)
{
    w->stamps = 0;
    w->left = 0;
    w->expected = true;
}

/* The barrier is over: a new super-step begins. */
static void lift(struct ebsp *s, const struct elv_sync_cfg *cfg, elv_time_us now)
{
    for (uint32_t p = RUNNING; p <= FREED; p++)
        for (struct worker *w = first_of(s, cfg, (enum place)p); !is_end(s, cfg, w);
             w = after(s, w))
            renew(w);
    while (!is_end(s, cfg, first_of(s, cfg, PARKED))) {
        struct worker *w = first_of(s, cfg, PARKED);
        move(s, cfg, w, w->held ? FREED : RUNNING);
    }
    s->n_missing = s->n_there;
    s->n_ready = s->n_aiming = 0;
    s->planned = s->overdue = false;
    s->began = now;
}

static void forget(struct ebsp *s, const struct elv_sync_cfg *cfg, struct worker *w)
{
    s->n_there--;
    s->n_ready -= takes_part(w);
    s->n_missing -= w->expected && !takes_part(w);
    s->n_aiming -= w->left > 0;
    move(s, cfg, w, AWAY);
}

static void on_join(void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c,
                    elv_time_us now)
{
    struct ebsp *s = state;
    if (!s->begun)
        begin(s, cfg, now);
    struct worker *w = worker_of(s, cfg, c);
    if (w->place != AWAY)
        forget(s, cfg, w);
    *w = (struct worker){.client = c.client,
                         .interval = w->client == c.client ? w->interval : 0,
                         .expected = !s->planned && s->n_ready == 0};
    s->n_there++;
    s->n_missing += w->expected;
    move(s, cfg, w, RUNNING);
}

static void on_leave(void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c,
                     elv_time_us now)
{
    struct ebsp *s = state;
    struct worker *w = worker_of(s, cfg, c);
    if (w->place == AWAY)
        return;
    forget(s, cfg, w);
    plan_if_ready(s, cfg, now);
}

static void on_timer(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                     elv_time_us now)
{
    struct ebsp *s = state;
    (void)cfg, (void)r;
    if (s->planned && now >= s->limit)
        s->overdue = true;
}

static elv_time_us timer(const void *state, const struct elv_sync_cfg *cfg)
{
    const struct ebsp *s = state;
    (void)cfg;
    return s->planned && !at_barrier(s) ? s->limit : ELV_NEVER;
}

static void learn(struct worker *w, const struct elv_sync_cfg *cfg, const struct elv_sync_update *u,
                  elv_time_us now)
{
    const bool last = elv_param_word(cfg->params, "predictor", predictors, 0) == 1;
    elv_time_us gap = now - (last && w->stamps > 0 ? w->pushed : u->started);
    gap = gap < 1 ? 1 : gap > ELV_ZIP_INTERVAL_MAX ? ELV_ZIP_INTERVAL_MAX : gap;
    const bool jumped = gap > 2 * w->interval || 2 * gap < w->interval;
    w->interval = last || jumped ? gap : (4 * w->interval + gap) / 5;
    w->pushed = now;
}

static void stamp(struct ebsp *s, struct worker *w)
{
    if (takes_part(w) || ++w->stamps < STAMPS)
        return;
    s->n_ready++;
    s->n_missing -= w->expected;
}

/* Nobody waits there for longer than work may take, however far off the plan put the others. */
static void park(struct ebsp *s, const struct elv_sync_cfg *cfg, struct worker *w, elv_time_us now)
{
    const bool first = is_end(s, cfg, first_of(s, cfg, PARKED));
    if (first && cfg->deadline_us > 0 && s->limit - now > cfg->deadline_us)
        s->limit = now + cfg->deadline_us;
    w->held = false;
    move(s, cfg, w, PARKED);
}

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    struct ebsp *s = state;
    struct worker *w = worker_of(s, cfg, u->from);
    const struct elv_sync_worth worth = {.counts = true, .weight = 1.0};
    if (w->place == AWAY) /* delivered with its last breath */
        return worth;
    learn(w, cfg, u, now);
    stamp(s, w);
    if (w->left > 0 && --w->left == 0) {
        s->n_aiming--;
        s->reached = r->seq;
        park(s, cfg, w, now);
    }
    plan_if_ready(s, cfg, now);
    return worth;
}

static struct elv_sync_grant on_pull(void *state, const struct elv_sync_cfg *cfg,
                                     const struct elv_sync_round *r, struct elv_sync_client c,
                                     elv_time_us now)
{
    struct ebsp *s = state;
    struct worker *w = worker_of(s, cfg, c);
    (void)r, (void)now;
    if (w->place == PARKED) {
        w->held = true;
        return (struct elv_sync_grant){ELV_SYNC_HOLD, 0};
    }
    if (w->place == FREED)
        move(s, cfg, w, RUNNING);
    return (struct elv_sync_grant){ELV_SYNC_START, 0};
}

/* When all that was parked for has been published on the way, or what is new falls short of the
 * quorum, there is no version to wait for. */
static bool next(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                 struct elv_sync_client *c, elv_time_us now)
{
    struct ebsp *s = state;
    if (!s->begun)
        return false;
    if (at_barrier(s) && r->opened != ELV_NEVER && r->n_got < cfg->quorum)
        lift(s, cfg, now);
    struct worker *w = first_of(s, cfg, FREED);
    if (is_end(s, cfg, w))
        return false;
    move(s, cfg, w, RUNNING);
    *c = (struct elv_sync_client){(uint32_t)(w - s->at), w->client};
    return true;
}

static enum elv_sync_commit_when should_commit(const void *state, const struct elv_sync_cfg *cfg,
                                               const struct elv_sync_round *r, elv_time_us now)
{
    (void)cfg, (void)now;
    if (at_barrier(state))
        return ELV_SYNC_MUST;
    return r->n_got > 0 ? ELV_SYNC_MAY : ELV_SYNC_NO;
}

/* A version under way when the last one parked does not hold that update yet. */
static void on_commit(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_commit *c,
                      elv_time_us now)
{
    struct ebsp *s = state;
    if (s->begun && at_barrier(s) && c->round.seq >= s->reached)
        lift(s, cfg, now);
}

static struct elv_sync_scale scale(const void *state, const struct elv_sync_cfg *cfg,
                                   const struct elv_sync_round *r)
{
    (void)state, (void)cfg, (void)r;
    return (struct elv_sync_scale){.by = ELV_SYNC_BY_FLEET, .step = 1.0};
}

const struct elv_sync elv_sync_ebsp = {
    .name = "ebsp",
    .params = params,
    .flow = ELV_SYNC_STREAM,
    .check = check,
    .state_len = state_len,
    .on_join = on_join,
    .on_leave = on_leave,
    .on_timer = on_timer,
    .on_commit = on_commit,
    .on_pull = on_pull,
    .next = next,
    .on_update = on_update,
    .should_commit = should_commit,
    .scale = scale,
    .timer = timer,
};
