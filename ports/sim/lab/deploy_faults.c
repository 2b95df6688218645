/* SPDX-License-Identifier: Apache-2.0 */
/* Faults for as long as a run takes, which nobody knows beforehand; ports/sim/faults.h draws those
 * of a campaign all at once. Each source has a stream of its own. */
#include <stdlib.h>

#include "common/rng.h"
#include "ports/sim/lab/deploy_parts.h"
#include "ports/sim/queue.h"

enum kind { CRASH, CUT, DISK };
enum {
    ACTIONS_MAX = 20
}; /* a node lives for up to so many more, so that it dies in their middle */

struct elv_deploy_fault {
    struct elv_deploy *deploy;
    enum kind kind;
    bool on; /* a cut or a bad spell, now */
    uint32_t node, strikes;
    elv_time_us every; /* on average, like everything here */
    struct elv_rng rng;
};

static void turn(void *ctx, uint32_t unused);

static elv_time_us draw(struct elv_deploy_fault *f, elv_time_us mean)
{
    const struct elv_sim_delay about = {.shape = ELV_SIM_EXPONENTIAL, .spread_us = mean};
    return elv_sim_delay_draw(&about, &f->rng);
}

static void wait(struct elv_deploy_fault *f, elv_time_us mean)
{
    struct elv_sim *w = f->deploy->w;
    elv_sim_at(w, elv_sim_now(w) + draw(f, mean), turn, f, 0);
}

static void crash(struct elv_deploy_fault *f)
{
    const struct elv_sim_crash how = {
        .actions = elv_rng_below(&f->rng, ACTIONS_MAX + 1),
        .down_us = draw(f, f->deploy->world->faults.down),
        .power = elv_sim_chance(&f->rng, ELV_SIM_PPM / 4),
    };
    elv_sim_crash(f->deploy->w, f->node, how);
}

static void cut(struct elv_deploy_fault *f)
{
    const uint32_t which = f->on ? 1 + elv_rng_below(&f->rng, 3) : 0;
    struct elv_sim_link *link = elv_sim_link(f->deploy->w, f->node);
    link->cut_up = (which & 1) != 0;
    link->cut_down = (which & 2) != 0;
}

static void spoil(struct elv_deploy_fault *f)
{
    struct elv_sim_disk_cfg *cfg = elv_sim_disk_cfg(f->deploy->disk);
    cfg->fail_ppm = f->on ? ELV_SIM_PPM / 2 : 0;
    cfg->append_fail_ppm = cfg->read_fail_ppm = f->on ? ELV_SIM_PPM / 10 : 0;
    cfg->fail_with = f->strikes++ % 4 < 2 ? ELV_ERR_IO : ELV_ERR_FULL;
}

/* It strikes, or what it broke is whole again. */
static void turn(void *ctx, uint32_t unused)
{
    struct elv_deploy_fault *f = ctx;
    (void)unused;
    f->on = f->kind != CRASH && !f->on;
    if (f->kind == CRASH)
        crash(f);
    else if (f->kind == CUT)
        cut(f);
    else
        spoil(f);
    wait(f, f->on ? f->deploy->world->faults.lasts : f->every);
}

static void add(struct elv_deploy *d, enum kind kind, uint32_t node, elv_time_us every)
{
    if (every <= 0)
        return;
    struct elv_deploy_fault *f = &d->faults[d->n_faults++];
    const struct elv_rng_key key = {.seed = d->cfg.run.seed,
                                    .client = node,
                                    .round = UINT32_MAX - (uint32_t)kind,
                                    .purpose = ELV_RNG_DEVICE};
    *f = (struct elv_deploy_fault){
        .deploy = d, .kind = kind, .node = node, .every = every, .rng = elv_rng_of(key)};
    wait(f, every);
}

void elv_deploy_add_faults(struct elv_deploy *d)
{
    const struct elv_lab_faults *f = &d->world->faults;
    const uint32_t n = d->cfg.run.n_clients;
    const size_t of_clients = (size_t)(f->client_crash > 0) + (f->partition > 0);
    d->faults = elv_sim_alloc((2 + n * of_clients) * sizeof *d->faults);
    add(d, CRASH, d->server_node, f->server_crash);
    add(d, DISK, d->server_node, f->disk_error);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t node = elv_deploy_node(&d->clients[i]);
        add(d, CRASH, node, f->client_crash);
        add(d, CUT, node, f->partition);
    }
}
