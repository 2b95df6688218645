/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/posix/array.h"

#include <string.h>

#include "common/assert.h"
#include "common/size.h"

static size_t size_of(enum elv_array_type type)
{
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
    return sizes[type];
}

/* Exactly the values the dimensions promise. */
static enum elv_err check_length(struct elv_array *a, const char **why)
{
    size_t n = 1, len;
    for (uint32_t i = 0; i < a->n_dims; i++) {
        if (!elv_size_mul(n, a->dims[i], &n)) {
            *why = "the dimensions are too large";
            return ELV_ERR_RANGE;
        }
    }
    if (!elv_size_mul(n, size_of(a->type), &len)) {
        *why = "the dimensions are too large";
        return ELV_ERR_RANGE;
    }
    if (len != a->data.len) {
        *why = len > a->data.len ? "it ends before its values do" : "bytes follow its values";
        return len > a->data.len ? ELV_ERR_SHORT : ELV_ERR_FORMAT;
    }
    a->n = n;
    return ELV_OK;
}

static uint32_t read_be32(struct elv_rd *r)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++)
        v = v << 8 | elv_rd_u8(r);
    return v;
}

static bool idx_type(uint8_t code, enum elv_array_type *type)
{
    switch (code) {
    case 0x08:
        *type = ELV_ARRAY_U8;
        return true;
    case 0x09:
        *type = ELV_ARRAY_I8;
        return true;
    case 0x0B:
        *type = ELV_ARRAY_I16;
        return true;
    case 0x0C:
        *type = ELV_ARRAY_I32;
        return true;
    case 0x0D:
        *type = ELV_ARRAY_F32;
        return true;
    case 0x0E:
        *type = ELV_ARRAY_F64;
        return true;
    default:
        return false;
    }
}

enum elv_err elv_idx_parse(struct elv_bytes in, struct elv_array *a, const char **why)
{
    struct elv_array got = {.big_endian = true};
    struct elv_rd r = elv_rd_of(in);
    const uint16_t zeros = elv_rd_u16(&r);
    const uint8_t type = elv_rd_u8(&r);
    got.n_dims = elv_rd_u8(&r);
    if (r.err == ELV_OK && (zeros != 0 || !idx_type(type, &got.type))) {
        *why = "it does not begin as an IDX file does";
        return ELV_ERR_FORMAT;
    }
    if (r.err == ELV_OK && (got.n_dims == 0 || got.n_dims > ELV_ARRAY_DIMS_MAX)) {
        *why = "it has no dimension or more than four";
        return ELV_ERR_RANGE;
    }
    for (uint32_t i = 0; r.err == ELV_OK && i < got.n_dims; i++)
        got.dims[i] = read_be32(&r);
    if (r.err != ELV_OK) {
        *why = "it ends inside its header";
        return r.err;
    }
    got.data = (struct elv_bytes){.at = r.at, .len = r.left};
    const enum elv_err err = check_length(&got, why);
    if (err == ELV_OK)
        *a = got;
    return err;
}

/* The header of an .npy file is a Python dictionary with three known keys, for example
 * {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), } */
struct dict {
    const char *at;
    size_t left;
    bool has_descr, has_order, has_shape;
    bool fortran;
};

static void skip_space(struct dict *d)
{
    while (d->left > 0 && (*d->at == ' ' || *d->at == '\n' || *d->at == '\t')) {
        d->at++;
        d->left--;
    }
}

static bool take(struct dict *d, const char *text)
{
    const size_t len = strlen(text);
    skip_space(d);
    if (d->left < len || memcmp(d->at, text, len) != 0)
        return false;
    d->at += len;
    d->left -= len;
    return true;
}

/* A string in single or double quotes, without escapes. */
static bool take_string(struct dict *d, struct elv_bytes *s)
{
    const bool is_double = take(d, "\"");
    if (!is_double && !take(d, "'"))
        return false;
    const char *end = memchr(d->at, is_double ? '"' : '\'', d->left);
    if (end == NULL)
        return false;
    *s = (struct elv_bytes){.at = (const uint8_t *)d->at, .len = (size_t)(end - d->at)};
    d->left -= s->len + 1;
    d->at = end + 1;
    return true;
}

static bool take_dim(struct dict *d, uint32_t *dim)
{
    uint64_t v = 0;
    size_t n = 0;
    skip_space(d);
    for (; d->left > 0 && *d->at >= '0' && *d->at <= '9' && n < 10; n++) {
        v = v * 10 + (uint64_t)(*d->at - '0');
        d->at++;
        d->left--;
    }
    if (n == 0 || v > UINT32_MAX)
        return false;
    *dim = (uint32_t)v;
    return true;
}

/* (60000, 28, 28) or (60000,); a one-tuple ends in a comma, the empty one is a single value. */
static bool take_shape(struct dict *d, struct elv_array *a)
{
    if (!take(d, "("))
        return false;
    while (!take(d, ")")) {
        if (a->n_dims == ELV_ARRAY_DIMS_MAX || !take_dim(d, &a->dims[a->n_dims]))
            return false;
        a->n_dims++;
        if (!take(d, ",")) {
            if (!take(d, ")"))
                return false;
            break;
        }
    }
    return a->n_dims > 0;
}

static bool npy_type(struct elv_bytes s, struct elv_array *a)
{
    static const struct {
        char name[3];
        enum elv_array_type type;
    } types[] = {
        {"b1", ELV_ARRAY_U8},  {"u1", ELV_ARRAY_U8},  {"i1", ELV_ARRAY_I8},  {"u2", ELV_ARRAY_U16},
        {"i2", ELV_ARRAY_I16}, {"u4", ELV_ARRAY_U32}, {"i4", ELV_ARRAY_I32}, {"u8", ELV_ARRAY_U64},
        {"i8", ELV_ARRAY_I64}, {"f4", ELV_ARRAY_F32}, {"f8", ELV_ARRAY_F64},
    };
    if (s.len != 3 || memchr("<>|", s.at[0], 3) == NULL)
        return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (memcmp(s.at + 1, types[i].name, 2) != 0)
            continue;
        a->type = types[i].type;
        a->big_endian = s.at[0] == '>';
        return s.at[0] != '|' || size_of(a->type) == 1;
    }
    return false;
}

static bool take_value(struct dict *d, struct elv_bytes key, struct elv_array *a,
                       struct elv_bytes *descr)
{
    if (key.len == 5 && memcmp(key.at, "descr", 5) == 0 && !d->has_descr)
        return d->has_descr = take_string(d, descr);
    if (key.len == 13 && memcmp(key.at, "fortran_order", 13) == 0 && !d->has_order) {
        d->fortran = take(d, "True");
        return d->has_order = d->fortran || take(d, "False");
    }
    if (key.len == 5 && memcmp(key.at, "shape", 5) == 0 && !d->has_shape)
        return d->has_shape = take_shape(d, a);
    return false;
}

static bool take_dict(struct dict *d, struct elv_array *a, struct elv_bytes *descr)
{
    struct elv_bytes key;
    if (!take(d, "{"))
        return false;
    while (!take(d, "}")) {
        if (!take_string(d, &key) || !take(d, ":") || !take_value(d, key, a, descr))
            return false;
        if (!take(d, ",")) {
            if (!take(d, "}"))
                return false;
            break;
        }
    }
    skip_space(d);
    return d->has_descr && d->has_order && d->has_shape && d->left == 0;
}

static enum elv_err read_dict(struct elv_bytes text, struct elv_array *a, const char **why)
{
    struct dict d = {.at = (const char *)text.at, .left = text.len};
    struct elv_bytes descr = {0};
    if (!take_dict(&d, a, &descr)) {
        *why = "its header is not that of a plain array with one to four dimensions";
        return ELV_ERR_FORMAT;
    }
    if (!npy_type(descr, a)) {
        *why = "its values are not integers or 32- or 64-bit floats";
        return ELV_ERR_UNSUPPORTED;
    }
    if (d.fortran && a->n_dims > 1) {
        *why = "it is in Fortran order; save numpy.ascontiguousarray(x)";
        return ELV_ERR_UNSUPPORTED;
    }
    return ELV_OK;
}

enum elv_err elv_npy_parse(struct elv_bytes in, struct elv_array *a, const char **why)
{
    static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    struct elv_array got = {0};
    struct elv_rd r = elv_rd_of(in);
    const struct elv_bytes start = elv_rd_bytes(&r, sizeof magic);
    const uint8_t major = elv_rd_u8(&r);
    (void)elv_rd_u8(&r);
    const uint32_t len = major == 1 ? elv_rd_u16(&r) : elv_rd_u32(&r);
    const struct elv_bytes text = elv_rd_bytes(&r, len);
    if (start.len == sizeof magic && memcmp(start.at, magic, sizeof magic) != 0) {
        *why = "it does not begin as an .npy file does";
        return ELV_ERR_FORMAT;
    }
    if (r.err != ELV_OK) {
        *why = "it ends inside its header";
        return r.err;
    }
    if (major < 1 || major > 3) {
        *why = "it is of a version after 3";
        return ELV_ERR_VERSION;
    }
    enum elv_err err = read_dict(text, &got, why);
    got.data = (struct elv_bytes){.at = r.at, .len = r.left};
    if (err == ELV_OK)
        err = check_length(&got, why);
    if (err == ELV_OK)
        *a = got;
    return err;
}

static uint64_t bits_at(const struct elv_array *a, size_t i)
{
    const size_t size = size_of(a->type);
    const uint8_t *p = a->data.at + i * size;
    uint64_t v = 0;
    for (size_t k = 0; k < size; k++)
        v |= (uint64_t)p[k] << 8 * (a->big_endian ? size - 1 - k : k);
    return v;
}

double elv_array_value(const struct elv_array *a, size_t i)
{
    ELV_ASSERT(i < a->n);
    const uint64_t bits = bits_at(a, i);
    const uint32_t low = (uint32_t)bits;
    float f;
    double d;
    switch (a->type) {
    case ELV_ARRAY_U8:
    case ELV_ARRAY_U16:
    case ELV_ARRAY_U32:
    case ELV_ARRAY_U64:
        return (double)bits;
    case ELV_ARRAY_I8:
        return (double)(int8_t)bits;
    case ELV_ARRAY_I16:
        return (double)(int16_t)bits;
    case ELV_ARRAY_I32:
        return (double)(int32_t)bits;
    case ELV_ARRAY_I64:
        return (double)(int64_t)bits;
    case ELV_ARRAY_F32:
        memcpy(&f, &low, sizeof f);
        return (double)f;
    case ELV_ARRAY_F64:
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    return 0;
}
