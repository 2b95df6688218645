/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of a model, and its fingerprint. */
#include "common/assert.h"
#include "common/model_internal.h"
#include "common/text.h"

/* The canonical text comes in pieces: the input, each layer, the loss. One piece fits 64 bytes, so
 * printing and the fingerprint need no large buffer. */
#define PIECE_MAX 64u

static void put_sides(struct elv_wr *w, const uint32_t *v, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (i > 0)
            elv_wr_text(w, "x");
        elv_wr_decimal(w, v[i]);
    }
}

static void put_option(struct elv_wr *w, const char *name, uint32_t v)
{
    elv_wr_text(w, name);
    elv_wr_decimal(w, v);
}

static void put_conv(struct elv_wr *w, const struct elv_layer *l)
{
    const uint32_t kernel[2] = {l->kernel_h, l->kernel_w};
    put_option(w, "conv ", l->out.c);
    elv_wr_text(w, " ");
    put_sides(w, kernel, 2);
    if (l->stride != 1)
        put_option(w, " stride ", l->stride);
    if (l->pad_h == 0 && l->pad_w == 0)
        return;
    const bool same = 2 * l->pad_h + 1 == l->kernel_h && 2 * l->pad_w + 1 == l->kernel_w;
    if (same)
        elv_wr_text(w, " pad same");
    else
        put_option(w, " pad ", l->pad_h);
}

static void put_layer(struct elv_wr *w, const struct elv_layer *l)
{
    switch (l->kind) {
    case ELV_LAYER_CONV:
        put_conv(w, l);
        break;
    case ELV_LAYER_MAXPOOL:
        put_option(w, "maxpool ", l->kernel_h);
        if (l->stride != l->kernel_h)
            put_option(w, " stride ", l->stride);
        break;
    case ELV_LAYER_DENSE:
        put_option(w, "dense ", l->out.c);
        break;
    }
    if (l->act == ELV_ACT_RELU)
        elv_wr_text(w, " relu");
    if (l->local)
        elv_wr_text(w, " local");
}

static size_t print_piece(const struct elv_model *m, uint32_t i, uint8_t out[PIECE_MAX])
{
    struct elv_wr w = elv_wr_of(out, PIECE_MAX);
    if (i == 0) {
        const uint32_t side[3] = {m->input.c, m->input.h, m->input.w};
        put_sides(&w, side, 3);
        elv_wr_text(&w, " | ");
    } else if (i <= m->n_layers) {
        put_layer(&w, &m->layers[i - 1]);
        elv_wr_text(&w, i < m->n_layers ? ", " : " | ");
    } else {
        elv_wr_text(&w, "softmax-cross-entropy");
    }
    ELV_ASSERT(w.err == ELV_OK);
    return w.need;
}

enum elv_err elv_model_print(const struct elv_model *m, char *out, size_t cap, size_t *len)
{
    struct elv_wr w = elv_wr_of((uint8_t *)out, cap);
    for (uint32_t i = 0; i < m->n_layers + 2; i++) {
        uint8_t piece[PIECE_MAX];
        const size_t n = print_piece(m, i, piece);
        elv_wr_bytes(&w, (struct elv_bytes){piece, n});
    }
    *len = w.need;
    elv_wr_u8(&w, 0);
    return w.err;
}

void elv_model_take_fingerprint(struct elv_model *m)
{
    struct elv_sha256 h;
    elv_sha256_init(&h);
    for (uint32_t i = 0; i < m->n_layers + 2; i++) {
        uint8_t piece[PIECE_MAX];
        const size_t n = print_piece(m, i, piece);
        elv_sha256_update(&h, piece, n);
    }
    elv_sha256_final(&h, m->fingerprint);
}
