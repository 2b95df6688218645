/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"

#include "client/assignment_internal.h"
#include "client/session_internal.h"
#include "common/assert.h"

/* Beyond a chunk's SEND and two FORGETs: END, CANCEL, COMPUTE, RELINK twice, a control request, and
 * the control requests forgotten, and what is stored. */
enum { ACTIONS_BESIDES = 6 + ELV_FORGET_MAX + ELV_PERSIST_ACTIONS, ACTIONS_PER_CHUNK = 3 };

enum { OVERSLEPT_US = 1000000 }; /* later than any port is by itself */

enum { BURST_MAX = 32, WINDOW_LIMIT = 1024 };

static struct elv_client_cfg with_defaults(const struct elv_client_cfg *cfg)
{
    struct elv_client_cfg full = *cfg;
    if (full.burst == 0)
        full.burst = ELV_CLIENT_BURST;
    if (full.window == 0)
        full.window = ELV_WINDOW_MAX;
    if (full.duty == 0)
        full.duty = 100;
    if (full.software.len == 0)
        full.software = (struct elv_text){"elver", 5};
    return full;
}

/* What is the same for all runs. */
static void cut(struct elv_arena *a, const struct elv_client_cfg *cfg, struct elv_memory *m,
                struct elv_persist *p)
{
    elv_memory_fixed(a, cfg->burst, cfg->window, m);
    elv_persist_layout(p, cfg->disk, a);
}

size_t elv_client_mem_min(const struct elv_client_cfg *cfg)
{
    const struct elv_client_cfg full = with_defaults(cfg);
    struct elv_memory m;
    struct elv_persist p;
    struct elv_arena a = elv_arena_of(NULL, 0);
    cut(&a, &full, &m, &p);
    return a.used;
}

size_t elv_client_mem(const struct elv_client_cfg *cfg, const struct elv_manifest *manifest,
                      const struct elv_model *model, uint32_t batch)
{
    const struct elv_client_cfg full = with_defaults(cfg);
    struct elv_memory m;
    struct elv_persist p;
    struct elv_arena a = elv_arena_of(NULL, 0);
    cut(&a, &full, &m, &p);
    if (elv_memory_run(&a, manifest, model, true, &m) != ELV_OK)
        return 0;
    if (cfg->trainer.mem == NULL)
        return a.used;
    const size_t trainer = cfg->trainer.mem(cfg->trainer.self, manifest, model, batch);
    elv_arena_take(&a, trainer, 1);
    return trainer > 0 && a.err == ELV_OK ? a.used : 0;
}

enum elv_err elv_client_init(struct elv_client *c, const struct elv_client_cfg *cfg, void *mem,
                             size_t len)
{
    const struct elv_client_cfg full = with_defaults(cfg);
    const struct elv_trainer *t = &full.trainer;
    if (full.burst > BURST_MAX || full.window > WINDOW_LIMIT || full.duty > 100 ||
        full.software.len > ELV_NAME_MAX || t->begin == NULL || t->run == NULL ||
        t->evaluate == NULL || t->result == NULL || t->abort == NULL)
        return ELV_ERR_ARG;
    *c = (struct elv_client){.cfg = full, .mem = mem, .mem_len = len, .work = {.duty = full.duty}};
    c->fixed = elv_arena_of(mem, len);
    cut(&c->fixed, &full, &c->memory, &c->persist);
    c->wake_us = ELV_NEVER;
    c->rng = elv_rng_of((struct elv_rng_key){.seed = full.jitter_seed, .purpose = ELV_RNG_JITTER});
    if (mem == NULL || c->fixed.err != ELV_OK)
        return ELV_ERR_SPACE;
    elv_transfer_init(&c->transfer, c->memory.flights, full.window);
    return ELV_OK;
}

static void on_response(struct elv_client *c, const struct elv_event *ev)
{
    c->renew = false;
    elv_link_heard(&c->link, c->now, elv_rto(&c->transfer.flow.rtt), &c->rng);
    if (elv_transfer_knows(&c->transfer, ev->id)) {
        elv_choke_clear(&c->choke);
        elv_assignment_chunk(c, ev->id, &ev->response);
        return;
    }
    const bool asked = ev->id == c->control.id || ev->id == c->control.observation;
    elv_session_answer(c, ev->id, &ev->response);
    if (!elv_assignment_transfers(c))
        elv_choke_clear(&c->choke);
    else if (asked && elv_choke_answered(&c->choke, c->now))
        elv_assignment_choked(c);
}

static void on_event(struct elv_client *c, const struct elv_event *ev)
{
    const bool ended = c->phase == ELV_CLIENT_ENDED; /* only what work owns is still waited for */
    switch (ev->kind) {
    case ELV_EV_RESPONSE:
        if (!ended)
            on_response(c, ev);
        break;
    case ELV_EV_NO_ANSWER:
        if (!ended)
            elv_session_unanswered(c, ev->id, ev->err);
        break;
    case ELV_EV_COMPUTED:
        if (ev->id != 0 && ev->id == c->work.id)
            elv_assignment_computed(c, ev->err);
        break;
    case ELV_EV_STORED:
        if (elv_persist_stored(&c->persist, ev->id, ev->err))
            c->stats.store_failures += ev->err != ELV_OK;
        break;
    case ELV_EV_STOP:
        if (!ended)
            elv_session_stop(c);
        break;
    default:
        break; /* TICK; the others are a server's */
    }
}

static bool waits(const struct elv_client *c)
{
    return c->control.op != ELV_OP_NONE || elv_transfer_waits(&c->transfer);
}

/* What others still use is waited for. */
static bool may_end(const struct elv_client *c)
{
    return c->phase == ELV_CLIENT_ENDED && c->work.id == 0 && !elv_persist_waits(&c->persist);
}

static elv_time_us deadline(const void *self)
{
    const struct elv_client *c = self;
    if (c->phase == ELV_CLIENT_ENDED)
        return !c->end_told && may_end(c) ? c->now : ELV_NEVER;
    const elv_time_us session = elv_session_deadline(c);
    const elv_time_us assignment = elv_assignment_deadline(c);
    return session < assignment ? session : assignment;
}

/* Called long after it asked to be: the device slept, or the process was stopped. Answers may have
 * come meanwhile and not been looked at, so the time is taken out of all waiting; else everything
 * in flight would be sent again, and a new association opened, before the first of them is read. */
static void notice_sleep(struct elv_client *c)
{
    if (c->wake_us == ELV_NEVER || c->now - c->wake_us < OVERSLEPT_US)
        return;
    elv_transfer_slept(&c->transfer, c->now - c->wake_us);
    elv_link_slept(&c->link, c->now - c->wake_us);
}

static void step(void *self, const struct elv_event *ev, struct elv_actions *out)
{
    struct elv_client *c = self;
    ELV_ASSERT(ev->now >= c->now);
    ELV_ASSERT(out->cap >= ACTIONS_BESIDES + ACTIONS_PER_CHUNK * c->cfg.burst);
    c->now = ev->now;
    out->n = 0;
    if (c->end_told)
        return;
    notice_sleep(c);
    on_event(c, ev);
    elv_session_tick(c);
    /* Work and phases first: they decide what is to be asked. A new association comes before what
     * is sent over it, whichever part sends. */
    elv_assignment_work(c, out);
    elv_session_advance(c, out);
    elv_assignment_send(c, out);
    if (elv_persist_emit(&c->persist, elv_session_next_id(c), out))
        c->last_id = elv_session_next_id(c);
    if (!waits(c))
        elv_link_idle(&c->link);
    if (may_end(c)) {
        out->at[out->n++] = (struct elv_action){.kind = ELV_DO_END, .id = c->exit_code};
        c->end_told = true;
    }
    const elv_time_us wake = deadline(c);
    c->wake_us = wake > c->now ? wake : c->now;
}

static enum elv_err run(void *self, const struct elv_compute *work, uint32_t budget)
{
    struct elv_client *c = self;
    switch (work->kind) {
    case ELV_CLIENT_LOAD:
        return elv_base_run(&c->base, budget);
    case ELV_CLIENT_ENCODE:
        return elv_delta_run(&c->delta, budget);
    case ELV_CLIENT_RESTORE:
        return elv_assignment_restore_run(c, budget);
    case ELV_CLIENT_REPLAY:
        return elv_persist_replay(&c->persist, &c->base, budget);
    case ELV_CLIENT_SETTLE:
        return elv_settle_run(&c->settling, budget);
    default:
        return elv_client_train_run(&c->train, work->kind, budget, &c->train_begun, &c->train_left);
    }
}

struct elv_node elv_client_node(struct elv_client *c)
{
    return (struct elv_node){
        .self = c,
        .actions_max = ACTIONS_BESIDES + ACTIONS_PER_CHUNK * c->cfg.burst,
        .step = step,
        .deadline = deadline,
        .run = run,
    };
}
