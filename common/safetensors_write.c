/* SPDX-License-Identifier: Apache-2.0 */
/* Model files, written. */
#include <string.h>

#include "common/safetensors_internal.h"
#include "common/text.h"

static bool printable(uint8_t c) { return c >= 0x20 && c < 0x7F; }

static void put_string(struct elv_wr *w, const char *text)
{
    elv_wr_u8(w, '"');
    for (; *text != 0; text++) {
        if (*text == '"' || *text == '\\')
            elv_wr_u8(w, '\\');
        elv_wr_u8(w, (uint8_t)*text);
    }
    elv_wr_u8(w, '"');
}

static bool all_printable(const char *text)
{
    for (; *text != 0; text++)
        if (!printable((uint8_t)*text))
            return false;
    return true;
}

static bool meta_ok(const struct elv_safetensors_meta *meta, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!all_printable(meta[i].key) || !all_printable(meta[i].value))
            return false;
        for (size_t j = 0; j < i; j++)
            if (strcmp(meta[i].key, meta[j].key) == 0)
                return false;
    }
    return true;
}

static void put_meta(struct elv_wr *w, const struct elv_safetensors_meta *meta, size_t n)
{
    elv_wr_text(w, "\"__metadata__\":{");
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            elv_wr_text(w, ",");
        put_string(w, meta[i].key);
        elv_wr_text(w, ":");
        put_string(w, meta[i].value);
    }
    elv_wr_text(w, "}");
}

static uint64_t put_tensor(struct elv_wr *w, const struct elv_layer *l, uint32_t layer, bool bias,
                           uint64_t at)
{
    uint32_t side[4];
    const uint32_t n_sides = elv_tensor_sides(l, bias, side);
    const uint64_t end = at + 4 * (uint64_t)(bias ? l->n_bias : l->n_weight);
    elv_wr_text(w, ",\"");
    elv_wr_decimal(w, layer);
    elv_wr_text(w, bias ? ".bias" : ".weight");
    elv_wr_text(w, "\":{\"dtype\":\"F32\",\"shape\":[");
    for (uint32_t i = 0; i < n_sides; i++) {
        if (i > 0)
            elv_wr_text(w, ",");
        elv_wr_decimal(w, side[i]);
    }
    elv_wr_text(w, "],\"data_offsets\":[");
    elv_wr_decimal(w, at);
    elv_wr_text(w, ",");
    elv_wr_decimal(w, end);
    elv_wr_text(w, "]}");
    return end;
}

static void put_header(struct elv_wr *w, const struct elv_model *m, bool shared_only,
                       const struct elv_safetensors_meta *meta, size_t n_meta)
{
    uint64_t at = 0;
    elv_wr_text(w, "{");
    put_meta(w, meta, n_meta);
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const struct elv_layer *l = &m->layers[i];
        if (l->n_weight == 0 || (l->local && shared_only))
            continue;
        at = put_tensor(w, l, i, false, at);
        at = put_tensor(w, l, i, true, at);
    }
    elv_wr_text(w, "}");
}

enum elv_err elv_safetensors_write(const struct elv_model *m, bool shared_only,
                                   const struct elv_safetensors_meta *meta, size_t n_meta,
                                   uint8_t *out, size_t cap, size_t *len)
{
    if (!meta_ok(meta, n_meta))
        return ELV_ERR_ARG;
    struct elv_wr sizing = elv_wr_of(NULL, 0);
    put_header(&sizing, m, shared_only, meta, n_meta);
    const size_t whole = (8 + sizing.need + 63) / 64 * 64;

    struct elv_wr w = elv_wr_of(out, cap);
    elv_wr_u64(&w, whole - 8);
    put_header(&w, m, shared_only, meta, n_meta);
    while (w.need < whole)
        elv_wr_u8(&w, ' ');
    *len = whole;
    return w.err;
}
