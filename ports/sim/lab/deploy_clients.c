/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/arena.h"
#include "common/assert.h"
#include "ports/sim/lab/deploy_parts.h"
#include "ports/sim/queue.h"

enum { RETRY_S = 60 }; /* of a start while the device is away */

static struct elv_deploy_client *client_at(const struct elv_deploy *d, uint32_t node)
{
    return &d->clients[node - d->server_node - 1];
}

static void set_working(struct elv_deploy_client *c, bool working)
{
    struct elv_deploy *d = c->deploy;
    elv_deploy_pass_time(d);
    d->n_working += working;
    d->n_working -= c->working;
    c->working = working;
}

void elv_deploy_set_waits(struct elv_deploy_client *c, bool waits)
{
    struct elv_deploy *d = c->deploy;
    elv_deploy_pass_time(d);
    d->n_waiting += waits;
    d->n_waiting -= c->waits;
    c->waits = waits;
}

/* What it does, as its state shows. */

static void take_up(struct elv_deploy_client *c)
{
    const struct elv_ticket *t = &c->node->ticket;
    c->open = true;
    c->assignment = t->assignment;
    c->round = t->round;
    c->version = t->version;
    c->begun = elv_sim_now(c->deploy->w);
    c->pieces++;
    c->trained = c->told = false;
    const struct elv_lab_piece p = elv_deploy_piece(c);
    c->dropped = elv_lab_is_dropped(c->deploy->world, c->deploy->cfg.run.seed, &p);
    set_working(c, true);
    elv_deploy_set_waits(c, false);
    elv_deploy_tell(c, ELV_LAB_STARTED, 0, 0);
}

static void put_down(struct elv_deploy_client *c, enum elv_lab_event_kind undecided)
{
    c->open = false;
    set_working(c, false);
    if (!c->told)
        elv_deploy_tell(c, undecided, 0, 0);
}

void elv_deploy_decided(struct elv_deploy_client *c)
{
    if (!c->open || c->told)
        return;
    c->told = true;
    set_working(c, false);
    elv_deploy_set_waits(c, true);
}

/* A survey is nobody's piece of work. */
static bool has_work(const struct elv_client *n)
{
    return n->phase >= ELV_CLIENT_FETCHING && n->phase <= ELV_CLIENT_COMMITTING &&
           n->ticket.what == ELV_WHAT_TRAIN;
}

void elv_deploy_client_stepped(struct elv_deploy *d, uint32_t node)
{
    struct elv_deploy_client *c = client_at(d, node);
    const struct elv_client *n = c->node;
    const bool open = has_work(n);
    elv_deploy_park(c);
    if (c->open && (!open || n->ticket.assignment != c->assignment))
        put_down(c, c->trained ? ELV_LAB_LATE : ELV_LAB_INTERRUPTED);
    if (!open)
        return;
    if (!c->open)
        take_up(c);
    c->trained = c->trained || n->phase >= ELV_CLIENT_ENCODING;
}

/* Its node. */

static enum elv_err start(void *self, uint32_t node, elv_time_us now, struct elv_node *out)
{
    struct elv_deploy *d = self;
    struct elv_deploy_client *c = client_at(d, node);
    (void)now;
    if (!c->there || c->asleep)
        return ELV_ERR_BUSY; /* whatever crashed it */
    uint8_t *block = elv_deploy_take_block(d);
    if (block == NULL) {
        d->err = ELV_ERR_MEMORY;
        return ELV_ERR_MEMORY;
    }
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = d->cfg.run.seed,
                                                       .client = c->number,
                                                       .round = ++c->starts,
                                                       .purpose = ELV_RNG_JITTER});
    struct elv_client_cfg cfg = d->client_cfg;
    const size_t head = sizeof *c->node + ELV_ARENA_ALIGN - sizeof *c->node % ELV_ARENA_ALIGN;
    cfg.trainer = elv_deploy_trainer(c);
    cfg.boot = elv_rng_u64(&r);
    cfg.jitter_seed = elv_rng_u64(&r);
    c->node = (struct elv_client *)(void *)block;
    const enum elv_err err = elv_client_init(c->node, &cfg, block + head, d->client_len - head);
    ELV_ASSERT(err == ELV_OK);
    *out = elv_client_node(c->node);
    return ELV_OK;
}

static void gone(void *self, uint32_t node)
{
    struct elv_deploy_client *c = client_at(self, node);
    if (c->open)
        put_down(c, ELV_LAB_DROPPED);
    elv_deploy_set_waits(c, false);
    elv_deploy_give_block(c);
}

static size_t client_len(struct elv_deploy *d)
{
    struct elv_manifest m;
    const size_t head =
        sizeof(struct elv_client) + ELV_ARENA_ALIGN - sizeof(struct elv_client) % ELV_ARENA_ALIGN;
    elv_job_manifest(&d->job, d->server_cfg.run, &m);
    const size_t len = elv_client_mem(&d->client_cfg, &m, &d->job.model, d->job.batch_size);
    return len == 0 ? 0 : head + len + ELV_ARENA_ALIGN - len % ELV_ARENA_ALIGN;
}

enum elv_err elv_deploy_add_clients(struct elv_deploy *d)
{
    static const char software[] = "elver/0.1.0";
    const uint32_t n = d->cfg.run.n_clients;
    d->client_cfg = (struct elv_client_cfg){.squeeze = d->network->squeeze,
                                            .software = {software, sizeof software - 1},
                                            .observe = true,
                                            .leave_on_stop = true};
    d->client_len = client_len(d);
    if (d->client_len == 0)
        return ELV_ERR_MEMORY;
    struct elv_lab_facts *facts = elv_sim_alloc(n * sizeof *facts);
    d->clients = elv_sim_alloc(n * sizeof *d->clients);
    elv_lab_facts(d->world, d->cfg.run.seed, facts, n);
    for (uint32_t i = 0; i < n; i++) {
        struct elv_deploy_client *c = &d->clients[i];
        *c = (struct elv_deploy_client){.deploy = d, .number = i + 1, .facts = facts[i]};
        const struct elv_sim_node_cfg node = {.host = {.self = d, .start = start, .gone = gone},
                                              .start_us = ELV_NEVER,
                                              .retry_us = RETRY_S * (elv_time_us)1000000,
                                              .device = {.self = d, .cost = elv_deploy_cost},
                                              .server = d->server_node,
                                              .number = c->number,
                                              .link = elv_deploy_link(d, c)};
        const uint32_t at = elv_sim_add_client(d->w, &node);
        ELV_ASSERT(at == elv_deploy_node(c));
    }
    free(facts);
    return ELV_OK;
}
