/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory.h"

#include "client/base.h"
#include "client/delta.h"
#include "client/residual.h"

void elv_memory_fixed(struct elv_arena *a, uint32_t burst, uint32_t window, struct elv_memory *m)
{
    *m = (struct elv_memory){0};
    m->message = elv_arena_take(a, ELV_MSG_MAX, 1);
    m->chunks = elv_arena_take(a, burst, ELV_CHUNK_MAX);
    m->flights = elv_arena_take(a, window, sizeof *m->flights);
}

/* Room for the update in any of the job's codecs that this build has. */
static uint32_t first_cap(const struct elv_manifest *manifest, const struct elv_model *model)
{
    uint32_t cap = 1;
    for (uint32_t i = 0; i < manifest->n_up; i++) {
        const uint32_t needs = elv_delta_first_cap(model, &manifest->up[i]);
        cap = needs > cap ? needs : cap;
    }
    return cap;
}

bool elv_memory_feeds_back(const struct elv_manifest *manifest)
{
    for (uint32_t i = 0; i < manifest->n_up; i++)
        if (elv_residual_helps(&manifest->up[i]))
            return manifest->feedback != ELV_FEEDBACK_NONE;
    return false;
}

static bool plans(const struct elv_manifest *manifest)
{
    for (uint32_t i = 0; i < manifest->n_up; i++) {
        const struct elv_codec *codec = elv_codec_by_id(manifest->up[i].id);
        if (codec != NULL && codec->plan != NULL)
            return true;
    }
    return false;
}

/* As it lies: it outlives another reading of the manifest, and so does `fresh`, which may hold a
 * vector that is still to become the residual. */
static void take_residual(struct elv_arena *a, const struct elv_manifest *manifest,
                          const struct elv_model *model, struct elv_memory *m)
{
    m->residual = elv_arena_take_raw(a, model->n_shared, elv_residual_size(manifest->feedback));
    if (manifest->momentum_correction > 0.0f)
        m->velocity = elv_arena_take_raw(a, model->n_shared, sizeof *m->velocity);
}

enum elv_err elv_memory_run(struct elv_arena *a, const struct elv_manifest *manifest,
                            const struct elv_model *model, bool feedback, struct elv_memory *m)
{
    const uint32_t down = elv_base_chunks_max(model);
    m->hash_cap = elv_base_hash_cap(model);
    m->first_cap = first_cap(manifest, model);
    if (m->hash_cap == 0)
        return ELV_ERR_SPACE;
    m->residual = NULL;
    m->velocity = NULL;
    if (feedback && elv_memory_feeds_back(manifest))
        take_residual(a, manifest, model, m);
    m->base = elv_arena_take(a, model->n_params, sizeof *m->base);
    m->fresh = elv_arena_take_raw(a, model->n_params, sizeof *m->fresh);
    m->hash = elv_arena_take(a, m->hash_cap, ELV_CHUNK_HASH_LEN);
    m->first = elv_arena_take(a, m->first_cap, sizeof *m->first);
    m->plan = plans(manifest) ? elv_arena_take(a, 1, sizeof *m->plan) : NULL;
    m->bitmap = elv_arena_take(a, ELV_BITMAP_WORDS(down > m->first_cap ? down : m->first_cap),
                               sizeof *m->bitmap);
    m->values = elv_arena_take(a, ELV_PACK_VALUES, sizeof *m->values);
    m->bytes = elv_arena_take(a, ELV_CHUNK_PAYLOAD_MAX, 1);
    return a->err;
}
