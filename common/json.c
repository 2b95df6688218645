/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json_internal.h"

#include <string.h>

void elv_json_fail(struct elv_json *j, enum elv_err err)
{
    if (j->err == ELV_OK)
        j->err = err;
    j->left = 0;
}

void elv_json_skip_blanks(struct elv_json *j)
{
    while (j->left > 0 && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r')) {
        j->at++;
        j->left--;
    }
}

bool elv_json_next_is(struct elv_json *j, uint8_t byte)
{
    elv_json_skip_blanks(j);
    return j->left > 0 && *j->at == byte;
}

void elv_json_expect(struct elv_json *j, uint8_t byte)
{
    if (!elv_json_next_is(j, byte)) {
        elv_json_fail(j, ELV_ERR_FORMAT);
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
struct elv_bytes elv_json_string(struct elv_json *j)
{
    elv_json_expect(j, '"');
    const uint8_t *from = j->at;
    while (j->left > 0 && *j->at != '"') {
        size_t n = 1;
        if (*j->at == '\\')
            n += escape_len(j->at + 1, j->left - 1);
        if (*j->at < 0x20 || (*j->at == '\\' && n == 1)) {
            elv_json_fail(j, ELV_ERR_FORMAT);
            break;
        }
        j->at += n;
        j->left -= n;
    }
    const struct elv_bytes got = {from, (size_t)(j->at - from)};
    elv_json_expect(j, '"');
    return j->err == ELV_OK ? got : (struct elv_bytes){0};
}

bool elv_json_same(struct elv_bytes a, const char *text)
{
    return a.len == strlen(text) && memcmp(a.at, text, a.len) == 0;
}

/* A whole number below 2^53, the last that every JSON reader agrees on. */
static uint64_t number(struct elv_json *j)
{
    elv_json_skip_blanks(j);
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
        elv_json_fail(j, ELV_ERR_FORMAT);
    return v;
}

/* [a, b, ...] of at most `cap` numbers; returns how many. */
uint32_t elv_json_numbers(struct elv_json *j, uint64_t *v, uint32_t cap)
{
    uint32_t n = 0;
    elv_json_expect(j, '[');
    if (elv_json_next_is(j, ']')) {
        elv_json_expect(j, ']');
        return 0;
    }
    for (bool more = true; more && j->err == ELV_OK;) {
        const uint64_t one = number(j);
        if (n == cap)
            elv_json_fail(j, ELV_ERR_MISMATCH); /* no tensor of ours has so many sides */
        else
            v[n++] = one;
        more = elv_json_next_is(j, ',');
        if (more)
            elv_json_expect(j, ',');
    }
    elv_json_expect(j, ']');
    return n;
}

/* Goes to the next member of an object; `*n` counts them. False at its end. */
bool elv_json_next_member(struct elv_json *j, uint32_t *n)
{
    if (*n == 0)
        elv_json_expect(j, '{');
    if (elv_json_next_is(j, '}')) {
        elv_json_expect(j, '}');
        return false;
    }
    if (*n > 0)
        elv_json_expect(j, ',');
    (*n)++;
    return j->err == ELV_OK;
}
