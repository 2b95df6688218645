/* SPDX-License-Identifier: Apache-2.0 */
/* From a manifest to a client ready for its run: the model, the memory, and what stays in it. */
#include <string.h>

#include "client/session_internal.h"

enum elv_err elv_session_parse(const struct elv_manifest *m, struct elv_model *model)
{
    const struct elv_model_text text = {
        .input = {(const uint8_t *)m->input.at, m->input.len},
        .layers = {(const uint8_t *)m->layers.at, m->layers.len},
    };
    const enum elv_err err = elv_model_parse(model, text, NULL);
    if (err != ELV_OK)
        return err;
    const bool same = model->n_shared == m->n_params &&
                      memcmp(model->fingerprint, m->fingerprint, sizeof m->fingerprint) == 0;
    return same ? ELV_OK : ELV_ERR_MISMATCH;
}

static enum elv_err plan_with(struct elv_client *c, const struct elv_manifest *m, bool feedback)
{
    struct elv_arena a = c->fixed;
    const enum elv_err err = elv_memory_run(&a, m, &c->model, feedback, &c->memory);
    if (err != ELV_OK)
        return err;
    const struct elv_trainer *t = &c->cfg.trainer;
    if (t->prepare != NULL)
        return t->prepare(t->self, m, &c->model, a.base + a.used, a.cap - a.used);
    return ELV_OK;
}

static bool can_run(const struct elv_client *c, uint8_t codec)
{
    const struct elv_client_cfg *cfg = &c->cfg;
    return elv_codec_by_id(codec) != NULL &&
           (cfg->n_codecs == 0 || memchr(cfg->codecs, codec, cfg->n_codecs) != NULL);
}

/* Whether this device takes part with that codec: without room for a residual it leaves those that
 * need one to others. */
static bool offers(const struct elv_client *c, const struct elv_manifest *m,
                   const struct elv_codec_choice *up)
{
    const bool wants = m->feedback != ELV_FEEDBACK_NONE && elv_residual_helps(up);
    return can_run(c, up->id) && (!wants || c->memory.residual != NULL);
}

static bool offers_any(const struct elv_client *c, const struct elv_manifest *m)
{
    for (uint32_t i = 0; i < m->n_up; i++)
        if (offers(c, m, &m->up[i]))
            return true;
    return false;
}

enum elv_err elv_session_plan(struct elv_client *c, const struct elv_manifest *m)
{
    const enum elv_err err = plan_with(c, m, true);
    if (err != ELV_ERR_SPACE || !elv_memory_feeds_back(m))
        return err;
    const enum elv_err without = plan_with(c, m, false);
    return without == ELV_OK && !offers_any(c, m) ? ELV_ERR_SPACE : without;
}

static bool same_residual(const struct elv_residual_cfg *a, const struct elv_residual_cfg *b)
{
    return a->kind == b->kind && a->n == b->n && a->values == b->values &&
           a->velocity == b->velocity;
}

/* A run read again goes on with what was left over, if it lies where it lay. */
static void set_up_residual(struct elv_client *c, const struct elv_manifest *m)
{
    const struct elv_residual_saved saved = c->residual.saved;
    const bool same_run = memcmp(c->manifest.run, m->run, sizeof m->run) == 0;
    const struct elv_residual_cfg cfg = {
        .kind = c->memory.residual != NULL ? m->feedback : ELV_FEEDBACK_NONE,
        .n = c->model.n_shared,
        .values = c->memory.residual,
        .velocity = c->memory.velocity,
        .momentum = m->momentum_correction,
        .age_max = m->feedback_age,
    };
    const bool has_vector =
        saved.vector == ELV_VECTOR_NONE || c->delta.cfg.trained == c->memory.fresh;
    const bool kept = same_run && same_residual(&c->residual.cfg, &cfg) && has_vector;
    elv_residual_init(&c->residual, &cfg);
    if (kept)
        c->residual.saved = saved;
}

void elv_session_set_up(struct elv_client *c, const struct elv_manifest *m)
{
    const struct elv_text none = {0};
    if (memcmp(c->manifest.run, m->run, sizeof m->run) != 0)
        c->decided = 0; /* another run counts its assignments from the start */
    set_up_residual(c, m);
    c->manifest = *m;
    c->manifest.job = c->manifest.input = c->manifest.layers = c->manifest.partition = none;
    c->pack = (struct elv_pack){.squeeze = c->cfg.squeeze,
                                .deflate = m->deflate,
                                .values = c->memory.values,
                                .bytes = c->memory.bytes};
    const struct elv_base_cfg base = {
        .model = &c->model,
        .pack = &c->pack,
        .seed = m->seed,
        .base = c->memory.base,
        .fresh = c->memory.fresh,
        .hash = c->memory.hash,
        .hash_cap = c->memory.hash_cap,
        .codecs = c->cfg.codecs,
        .n_codecs = c->cfg.n_codecs,
    };
    elv_base_init(&c->base, &base);
    elv_persist_begin(&c->persist, m);
    c->prepared = true;
}

bool elv_session_offers(const struct elv_client *c, uint8_t codec)
{
    for (uint32_t i = 0; i < c->manifest.n_up; i++)
        if (c->manifest.up[i].id == codec)
            return offers(c, &c->manifest, &c->manifest.up[i]);
    return true;
}
