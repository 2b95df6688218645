/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/fields.h"

#include <math.h>
#include <string.h>

#include "common/node.h"

enum { DIGEST = 32, HASH = 8 };

/* Writing. */

void elv_lab_put_fixed(struct elv_line *out, double v, unsigned decimals)
{
    uint64_t unit = 1;
    if (!isfinite(v)) {
        elv_line_add(out, "nan");
        return;
    }
    for (unsigned i = 0; i < decimals; i++)
        unit *= 10;
    const double scaled = fabs(v) * (double)unit + 0.5;
    const uint64_t whole = scaled < 1e18 ? (uint64_t)scaled : (uint64_t)1e18;
    elv_line_add(out, v < 0 && whole > 0 ? "-" : "");
    elv_line_uint(out, whole / unit);
    elv_line_add(out, decimals > 0 ? "." : "");
    for (uint64_t rest = whole % unit; unit > 1; rest %= unit) {
        unit /= 10;
        elv_line_uint(out, rest / unit);
    }
}

void elv_lab_put_seconds(struct elv_line *out, int64_t us)
{
    const uint64_t size = us < 0 ? (uint64_t)0 - (uint64_t)us : (uint64_t)us;
    uint64_t rest = size % 1000000, unit = 100000;
    elv_line_add(out, us < 0 ? "-" : "");
    elv_line_uint(out, size / 1000000);
    elv_line_add(out, ".");
    do {
        elv_line_uint(out, rest / unit);
        rest %= unit;
        unit /= 10;
    } while (rest > 0);
}

static void put_u32(struct elv_line *out, const void *at)
{
    elv_line_uint(out, *(const uint32_t *)at);
}

static void put_u64(struct elv_line *out, const void *at)
{
    elv_line_uint(out, *(const uint64_t *)at);
}

static void put_bool(struct elv_line *out, const void *at)
{
    elv_line_add(out, *(const bool *)at ? "1" : "0");
}

static void put_time(struct elv_line *out, const void *at)
{
    if (*(const elv_time_us *)at != ELV_NEVER)
        elv_lab_put_seconds(out, *(const elv_time_us *)at);
}

static void put_span(struct elv_line *out, const void *at)
{
    const double us = *(const double *)at;
    elv_lab_put_seconds(out, us >= 0 && us < 9e18 ? (int64_t)(us + 0.5) : 0);
}

static void put_f64(struct elv_line *out, const void *at)
{
    if (isfinite(*(const double *)at))
        elv_line_f64(out, *(const double *)at);
}

static void put_accuracy(struct elv_line *out, const void *at)
{
    if (*(const double *)at >= 0)
        elv_line_f64(out, *(const double *)at);
}

static void put_digest(struct elv_line *out, const void *at)
{
    static const uint8_t none[DIGEST];
    if (memcmp(at, none, DIGEST) != 0)
        elv_line_hex(out, at, DIGEST);
}

static void put_hash(struct elv_line *out, const void *at)
{
    uint8_t bytes[HASH];
    for (int i = 0; i < HASH; i++)
        bytes[i] = (uint8_t)(*(const uint64_t *)at >> (8 * (HASH - 1 - i)));
    elv_line_hex(out, bytes, HASH);
}

/* Reading; a member changes only when its text is right. */

static bool get_u32(struct elv_text t, void *at)
{
    uint64_t v;
    if (!elv_text_uint(t.at, t.len, &v) || v > UINT32_MAX)
        return false;
    *(uint32_t *)at = (uint32_t)v;
    return true;
}

static bool get_u64(struct elv_text t, void *at) { return elv_text_uint(t.at, t.len, at); }

static bool get_bool(struct elv_text t, void *at) { return elv_value_bool(t, at); }

static bool get_seconds(struct elv_text t, int64_t *us)
{
    const bool negative = t.len > 0 && t.at[0] == '-';
    t.at += negative;
    t.len -= negative;
    const char *dot = t.len > 0 ? memchr(t.at, '.', t.len) : NULL;
    if (dot == NULL)
        return false;
    const size_t n_whole = (size_t)(dot - t.at), n_part = t.len - n_whole - 1;
    uint64_t whole, part;
    if (n_part > 6 || !elv_text_uint(t.at, n_whole, &whole) ||
        !elv_text_uint(dot + 1, n_part, &part) || whole > INT64_MAX / 1000000 - 1)
        return false;
    for (size_t i = n_part; i < 6; i++)
        part *= 10;
    *us = (int64_t)(whole * 1000000 + part) * (negative ? -1 : 1);
    return true;
}

static bool get_time(struct elv_text t, void *at)
{
    int64_t us = ELV_NEVER;
    if (t.len > 0 && !get_seconds(t, &us))
        return false;
    *(elv_time_us *)at = us;
    return true;
}

static bool get_span(struct elv_text t, void *at)
{
    int64_t us;
    if (!get_seconds(t, &us) || us < 0)
        return false;
    *(double *)at = (double)us;
    return true;
}

static bool get_double(struct elv_text t, double unknown, double *v)
{
    if (t.len > 0)
        return elv_text_number(t.at, t.len, v);
    *v = unknown;
    return true;
}

static bool get_f64(struct elv_text t, void *at) { return get_double(t, (double)NAN, at); }

static bool get_accuracy(struct elv_text t, void *at) { return get_double(t, -1, at); }

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool get_hex(struct elv_text t, uint8_t *out, size_t len)
{
    for (size_t i = 0; t.len == 2 * len && i < len; i++) {
        const int high = nibble(t.at[2 * i]), low = nibble(t.at[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return t.len == 2 * len;
}

static bool get_digest(struct elv_text t, void *at)
{
    uint8_t digest[DIGEST] = {0};
    if (t.len > 0 && !get_hex(t, digest, DIGEST))
        return false;
    memcpy(at, digest, DIGEST);
    return true;
}

static bool get_hash(struct elv_text t, void *at)
{
    uint8_t bytes[HASH];
    uint64_t v = 0;
    if (!get_hex(t, bytes, HASH))
        return false;
    for (int i = 0; i < HASH; i++)
        v = v << 8 | bytes[i];
    *(uint64_t *)at = v;
    return true;
}

static const struct {
    void (*put)(struct elv_line *out, const void *at);
    bool (*get)(struct elv_text t, void *at);
} kinds[] = {
    [ELV_LAB_F_U32] = {put_u32, get_u32},
    [ELV_LAB_F_U64] = {put_u64, get_u64},
    [ELV_LAB_F_BOOL] = {put_bool, get_bool},
    [ELV_LAB_F_TIME] = {put_time, get_time},
    [ELV_LAB_F_SPAN] = {put_span, get_span},
    [ELV_LAB_F_F64] = {put_f64, get_f64},
    [ELV_LAB_F_ACCURACY] = {put_accuracy, get_accuracy},
    [ELV_LAB_F_DIGEST] = {put_digest, get_digest},
    [ELV_LAB_F_HASH] = {put_hash, get_hash},
};

void elv_lab_field_put(struct elv_line *out, const struct elv_lab_field *f, const void *base)
{
    kinds[f->kind].put(out, (const uint8_t *)base + f->at);
}

bool elv_lab_field_get(struct elv_text text, const struct elv_lab_field *f, void *base)
{
    return kinds[f->kind].get(text, (uint8_t *)base + f->at);
}

/* JSON. */

static bool is_quoted(enum elv_lab_field_kind kind)
{
    return kind == ELV_LAB_F_DIGEST || kind == ELV_LAB_F_HASH;
}

void elv_lab_field_json(struct elv_line *out, const struct elv_lab_field *f, const void *base)
{
    char text[2 * DIGEST + 8];
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_lab_field_put(&l, f, base);
    if (l.len == 0)
        elv_line_add(out, "null");
    else if (f->kind == ELV_LAB_F_BOOL)
        elv_line_add(out, text[0] == '1' ? "true" : "false");
    else if (is_quoted(f->kind))
        elv_lab_put_json(out, text);
    else
        elv_line_add(out, text);
}

bool elv_lab_field_from_json(struct elv_text value, const struct elv_lab_field *f, void *base)
{
    if (elv_value_is(value, "null"))
        value.len = 0;
    if (is_quoted(f->kind) && value.len > 0) {
        if (value.len < 2 || value.at[0] != '"')
            return false;
        value.at++;
        value.len -= 2;
    }
    return elv_lab_field_get(value, f, base);
}

/* Length of the UTF-8 character at `s`, 0 when there is none (RFC 3629). */
static size_t utf8_len(const unsigned char *s)
{
    const unsigned char c = s[0];
    size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) || (c == 0xf0 && s[1] < 0x90) ||
        (c == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static void put_control(struct elv_line *out, unsigned char c)
{
    elv_line_add(out, "\\u00");
    elv_line_hex(out, &c, 1);
}

void elv_lab_put_json(struct elv_line *out, const char *text)
{
    elv_line_add(out, "\"");
    for (const unsigned char *s = (const unsigned char *)text; *s != 0;) {
        const size_t n = utf8_len(s);
        if (n == 0)
            elv_line_add(out, "\xef\xbf\xbd");
        else if (*s == '"' || *s == '\\')
            elv_line_add(out, *s == '"' ? "\\\"" : "\\\\");
        else if (*s < 0x20 || *s == 0x7f)
            put_control(out, *s);
        else
            elv_line_chars(out, (const char *)s, n);
        s += n > 0 ? n : 1;
    }
    elv_line_add(out, "\"");
}

/* A key of ours stands at the start of its line. */
bool elv_lab_json_find(struct elv_text json, const char *key, struct elv_text *value)
{
    const size_t n = strlen(key);
    const char *const end = json.at + json.len;
    for (const char *at = json.at; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        while (at < stop && *at == ' ')
            at++;
        if ((size_t)(stop - at) > n + 4 && at[0] == '"' && memcmp(at + 1, key, n) == 0 &&
            memcmp(at + 1 + n, "\": ", 3) == 0) {
            *value = (struct elv_text){at + n + 4, (size_t)(stop - at) - n - 4};
            value->len -= value->at[value->len - 1] == ',';
            return value->len > 0;
        }
        at = stop < end ? stop + 1 : end;
    }
    return false;
}
