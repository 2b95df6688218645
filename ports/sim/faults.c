/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/faults.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/assert.h"
#include "ports/sim/queue.h"

enum kind { CRASH, LEAVE, CUT, DISK, ONCE };
enum { TEXT_MAX = 96 };

struct source {
    struct elv_sim_faults *faults;
    enum kind kind;
    uint32_t node, n; /* of clients: the first, and how many */
    struct elv_sim_disk *disk;
    struct elv_sim_delay every, lasts;
    struct elv_sim_crashes crashes;
    struct elv_sim_bad_spells spells;
    const char *name;
    void (*what)(void *ctx, uint32_t arg);
    void *ctx;
    uint32_t arg;
    struct elv_rng rng;
    uint32_t n_strikes;
    /* The next strike, or the one that goes on. */
    elv_time_us when, until;
    struct elv_sim_crash crash;
    bool up, down; /* what is cut */
    enum elv_err fails_with;
    bool on;                 /* a cut or a bad spell, now */
    struct source *next_cut; /* on: another one that cuts links now */
    struct source *next;
};

struct elv_sim_faults {
    struct elv_sim *world;
    uint64_t seed;
    elv_time_us until;
    struct source *sources, *cuts; /* all; those that cut links now */
    uint32_t n_sources, n_strikes;
    struct elv_sim_faults_watch watch;
};

static void strike(void *ctx, uint32_t unused);

/* A link is whole when nothing cuts it any longer. */
static void set_link(struct elv_sim_faults *f, uint32_t client)
{
    struct elv_sim_link *link = elv_sim_link(f->world, client);
    link->cut_up = link->cut_down = false;
    for (const struct source *s = f->cuts; s != NULL; s = s->next_cut) {
        if (client < s->node || client - s->node >= s->n)
            continue;
        link->cut_up = link->cut_up || s->up;
        link->cut_down = link->cut_down || s->down;
    }
}

static void set_links(struct source *s)
{
    struct source **at = &s->faults->cuts;
    if (s->on) {
        s->next_cut = *at;
        *at = s;
    } else {
        while (*at != s)
            at = &(*at)->next_cut;
        *at = s->next_cut;
    }
    for (uint32_t i = 0; i < s->n; i++)
        set_link(s->faults, s->node + i);
}

static void set_disk(const struct source *s)
{
    struct elv_sim_disk_cfg *cfg = elv_sim_disk_cfg(s->disk);
    cfg->fail_ppm = s->on ? s->spells.fail_ppm : 0;
    cfg->append_fail_ppm = s->on ? s->spells.append_fail_ppm : 0;
    cfg->read_fail_ppm = s->on ? s->spells.read_fail_ppm : 0;
    cfg->fail_with = s->fails_with;
}

static void heal(void *ctx, uint32_t unused)
{
    struct source *s = ctx;
    (void)unused;
    s->on = false;
    if (s->kind == CUT)
        set_links(s);
    else
        set_disk(s);
}

/* A node takes its time to end; one that crashed instead has been started by now. */
static void come_back(void *ctx, uint32_t starts)
{
    struct source *s = ctx;
    struct elv_sim *w = s->faults->world;
    if (elv_sim_starts(w, s->node) != starts)
        return;
    if (!elv_sim_up(w, s->node) && elv_sim_ended(w, s->node, NULL))
        elv_sim_start(w, s->node);
    else
        elv_sim_at(w, elv_sim_now(w) + 1000000, come_back, s, starts);
}

static void hit(struct source *s)
{
    struct elv_sim *w = s->faults->world;
    switch (s->kind) {
    case CRASH:
        elv_sim_crash(w, s->node, s->crash);
        break;
    case LEAVE:
        elv_sim_stop(w, s->node);
        elv_sim_at(w, s->until, come_back, s, elv_sim_starts(w, s->node));
        break;
    case CUT:
    case DISK:
        s->on = true;
        if (s->kind == CUT)
            set_links(s);
        else
            set_disk(s);
        elv_sim_at(w, s->until, heal, s, 0);
        break;
    case ONCE:
        s->what(s->ctx, s->arg);
        break;
    }
}

static void describe(const struct source *s, char text[TEXT_MAX])
{
    const double when = (double)s->when / 1e6, lasts = (double)(s->until - s->when) / 1e6;
    switch (s->kind) {
    case CRASH:
        snprintf(text, TEXT_MAX,
                 "%.3f s: node %" PRIu32 " %s after %" PRIu32 " actions, down %.3f s", when,
                 s->node, s->crash.power ? "loses power" : "crashes", s->crash.actions,
                 (double)s->crash.down_us / 1e6);
        break;
    case LEAVE:
        snprintf(text, TEXT_MAX, "%.3f s: node %" PRIu32 " is stopped, %.3f s", when, s->node,
                 lasts);
        break;
    case CUT:
        snprintf(text, TEXT_MAX,
                 "%.3f s: links of %" PRIu32 " node(s) from %" PRIu32 " cut%s%s, %.3f s", when,
                 s->n, s->node, s->up ? " up" : "", s->down ? " down" : "", lasts);
        break;
    case DISK:
        snprintf(text, TEXT_MAX, "%.3f s: disk %s, %.3f s", when,
                 s->fails_with == ELV_ERR_FULL ? "full" : "fails", lasts);
        break;
    case ONCE:
        snprintf(text, TEXT_MAX, "%.3f s: %s %" PRIu32, when, s->name, s->arg);
        break;
    }
}

static bool happens(const struct source *s, uint32_t number)
{
    const struct elv_sim_faults_watch *w = &s->faults->watch;
    char text[TEXT_MAX];
    if (w->happens == NULL)
        return true;
    describe(s, text);
    return w->happens(w->self, number, text);
}

/* How it will be; the same draws, whatever comes of them. */
static void draw(struct source *s)
{
    const struct elv_sim_faults *f = s->faults;
    const uint32_t which = s->kind == CUT ? 1 + elv_rng_below(&s->rng, 3) : 0;
    s->up = (which & 1) != 0;
    s->down = (which & 2) != 0;
    if (s->kind == CRASH)
        s->crash = (struct elv_sim_crash){
            .actions = elv_rng_below(&s->rng, s->crashes.actions_max + 1),
            .down_us = elv_sim_delay_draw(&s->crashes.down, &s->rng),
            .power = elv_sim_chance(&s->rng, s->crashes.power_ppm),
        };
    s->fails_with = s->spells.fail_with;
    if (s->fails_with == ELV_OK)
        s->fails_with = s->n_strikes % 2 == 0 ? ELV_ERR_IO : ELV_ERR_FULL;
    s->until = s->when + elv_sim_delay_draw(&s->lasts, &s->rng);
    if (s->until > f->until)
        s->until = f->until;
}

/* From `from` on. */
static void wait(struct source *s, elv_time_us from)
{
    s->when = from + elv_sim_delay_draw(&s->every, &s->rng);
    if (s->when >= s->faults->until)
        return;
    draw(s);
    elv_sim_at(s->faults->world, s->when, strike, s, 0);
}

/* A cut or a bad spell is over before the next begins. */
static void again(void *ctx, uint32_t unused)
{
    struct source *s = ctx;
    (void)unused;
    s->n_strikes++;
    wait(s, elv_sim_now(s->faults->world));
}

static void strike(void *ctx, uint32_t unused)
{
    struct source *s = ctx;
    struct elv_sim_faults *f = s->faults;
    const bool on_node = s->kind == CRASH || s->kind == LEAVE;
    const uint32_t number = f->n_strikes++;
    (void)unused;
    if (happens(s, number) && (!on_node || elv_sim_up(f->world, s->node))) {
        hit(s);
        if (f->watch.struck != NULL)
            f->watch.struck(f->watch.self, number);
    }
    if (s->kind == CRASH)
        again(s, 0);
    else if (s->kind != ONCE)
        elv_sim_at(f->world, s->until, again, s, 0);
}

static struct source *add(struct elv_sim_faults *f, enum kind kind, uint32_t node,
                          struct elv_sim_delay every, struct elv_sim_delay lasts)
{
    struct source *s = elv_sim_alloc(sizeof *s);
    const struct elv_rng_key key = {
        .seed = f->seed, .client = f->n_sources++, .round = 2, .purpose = ELV_RNG_DEVICE};
    *s = (struct source){.faults = f,
                         .kind = kind,
                         .node = node,
                         .n = 1,
                         .every = every,
                         .lasts = lasts,
                         .rng = elv_rng_of(key),
                         .next = f->sources};
    f->sources = s;
    return s;
}

static void begin(struct source *s)
{
    ELV_ASSERT(s->every.min_us + s->every.spread_us > 0);
    wait(s, elv_sim_now(s->faults->world));
}

struct elv_sim_faults *elv_sim_faults_new(struct elv_sim *w, uint64_t seed, elv_time_us until)
{
    struct elv_sim_faults *f = elv_sim_alloc(sizeof *f);
    *f = (struct elv_sim_faults){.world = w, .seed = seed, .until = until};
    return f;
}

void elv_sim_faults_free(struct elv_sim_faults *f)
{
    if (f == NULL)
        return;
    while (f->sources != NULL) {
        struct source *s = f->sources;
        f->sources = s->next;
        free(s);
    }
    free(f);
}

void elv_sim_faults_set_watch(struct elv_sim_faults *f, const struct elv_sim_faults_watch *watch)
{
    f->watch = *watch;
}

void elv_sim_faults_crash(struct elv_sim_faults *f, uint32_t node, struct elv_sim_crashes how)
{
    const struct elv_sim_delay none = {0};
    struct source *s = add(f, CRASH, node, how.every, none);
    s->crashes = how;
    begin(s);
}

void elv_sim_faults_leave(struct elv_sim_faults *f, uint32_t node, struct elv_sim_leaves how)
{
    begin(add(f, LEAVE, node, how.every, how.away));
}

void elv_sim_faults_part(struct elv_sim_faults *f, uint32_t client, uint32_t n,
                         struct elv_sim_cuts how)
{
    struct source *s = add(f, CUT, client, how.every, how.lasts);
    s->n = n;
    begin(s);
}

void elv_sim_faults_cut(struct elv_sim_faults *f, uint32_t client, struct elv_sim_cuts how)
{
    elv_sim_faults_part(f, client, 1, how);
}

void elv_sim_faults_disk(struct elv_sim_faults *f, struct elv_sim_disk *disk,
                         struct elv_sim_bad_spells how)
{
    struct source *s = add(f, DISK, 0, how.every, how.lasts);
    s->disk = disk;
    s->spells = how;
    begin(s);
}

void elv_sim_faults_once(struct elv_sim_faults *f, elv_time_us when, const char *name,
                         void (*what)(void *ctx, uint32_t arg), void *ctx, uint32_t arg)
{
    const struct elv_sim_delay none = {0};
    struct source *s = add(f, ONCE, 0, none, none);
    s->name = name;
    s->what = what;
    s->ctx = ctx;
    s->arg = arg;
    s->when = when;
    if (when < f->until)
        elv_sim_at(f->world, when, strike, s, 0);
}
