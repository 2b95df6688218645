/* SPDX-License-Identifier: Apache-2.0 */
#include "common/field.h"

#include <float.h>
#include <string.h>

#include "common/assert.h"
#include "common/cbor.h"
#include "common/exact.h"
#include "common/msg.h"

uint32_t elv_field_rd_u32(struct elv_rd *r, uint32_t min, uint32_t max)
{
    const uint64_t v = elv_cbor_rd_uint(r);
    if (v < min || v > max)
        elv_rd_fail(r, ELV_ERR_RANGE);
    return r->err == ELV_OK ? (uint32_t)v : 0;
}

float elv_field_rd_f32(struct elv_rd *r)
{
    const double v = elv_cbor_rd_float(r);
    if (v > FLT_MAX || v < -FLT_MAX || (double)(float)v != v)
        elv_rd_fail(r, ELV_ERR_RANGE);
    return r->err == ELV_OK ? (float)v : 0.0f;
}

void elv_field_rd_array(struct elv_rd *r, uint32_t n)
{
    if (elv_cbor_rd_array(r) != n)
        elv_rd_fail(r, ELV_ERR_FORMAT);
}

/* Members of one to eight bytes, because a compiler may give an enum any of these sizes. */
static uint64_t load(const void *at, size_t size)
{
    uint8_t v8;
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;
    switch (size) {
    case sizeof v8:
        return memcpy(&v8, at, sizeof v8), v8;
    case sizeof v16:
        return memcpy(&v16, at, sizeof v16), v16;
    case sizeof v32:
        return memcpy(&v32, at, sizeof v32), v32;
    default:
        ELV_ASSERT(size == sizeof v64);
        return memcpy(&v64, at, sizeof v64), v64;
    }
}

static void save(void *at, size_t size, uint64_t v)
{
    const uint8_t v8 = (uint8_t)v;
    const uint16_t v16 = (uint16_t)v;
    const uint32_t v32 = (uint32_t)v;
    switch (size) {
    case sizeof v8:
        memcpy(at, &v8, sizeof v8);
        break;
    case sizeof v16:
        memcpy(at, &v16, sizeof v16);
        break;
    case sizeof v32:
        memcpy(at, &v32, sizeof v32);
        break;
    default:
        ELV_ASSERT(size == sizeof v);
        memcpy(at, &v, sizeof v);
    }
}

static struct elv_bytes bytes_of(struct elv_text t)
{
    return (struct elv_bytes){.at = (const uint8_t *)t.at, .len = t.len};
}

static bool printable(struct elv_text t)
{
    for (size_t i = 0; i < t.len; i++)
        if (t.at[i] < ' ' || t.at[i] > '~')
            return false;
    return true;
}

static void write_value(struct elv_wr *w, const struct elv_field *f, const void *message)
{
    const void *value = (const uint8_t *)message + f->at;
    switch ((enum elv_field_kind)f->kind) {
    case ELV_FIELD_UINT:
        elv_cbor_wr_uint(w, load(value, f->size));
        break;
    case ELV_FIELD_BOOL:
        elv_cbor_wr_bool(w, *(const bool *)value);
        break;
    case ELV_FIELD_SINGLE:
        elv_cbor_wr_float(w, (double)*(const float *)value);
        break;
    case ELV_FIELD_DOUBLE:
        elv_cbor_wr_float(w, *(const double *)value);
        break;
    case ELV_FIELD_BYTES:
        elv_cbor_wr_bytes(w, (struct elv_bytes){.at = value, .len = f->size});
        break;
    case ELV_FIELD_TEXT:
    case ELV_FIELD_NAME:
        elv_cbor_wr_text(w, bytes_of(*(const struct elv_text *)value));
        break;
    case ELV_FIELD_SPECIAL:
        f->special->write(w, value, message);
        break;
    }
}

static void read_value(struct elv_rd *r, const struct elv_field *f, void *message)
{
    void *value = (uint8_t *)message + f->at;
    struct elv_bytes b;
    uint64_t u;
    switch ((enum elv_field_kind)f->kind) {
    case ELV_FIELD_UINT:
        u = elv_cbor_rd_uint(r);
        if (f->size < sizeof u && (u < f->min || u > f->max))
            elv_rd_fail(r, ELV_ERR_RANGE);
        if (r->err == ELV_OK)
            save(value, f->size, u);
        break;
    case ELV_FIELD_BOOL:
        *(bool *)value = elv_cbor_rd_bool(r);
        break;
    case ELV_FIELD_SINGLE:
        *(float *)value = elv_field_rd_f32(r);
        break;
    case ELV_FIELD_DOUBLE:
        *(double *)value = elv_cbor_rd_float(r);
        break;
    case ELV_FIELD_BYTES:
        b = elv_cbor_rd_bytes(r);
        if (b.len != f->size)
            elv_rd_fail(r, ELV_ERR_FORMAT);
        if (r->err == ELV_OK)
            memcpy(value, b.at, b.len);
        break;
    case ELV_FIELD_TEXT:
    case ELV_FIELD_NAME:
        b = elv_cbor_rd_text(r);
        *(struct elv_text *)value = (struct elv_text){.at = (const char *)b.at, .len = b.len};
        break;
    case ELV_FIELD_SPECIAL:
        f->special->read(r, value, message);
        break;
    }
}

/* The range of one field: the decoder's last word, and the encoder's check of its caller. */
static bool field_sound(const struct elv_field *f, const void *message)
{
    const void *value = (const uint8_t *)message + f->at;
    struct elv_text t;
    uint64_t u;
    switch ((enum elv_field_kind)f->kind) {
    case ELV_FIELD_UINT:
        u = load(value, f->size);
        return f->size == sizeof u || (u >= f->min && u <= f->max);
    case ELV_FIELD_SINGLE:
        return elv_finite_f32(*(const float *)value);
    case ELV_FIELD_DOUBLE:
        return elv_finite_f64(*(const double *)value);
    case ELV_FIELD_TEXT:
        t = *(const struct elv_text *)value;
        return t.len >= f->min && t.len <= f->max && printable(t);
    case ELV_FIELD_NAME:
        return elv_name_ok(*(const struct elv_text *)value, f->max);
    case ELV_FIELD_SPECIAL:
        return f->special->sound == NULL || f->special->sound(value, message);
    case ELV_FIELD_BOOL:
    case ELV_FIELD_BYTES:
        break;
    }
    return true;
}

static bool present(const struct elv_field *f, const void *message)
{
    return f->has == NULL || f->has(message);
}

static bool all_sound(const struct elv_layout *l, const void *message)
{
    for (size_t i = 0; i < l->n; i++)
        if (present(&l->fields[i], message) && !field_sound(&l->fields[i], message))
            return false;
    return l->sound == NULL || l->sound(message);
}

enum elv_err elv_field_encode(const struct elv_layout *l, const void *message, uint8_t *out,
                              size_t cap, size_t *len)
{
    if (!all_sound(l, message))
        return ELV_ERR_RANGE;
    uint32_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += present(&l->fields[i], message);
    struct elv_wr w = elv_wr_of(out, cap);
    elv_cbor_wr_map(&w, n);
    for (size_t i = 0; i < l->n; i++) {
        if (!present(&l->fields[i], message))
            continue;
        elv_cbor_wr_uint(&w, l->fields[i].key);
        write_value(&w, &l->fields[i], message);
    }
    *len = w.need;
    return w.err;
}

static const struct elv_field *field_of(const struct elv_layout *l, uint64_t key)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->fields[i].key == key)
            return &l->fields[i];
    return NULL;
}

enum elv_err elv_field_decode(const struct elv_layout *l, struct elv_bytes in, size_t len_max,
                              void *message)
{
    if (in.len > len_max)
        return ELV_ERR_SPACE;
    struct elv_rd r = elv_rd_of(in);
    struct elv_cbor_map map = elv_cbor_rd_map(&r);
    uint64_t key;
    uint32_t seen = 0;
    while (elv_cbor_rd_key(&r, &map, &key)) {
        const struct elv_field *f = field_of(l, key);
        if (f == NULL) {
            elv_cbor_rd_skip(&r); /* a later version's */
            continue;
        }
        seen |= 1u << (f - l->fields);
        read_value(&r, f, message);
    }
    if (r.err != ELV_OK)
        return r.err;
    if (r.left > 0)
        return ELV_ERR_FORMAT;
    for (size_t i = 0; i < l->n; i++)
        if (present(&l->fields[i], message) != (seen >> i & 1))
            return ELV_ERR_FORMAT;
    return all_sound(l, message) ? ELV_OK : ELV_ERR_RANGE;
}
