/* SPDX-License-Identifier: Apache-2.0 */
/* A line is refused at a place inside it with a reason, or it is a model whose canonical line means
 * the same and whose layers tile the flat vector. */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_places(const struct elv_model *m)
{
    uint32_t at = 0, shared = 0;
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const struct elv_layer *l = &m->layers[i];
        ELV_ASSERT(l->weight_at == at && l->bias_at == at + l->n_weight);
        ELV_ASSERT(l->local || l->shared_at == shared);
        ELV_ASSERT(elv_shape_len(l->out) >= 1 && elv_shape_len(l->out) <= ELV_MODEL_PARAMS_MAX);
        at += l->n_weight + l->n_bias;
        shared += l->local ? 0 : l->n_weight + l->n_bias;
    }
    ELV_ASSERT(at == m->n_params && shared == m->n_shared && shared > 0);
    ELV_ASSERT(at <= ELV_MODEL_PARAMS_MAX && m->n_classes >= 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elv_model m, again;
    struct elv_text_err why = {.at = SIZE_MAX};
    const enum elv_err err = elv_model_parse_line(&m, (struct elv_bytes){data, size}, &why);
    if (err != ELV_OK) {
        ELV_ASSERT(why.at <= size && why.want != NULL && why.part == 0);
        return 0;
    }
    check_places(&m);
    char text[ELV_MODEL_TEXT_MAX];
    size_t len;
    ELV_ASSERT(elv_model_print(&m, text, sizeof text, &len) == ELV_OK);
    ELV_ASSERT(strlen(text) == len);
    ELV_ASSERT(elv_model_parse_line(&again, (struct elv_bytes){(const uint8_t *)text, len}, &why) ==
               ELV_OK);
    ELV_ASSERT(memcmp(m.fingerprint, again.fingerprint, sizeof m.fingerprint) == 0);
    ELV_ASSERT(m.n_params == again.n_params && m.n_shared == again.n_shared);
    return 0;
}
