/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/faults.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/assert.h"
#include "ports/sim/queue.h"

enum kind { CRASH, LEAVE, CUT, DISK, ONCE };

struct strike {
    enum kind kind;
    uint32_t node, n; /* of clients: the first, and how many */
    elv_time_us when, lasts;
    struct elv_sim_crash crash;
    bool up, down; /* what is cut */
    struct elv_sim_disk *disk;
    struct elv_sim_bad_spells spells;
    const char *name;
    void (*what)(void *ctx, uint32_t arg);
    void *ctx;
    uint32_t arg;
    bool skipped, struck;
    bool on; /* a cut or a bad spell, now */
};

struct elv_sim_faults {
    struct elv_sim *world;
    uint64_t seed;
    elv_time_us until;
    uint32_t n_sources;
    struct strike *at;
    uint32_t n, cap;
};

/* A link is whole when nothing cuts it any longer. */
static void set_link(struct elv_sim_faults *f, uint32_t client)
{
    struct elv_sim_link *link = elv_sim_link(f->world, client);
    link->cut_up = link->cut_down = false;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct strike *s = &f->at[i];
        if (s->kind != CUT || !s->on || client < s->node || client - s->node >= s->n)
            continue;
        link->cut_up = link->cut_up || s->up;
        link->cut_down = link->cut_down || s->down;
    }
}

static void set_links(struct elv_sim_faults *f, const struct strike *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        set_link(f, s->node + i);
}

static void set_disk(const struct strike *s)
{
    struct elv_sim_disk_cfg *cfg = elv_sim_disk_cfg(s->disk);
    cfg->fail_ppm = s->on ? s->spells.fail_ppm : 0;
    cfg->append_fail_ppm = s->on ? s->spells.append_fail_ppm : 0;
    cfg->read_fail_ppm = s->on ? s->spells.read_fail_ppm : 0;
    cfg->fail_with = s->spells.fail_with;
}

static void heal(void *ctx, uint32_t number)
{
    struct elv_sim_faults *f = ctx;
    struct strike *s = &f->at[number];
    s->on = false;
    if (s->kind == CUT)
        set_links(f, s);
    else
        set_disk(s);
}

/* A node takes its time to end; one that crashed instead has been started by now. */
static void come_back(void *ctx, uint32_t number)
{
    struct elv_sim_faults *f = ctx;
    const struct strike *s = &f->at[number];
    struct elv_sim *w = f->world;
    if (elv_sim_starts(w, s->node) != s->arg)
        return;
    if (elv_sim_ended(w, s->node, NULL))
        elv_sim_start(w, s->node);
    else
        elv_sim_at(w, elv_sim_now(w) + 1000000, come_back, f, number);
}

/* Calls `what` when it is over, at the end of all faults at the latest. */
static void later(struct elv_sim_faults *f, uint32_t number,
                  void (*what)(void *ctx, uint32_t number))
{
    const struct strike *s = &f->at[number];
    const elv_time_us over = s->when + s->lasts;
    elv_sim_at(f->world, over < f->until ? over : f->until, what, f, number);
}

static void hit(struct elv_sim_faults *f, uint32_t number)
{
    struct strike *s = &f->at[number];
    switch (s->kind) {
    case CRASH:
        elv_sim_crash(f->world, s->node, s->crash);
        break;
    case LEAVE:
        s->arg = elv_sim_starts(f->world, s->node);
        elv_sim_stop(f->world, s->node);
        later(f, number, come_back);
        break;
    case CUT:
        s->on = true;
        set_links(f, s);
        later(f, number, heal);
        break;
    case DISK:
        s->on = true;
        set_disk(s);
        later(f, number, heal);
        break;
    case ONCE:
        s->what(s->ctx, s->arg);
        break;
    }
}

static void strike(void *ctx, uint32_t number)
{
    struct elv_sim_faults *f = ctx;
    struct strike *s = &f->at[number];
    const bool on_node = s->kind == CRASH || s->kind == LEAVE;
    if (s->skipped || (on_node && !elv_sim_up(f->world, s->node)))
        return;
    s->struck = true;
    hit(f, number);
}

static void add(struct elv_sim_faults *f, const struct strike *s)
{
    if (f->n == f->cap) {
        f->cap = f->cap == 0 ? 64 : 2 * f->cap;
        f->at = elv_sim_grow(f->at, f->cap, sizeof *f->at);
    }
    f->at[f->n] = *s;
    elv_sim_at(f->world, s->when, strike, f, f->n++);
}

static struct elv_rng stream(struct elv_sim_faults *f)
{
    const struct elv_rng_key key = {
        .seed = f->seed, .client = f->n_sources++, .round = 2, .purpose = ELV_RNG_DEVICE};
    return elv_rng_of(key);
}

/* Moves `*when` on to the next strike. False: it would not be before the end. */
static bool next(const struct elv_sim_faults *f, const struct elv_sim_delay *every,
                 struct elv_rng *rng, elv_time_us *when)
{
    ELV_ASSERT(every->min_us + every->spread_us > 0);
    *when += elv_sim_delay_draw(every, rng);
    return *when < f->until;
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
    free(f->at);
    free(f);
}

void elv_sim_faults_crash(struct elv_sim_faults *f, uint32_t node, struct elv_sim_crashes how)
{
    struct elv_rng rng = stream(f);
    struct strike s = {.kind = CRASH, .node = node, .when = elv_sim_now(f->world)};
    while (next(f, &how.every, &rng, &s.when)) {
        s.crash = (struct elv_sim_crash){
            .actions = elv_rng_below(&rng, how.actions_max + 1),
            .down_us = elv_sim_delay_draw(&how.down, &rng),
            .power = elv_sim_chance(&rng, how.power_ppm),
        };
        add(f, &s);
    }
}

void elv_sim_faults_leave(struct elv_sim_faults *f, uint32_t node, struct elv_sim_leaves how)
{
    struct elv_rng rng = stream(f);
    struct strike s = {.kind = LEAVE, .node = node, .when = elv_sim_now(f->world)};
    while (next(f, &how.every, &rng, &s.when)) {
        s.lasts = elv_sim_delay_draw(&how.away, &rng);
        add(f, &s);
        s.when += s.lasts;
    }
}

void elv_sim_faults_cut(struct elv_sim_faults *f, uint32_t client, uint32_t n,
                        struct elv_sim_cuts how)
{
    struct elv_rng rng = stream(f);
    struct strike s = {.kind = CUT, .node = client, .n = n, .when = elv_sim_now(f->world)};
    while (next(f, &how.every, &rng, &s.when)) {
        const uint32_t which = 1 + elv_rng_below(&rng, 3);
        s.up = (which & 1) != 0;
        s.down = (which & 2) != 0;
        s.lasts = elv_sim_delay_draw(&how.lasts, &rng);
        add(f, &s);
        s.when += s.lasts;
    }
}

void elv_sim_faults_disk(struct elv_sim_faults *f, struct elv_sim_disk *disk,
                         struct elv_sim_bad_spells how)
{
    struct elv_rng rng = stream(f);
    struct strike s = {.kind = DISK, .disk = disk, .spells = how, .when = elv_sim_now(f->world)};
    for (uint32_t i = 0; next(f, &how.every, &rng, &s.when); i++) {
        if (how.fail_with == ELV_OK)
            s.spells.fail_with = i % 2 == 0 ? ELV_ERR_IO : ELV_ERR_FULL;
        s.lasts = elv_sim_delay_draw(&how.lasts, &rng);
        add(f, &s);
        s.when += s.lasts;
    }
}

void elv_sim_faults_once(struct elv_sim_faults *f, elv_time_us when, const char *name,
                         void (*what)(void *ctx, uint32_t arg), void *ctx, uint32_t arg)
{
    add(f, &(struct strike){
               .kind = ONCE, .when = when, .name = name, .what = what, .ctx = ctx, .arg = arg});
}

uint32_t elv_sim_faults_count(const struct elv_sim_faults *f) { return f->n; }

void elv_sim_faults_skip(struct elv_sim_faults *f, uint32_t number)
{
    ELV_ASSERT(number < f->n);
    f->at[number].skipped = true;
}

bool elv_sim_faults_struck(const struct elv_sim_faults *f, uint32_t number)
{
    ELV_ASSERT(number < f->n);
    return f->at[number].struck;
}

void elv_sim_faults_text(const struct elv_sim_faults *f, uint32_t number,
                         char text[ELV_SIM_FAULT_TEXT_MAX])
{
    ELV_ASSERT(number < f->n);
    const struct strike *s = &f->at[number];
    const double when = (double)s->when / 1e6, lasts = (double)s->lasts / 1e6;
    switch (s->kind) {
    case CRASH:
        snprintf(text, ELV_SIM_FAULT_TEXT_MAX, "%.3f s: node %u %s after %u actions, down %.3f s",
                 when, s->node, s->crash.power ? "loses power" : "crashes", s->crash.actions,
                 (double)s->crash.down_us / 1e6);
        break;
    case LEAVE:
        snprintf(text, ELV_SIM_FAULT_TEXT_MAX, "%.3f s: node %u is stopped for %.3f s", when,
                 s->node, lasts);
        break;
    case CUT:
        snprintf(text, ELV_SIM_FAULT_TEXT_MAX,
                 "%.3f s: links of %u node(s) from %u cut%s%s, %.3f s", when, s->n, s->node,
                 s->up ? " up" : "", s->down ? " down" : "", lasts);
        break;
    case DISK:
        snprintf(text, ELV_SIM_FAULT_TEXT_MAX, "%.3f s: disk %s for %.3f s", when,
                 s->spells.fail_with == ELV_ERR_FULL ? "full" : "fails", lasts);
        break;
    case ONCE:
        snprintf(text, ELV_SIM_FAULT_TEXT_MAX, "%.3f s: %s %u", when, s->name, s->arg);
        break;
    }
}
