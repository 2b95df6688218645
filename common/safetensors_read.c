/* SPDX-License-Identifier: Apache-2.0 */
/* Model files, read. */
#include "common/json_internal.h"
#include "common/safetensors_internal.h"
#include "common/text.h"

uint32_t elv_tensor_sides(const struct elv_layer *l, bool bias, uint32_t side[4])
{
    side[0] = l->out.c;
    if (bias)
        return 1;
    side[1] = l->kind == ELV_LAYER_CONV ? l->in.c : elv_shape_len(l->in);
    side[2] = l->kernel_h;
    side[3] = l->kernel_w;
    return l->kind == ELV_LAYER_CONV ? 4 : 2;
}

static void read_meta(struct elv_json *j)
{
    uint32_t n = 0;
    while (elv_json_next_member(j, &n)) {
        elv_json_string(j);
        elv_json_expect(j, ':');
        elv_json_string(j);
    }
}

struct tensor {
    uint64_t side[4], offset[2];
    uint32_t n_sides;
};

static struct tensor read_tensor(struct elv_json *j)
{
    struct tensor t = {0};
    unsigned seen = 0, bit = 0;
    uint32_t n = 0;
    while (elv_json_next_member(j, &n)) {
        const struct elv_bytes key = elv_json_string(j);
        elv_json_expect(j, ':');
        if (elv_json_same(key, "dtype")) {
            bit = 1;
            if (!elv_json_same(elv_json_string(j), "F32"))
                elv_json_fail(j, ELV_ERR_MISMATCH);
        } else if (elv_json_same(key, "shape")) {
            bit = 2;
            t.n_sides = elv_json_numbers(j, t.side, 4);
        } else if (elv_json_same(key, "data_offsets")) {
            bit = 4;
            if (elv_json_numbers(j, t.offset, 2) != 2)
                elv_json_fail(j, ELV_ERR_FORMAT);
        } else {
            elv_json_fail(j, ELV_ERR_FORMAT);
        }
        if (seen & bit)
            elv_json_fail(j, ELV_ERR_FORMAT); /* twice */
        seen |= bit;
    }
    if (seen != 7)
        elv_json_fail(j, ELV_ERR_FORMAT);
    return t;
}

/* "12.weight" or "12.bias" of a layer that has one. */
static bool read_name(const struct elv_model *m, struct elv_bytes name, uint32_t *layer, bool *bias)
{
    for (uint32_t i = 0; i < m->n_layers; i++) {
        for (unsigned b = 0; b < 2; b++) {
            uint8_t text[16];
            struct elv_wr w = elv_wr_of(text, sizeof text);
            elv_wr_decimal(&w, i);
            elv_wr_text(&w, b ? ".bias" : ".weight");
            elv_wr_u8(&w, 0);
            if (m->layers[i].n_weight > 0 && elv_json_same(name, (const char *)text)) {
                *layer = i;
                *bias = b;
                return true;
            }
        }
    }
    return false;
}

static bool fits(const struct elv_layer *l, bool bias, const struct tensor *t)
{
    uint32_t side[4];
    const uint32_t n_sides = elv_tensor_sides(l, bias, side);
    const uint64_t len = 4 * (uint64_t)(bias ? l->n_bias : l->n_weight);
    for (uint32_t i = 0; i < n_sides; i++)
        if (i >= t->n_sides || t->side[i] != side[i])
            return false;
    return t->n_sides == n_sides && t->offset[1] >= t->offset[0] &&
           t->offset[1] - t->offset[0] == len;
}

/* Pieces by layer and kind while reading; n = 0: not seen yet. */
struct found {
    struct elv_safetensors_piece piece[ELV_MODEL_LAYERS_MAX][2];
    bool meta;
};

static void read_one(struct elv_json *j, const struct elv_model *m, struct found *f)
{
    const struct elv_bytes name = elv_json_string(j);
    elv_json_expect(j, ':');
    if (elv_json_same(name, "__metadata__")) {
        read_meta(j);
        if (f->meta)
            elv_json_fail(j, ELV_ERR_FORMAT); /* twice */
        f->meta = true;
        return;
    }
    const struct tensor t = read_tensor(j);
    uint32_t i = 0;
    bool bias = false;
    if (j->err != ELV_OK)
        return;
    if (!read_name(m, name, &i, &bias) || !fits(&m->layers[i], bias, &t)) {
        elv_json_fail(j, ELV_ERR_MISMATCH);
        return;
    }
    const struct elv_layer *l = &m->layers[i];
    if (f->piece[i][bias].n > 0)
        elv_json_fail(j, ELV_ERR_FORMAT);
    f->piece[i][bias] = (struct elv_safetensors_piece){.file_at = t.offset[0],
                                                       .flat_at = bias ? l->bias_at : l->weight_at,
                                                       .n = bias ? l->n_bias : l->n_weight};
}

/* True when the pieces, in any order, cover [0, their total) once. No overlap and no gap: each
 * start is 0 or some piece's end, and no start occurs twice. */
static bool tile(const struct elv_safetensors *st)
{
    for (uint32_t i = 0; i < st->n_pieces; i++) {
        bool met = st->piece[i].file_at == 0;
        for (uint32_t k = 0; k < st->n_pieces; k++) {
            const struct elv_safetensors_piece *p = &st->piece[k];
            met = met || p->file_at + 4 * (uint64_t)p->n == st->piece[i].file_at;
            if (k != i && p->file_at == st->piece[i].file_at)
                return false;
        }
        if (!met)
            return false;
    }
    return true;
}

/* Collects what was found in flat order. ELV_ERR_MISMATCH: a tensor is not there. */
static enum elv_err collect(const struct elv_model *m, const struct found *f,
                            struct elv_safetensors *st)
{
    uint32_t n_local = 0, local_found = 0;
    for (uint32_t i = 0; i < m->n_layers; i++) {
        for (unsigned b = 0; b < 2 && m->layers[i].n_weight > 0; b++) {
            const bool there = f->piece[i][b].n > 0;
            n_local += m->layers[i].local;
            local_found += m->layers[i].local && there;
            if (!there && !m->layers[i].local)
                return ELV_ERR_MISMATCH;
            if (there)
                st->piece[st->n_pieces++] = f->piece[i][b];
        }
    }
    st->has_local = local_found > 0;
    return local_found == 0 || local_found == n_local ? ELV_OK : ELV_ERR_MISMATCH;
}

enum elv_err elv_safetensors_head_len(struct elv_bytes start, size_t *len)
{
    struct elv_rd r = elv_rd_of(start);
    const uint64_t json = elv_rd_u64(&r);
    if (r.err != ELV_OK)
        return r.err;
    if (json > ELV_SAFETENSORS_HEAD_MAX - 8)
        return ELV_ERR_RANGE;
    *len = (size_t)json + 8;
    return ELV_OK;
}

enum elv_err elv_safetensors_read(const struct elv_model *m, struct elv_bytes head,
                                  struct elv_safetensors *st)
{
    size_t len = 0;
    enum elv_err err = elv_safetensors_head_len(head, &len);
    if (err != ELV_OK)
        return err;
    if (head.len < len)
        return ELV_ERR_SHORT;

    struct elv_safetensors got = {.json = {head.at + 8, len - 8}};
    struct found f = {0};
    struct elv_json j = {.at = got.json.at, .left = got.json.len};
    if (j.left == 0 || *j.at != '{') /* the format allows no blank here */
        return ELV_ERR_FORMAT;
    for (uint32_t n = 0; elv_json_next_member(&j, &n);)
        read_one(&j, m, &f);
    elv_json_skip_blanks(&j);
    if (j.err == ELV_OK && j.left > 0)
        return ELV_ERR_FORMAT;
    err = j.err != ELV_OK ? j.err : collect(m, &f, &got);
    if (err != ELV_OK)
        return err;
    if (!tile(&got))
        return ELV_ERR_FORMAT;
    for (uint32_t i = 0; i < got.n_pieces; i++)
        got.piece[i].file_at += len;
    got.file_len = len + 4 * (uint64_t)(got.has_local ? m->n_params : m->n_shared);
    *st = got;
    return ELV_OK;
}

/* Undoes the escapes the writer makes. */
static enum elv_err unescape(struct elv_bytes in, char *out, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i < in.len; i++) {
        if (in.at[i] == '\\') {
            i++; /* a backslash is never the last byte of a string that was read */
            if (in.at[i] != '"' && in.at[i] != '\\' && in.at[i] != '/')
                return ELV_ERR_UNSUPPORTED;
        }
        if (n + 1 >= cap)
            return ELV_ERR_SPACE;
        out[n++] = (char)in.at[i];
    }
    if (n >= cap)
        return ELV_ERR_SPACE;
    out[n] = 0;
    return ELV_OK;
}

/* Searches one metadata object; true once `err` holds the answer. */
static bool find_in(struct elv_json *j, const char *key, char *out, size_t cap, enum elv_err *err)
{
    for (uint32_t n = 0; elv_json_next_member(j, &n);) {
        const struct elv_bytes name = elv_json_string(j);
        elv_json_expect(j, ':');
        const struct elv_bytes value = elv_json_string(j);
        if (j->err != ELV_OK || !elv_json_same(name, key))
            continue;
        *err = unescape(value, out, cap);
        return true;
    }
    return false;
}

enum elv_err elv_safetensors_find(const struct elv_safetensors *st, const char *key, char *out,
                                  size_t cap)
{
    struct elv_json j = {.at = st->json.at, .left = st->json.len};
    enum elv_err err = ELV_ERR_MISSING;
    for (uint32_t n = 0; elv_json_next_member(&j, &n);) {
        const struct elv_bytes name = elv_json_string(&j);
        elv_json_expect(&j, ':');
        if (!elv_json_same(name, "__metadata__"))
            read_tensor(&j);
        else if (find_in(&j, key, out, cap, &err))
            return err;
    }
    return ELV_ERR_MISSING;
}
