/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cbor.h"

#include <float.h>
#include <string.h>

#include "common/assert.h"
#include "common/exact.h"

/* Major types, RFC 8949, section 3.1. */
enum { UINT = 0, NINT = 1, BYTES = 2, TEXT = 3, ARRAY = 4, MAP = 5, TAG = 6, OTHER = 7 };
/* Additional information of major type 7, section 3.3. */
enum { FALSE_INFO = 20, TRUE_INFO = 21, NULL_INFO = 22, F16 = 25, F32 = 26, F64 = 27 };

/* Writing. */

static void wr_be(struct elv_wr *w, uint64_t v, unsigned len)
{
    uint8_t be[8];
    for (unsigned i = 0; i < len; i++)
        be[i] = (uint8_t)(v >> (8 * (len - 1 - i)));
    elv_wr_bytes(w, (struct elv_bytes){.at = be, .len = len});
}

static void wr_head(struct elv_wr *w, unsigned major, uint64_t arg)
{
    const uint8_t top = (uint8_t)(major << 5);
    if (arg < 24) {
        elv_wr_u8(w, (uint8_t)(top | arg));
        return;
    }
    const unsigned log2_len = arg > UINT32_MAX ? 3 : arg > UINT16_MAX ? 2 : arg > UINT8_MAX ? 1 : 0;
    elv_wr_u8(w, (uint8_t)(top | (24 + log2_len)));
    wr_be(w, arg, 1u << log2_len);
}

void elv_cbor_wr_uint(struct elv_wr *w, uint64_t v) { wr_head(w, UINT, v); }

void elv_cbor_wr_int(struct elv_wr *w, int64_t v)
{
    if (v >= 0)
        wr_head(w, UINT, (uint64_t)v);
    else
        wr_head(w, NINT, (uint64_t) - (v + 1));
}

void elv_cbor_wr_bool(struct elv_wr *w, bool v) { wr_head(w, OTHER, v ? TRUE_INFO : FALSE_INFO); }

void elv_cbor_wr_null(struct elv_wr *w) { wr_head(w, OTHER, NULL_INFO); }

void elv_cbor_wr_bytes(struct elv_wr *w, struct elv_bytes v)
{
    wr_head(w, BYTES, v.len);
    elv_wr_bytes(w, v);
}

void elv_cbor_wr_text(struct elv_wr *w, struct elv_bytes v)
{
    wr_head(w, TEXT, v.len);
    elv_wr_bytes(w, v);
}

void elv_cbor_wr_array(struct elv_wr *w, uint32_t n) { wr_head(w, ARRAY, n); }

void elv_cbor_wr_map(struct elv_wr *w, uint32_t n) { wr_head(w, MAP, n); }

/* Floats. A 16-bit float has 5 exponent and 10 fraction bits, a 32-bit one 8 and 23. */

static uint32_t f32_bits(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* True, and the half in `*half`, when 16 bits hold the value of the finite 32-bit float `bits`. */
static bool fits_f16(uint32_t bits, uint16_t *half)
{
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    const int exponent = (int)(bits >> 23 & 0xFF) - 127;
    const uint32_t fraction = bits & 0x7FFFFF;
    if ((bits & 0x7FFFFFFF) == 0) {
        *half = sign;
        return true;
    }
    if (exponent >= -14 && exponent <= 15 && (fraction & 0x1FFF) == 0) {
        *half = (uint16_t)(sign | (uint32_t)(exponent + 15) << 10 | fraction >> 13);
        return true;
    }
    if (exponent < -24 || exponent > -15)
        return false;
    const unsigned drop = (unsigned)(-1 - exponent); /* a subnormal half counts units of 2^-24 */
    const uint32_t whole = fraction | 0x800000;
    *half = (uint16_t)(sign | whole >> drop);
    return (whole & ((1u << drop) - 1)) == 0;
}

/* The shortest encoding of a finite value: its additional information, and the bits. */
static unsigned shortest(double v, uint64_t *bits)
{
    memcpy(bits, &v, sizeof *bits);
    if (v > FLT_MAX || v < -FLT_MAX || (double)(float)v != v)
        return F64;
    const uint32_t single = f32_bits((float)v);
    uint16_t half;
    const bool fits = fits_f16(single, &half);
    *bits = fits ? half : single;
    return fits ? F16 : F32;
}

void elv_cbor_wr_float(struct elv_wr *w, double v)
{
    ELV_ASSERT(elv_finite_f64(v));
    uint64_t bits;
    const unsigned info = shortest(v, &bits);
    elv_wr_u8(w, (uint8_t)(OTHER << 5 | info));
    wr_be(w, bits, 1u << (info - 24));
}

static double of_f16(uint64_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    const uint32_t exponent = (uint32_t)(bits >> 10 & 31);
    const uint32_t fraction = (uint32_t)(bits & 0x3FF);
    if (exponent == 0) {
        const double v = (double)fraction * 0x1p-24;
        return sign ? -v : v;
    }
    /* Exponent 31 is infinity or not a number, in both widths. */
    const uint32_t wide = sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13;
    float v;
    memcpy(&v, &wide, sizeof v);
    return (double)v;
}

static double of_bits(unsigned info, uint64_t bits)
{
    if (info == F16)
        return of_f16(bits);
    if (info == F32) {
        const uint32_t single = (uint32_t)bits;
        float v;
        memcpy(&v, &single, sizeof v);
        return (double)v;
    }
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Reading. */

struct head {
    unsigned major, info;
    uint64_t arg;
};

static uint64_t rd_be(struct elv_rd *r, unsigned len)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < len; i++)
        v = v << 8 | elv_rd_u8(r);
    return v;
}

/* Type and argument of the next value. Every value passes through here, so the rule of the shortest
 * form is checked in one place; floats bring their own. */
static struct head rd_head(struct elv_rd *r)
{
    static const uint64_t least[4] = {24, 0x100, 0x10000, 0x100000000};
    const uint8_t first = elv_rd_u8(r);
    struct head h = {.major = first >> 5, .info = first & 31};
    if (h.info < 24) {
        h.arg = h.info;
        return h;
    }
    if (h.info > 27) { /* reserved, or an indefinite length */
        elv_rd_fail(r, ELV_ERR_FORMAT);
        return h;
    }
    h.arg = rd_be(r, 1u << (h.info - 24));
    if (h.major != OTHER && h.arg < least[h.info - 24])
        elv_rd_fail(r, ELV_ERR_FORMAT);
    return h;
}

/* The argument of a value that must be of type `major`; 0 on failure. */
static uint64_t expect(struct elv_rd *r, unsigned major)
{
    const struct head h = rd_head(r);
    if (h.major != major)
        elv_rd_fail(r, ELV_ERR_FORMAT);
    return r->err == ELV_OK ? h.arg : 0;
}

static uint64_t expect_other(struct elv_rd *r, unsigned info, unsigned or_info)
{
    const struct head h = rd_head(r);
    if (h.major != OTHER || (h.info != info && h.info != or_info))
        elv_rd_fail(r, ELV_ERR_FORMAT);
    return r->err == ELV_OK ? h.info : 0;
}

uint64_t elv_cbor_rd_uint(struct elv_rd *r) { return expect(r, UINT); }

int64_t elv_cbor_rd_int(struct elv_rd *r)
{
    const struct head h = rd_head(r);
    if (h.major != UINT && h.major != NINT)
        elv_rd_fail(r, ELV_ERR_FORMAT);
    if (h.arg > INT64_MAX)
        elv_rd_fail(r, ELV_ERR_RANGE);
    if (r->err != ELV_OK)
        return 0;
    return h.major == UINT ? (int64_t)h.arg : -1 - (int64_t)h.arg;
}

bool elv_cbor_rd_bool(struct elv_rd *r)
{
    return expect_other(r, FALSE_INFO, TRUE_INFO) == TRUE_INFO;
}

void elv_cbor_rd_null(struct elv_rd *r) { (void)expect_other(r, NULL_INFO, NULL_INFO); }

static double check_float(struct elv_rd *r, struct head h)
{
    if (h.major != OTHER || h.info < F16)
        elv_rd_fail(r, ELV_ERR_FORMAT);
    if (r->err != ELV_OK)
        return 0;
    const double v = of_bits(h.info, h.arg);
    uint64_t bits;
    if (!elv_finite_f64(v))
        elv_rd_fail(r, ELV_ERR_RANGE);
    else if (shortest(v, &bits) != h.info)
        elv_rd_fail(r, ELV_ERR_FORMAT);
    return r->err == ELV_OK ? v : 0;
}

double elv_cbor_rd_float(struct elv_rd *r) { return check_float(r, rd_head(r)); }

static struct elv_bytes rd_string(struct elv_rd *r, uint64_t len)
{
    if (len > r->left)
        elv_rd_fail(r, ELV_ERR_SHORT);
    return elv_rd_bytes(r, r->err == ELV_OK ? (size_t)len : 0);
}

struct elv_bytes elv_cbor_rd_bytes(struct elv_rd *r) { return rd_string(r, expect(r, BYTES)); }

/* Bytes of the UTF-8 sequence at `p`, 0 when it is not one (RFC 3629, section 4). */
static size_t utf8_len(const uint8_t *p, size_t left)
{
    if (p[0] < 0x80)
        return 1;
    const size_t len = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || len > left)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    const bool overlong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
    const bool beyond = (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF4 && p[1] > 0x8F);
    return overlong || beyond ? 0 : len;
}

static void check_utf8(struct elv_rd *r, struct elv_bytes text)
{
    size_t len;
    for (size_t i = 0; i < text.len; i += len) {
        len = utf8_len(text.at + i, text.len - i);
        if (len == 0) {
            elv_rd_fail(r, ELV_ERR_FORMAT);
            return;
        }
    }
}

struct elv_bytes elv_cbor_rd_text(struct elv_rd *r)
{
    const struct elv_bytes text = rd_string(r, expect(r, TEXT));
    check_utf8(r, text);
    return r->err == ELV_OK ? text : (struct elv_bytes){0};
}

/* A count of `each` values per element. A value takes a byte at least, so a count the rest of the
 * input cannot hold is refused before anybody loops over it. */
static uint32_t check_count(struct elv_rd *r, uint64_t n, unsigned each)
{
    if (n > UINT32_MAX / 2 || n * each > r->left)
        elv_rd_fail(r, ELV_ERR_SHORT);
    return r->err == ELV_OK ? (uint32_t)n : 0;
}

uint32_t elv_cbor_rd_array(struct elv_rd *r) { return check_count(r, expect(r, ARRAY), 1); }

struct elv_cbor_map elv_cbor_rd_map(struct elv_rd *r)
{
    return (struct elv_cbor_map){.left = check_count(r, expect(r, MAP), 2)};
}

bool elv_cbor_rd_key(struct elv_rd *r, struct elv_cbor_map *map, uint64_t *key)
{
    if (r->err != ELV_OK || map->left == 0)
        return false;
    const uint64_t got = elv_cbor_rd_uint(r);
    if (map->full || got < map->least)
        elv_rd_fail(r, ELV_ERR_FORMAT);
    if (r->err != ELV_OK)
        return false;
    map->full = got == UINT64_MAX;
    map->least = map->full ? got : got + 1;
    map->left--;
    *key = got;
    return true;
}

/* Skipping. One level for each container that is open. */

struct level {
    uint32_t left;        /* values still to come */
    bool map;             /* then even values of `left` announce keys */
    struct elv_bytes key; /* the last one, as encoded */
};

/* Keys ascend in the order of their encoded bytes (RFC 8949, section 4.2.1). */
static bool ascends(struct elv_bytes a, struct elv_bytes b)
{
    if (a.at == NULL)
        return true;
    const int d = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
    return d < 0 || (d == 0 && a.len < b.len);
}

/* Reads one value up to its content; containers leave their contents unread and are pushed. */
static unsigned skip_one(struct elv_rd *r, struct level *inner)
{
    const struct head h = rd_head(r);
    *inner = (struct level){0};
    if (r->err != ELV_OK)
        return h.major;
    if (h.major == BYTES) {
        (void)rd_string(r, h.arg);
    } else if (h.major == TEXT) {
        check_utf8(r, rd_string(r, h.arg));
    } else if (h.major == ARRAY) {
        inner->left = check_count(r, h.arg, 1);
    } else if (h.major == MAP) {
        inner->left = 2 * check_count(r, h.arg, 2);
        inner->map = true;
    } else if (h.major == OTHER && h.info >= F16) {
        (void)check_float(r, h);
    } else if (h.major == TAG ||
               (h.major == OTHER && (h.info < FALSE_INFO || h.info > NULL_INFO))) {
        elv_rd_fail(r, ELV_ERR_FORMAT);
    }
    return h.major;
}

static void check_key(struct elv_rd *r, struct level *l, unsigned major, const uint8_t *at)
{
    const struct elv_bytes key = {.at = at, .len = (size_t)(r->at - at)};
    if (major > TEXT || !ascends(l->key, key))
        elv_rd_fail(r, ELV_ERR_FORMAT);
    l->key = key;
}

void elv_cbor_rd_skip(struct elv_rd *r)
{
    struct level stack[ELV_CBOR_DEPTH_MAX + 1] = {{.left = 1}};
    size_t depth = 1; /* levels in use; every turn takes a byte of the input or closes a level */
    while (depth > 0 && r->err == ELV_OK) {
        struct level *top = &stack[depth - 1], inner;
        if (top->left == 0) {
            depth--;
            continue;
        }
        const bool is_key = top->map && top->left % 2 == 0;
        const uint8_t *at = r->at;
        const unsigned major = skip_one(r, &inner);
        top->left--;
        if (is_key && r->err == ELV_OK)
            check_key(r, top, major, at);
        if (major != ARRAY && major != MAP)
            continue;
        if (depth > ELV_CBOR_DEPTH_MAX)
            elv_rd_fail(r, ELV_ERR_FORMAT);
        else
            stack[depth++] = inner;
    }
}
