/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim_trouble.h"

#include <stdio.h>
#include <string.h>

#include "common/assert.h"
#include "common/rng.h"

#define SECOND ((elv_time_us)1000000)

enum { CLIENTS_MIN = 6, CLIENTS_MAX = 9, VANDALS_MAX = 2, CALM_LOSS_PPM = 50000, TEXT_MAX = 80 };
_Static_assert(CLIENTS_MAX + VANDALS_MAX == SIM_TROUBLE_PLACES, "a place for each");

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
    SHORT_LOG,
    KEEPS
};

static bool one_in(struct sim_trouble *t, uint32_t n) { return elv_rng_below(&t->rng, n) == 0; }

static void add_standing(struct sim_trouble *t, int kind, uint32_t place)
{
    ELV_ASSERT(t->n_standing < SIM_TROUBLE_STANDING_MAX);
    t->standing[t->n_standing++] = (struct sim_standing){kind, place, false};
}

static void draw_links(struct sim_trouble *t)
{
    static const uint32_t losses[] = {50000, 150000, 200000};
    t->loss_ppm = losses[elv_rng_below(&t->rng, 3)];
    for (uint32_t i = 0; i < t->n_honest; i++) {
        add_standing(t, LOSES, i);
        add_standing(t, REPEATS, i);
        add_standing(t, REORDERS, i);
    }
}

static void draw_maybe(struct sim_trouble *t, int kind, uint32_t in)
{
    if (one_in(t, in))
        add_standing(t, kind, 0);
}

/* From a stream of its own. */
static void draw_keepers(struct sim_trouble *t)
{
    struct elv_rng rng =
        elv_rng_of((struct elv_rng_key){.seed = t->seed, .round = 57, .purpose = ELV_RNG_TEST});
    const uint32_t of_three = elv_rng_below(&rng, 4); /* none, some, most or all */
    for (uint32_t i = 0; i < t->n_honest; i++)
        if (elv_rng_below(&rng, 3) < of_three)
            add_standing(t, KEEPS, i);
}

static void draw_standing(struct sim_trouble *t)
{
    draw_links(t);
    t->n_vandals = one_in(t, 4) ? VANDALS_MAX : 0;
    for (uint32_t i = 0; i < t->n_vandals; i++)
        add_standing(t, VANDAL, t->n_honest + i);
    draw_maybe(t, TWINS, 8);
    draw_maybe(t, ODD_CLOCKS, 2);
    draw_maybe(t, SLOW, 2);
    draw_maybe(t, TORN, 3);
    draw_maybe(t, DYING, 8);
    draw_maybe(t, FEW_UPLOADS, 10);
    draw_maybe(t, SHORT_LOG, 10);
    draw_keepers(t);
}

static elv_time_us seconds(struct sim_trouble *t, uint32_t least, uint32_t most)
{
    return (elv_time_us)(least + elv_rng_below(&t->rng, most - least + 1)) * SECOND;
}

/* The job is drawn from a stream of its own. */
void sim_trouble_draw(struct sim_trouble *t, uint64_t seed)
{
    memset(t, 0, sizeof *t);
    t->seed = seed;
    t->rng = elv_rng_of((struct elv_rng_key){.seed = seed, .round = 56, .purpose = ELV_RNG_TEST});
    t->n_honest = CLIENTS_MIN + elv_rng_below(&t->rng, CLIENTS_MAX - CLIENTS_MIN + 1);
    draw_standing(t);
    t->server_every = seconds(t, 6, 30);
    t->client_every = seconds(t, 15, 60);
    t->cut_every = seconds(t, 20, 60);
    t->revokes = one_in(t, 7);
    t->disk_fails = one_in(t, 3);
    t->disk_is_gone = one_in(t, 5);
    t->at_once = one_in(t, 5);
    t->observe = one_in(t, 3);
    t->scores = one_in(t, 3);
    t->revoked_at = seconds(t, 10, 50);
    t->changes = one_in(t, 6);
    t->changed_at = seconds(t, 10, 50);
    t->policy = sim_job_of(seed, t->n_honest, t->keys);
    t->other_policy = sim_job_other(seed, t->n_honest, t->other_keys);
}

static bool has(const struct sim_trouble *t, int kind, uint32_t place)
{
    for (uint32_t i = 0; i < t->n_standing; i++)
        if (t->standing[i].kind == kind && t->standing[i].place == place)
            return t->standing[i].on;
    return false;
}

static uint64_t short_log(const struct sim_trouble *t)
{
    return sim_job_is_wide(t->seed) ? 1000000 : 60000;
}

static struct fleet_cfg fleet_of(struct sim_trouble *t, void (*line)(void *ctx, const char *text),
                                 void *line_ctx)
{
    struct fleet_cfg cfg = {
        .seed = t->seed,
        .n_clients = t->n_honest + t->n_vandals,
        .n_vandals = t->n_vandals,
        .keys = t->keys,
        .link = {.delay = {.min_us = 20000, .spread_us = 100000},
                 .held_back = {.spread_us = 500000}},
        .disk = {.sync = {.min_us = 2000, .spread_us = 8000},
                 .torn = has(t, TORN, 0),
                 .dies = has(t, DYING, 0)},
        .client_disk = {.sync = {.min_us = 5000, .spread_us = 60000},
                        .torn = true,
                        .fail_ppm = 5000,
                        .append_fail_ppm = 5000,
                        .read_fail_ppm = 5000},
        .slice = t->at_once ? 0 : 4,
        .step_us = 30000,
        .slow = has(t, SLOW, 0) ? 6 : 0,
        .odd_clocks = has(t, ODD_CLOCKS, 0),
        .observe = t->observe,
        .join_spread_us = 10 * SECOND,
        .limits = {.uploads_max = has(t, FEW_UPLOADS, 0) ? 3 : 0,
                   .log_bytes_max = has(t, SHORT_LOG, 0) ? short_log(t) : 0},
        .scores = t->scores,
        .numbers = t->numbers,
        .line = line,
        .line_ctx = line_ctx,
    };
    for (uint32_t i = 0; i < SIM_TROUBLE_PLACES; i++)
        t->numbers[i] = i + 1;
    if (has(t, TWINS, 0))
        t->numbers[t->n_honest - 1] = 1;
    for (uint32_t i = 0; i < t->n_honest; i++)
        cfg.keeps |= (uint64_t)has(t, KEEPS, i) << i;
    for (uint32_t i = 0; i < t->n_vandals; i++)
        if (!has(t, VANDAL, t->n_honest + i))
            cfg.absent |= UINT64_C(1) << (t->n_honest + i);
    return cfg;
}

static void spoil_links(struct sim_trouble *t)
{
    for (uint32_t i = 0; i < t->n_honest; i++) {
        struct elv_sim_link *link = elv_sim_link(t->fleet->w, t->fleet->clients[i].node);
        link->loss_ppm = has(t, LOSES, i) ? t->loss_ppm : 0;
        link->duplicate_ppm = has(t, REPEATS, i) ? 100000 : 0;
        link->reorder_ppm = has(t, REORDERS, i) ? 100000 : 0;
    }
}

/* What is left of the trouble when all is healed. */
static void calm_links(void *ctx, uint32_t unused)
{
    struct sim_trouble *t = ctx;
    (void)unused;
    for (uint32_t i = 0; i < t->n_honest; i++) {
        struct elv_sim_link *link = elv_sim_link(t->fleet->w, t->fleet->clients[i].node);
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

/* The operator stops the server, and starts it with another policy. */
static void change(void *ctx, uint32_t unused)
{
    struct sim_trouble *t = ctx;
    (void)unused;
    fleet_change(t->fleet, t->other_keys);
    elv_sim_crash(t->fleet->w, t->fleet->server_node, (struct elv_sim_crash){.down_us = SECOND});
}

static void trouble_for_server(struct sim_trouble *t)
{
    struct fleet *f = t->fleet;
    elv_sim_faults_crash(t->faults, f->server_node,
                         (struct elv_sim_crashes){.every = about(t->server_every),
                                                  .down = about(2 * SECOND),
                                                  .power_ppm = ELV_SIM_PPM / 2,
                                                  .actions_max = 12});
    elv_sim_faults_leave(
        t->faults, f->server_node,
        (struct elv_sim_leaves){.every = about(60 * SECOND), .away = about(3 * SECOND)});
    elv_sim_faults_part(
        t->faults, f->clients[0].node, f->cfg.n_clients,
        (struct elv_sim_cuts){.every = about(60 * SECOND), .lasts = about(5 * SECOND)});
    if (t->disk_fails)
        elv_sim_faults_disk(
            t->faults, f->disk,
            (struct elv_sim_bad_spells){.every = about(15 * SECOND),
                                        .lasts = about((t->disk_is_gone ? 8 : 3) * SECOND),
                                        .fail_ppm = t->disk_is_gone ? ELV_SIM_PPM : 300000,
                                        .append_fail_ppm = t->disk_is_gone ? 0 : 50000,
                                        .read_fail_ppm = 50000});
}

static void trouble_for_client(struct sim_trouble *t, uint32_t i)
{
    const uint32_t node = t->fleet->clients[i].node;
    elv_sim_faults_crash(t->faults, node,
                         (struct elv_sim_crashes){.every = about(t->client_every),
                                                  .down = about(4 * SECOND),
                                                  .power_ppm = ELV_SIM_PPM / 2,
                                                  .actions_max = 6});
    elv_sim_faults_cut(
        t->faults, node,
        (struct elv_sim_cuts){.every = about(t->cut_every), .lasts = about(5 * SECOND)});
    if (i % 3 == 1)
        elv_sim_faults_leave(
            t->faults, node,
            (struct elv_sim_leaves){.every = about(40 * SECOND), .away = about(10 * SECOND)});
}

static void describe(const struct sim_standing *s, char text[TEXT_MAX])
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
        [SHORT_LOG] = "the upload log is short",
        [KEEPS] = "it has a disk",
    };
    if (s->kind <= VANDAL || s->kind == KEEPS)
        snprintf(text, TEXT_MAX, "client at place %u: %s", s->place, names[s->kind]);
    else
        snprintf(text, TEXT_MAX, "%s", names[s->kind]);
}

/* Whether each of those that last does. */
static void ask_standing(struct sim_trouble *t)
{
    char text[TEXT_MAX];
    for (uint32_t i = 0; i < t->n_standing; i++) {
        describe(&t->standing[i], text);
        t->standing[i].on = t->watch.happens(t->watch.self, i, text);
        if (t->standing[i].on)
            t->watch.struck(t->watch.self, i);
    }
}

static bool strikes(void *self, uint32_t number, const char *what)
{
    const struct sim_trouble *t = self;
    return t->watch.happens(t->watch.self, t->n_standing + number, what);
}

static void struck(void *self, uint32_t number)
{
    const struct sim_trouble *t = self;
    t->watch.struck(t->watch.self, t->n_standing + number);
}

void sim_trouble_begin(struct sim_trouble *t, const struct elv_sim_faults_watch *watch,
                       void (*line)(void *ctx, const char *text), void *line_ctx)
{
    t->watch = *watch;
    ask_standing(t);
    const struct fleet_cfg cfg = fleet_of(t, line, line_ctx);
    t->fleet = fleet_new(&cfg);
    spoil_links(t);
    elv_sim_at(t->fleet->w, SIM_TROUBLE_US, calm_links, t, 0);
    t->faults = elv_sim_faults_new(t->fleet->w, t->seed, SIM_TROUBLE_US);
    elv_sim_faults_set_watch(
        t->faults, &(struct elv_sim_faults_watch){.self = t, .happens = strikes, .struck = struck});
    trouble_for_server(t);
    for (uint32_t i = 0; i < t->n_honest; i++)
        trouble_for_client(t, i);
    if (t->changes)
        elv_sim_faults_once(t->faults, t->changed_at, "another policy, change", change, t, 0);
    if (t->revokes)
        elv_sim_faults_once(t->faults, t->revoked_at, "revocation of node", revoke, t->fleet,
                            t->fleet->clients[t->n_honest - 1].node);
}

void sim_trouble_end(struct sim_trouble *t)
{
    fleet_free(t->fleet);
    elv_sim_faults_free(t->faults);
}
