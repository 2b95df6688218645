/* SPDX-License-Identifier: Apache-2.0 */
/* What an idle client need not keep: of its memory for the run only the version it holds and its
 * residual outlive a piece of work, and the version is the same for all who hold it. */
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "ports/sim/lab/deploy_parts.h"
#include "ports/sim/queue.h"

struct elv_deploy_kept { /* a version, for as long as a parked client holds it */
    uint32_t version, holders;
    struct elv_deploy_kept *next;
    float w[];
};

/* Layers of its own make a client's vector unlike all others. */
static bool shares(const struct elv_deploy *d)
{
    return d->job.model.n_params == d->job.model.n_shared;
}

static struct elv_deploy_kept *keep(struct elv_deploy *d, const struct elv_client *n)
{
    const size_t len = d->job.model.n_params * sizeof(float);
    struct elv_deploy_kept *k = d->kept;
    while (k != NULL && k->version != n->base.version)
        k = k->next;
    if (k == NULL) {
        k = elv_sim_alloc(sizeof *k + len);
        k->version = n->base.version;
        k->next = d->kept;
        memcpy(k->w, n->memory.base, len);
        d->kept = k;
    }
    k->holders++;
    return k;
}

static void let_go(struct elv_deploy *d, struct elv_deploy_kept *k)
{
    struct elv_deploy_kept **at = &d->kept;
    if (k == NULL || --k->holders > 0)
        return;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    free(k);
}

/* Whole pages in `from` .. `to`. */
static void drop(const struct elv_deploy *d, uint8_t *from, const uint8_t *to)
{
    const struct elv_deploy_pages *p = &d->cfg.pages;
    const size_t over = (size_t)((uintptr_t)from % p->page);
    uint8_t *const first = over > 0 ? from + (p->page - over) : from;
    if (first < to && (size_t)(to - first) >= p->page)
        p->drop(p->self, first, (size_t)(to - first) / p->page * p->page);
}

void elv_deploy_park(struct elv_deploy_client *c)
{
    struct elv_deploy *d = c->deploy;
    const struct elv_client *n = c->node;
    const bool idle = n->phase == ELV_CLIENT_IDLE && n->work.id == 0 && n->planned &&
                      n->residual.saved.vector == ELV_VECTOR_NONE;
    if (idle == c->parked || d->cfg.pages.drop == NULL)
        return;
    c->parked = idle;
    if (idle) {
        c->kept = shares(d) && n->base.held ? keep(d, n) : NULL;
        float *const first = shares(d) ? n->memory.base : n->memory.fresh;
        drop(d, (uint8_t *)first, (const uint8_t *)n + d->client_len);
        return;
    }
    if (c->kept != NULL)
        memcpy(n->memory.base, c->kept->w, d->job.model.n_params * sizeof(float));
    let_go(d, c->kept);
    c->kept = NULL;
}

/* Blocks of memory for clients. */

void *elv_deploy_take_block(struct elv_deploy *d)
{
    const struct elv_deploy_pages *p = &d->cfg.pages;
    return p->take != NULL ? p->take(p->self, d->client_len)
                           : aligned_alloc(ELV_ARENA_ALIGN, d->client_len);
}

void elv_deploy_give_block(struct elv_deploy_client *c)
{
    struct elv_deploy *d = c->deploy;
    const struct elv_deploy_pages *p = &d->cfg.pages;
    let_go(d, c->kept);
    c->kept = NULL;
    c->parked = false;
    if (p->take != NULL)
        p->give(p->self, c->node, d->client_len);
    else
        free(c->node);
    c->node = NULL;
}
