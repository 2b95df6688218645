/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text.h"

#include <float.h>
#include <string.h>

#include "common/assert.h"

enum { DIGITS_MAX = 14, EXPONENT_MAX = 400 };

struct elv_line elv_line_of(char *out, size_t cap)
{
    ELV_ASSERT(cap > 0);
    out[0] = '\0';
    return (struct elv_line){.at = out, .cap = cap};
}

void elv_line_chars(struct elv_line *l, const char *text, size_t len)
{
    const size_t room = l->cap - 1 - l->len;
    const size_t n = len < room ? len : room;
    l->full = l->full || n < len;
    if (n > 0)
        memcpy(l->at + l->len, text, n);
    l->len += n;
    l->at[l->len] = '\0';
}

void elv_line_add(struct elv_line *l, const char *text) { elv_line_chars(l, text, strlen(text)); }

void elv_line_uint(struct elv_line *l, uint64_t v)
{
    char digits[20]; /* of 2^64 - 1 */
    size_t n = sizeof digits;
    do {
        digits[--n] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    elv_line_chars(l, digits + n, sizeof digits - n);
}

void elv_line_hex(struct elv_line *l, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const char pair[2] = {"0123456789abcdef"[bytes[i] >> 4], "0123456789abcdef"[bytes[i] & 15]};
        elv_line_chars(l, pair, sizeof pair);
    }
}

/* v * 10^exponent. Powers up to 10^22 are doubles, so one step rounds once. */
static double scaled(double v, int exponent)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    for (; exponent > 22; exponent -= 22)
        v *= 1e22;
    for (; exponent < -22; exponent += 22)
        v /= 1e22;
    return exponent < 0 ? v / tens[-exponent] : v * tens[exponent];
}

struct decimal { /* digits * 10^exponent */
    uint64_t digits;
    int exponent;
};

/* `n` significant digits of v > 0, the first of which stands for 10^`top`. */
static struct decimal rounded(double v, int top, int n)
{
    struct decimal d = {.exponent = top - (n - 1)};
    d.digits = (uint64_t)(scaled(v, -d.exponent) + 0.5);
    while (d.digits % 10 == 0 && d.digits > 0) { /* also what rounding up to the next power left */
        d.digits /= 10;
        d.exponent++;
    }
    return d;
}

static int power_of(double v)
{
    int top = 0;
    for (; v >= 10.0; v /= 10.0)
        top++;
    for (; v < 1.0; v *= 10.0)
        top--;
    return top;
}

static void zeros(struct elv_line *l, int n)
{
    for (; n > 0; n--)
        elv_line_add(l, "0");
}

static void print_decimal(struct elv_line *l, struct decimal d)
{
    char buf[24];
    struct elv_line digits = elv_line_of(buf, sizeof buf);
    elv_line_uint(&digits, d.digits);
    const int n = (int)digits.len, top = d.exponent + n - 1;
    if (top < -4 || top >= 9) {
        elv_line_chars(l, buf, 1);
        elv_line_add(l, n > 1 ? "." : "");
        elv_line_chars(l, buf + 1, (size_t)n - 1);
        elv_line_add(l, top < 0 ? "e-" : "e");
        elv_line_uint(l, (uint64_t)(top < 0 ? -top : top));
    } else if (top < 0) {
        elv_line_add(l, "0.");
        zeros(l, -1 - top);
        elv_line_chars(l, buf, (size_t)n);
    } else if (d.exponent >= 0) {
        elv_line_chars(l, buf, (size_t)n);
        zeros(l, d.exponent);
    } else {
        elv_line_chars(l, buf, (size_t)top + 1);
        elv_line_add(l, ".");
        elv_line_chars(l, buf + top + 1, (size_t)(n - top - 1));
    }
}

static void print(struct elv_line *l, double v, bool single)
{
    if (v < 0) {
        elv_line_add(l, "-");
        v = -v;
    }
    ELV_ASSERT(v <= DBL_MAX);
    if (v == 0) {
        elv_line_add(l, "0");
        return;
    }
    const int top = power_of(v);
    struct decimal d = {0};
    for (int n = 1; n <= DIGITS_MAX; n++) {
        d = rounded(v, top, n);
        const double back = scaled((double)d.digits, d.exponent);
        if (single ? back <= FLT_MAX && (float)back == (float)v : back == v)
            break;
    }
    print_decimal(l, d);
}

void elv_line_f32(struct elv_line *l, float v) { print(l, (double)v, true); }

void elv_line_f64(struct elv_line *l, double v) { print(l, v, false); }

void elv_wr_text(struct elv_wr *w, const char *text)
{
    elv_wr_bytes(w, (struct elv_bytes){.at = (const uint8_t *)text, .len = strlen(text)});
}

void elv_wr_decimal(struct elv_wr *w, uint64_t v)
{
    char text[21]; /* of 2^64 - 1, and the zero */
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_line_uint(&l, v);
    elv_wr_text(w, text);
}

bool elv_text_uint(const char *at, size_t len, uint64_t *v)
{
    uint64_t got = 0;
    for (size_t i = 0; i < len; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        const uint64_t digit = (uint64_t)(at[i] - '0');
        if (got > (UINT64_MAX - digit) / 10)
            return false;
        got = got * 10 + digit;
    }
    if (len > 0)
        *v = got;
    return len > 0;
}

/* Takes digits into `d`; those after the point lower the exponent. Returns how many there were, or
 * a negative number when they are more than a double can tell apart. */
static int take_digits(const char *at, size_t len, size_t *i, struct decimal *d, bool fraction)
{
    int n = 0;
    for (; *i < len && at[*i] >= '0' && at[*i] <= '9'; (*i)++, n++) {
        if (d->digits >= 10000000000000000u || n > EXPONENT_MAX)
            return -1;
        d->digits = d->digits * 10 + (uint64_t)(at[*i] - '0');
        d->exponent -= fraction;
    }
    return n;
}

static bool take_exponent(const char *at, size_t len, size_t *i, int *exponent)
{
    if (*i >= len || (at[*i] != 'e' && at[*i] != 'E'))
        return true;
    (*i)++;
    const bool minus = *i < len && at[*i] == '-';
    if (*i < len && (at[*i] == '-' || at[*i] == '+'))
        (*i)++;
    uint64_t v;
    if (!elv_text_uint(at + *i, len - *i, &v) || v > EXPONENT_MAX)
        return false;
    *exponent += minus ? -(int)v : (int)v;
    *i = len;
    return true;
}

bool elv_text_number(const char *at, size_t len, double *v)
{
    struct decimal d = {0};
    size_t i = 0;
    const bool minus = len > 0 && at[0] == '-';
    if (len > 0 && (at[0] == '-' || at[0] == '+'))
        i++;
    const int whole = take_digits(at, len, &i, &d, false);
    int part = 0;
    if (whole >= 0 && i < len && at[i] == '.') {
        i++;
        part = take_digits(at, len, &i, &d, true);
    }
    if (whole < 0 || part < 0 || whole + part == 0 || !take_exponent(at, len, &i, &d.exponent))
        return false;
    const double got = scaled((double)d.digits, d.exponent);
    if (i < len || got > DBL_MAX)
        return false;
    *v = minus ? -got : got;
    return true;
}
