/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "ports/sim/lab/deploy_parts.h"
#include "server/param.h"

/* Its test set. */

static void begin(void *self, const float *w) { ((struct elv_deploy *)self)->exam.w = w; }

static enum elv_err run(void *self, uint32_t budget)
{
    struct elv_deploy *d = self;
    (void)budget;
    d->err = d->learner->evaluate(d->learner->self, d->exam.w, &d->exam.score);
    return d->err;
}

static void sums(void *self, struct elv_eval_sums *out)
{
    *out = ((struct elv_deploy *)self)->exam.score.sums;
}

/* Its node. The server and its memory lie in one block. */

static size_t rounded(size_t len)
{
    return (len + ELV_ARENA_ALIGN - 1) / ELV_ARENA_ALIGN * ELV_ARENA_ALIGN;
}

static enum elv_err start(void *self, uint32_t node, elv_time_us now, struct elv_node *out)
{
    struct elv_deploy *d = self;
    (void)node, (void)now;
    const size_t len = elv_server_mem(&d->server_cfg), head = rounded(sizeof *d->server);
    uint8_t *block = aligned_alloc(ELV_ARENA_ALIGN, head + rounded(len));
    if (block == NULL || len == 0) {
        d->err = len == 0 ? ELV_ERR_ARG : ELV_ERR_MEMORY;
        free(block);
        return d->err;
    }
    struct elv_server *server = (struct elv_server *)(void *)block;
    const enum elv_err err = elv_server_init(server, &d->server_cfg, block + head, len);
    if (err != ELV_OK) {
        free(block);
        if (err != ELV_ERR_IO) /* a disk in trouble gets better; state it cannot read does not */
            d->err = err;
        return err;
    }
    d->server = server;
    d->seen_notes = 0;
    *out = elv_server_node(server);
    return ELV_OK;
}

static void gone(void *self, uint32_t node)
{
    struct elv_deploy *d = self;
    (void)node;
    const struct elv_server_stats *s = elv_server_stats(d->server);
    d->bytes_up += s->bytes_up;
    d->bytes_down += s->bytes_down;
    free(d->server);
    d->server = NULL;
}

static enum elv_err make_start(struct elv_deploy *d)
{
    const size_t len = d->job.model.n_shared * sizeof *d->start;
    if (d->network->start == NULL)
        return ELV_OK;
    d->start = malloc(len);
    if (d->start == NULL)
        return ELV_ERR_MEMORY;
    memcpy(d->start, d->network->start, len);
    return ELV_OK;
}

/* Any run id does that is the same for the same seed. */
static void draw_run(uint64_t seed, uint8_t run_id[ELV_RUN_ID_LEN])
{
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_DEVICE});
    for (uint32_t i = 0; i < ELV_RUN_ID_LEN; i++)
        run_id[i] = (uint8_t)elv_rng_u32(&r);
}

enum elv_err elv_deploy_add_server(struct elv_deploy *d, char *why)
{
    const struct elv_sim_disk_cfg disk = {.clock = elv_sim_clock(d->w), .seed = d->cfg.run.seed};
    d->disk = elv_sim_disk_new(&disk);
    d->exam.scorer = (struct elv_scorer){.self = d, .begin = begin, .run = run, .sums = sums};
    const enum elv_err err = make_start(d);
    if (err != ELV_OK)
        return err;
    d->server_cfg =
        (struct elv_server_cfg){.job = &d->job,
                                .limits = {.clients_max = d->capacity},
                                .kernels = d->cfg.run.kernels,
                                .disk = elv_sim_disk_view(d->disk),
                                .scorer = d->network->test != NULL ? &d->exam.scorer : NULL,
                                .squeeze = d->network->squeeze,
                                .start = d->start};
    draw_run(d->cfg.run.seed, d->server_cfg.run);
    if (elv_server_mem(&d->server_cfg) == 0)
        return elv_param_refuse(why, "the server does not take this job: its policies, codecs or "
                                     "limits do not go together");
    const struct elv_sim_node_cfg node = {
        .host = {.self = d, .start = start, .gone = gone}, .disk = d->disk, .linger_us = ELV_NEVER};
    d->server_node = elv_sim_add_server(d->w, &node);
    return ELV_OK;
}

void elv_deploy_free_server(struct elv_deploy *d)
{
    elv_sim_disk_free(d->disk);
    free(d->start);
}
