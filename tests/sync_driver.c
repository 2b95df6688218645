/* SPDX-License-Identifier: Apache-2.0 */
#include "sync_driver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/rng.h"
#include "server/job.h"

enum kind { ARRIVES, LAPSES, DIES, RETURNS };

struct happening {
    elv_time_us at;
    uint64_t order; /* equal times: by row, then as planned */
    enum kind kind;
    uint32_t row;
    uint32_t piece; /* of work; of a death its place */
};

struct client {
    bool there, works, dead;
    uint32_t piece; /* its latest */
    uint32_t n_done, clock;
    uint32_t version;
    uint64_t counted_before; /* when that version was published */
    elv_time_us started, idle_since;
};

struct driver {
    const struct sync_drive *cfg;
    struct elv_sync_cfg sync_cfg;
    void *state;
    struct client *clients;
    struct happening *heap;
    size_t n, cap;
    uint64_t order;
    elv_time_us now, published;
    struct elv_sync_round round;
    uint64_t counted_at_version;
    uint32_t *histogram; /* clients by clock, from the slowest's */
    uint32_t clocks_cap, slowest, fastest;
    struct elv_rng rng;
    struct sync_driven out;
    double stale_sum, weight_sum;
};

static bool is_before(const struct happening *a, const struct happening *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    return a->row != b->row ? a->row < b->row : a->order < b->order;
}

static void plan(struct driver *d, elv_time_us at, enum kind kind, uint32_t row, uint32_t piece)
{
    if (d->n == d->cap) {
        d->cap = d->cap ? 2 * d->cap : 64;
        d->heap = realloc(d->heap, d->cap * sizeof *d->heap);
        ELV_ASSERT(d->heap);
    }
    const struct happening h = {at, d->order++, kind, row, piece};
    size_t i = d->n++;
    for (; i > 0 && is_before(&h, &d->heap[(i - 1) / 2]); i = (i - 1) / 2)
        d->heap[i] = d->heap[(i - 1) / 2];
    d->heap[i] = h;
}

static struct happening take(struct driver *d)
{
    const struct happening top = d->heap[0], last = d->heap[--d->n];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < d->n; i = k) {
        if (k + 1 < d->n && is_before(&d->heap[k + 1], &d->heap[k]))
            k++;
        if (is_before(&last, &d->heap[k]))
            break;
        d->heap[i] = d->heap[k];
    }
    d->heap[i] = last;
    return top;
}

static void note(struct driver *d, uint64_t what)
{
    d->out.hash = (d->out.hash ^ what ^ (uint64_t)d->now << 20) * 0x100000001B3u;
}

static struct elv_sync_client who(uint32_t row)
{
    return (struct elv_sync_client){.row = row, .client = row + 1};
}

/* The driver's own clocks: what the policy's are held against. */
static void clock_to(struct driver *d, struct client *c, uint32_t value)
{
    while (value >= d->clocks_cap) {
        const uint32_t cap = 2 * d->clocks_cap + 64;
        d->histogram = realloc(d->histogram, cap * sizeof *d->histogram);
        ELV_ASSERT(d->histogram);
        memset(d->histogram + d->clocks_cap, 0, (cap - d->clocks_cap) * sizeof *d->histogram);
        d->clocks_cap = cap;
    }
    c->clock = value;
    d->histogram[value]++;
    d->fastest = value > d->fastest ? value : d->fastest;
}

static void clock_off(struct driver *d, const struct client *c)
{
    d->histogram[c->clock]--;
    while (d->slowest < d->fastest && d->histogram[d->slowest] == 0)
        d->slowest++;
    while (d->fastest > d->slowest && d->histogram[d->fastest] == 0)
        d->fastest--;
}

static void start(struct driver *d, uint32_t row)
{
    struct client *c = &d->clients[row];
    ELV_ASSERT(c->there && !c->works);
    d->out.waiting += c->dead ? 0.0 : (double)(d->now - c->idle_since);
    c->works = true;
    c->piece++;
    c->version = d->round.version;
    c->counted_before = d->counted_at_version;
    c->started = d->now;
    d->round.n_asked++;
    d->round.n_waiting++;
    if (d->round.n_waiting > d->out.working_max)
        d->out.working_max = d->round.n_waiting;
    note(d, 1 + row);
    if (!c->dead) {
        const elv_time_us took = d->cfg->duration(d->cfg->self, row, c->n_done);
        ELV_ASSERT(took > 0);
        plan(d, d->now + took, ARRIVES, row, c->piece);
    }
    if (d->now + d->cfg->deadline_us < d->cfg->horizon)
        plan(d, d->now + d->cfg->deadline_us, LAPSES, row, c->piece);
}

static void pull(struct driver *d, uint32_t row)
{
    const struct elv_sync *sync = d->cfg->sync;
    const struct client *c = &d->clients[row];
    if (c->dead || c->works || !c->there || sync->room)
        return;
    const struct elv_sync_grant g =
        sync->on_pull ? sync->on_pull(d->state, &d->sync_cfg, &d->round, who(row), d->now)
                      : (struct elv_sync_grant){.start = ELV_SYNC_START};
    if (g.start == ELV_SYNC_START)
        start(d, row);
}

static void open_round(struct driver *d)
{
    d->round.seq++;
    d->round.n_got = d->round.n_asked = 0;
    d->round.opened = d->now;
    d->round.deadline = d->now + d->cfg->deadline_us;
    if (d->cfg->sync->on_open)
        d->cfg->sync->on_open(d->state, &d->sync_cfg, &d->round);
}

static void took_until(struct driver *d, elv_time_us now)
{
    const elv_time_us gap = now - d->published;
    d->out.commit_gap = gap > d->out.commit_gap ? gap : d->out.commit_gap;
}

static void publish(struct driver *d)
{
    const struct elv_sync_commit commit = {
        .round = d->round, .version = d->round.version + 1, .loss = (double)NAN};
    took_until(d, d->now);
    d->published = d->now;
    d->round.version++;
    d->counted_at_version = d->out.n_counted;
    d->out.n_versions++;
    note(d, 0x40000000u);
    if (d->cfg->sync->on_commit)
        d->cfg->sync->on_commit(d->state, &d->sync_cfg, &commit, d->now);
    open_round(d);
}

static void check_round(struct driver *d)
{
    const bool quorum = d->round.n_got >= d->cfg->quorum;
    const bool late = d->now >= d->round.deadline;
    const enum elv_sync_commit_when when =
        quorum ? d->cfg->sync->should_commit(d->state, &d->sync_cfg, &d->round, d->now)
               : ELV_SYNC_NO;
    const bool paced = d->round.version == 0 || d->now - d->published >= d->cfg->publish_us;
    if (quorum && (late || when == ELV_SYNC_MUST || (when == ELV_SYNC_MAY && paced))) {
        publish(d);
    } else if (late) {
        d->out.n_abandoned++;
        open_round(d);
    }
}

static uint32_t idle_ones(const struct driver *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->cfg->n; i++)
        n += d->clients[i].there && !d->clients[i].works;
    return n;
}

/* Where the policy limits how many, chance decides who; the dead are as likely as the others. */
static void fill_room(struct driver *d)
{
    const struct elv_sync *sync = d->cfg->sync;
    while (sync->room && sync->room(d->state, &d->sync_cfg, &d->round) > 0) {
        const uint32_t n_idle = idle_ones(d);
        if (n_idle == 0)
            return;
        uint32_t skip = elv_rng_below(&d->rng, n_idle), row = 0;
        while (!d->clients[row].there || d->clients[row].works || skip-- > 0)
            row++;
        start(d, row);
    }
}

static void settle(struct driver *d)
{
    const struct elv_sync *sync = d->cfg->sync;
    struct elv_sync_client c;
    check_round(d);
    while (sync->next && sync->next(d->state, &d->sync_cfg, &d->round, &c, d->now)) {
        ELV_ASSERT(c.client == c.row + 1);
        start(d, c.row);
    }
    fill_room(d);
}

static void join(struct driver *d, uint32_t row)
{
    struct client *c = &d->clients[row];
    c->there = true;
    c->idle_since = d->now;
    d->round.n_joined++;
    clock_to(d, c, d->slowest);
    note(d, 0x10000000u + row);
    if (d->cfg->sync->on_join)
        d->cfg->sync->on_join(d->state, &d->sync_cfg, who(row), d->now);
}

static void leave(struct driver *d, uint32_t row)
{
    struct client *c = &d->clients[row];
    if (!c->there)
        return;
    d->round.n_waiting -= c->works;
    c->there = c->works = false;
    c->piece++; /* what is under way is void */
    d->round.n_joined--;
    clock_off(d, c);
    note(d, 0x20000000u + row);
    if (d->cfg->sync->on_leave)
        d->cfg->sync->on_leave(d->state, &d->sync_cfg, who(row), d->now);
}

static void arrive(struct driver *d, uint32_t row)
{
    struct client *c = &d->clients[row];
    const struct elv_sync_update u = {
        .from = who(row),
        .version = c->version,
        .staleness = (uint32_t)(d->out.n_counted - c->counted_before),
        .samples = 1,
        .seen = 1,
        .steps = 1,
        .compute_ms = (uint32_t)((d->now - c->started) / 1000),
        .started = c->started,
    };
    c->works = false;
    c->n_done++;
    c->idle_since = d->now;
    d->out.working += (double)(d->now - c->started);
    d->round.n_waiting--;
    const uint32_t clock = c->clock;
    clock_to(d, c, clock + 1);
    clock_off(d, &(struct client){.clock = clock});
    const uint32_t gap = d->fastest - d->slowest;
    d->out.gap_max = gap > d->out.gap_max ? gap : d->out.gap_max;
    const struct elv_sync_worth w =
        d->cfg->sync->on_update(d->state, &d->sync_cfg, &d->round, &u, d->now);
    ELV_ASSERT(w.weight > 0.0 && w.weight <= 1.0);
    note(d, 0x50000000u + row);
    d->out.n_updates++;
    d->stale_sum += (double)(d->round.version - c->version);
    if (w.counts) {
        d->out.n_counted++;
        d->round.n_got++;
        d->weight_sum += w.weight;
    }
    settle(d);
    pull(d, row);
}

static void die(struct driver *d, const struct sync_death *death)
{
    struct client *c = &d->clients[death->row];
    if (c->dead)
        return;
    if (c->there && !c->works)
        d->out.waiting += (double)(d->now - c->idle_since);
    c->dead = true;
    if (death->said)
        leave(d, death->row);
}

/* It comes as a newcomer, whether it was missed or not. */
static void come_back(struct driver *d, uint32_t row)
{
    struct client *c = &d->clients[row];
    if (!c->dead)
        return;
    leave(d, row);
    c->dead = false;
    join(d, row);
    pull(d, row);
}

static void happen(struct driver *d, const struct happening *h)
{
    const struct client *c = &d->clients[h->row];
    const bool current = c->works && c->piece == h->piece;
    switch (h->kind) {
    case ARRIVES:
        if (current && !c->dead)
            arrive(d, h->row);
        break;
    case LAPSES:
        if (current) {
            leave(d, h->row);
            if (!c->dead) {
                join(d, h->row);
                pull(d, h->row);
            }
        }
        break;
    case DIES:
        die(d, &d->cfg->deaths[h->piece]);
        break;
    case RETURNS:
        come_back(d, h->row);
        break;
    }
    settle(d);
}

static elv_time_us earlier(elv_time_us a, elv_time_us b) { return a < b ? a : b; }

/* The next moment at which anything is to be done. */
static elv_time_us next_moment(const struct driver *d, elv_time_us timer)
{
    elv_time_us at = earlier(d->round.deadline, timer);
    if (d->published + d->cfg->publish_us > d->now && d->round.n_got >= d->cfg->quorum)
        at = earlier(at, d->published + d->cfg->publish_us);
    return d->n > 0 ? earlier(at, d->heap[0].at) : at;
}

static void step(struct driver *d)
{
    const struct elv_sync *sync = d->cfg->sync;
    const elv_time_us timer = sync->timer ? sync->timer(d->state, &d->sync_cfg) : ELV_NEVER;
    const elv_time_us at = next_moment(d, timer);
    d->now = at > d->now ? at : d->now;
    if (d->now >= timer && sync->on_timer)
        sync->on_timer(d->state, &d->sync_cfg, &d->round, d->now);
    if (d->n > 0 && d->heap[0].at <= d->now) {
        const struct happening h = take(d);
        happen(d, &h);
    } else {
        settle(d);
    }
}

static void set_up(struct driver *d, const struct sync_drive *cfg)
{
    static const struct elv_params none;
    d->cfg = cfg;
    d->sync_cfg = (struct elv_sync_cfg){
        .clients_max = cfg->n,
        .quorum = cfg->quorum,
        .deadline_us = cfg->deadline_us,
        .publish_us = cfg->publish_us,
        .seed = cfg->seed,
        .params = cfg->params ? cfg->params : &none,
    };
    const size_t len = cfg->sync->state_len ? cfg->sync->state_len(&d->sync_cfg) : 0;
    d->state = calloc(1, len + 1);
    d->clients = calloc(cfg->n, sizeof *d->clients);
    d->rng = elv_rng_of((struct elv_rng_key){.seed = cfg->seed, .purpose = ELV_RNG_TEST});
    ELV_ASSERT(d->state && d->clients && cfg->sync->flow == ELV_SYNC_STREAM);
    for (uint32_t i = 0; i < cfg->n_deaths; i++) {
        plan(d, cfg->deaths[i].at, DIES, cfg->deaths[i].row, i);
        if (cfg->deaths[i].back != ELV_NEVER)
            plan(d, cfg->deaths[i].back, RETURNS, cfg->deaths[i].row, i);
    }
}

struct sync_driven sync_drive(const struct sync_drive *cfg)
{
    struct driver d = {.out.hash = 0xCBF29CE484222325u};
    set_up(&d, cfg);
    for (uint32_t i = 0; i < cfg->n; i++)
        join(&d, i);
    open_round(&d);
    for (uint32_t i = 0; i < cfg->n; i++)
        pull(&d, i);
    settle(&d);
    while (d.now < cfg->horizon)
        step(&d);
    took_until(&d, d.now);
    d.out.delivered = calloc(cfg->n, sizeof *d.out.delivered);
    ELV_ASSERT(d.out.delivered);
    for (uint32_t i = 0; i < cfg->n; i++) {
        const struct client *c = &d.clients[i];
        d.out.delivered[i] = c->n_done;
        if (c->there && !c->works && !c->dead)
            d.out.waiting += (double)(d.now - c->idle_since);
    }
    d.out.stale_mean = d.out.n_updates ? d.stale_sum / (double)d.out.n_updates : 0.0;
    d.out.weight_mean = d.out.n_counted ? d.weight_sum / (double)d.out.n_counted : 0.0;
    free(d.state);
    free(d.clients);
    free(d.heap);
    free(d.histogram);
    return d.out;
}

static const char *copy_word(char *out, size_t cap, const char *text, const char *stops)
{
    text += strspn(text, " ,=");
    const size_t len = strcspn(text, stops);
    ELV_ASSERT(len < cap);
    memcpy(out, text, len);
    out[len] = '\0';
    return text + len;
}

/* As the job file's parser would, for what tests write. */
struct elv_params sync_params(const char *text)
{
    struct elv_params p = {0};
    while (text[strspn(text, " ,")] != '\0') {
        struct elv_param *at = &p.at[p.n++];
        text = copy_word(at->name, sizeof at->name, text, " =");
        text = copy_word(at->word, sizeof at->word, text, " ,");
        char *end;
        at->value = strtod(at->word, &end);
        at->line = 10 + p.n;
        if (end != at->word && *end == '\0')
            continue;
        at->kind = ELV_PARAM_WORD;
        at->value = strcmp(at->word, "on") == 0 ? 1.0 : 0.0;
    }
    return p;
}
