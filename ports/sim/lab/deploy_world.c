/* SPDX-License-Identifier: Apache-2.0 */
#include "client/work.h"
#include "ports/sim/lab/deploy_parts.h"
#include "ports/sim/lab/learn_steps.h"
#include "ports/sim/queue.h"

/* Links. */

/* At most a year, which keeps the conversion defined. */
static elv_time_us latency(void *self, struct elv_rng *rng)
{
    const struct elv_deploy *d = self;
    const double us = elv_lab_draw(&d->world->link.latency, rng) * 1e6, year = 3.2e13;
    return (elv_time_us)(us < year ? us + 0.5 : year);
}

static uint32_t ppm(double share) { return (uint32_t)(share * ELV_SIM_PPM + 0.5); }

static uint32_t rate(double bytes_per_second)
{
    if (bytes_per_second <= 0.0)
        return 0;
    if (bytes_per_second < 1.0)
        return 1;
    return bytes_per_second < UINT32_MAX ? (uint32_t)bytes_per_second : UINT32_MAX;
}

struct elv_sim_link elv_deploy_link(struct elv_deploy *d, const struct elv_deploy_client *c)
{
    const struct elv_lab_link *l = &d->world->link;
    if (l->profile != NULL)
        return (struct elv_sim_link){.up = &l->profile->up, .down = &l->profile->down};
    return (struct elv_sim_link){
        .draw = elv_lab_draw_is_set(&l->latency) ? latency : NULL,
        .draw_self = d,
        .loss_ppm = ppm(l->loss),
        .duplicate_ppm = ppm(l->duplicate),
        .reorder_ppm = ppm(l->reorder),
        .held_back = {.shape = ELV_SIM_UNIFORM, .min_us = 1000, .spread_us = 50000},
        .up_bps = rate((double)c->facts.up),
        .down_bps = rate((double)c->facts.down),
    };
}

/* A trace says anew with each span what a link carries. */
static void renew_link(struct elv_deploy_client *c)
{
    struct elv_deploy *d = c->deploy;
    const struct elv_lab_span *span =
        elv_lab_span_at(d->world->trace, c->number, elv_sim_now(d->w));
    struct elv_sim_link *l = elv_sim_link(d->w, elv_deploy_node(c));
    if (span == NULL)
        return;
    l->up_bps = rate(span->up_bps);
    l->down_bps = rate(span->down_bps);
}

/* Devices. */

struct elv_lab_piece elv_deploy_piece(const struct elv_deploy_client *c)
{
    const struct elv_deploy *d = c->deploy;
    const struct elv_ticket *t = &c->node->ticket;
    const struct elv_size size = {
        .local_epochs = t->local_epochs, .local_steps = t->local_steps, .batch = t->batch};
    const struct elv_lab_steps s = elv_lab_steps_of(d->split->n_train[c->number - 1], size);
    return (struct elv_lab_piece){.client = c->number,
                                  .piece = c->pieces,
                                  .n_clients = d->cfg.run.n_clients,
                                  .steps = s.steps,
                                  .seen = s.seen,
                                  .at = elv_sim_now(d->w),
                                  .facts = c->facts};
}

static void wake(struct elv_deploy_client *c)
{
    struct elv_deploy *d = c->deploy;
    if (!c->asleep)
        return;
    c->asleep = false;
    d->n_asleep--;
    if (c->there)
        elv_sim_start(d->w, elv_deploy_node(c));
}

void elv_deploy_wake(struct elv_deploy *d)
{
    for (uint32_t i = 0; i < d->cfg.run.n_clients && d->n_asleep > 0; i++)
        wake(&d->clients[i]);
}

static void wake_later(void *ctx, uint32_t piece)
{
    struct elv_deploy_client *c = ctx;
    if (c->pieces == piece)
        wake(c);
}

/* Silent until nobody waits for this piece any more: started at once it would do it after all. */
static void die(void *ctx, uint32_t piece)
{
    struct elv_deploy_client *c = ctx;
    struct elv_deploy *d = c->deploy;
    const uint32_t node = elv_deploy_node(c);
    if (c->node == NULL || !c->open || c->pieces != piece)
        return;
    if (!d->streams && !(d->round_open && d->rec.seq == c->round)) {
        elv_sim_crash(d->w, node, (struct elv_sim_crash){.down_us = 0});
        return;
    }
    c->asleep = true;
    d->n_asleep++;
    elv_sim_crash(d->w, node, (struct elv_sim_crash){.down_us = ELV_NEVER});
    if (d->streams)
        elv_sim_at(d->w, c->begun + d->job.deadline_us, wake_later, c, piece);
}

elv_time_us elv_deploy_cost(void *self, uint32_t node, const struct elv_compute *work,
                            uint32_t units, struct elv_rng *rng)
{
    struct elv_deploy *d = self;
    struct elv_deploy_client *c = &d->clients[node - d->server_node - 1];
    (void)units, (void)rng;
    if (work->kind != ELV_CLIENT_TRAIN)
        return 0;
    const struct elv_lab_piece p = elv_deploy_piece(c);
    const elv_time_us cost = elv_lab_compute(d->world, d->cfg.run.seed, &p);
    if (c->dropped)
        elv_sim_at(d->w, p.at + cost, die, c, c->pieces);
    return cost;
}

/* Who is there: as swarm_clients.c has it. */

static void turn(void *ctx, uint32_t coming);

/* The next time it goes or returns. Stretches of no length are passed over. */
static void await_turn(struct elv_deploy_client *c)
{
    struct elv_deploy *d = c->deploy;
    const uint64_t seed = d->cfg.run.seed;
    elv_time_us at = elv_lab_stretch(d->world, seed, c->number, c->turns, elv_sim_now(d->w));
    while (at != ELV_NEVER && elv_lab_stretch(d->world, seed, c->number, c->turns + 1, at) == at) {
        c->turns += 2;
        at = elv_lab_stretch(d->world, seed, c->number, c->turns, at);
    }
    if (at != ELV_NEVER)
        elv_sim_at(d->w, at, turn, c, c->comings);
}

static void be_there(struct elv_deploy_client *c)
{
    c->there = true;
    renew_link(c);
    elv_sim_start(c->deploy->w, elv_deploy_node(c));
}

/* Silently, in the middle of whatever it does. */
static void go_away(struct elv_deploy_client *c)
{
    c->there = false;
    elv_sim_crash(c->deploy->w, elv_deploy_node(c), (struct elv_sim_crash){.down_us = ELV_NEVER});
}

static void turn(void *ctx, uint32_t coming)
{
    struct elv_deploy_client *c = ctx;
    if (c->comings != coming)
        return;
    c->turns++;
    await_turn(c);
    if (c->there)
        go_away(c);
    else
        be_there(c);
}

static void leave(void *ctx, uint32_t coming)
{
    struct elv_deploy_client *c = ctx;
    struct elv_deploy *d = c->deploy;
    struct elv_deploy_churn *churn = &d->churn;
    if (c->comings != coming)
        return;
    c->comings++; /* what was to come of this one does not */
    c->there = false;
    c->turns = (c->turns + 2) / 2 * 2; /* it is there when it comes again */
    elv_sim_stop(d->w, elv_deploy_node(c));
    if (churn->gone != NULL)
        churn->gone[(churn->from + churn->n_gone++) % d->cfg.run.n_clients] = c->number - 1;
}

static void join(void *ctx, uint32_t unused)
{
    struct elv_deploy_client *c = ctx;
    struct elv_deploy *d = c->deploy;
    (void)unused;
    c->comings++; /* odd ones are comings, even ones goings for good */
    const elv_time_us stays =
        elv_lab_stays(d->world, d->cfg.run.seed, c->number, (c->comings + 1) / 2);
    if (stays != ELV_NEVER)
        elv_sim_at(d->w, elv_sim_now(d->w) + stays, leave, c, c->comings);
    be_there(c);
    await_turn(c);
}

static void device_comes(void *ctx, uint32_t unused);

static void await_device(struct elv_deploy *d)
{
    const elv_time_us gap = elv_lab_gap(d->world, d->cfg.run.seed, ++d->churn.n_come);
    elv_sim_at(d->w, elv_sim_now(d->w) + gap, device_comes, d, 0);
}

/* New numbers first; then those come again that have been gone the longest, if they have ended. */
static void device_comes(void *ctx, uint32_t unused)
{
    struct elv_deploy *d = ctx;
    struct elv_deploy_churn *churn = &d->churn;
    (void)unused;
    await_device(d);
    if (churn->n_new < d->cfg.run.n_clients) {
        join(&d->clients[churn->n_new++], 0);
        return;
    }
    struct elv_deploy_client *c = &d->clients[churn->n_gone > 0 ? churn->gone[churn->from] : 0];
    if (churn->n_gone == 0 || elv_sim_up(d->w, elv_deploy_node(c)))
        return;
    churn->from = (churn->from + 1) % d->cfg.run.n_clients;
    churn->n_gone--;
    join(c, 0);
}

/* Faults. */

enum {
    ACTIONS_MAX = 20
}; /* a node lives for up to so many more, so that it dies in their middle */

static struct elv_sim_delay about(elv_time_us mean)
{
    return (struct elv_sim_delay){.shape = ELV_SIM_EXPONENTIAL, .spread_us = mean};
}

static void crash(struct elv_deploy *d, uint32_t node, elv_time_us every)
{
    const struct elv_sim_crashes how = {.every = about(every),
                                        .down = about(d->world->faults.down),
                                        .power_ppm = ELV_SIM_PPM / 4,
                                        .actions_max = ACTIONS_MAX};
    if (every > 0)
        elv_sim_faults_crash(d->faults, node, how);
}

static void add_faults(struct elv_deploy *d)
{
    const struct elv_lab_faults *f = &d->world->faults;
    const struct elv_sim_cuts cuts = {.every = about(f->partition), .lasts = about(f->lasts)};
    const struct elv_sim_bad_spells spells = {.every = about(f->disk_error),
                                              .lasts = about(f->lasts),
                                              .fail_ppm = ELV_SIM_PPM / 2,
                                              .append_fail_ppm = ELV_SIM_PPM / 10,
                                              .read_fail_ppm = ELV_SIM_PPM / 10};
    d->faults = elv_sim_faults_new(d->w, d->cfg.run.seed, ELV_NEVER);
    crash(d, d->server_node, f->server_crash);
    if (f->disk_error > 0)
        elv_sim_faults_disk(d->faults, d->disk, spells);
    for (uint32_t i = 0; i < d->cfg.run.n_clients; i++) {
        const uint32_t node = elv_deploy_node(&d->clients[i]);
        crash(d, node, f->client_crash);
        if (f->partition > 0)
            elv_sim_faults_cut(d->faults, node, cuts);
    }
}

void elv_deploy_populate(struct elv_deploy *d)
{
    const uint32_t n = d->cfg.run.n_clients;
    add_faults(d);
    if (d->world->availability.churn_rate > 0.0 && d->world->trace == NULL) {
        d->churn.gone = elv_sim_alloc(n * sizeof *d->churn.gone);
        await_device(d);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        elv_sim_at(d->w, elv_lab_comes(d->world, d->cfg.run.seed, i + 1, n), join, &d->clients[i],
                   0);
}
