/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/faults.h"

#include <stdlib.h>

#include "common/assert.h"
#include "ports/sim/queue.h"

enum kind { CRASH, LEAVE, CUT, DISK };

struct source {
    struct elv_sim_faults *faults;
    enum kind kind;
    uint32_t node; /* or client */
    struct elv_sim_disk *disk;
    struct elv_sim_delay every, lasts;
    struct elv_sim_crashes crashes;
    struct elv_sim_bad_spells spells;
    struct elv_rng rng;
    uint32_t strikes;
    bool broken; /* a cut or a bad spell is on */
    struct source *next;
};

struct elv_sim_faults {
    struct elv_sim *world;
    uint64_t seed;
    elv_time_us until;
    struct source *sources;
    uint32_t n_sources;
};

static void strike(void *ctx, uint32_t unused);

static void heal(void *ctx, uint32_t unused)
{
    struct source *s = ctx;
    (void)unused;
    if (!s->broken)
        return;
    s->broken = false;
    if (s->kind == CUT) {
        struct elv_sim_link *link = elv_sim_link(s->faults->world, s->node);
        link->cut_up = link->cut_down = false;
    } else {
        struct elv_sim_disk_cfg *cfg = elv_sim_disk_cfg(s->disk);
        cfg->fail_ppm = cfg->append_fail_ppm = cfg->read_fail_ppm = 0;
    }
}

/* A node takes its time to end; one that crashed instead has been started by now. */
static void come_back(void *ctx, uint32_t starts)
{
    const struct source *s = ctx;
    struct elv_sim *w = s->faults->world;
    if (elv_sim_starts(w, s->node) != starts)
        return;
    if (elv_sim_ended(w, s->node, NULL))
        elv_sim_start(w, s->node);
    else
        elv_sim_at(w, elv_sim_now(w) + 1000000, come_back, ctx, starts);
}

/* Calls `what` after the drawn time of `lasts`, at the end of all faults at the latest. */
static void later(struct source *s, void (*what)(void *ctx, uint32_t arg), uint32_t arg)
{
    struct elv_sim *w = s->faults->world;
    elv_time_us when = elv_sim_now(w) + elv_sim_delay_draw(&s->lasts, &s->rng);
    if (when > s->faults->until)
        when = s->faults->until;
    elv_sim_at(w, when, what, s, arg);
}

static void wait(struct source *s)
{
    struct elv_sim *w = s->faults->world;
    const elv_time_us when = elv_sim_now(w) + elv_sim_delay_draw(&s->every, &s->rng);
    if (when < s->faults->until)
        elv_sim_at(w, when, strike, s, 0);
}

static void crash(struct source *s)
{
    const struct elv_sim_crash how = {
        .actions = elv_rng_below(&s->rng, s->crashes.actions_max + 1),
        .down_us = elv_sim_delay_draw(&s->crashes.down, &s->rng),
        .power = elv_sim_chance(&s->rng, s->crashes.power_ppm),
    };
    elv_sim_crash(s->faults->world, s->node, how);
}

static void cut(struct source *s)
{
    const uint32_t which = 1 + elv_rng_below(&s->rng, 3);
    struct elv_sim_link *link = elv_sim_link(s->faults->world, s->node);
    link->cut_up = (which & 1) != 0;
    link->cut_down = (which & 2) != 0;
    s->broken = true;
    later(s, heal, 0);
}

static void spoil(struct source *s)
{
    struct elv_sim_disk_cfg *cfg = elv_sim_disk_cfg(s->disk);
    cfg->fail_ppm = s->spells.fail_ppm;
    cfg->append_fail_ppm = s->spells.append_fail_ppm;
    cfg->read_fail_ppm = s->spells.read_fail_ppm;
    cfg->fail_with = s->spells.fail_with;
    if (cfg->fail_with == ELV_OK)
        cfg->fail_with = s->strikes % 2 == 0 ? ELV_ERR_IO : ELV_ERR_FULL;
    s->broken = true;
    later(s, heal, 0);
}

static void strike(void *ctx, uint32_t unused)
{
    struct source *s = ctx;
    (void)unused;
    switch (s->kind) {
    case CRASH:
        crash(s);
        break;
    case LEAVE:
        if (!elv_sim_up(s->faults->world, s->node))
            break;
        elv_sim_stop(s->faults->world, s->node);
        later(s, come_back, elv_sim_starts(s->faults->world, s->node));
        break;
    case CUT:
        cut(s);
        break;
    case DISK:
        spoil(s);
        break;
    }
    s->strikes++;
    wait(s);
}

static struct source *add(struct elv_sim_faults *f, enum kind kind, uint32_t node,
                          struct elv_sim_delay every, struct elv_sim_delay lasts)
{
    ELV_ASSERT(every.min_us + every.spread_us > 0);
    struct source *s = elv_sim_alloc(sizeof *s);
    const struct elv_rng_key key = {
        .seed = f->seed, .client = f->n_sources++, .round = 2, .purpose = ELV_RNG_DEVICE};
    *s = (struct source){.faults = f,
                         .kind = kind,
                         .node = node,
                         .every = every,
                         .lasts = lasts,
                         .rng = elv_rng_of(key),
                         .next = f->sources};
    f->sources = s;
    return s;
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

void elv_sim_faults_crash(struct elv_sim_faults *f, uint32_t node, struct elv_sim_crashes how)
{
    struct source *s = add(f, CRASH, node, how.every, how.down);
    s->crashes = how;
    wait(s);
}

void elv_sim_faults_leave(struct elv_sim_faults *f, uint32_t node, struct elv_sim_leaves how)
{
    wait(add(f, LEAVE, node, how.every, how.away));
}

void elv_sim_faults_cut(struct elv_sim_faults *f, uint32_t client, struct elv_sim_cuts how)
{
    wait(add(f, CUT, client, how.every, how.lasts));
}

void elv_sim_faults_disk(struct elv_sim_faults *f, struct elv_sim_disk *disk,
                         struct elv_sim_bad_spells how)
{
    struct source *s = add(f, DISK, 0, how.every, how.lasts);
    s->disk = disk;
    s->spells = how;
    wait(s);
}
