/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/posix/keytable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/msg.h"
#include "common/text.h"
#include "ports/posix/file.h"

#define GENERATION_MAX 999999999u

/* A decimal number without sign or leading zero, 1 and up: one way to write each. */
static bool parse_number(const char *at, size_t len, uint32_t max, uint32_t *value)
{
    uint64_t v;
    if (len == 0 || at[0] == '0' || !elv_text_uint(at, len, &v) || v > max)
        return false;
    *value = (uint32_t)v;
    return true;
}

bool elv_identity_split(const char *identity, size_t len, char name[ELV_KEY_NAME_MAX + 1],
                        uint32_t *generation)
{
    const char *sign = len > 0 ? memchr(identity, '#', len) : NULL;
    const size_t n = sign != NULL ? (size_t)(sign - identity) : len;
    if (!elv_name_ok((struct elv_text){identity, n}, ELV_KEY_NAME_MAX))
        return false;
    uint32_t g = 1;
    if (sign != NULL && (!parse_number(sign + 1, len - n - 1, GENERATION_MAX, &g) || g == 1))
        return false;
    memcpy(name, identity, n);
    name[n] = 0;
    *generation = g;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool parse_key(const char *at, size_t len, struct elv_key *key)
{
    if (len % 2 != 0 || len / 2 < ELV_KEY_LEN_MIN || len / 2 > ELV_KEY_LEN_MAX)
        return false;
    for (size_t i = 0; i < len / 2; i++) {
        const int high = hex_digit(at[2 * i]), low = hex_digit(at[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        key->key[i] = (uint8_t)(high * 16 + low);
    }
    key->key_len = (uint8_t)(len / 2);
    return true;
}

/* 0000..., ffff...: a placeholder somebody forgot, not a secret. */
static bool is_uniform(const struct elv_key *key)
{
    for (uint8_t i = 1; i < key->key_len; i++) {
        if (key->key[i] != key->key[0])
            return false;
    }
    return key->key_len > 0;
}

struct word {
    const char *at;
    size_t len;
};

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* Up to `max` words; returns how many there are, `max` + 1 for more. */
static uint32_t split(struct elv_bytes line, struct word *words, uint32_t max)
{
    const char *at = (const char *)line.at;
    uint32_t n = 0;
    for (size_t i = 0; i < line.len;) {
        if (is_space(at[i])) {
            i++;
            continue;
        }
        if (n == max)
            return max + 1;
        const size_t from = i;
        while (i < line.len && !is_space(at[i]))
            i++;
        words[n++] = (struct word){at + from, i - from};
    }
    return n;
}

static bool is_word(struct word w, const char *text)
{
    return w.len == strlen(text) && memcmp(w.at, text, w.len) == 0;
}

static const char *parse_words(const struct word *w, uint32_t n, struct elv_key *k)
{
    if (n < 3 || n > 4)
        return "a line is: number identity key [enabled|revoked]";
    if (!parse_number(w[0].at, w[0].len, UINT32_MAX, &k->number))
        return "the first word is the device's number, 1 to 4294967295";
    if (!elv_identity_split(w[1].at, w[1].len, k->name, &k->generation))
        return "an identity is 1 to 64 of A-Z a-z 0-9 . _ : -, with #2 and up for a later key";
    if (!is_word(w[2], "certificate") && !parse_key(w[2].at, w[2].len, k))
        return "a key is 32 to 64 hexadecimal digits, or the word certificate";
    if (is_uniform(k))
        return "all bytes of the key are equal: that is no secret";
    k->revoked = n == 4 && is_word(w[3], "revoked");
    if (n == 4 && !k->revoked && !is_word(w[3], "enabled"))
        return "the last word is enabled or revoked";
    return NULL;
}

enum elv_err elv_key_parse(struct elv_bytes line, struct elv_key *key, char why[ELV_KEY_WHY_MAX])
{
    struct word words[4];
    if (line.len > 0 && line.at[0] == '#')
        return ELV_ERR_MISSING;
    const uint32_t n = split(line, words, 4);
    if (n == 0)
        return ELV_ERR_MISSING;
    struct elv_key k = {0};
    const char *wrong = parse_words(words, n, &k);
    if (wrong != NULL) {
        snprintf(why, ELV_KEY_WHY_MAX, "%s", wrong);
        return ELV_ERR_FORMAT;
    }
    *key = k;
    return ELV_OK;
}

size_t elv_key_print(const struct elv_key *key, char out[ELV_KEY_LINE_MAX])
{
    struct elv_line l = elv_line_of(out, ELV_KEY_LINE_MAX);
    elv_line_uint(&l, key->number);
    elv_line_add(&l, " ");
    elv_line_add(&l, key->name);
    if (key->generation > 1) {
        elv_line_add(&l, "#");
        elv_line_uint(&l, key->generation);
    }
    elv_line_add(&l, key->key_len == 0 ? " certificate" : " ");
    elv_line_hex(&l, key->key, key->key_len);
    elv_line_add(&l, key->revoked ? " revoked" : " enabled");
    return l.len;
}

static int by_name(const void *a, const void *b)
{
    const struct elv_key *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    if (order != 0)
        return order;
    if (x->generation != y->generation)
        return x->generation < y->generation ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static enum elv_err add(struct elv_keytable *t, uint32_t *cap, const struct elv_key *key)
{
    if (t->n == *cap) {
        const uint32_t grown_cap = *cap == 0 ? 64 : *cap * 2;
        struct elv_key *grown = calloc(grown_cap, sizeof *grown);
        if (grown == NULL)
            return ELV_ERR_MEMORY;
        if (t->n > 0) {
            memcpy(grown, t->at, t->n * sizeof *grown);
            elv_posix_wipe(t->at, t->n * sizeof *grown); /* realloc would leave keys behind */
        }
        free(t->at);
        t->at = grown;
        *cap = grown_cap;
    }
    t->at[t->n++] = *key;
    return ELV_OK;
}

static enum elv_err read_lines(struct elv_keytable *t, struct elv_bytes text,
                               struct elv_key_error *e)
{
    uint32_t cap = 0;
    e->line = 0;
    while (text.len > 0) {
        const uint8_t *end = memchr(text.at, '\n', text.len);
        const size_t len = end == NULL ? text.len : (size_t)(end - text.at);
        struct elv_key key;
        e->line++;
        enum elv_err err = elv_key_parse((struct elv_bytes){text.at, len}, &key, e->why);
        key.line = e->line;
        if (err == ELV_OK)
            err = add(t, &cap, &key);
        if (err != ELV_OK && err != ELV_ERR_MISSING)
            return err;
        const size_t taken = end == NULL ? len : len + 1;
        text.at += taken;
        text.len -= taken;
    }
    return ELV_OK;
}

static void complain(struct elv_key_error *e, uint32_t line, const char *what, uint32_t other)
{
    if (e->line != 0 && e->line <= line)
        return; /* the first wrong line is what a reader of the file wants */
    e->line = line;
    snprintf(e->why, sizeof e->why, "%s in line %u", what, (unsigned)other);
}

static uint32_t later(const struct elv_key *a, const struct elv_key *b)
{
    return a->line > b->line ? a->line : b->line;
}

static uint32_t earlier(const struct elv_key *a, const struct elv_key *b)
{
    return a->line < b->line ? a->line : b->line;
}

/* The order of `by_number` needs the table; qsort passes no context, so this is a heap sort over
 * places. */
static bool number_less(const struct elv_keytable *t, uint32_t a, uint32_t b)
{
    const struct elv_key *x = &t->at[a], *y = &t->at[b];
    return x->number != y->number ? x->number < y->number : a < b;
}

static void sift(const struct elv_keytable *t, uint32_t from, uint32_t n)
{
    uint32_t *p = t->by_number;
    for (uint32_t at = from; at * 2 + 1 < n;) {
        uint32_t child = at * 2 + 1;
        if (child + 1 < n && number_less(t, p[child], p[child + 1]))
            child++;
        if (!number_less(t, p[at], p[child]))
            return;
        const uint32_t held = p[at];
        p[at] = p[child];
        p[child] = held;
        at = child;
    }
}

static enum elv_err index_numbers(struct elv_keytable *t)
{
    t->by_number = calloc(t->n > 0 ? t->n : 1, sizeof *t->by_number);
    if (t->by_number == NULL)
        return ELV_ERR_MEMORY;
    for (uint32_t i = 0; i < t->n; i++)
        t->by_number[i] = i;
    for (uint32_t i = t->n / 2; i-- > 0;)
        sift(t, i, t->n);
    for (uint32_t n = t->n; n > 1; n--) {
        const uint32_t last = t->by_number[n - 1];
        t->by_number[n - 1] = t->by_number[0];
        t->by_number[0] = last;
        sift(t, 0, n - 1);
    }
    return ELV_OK;
}

/* A name has one number, a number one name, a generation one key. */
static enum elv_err check(const struct elv_keytable *t, struct elv_key_error *e)
{
    e->line = 0;
    for (uint32_t i = 1; i < t->n; i++) {
        const struct elv_key *a = &t->at[i - 1], *b = &t->at[i];
        if (strcmp(a->name, b->name) == 0 && a->number != b->number)
            complain(e, later(a, b), "this identity has another number", earlier(a, b));
        else if (strcmp(a->name, b->name) == 0 && a->generation == b->generation)
            complain(e, later(a, b), "this identity has a key already", earlier(a, b));
        const struct elv_key *c = &t->at[t->by_number[i - 1]], *d = &t->at[t->by_number[i]];
        if (c->number == d->number && strcmp(c->name, d->name) != 0)
            complain(e, later(c, d), "this number belongs to another identity", earlier(c, d));
    }
    return e->line == 0 ? ELV_OK : ELV_ERR_FORMAT;
}

enum elv_err elv_keytable_parse(struct elv_keytable *t, struct elv_bytes text,
                                struct elv_key_error *e)
{
    memset(t, 0, sizeof *t);
    *e = (struct elv_key_error){0};
    enum elv_err err = text.len > ELV_KEYTABLE_MAX ? ELV_ERR_FULL : read_lines(t, text, e);
    if (err == ELV_OK) {
        if (t->n > 0)
            qsort(t->at, t->n, sizeof *t->at, by_name);
        err = index_numbers(t);
    }
    if (err == ELV_OK)
        err = check(t, e);
    if (err != ELV_OK && err != ELV_ERR_FORMAT) {
        e->line = 0;
        snprintf(e->why, sizeof e->why, "%s", elv_err_text(err));
    }
    if (err != ELV_OK)
        elv_keytable_free(t);
    return err;
}

void elv_keytable_free(struct elv_keytable *t)
{
    if (t->at != NULL)
        elv_posix_wipe(t->at, t->n * sizeof *t->at);
    free(t->at);
    free(t->by_number);
    memset(t, 0, sizeof *t);
}

const struct elv_key *elv_keytable_find(const struct elv_keytable *t, const char *identity,
                                        size_t len)
{
    struct elv_key wanted = {0};
    if (!elv_identity_split(identity, len, wanted.name, &wanted.generation))
        return NULL;
    uint32_t low = 0, high = t->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (by_name(&t->at[middle], &wanted) < 0) /* lines start at 1, the wanted one's is 0 */
            low = middle + 1;
        else
            high = middle;
    }
    if (low == t->n || strcmp(t->at[low].name, wanted.name) != 0 ||
        t->at[low].generation != wanted.generation || t->at[low].revoked)
        return NULL;
    return &t->at[low];
}

/* The first place in `by_number` of this number or a greater one. */
static uint32_t place_of(const struct elv_keytable *t, uint32_t number)
{
    uint32_t low = 0, high = t->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (t->at[t->by_number[middle]].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Within a device the places rise with the generation. */
const struct elv_key *elv_keytable_device(const struct elv_keytable *t, uint32_t number)
{
    const struct elv_key *best = NULL;
    for (uint32_t i = place_of(t, number); i < t->n; i++) {
        const struct elv_key *k = &t->at[t->by_number[i]];
        if (k->number != number)
            break;
        if (best == NULL || best->revoked || !k->revoked)
            best = k;
    }
    return best;
}

bool elv_keytable_enabled(const struct elv_keytable *t, uint32_t number)
{
    const struct elv_key *k = elv_keytable_device(t, number);
    return k != NULL && !k->revoked;
}

uint32_t elv_keytable_retire(struct elv_keytable *t, const struct elv_key *key)
{
    uint32_t n = 0;
    for (uint32_t i = place_of(t, key->number); i < t->n; i++) {
        struct elv_key *k = &t->at[t->by_number[i]];
        if (k->number != key->number)
            break;
        if (k->generation < key->generation && !k->revoked) {
            k->revoked = true;
            n++;
        }
    }
    return n;
}

void elv_keytable_gone(const struct elv_keytable *before, const struct elv_keytable *now, void *ctx,
                       void (*gone)(void *ctx, uint32_t number))
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < before->n; i++) {
        const uint32_t number = before->at[before->by_number[i]].number;
        if (number != last && elv_keytable_enabled(before, number) &&
            !elv_keytable_enabled(now, number))
            gone(ctx, number);
        last = number;
    }
}
