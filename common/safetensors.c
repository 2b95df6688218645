/* SPDX-License-Identifier: Apache-2.0 */
#include "common/safetensors.h"

#include <string.h>

#include "common/assert.h"
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

/* A tensor's sides: out x in, out x in x height x width, or out alone for a bias. */
static uint32_t sides_of(const struct elv_layer *l, bool bias, uint32_t side[4])
{
    side[0] = l->out.c;
    if (bias)
        return 1;
    side[1] = l->kind == ELV_LAYER_CONV ? l->in.c : elv_shape_len(l->in);
    side[2] = l->kernel_h;
    side[3] = l->kernel_w;
    return l->kind == ELV_LAYER_CONV ? 4 : 2;
}

static uint64_t put_tensor(struct elv_wr *w, const struct elv_layer *l, uint32_t layer, bool bias,
                           uint64_t at)
{
    uint32_t side[4];
    const uint32_t n_sides = sides_of(l, bias, side);
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

/* JSON being read, as far as this format needs it: objects, strings, and arrays of whole numbers.
 */
struct json {
    const uint8_t *at;
    size_t left;
    enum elv_err err;
};

static void fail(struct json *j, enum elv_err err)
{
    if (j->err == ELV_OK)
        j->err = err;
    j->left = 0;
}

static void skip_blanks(struct json *j)
{
    while (j->left > 0 && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r')) {
        j->at++;
        j->left--;
    }
}

static bool next_is(struct json *j, uint8_t byte)
{
    skip_blanks(j);
    return j->left > 0 && *j->at == byte;
}

static void expect(struct json *j, uint8_t byte)
{
    if (!next_is(j, byte)) {
        fail(j, ELV_ERR_FORMAT);
        return;
    }
    j->at++;
    j->left--;
}

static bool hex(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Bytes of the escape after a backslash; 0 when it is none. */
static size_t escape_len(const uint8_t *at, size_t left)
{
    if (left > 0 && *at != 0 && strchr("\"\\/bfnrt", *at) != NULL)
        return 1;
    if (left < 5 || *at != 'u')
        return 0;
    for (size_t i = 1; i < 5; i++)
        if (!hex(at[i]))
            return 0;
    return 5;
}

/* A string's bytes between the quotes, escapes as they are. */
static struct elv_bytes string(struct json *j)
{
    expect(j, '"');
    const uint8_t *from = j->at;
    while (j->left > 0 && *j->at != '"') {
        size_t n = 1;
        if (*j->at == '\\')
            n += escape_len(j->at + 1, j->left - 1);
        if (*j->at < 0x20 || (*j->at == '\\' && n == 1)) {
            fail(j, ELV_ERR_FORMAT);
            break;
        }
        j->at += n;
        j->left -= n;
    }
    const struct elv_bytes got = {from, (size_t)(j->at - from)};
    expect(j, '"');
    return j->err == ELV_OK ? got : (struct elv_bytes){0};
}

static bool same(struct elv_bytes a, const char *text)
{
    return a.len == strlen(text) && memcmp(a.at, text, a.len) == 0;
}

/* A whole number below 2^53, the last that every JSON reader agrees on. */
static uint64_t number(struct json *j)
{
    skip_blanks(j);
    uint64_t v = 0;
    size_t n = 0;
    const bool zero = j->left > 0 && *j->at == '0';
    while (j->left > 0 && *j->at >= '0' && *j->at <= '9' && v < (1ull << 53)) {
        v = v * 10 + (uint64_t)(*j->at - '0');
        j->at++;
        j->left--;
        n++;
    }
    if (n == 0 || (zero && n > 1) || v >= 1ull << 53)
        fail(j, ELV_ERR_FORMAT);
    return v;
}

/* [a, b, ...] of at most `cap` numbers; returns how many. */
static uint32_t numbers(struct json *j, uint64_t *v, uint32_t cap)
{
    uint32_t n = 0;
    expect(j, '[');
    if (next_is(j, ']')) {
        expect(j, ']');
        return 0;
    }
    for (bool more = true; more && j->err == ELV_OK;) {
        const uint64_t one = number(j);
        if (n == cap)
            fail(j, ELV_ERR_MISMATCH); /* no tensor of ours has so many sides */
        else
            v[n++] = one;
        more = next_is(j, ',');
        if (more)
            expect(j, ',');
    }
    expect(j, ']');
    return n;
}

/* Goes to the next member of an object; `*n` counts them. False at its end. */
static bool next_member(struct json *j, uint32_t *n)
{
    if (*n == 0)
        expect(j, '{');
    if (next_is(j, '}')) {
        expect(j, '}');
        return false;
    }
    if (*n > 0)
        expect(j, ',');
    (*n)++;
    return j->err == ELV_OK;
}

static void read_meta(struct json *j)
{
    uint32_t n = 0;
    while (next_member(j, &n)) {
        string(j);
        expect(j, ':');
        string(j);
    }
}

struct tensor {
    uint64_t side[4], offset[2];
    uint32_t n_sides;
};

static struct tensor read_tensor(struct json *j)
{
    struct tensor t = {0};
    unsigned seen = 0, bit = 0;
    uint32_t n = 0;
    while (next_member(j, &n)) {
        const struct elv_bytes key = string(j);
        expect(j, ':');
        if (same(key, "dtype")) {
            bit = 1;
            if (!same(string(j), "F32"))
                fail(j, ELV_ERR_MISMATCH);
        } else if (same(key, "shape")) {
            bit = 2;
            t.n_sides = numbers(j, t.side, 4);
        } else if (same(key, "data_offsets")) {
            bit = 4;
            if (numbers(j, t.offset, 2) != 2)
                fail(j, ELV_ERR_FORMAT);
        } else {
            fail(j, ELV_ERR_FORMAT);
        }
        if (seen & bit)
            fail(j, ELV_ERR_FORMAT); /* twice */
        seen |= bit;
    }
    if (seen != 7)
        fail(j, ELV_ERR_FORMAT);
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
            if (m->layers[i].n_weight > 0 && same(name, (const char *)text)) {
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
    const uint32_t n_sides = sides_of(l, bias, side);
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

static void read_one(struct json *j, const struct elv_model *m, struct found *f)
{
    const struct elv_bytes name = string(j);
    expect(j, ':');
    if (same(name, "__metadata__")) {
        read_meta(j);
        if (f->meta)
            fail(j, ELV_ERR_FORMAT); /* twice */
        f->meta = true;
        return;
    }
    const struct tensor t = read_tensor(j);
    uint32_t i = 0;
    bool bias = false;
    if (j->err != ELV_OK)
        return;
    if (!read_name(m, name, &i, &bias) || !fits(&m->layers[i], bias, &t)) {
        fail(j, ELV_ERR_MISMATCH);
        return;
    }
    const struct elv_layer *l = &m->layers[i];
    if (f->piece[i][bias].n > 0)
        fail(j, ELV_ERR_FORMAT);
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
    struct json j = {.at = got.json.at, .left = got.json.len};
    if (j.left == 0 || *j.at != '{') /* the format allows no blank here */
        return ELV_ERR_FORMAT;
    for (uint32_t n = 0; next_member(&j, &n);)
        read_one(&j, m, &f);
    skip_blanks(&j);
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
static bool find_in(struct json *j, const char *key, char *out, size_t cap, enum elv_err *err)
{
    for (uint32_t n = 0; next_member(j, &n);) {
        const struct elv_bytes name = string(j);
        expect(j, ':');
        const struct elv_bytes value = string(j);
        if (j->err != ELV_OK || !same(name, key))
            continue;
        *err = unescape(value, out, cap);
        return true;
    }
    return false;
}

enum elv_err elv_safetensors_find(const struct elv_safetensors *st, const char *key, char *out,
                                  size_t cap)
{
    struct json j = {.at = st->json.at, .left = st->json.len};
    enum elv_err err = ELV_ERR_MISSING;
    for (uint32_t n = 0; next_member(&j, &n);) {
        const struct elv_bytes name = string(&j);
        expect(&j, ':');
        if (!same(name, "__metadata__"))
            read_tensor(&j);
        else if (find_in(&j, key, out, cap, &err))
            return err;
    }
    return ELV_ERR_MISSING;
}
