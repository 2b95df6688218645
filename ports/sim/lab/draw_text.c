/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/draw_text.h"

#include <math.h>

enum { WORDS_MAX = 1 + ELV_LAB_CLASSES_MAX };
#define SIGMA_MAX 10.0
#define SHARES_SLACK 1e-9 /* shares such as 1/3 are rounded */

static const struct {
    const char *name;
    uint32_t n; /* numbers that follow */
} shapes[] = {
    [ELV_LAB_CONSTANT] = {"constant", 1},       [ELV_LAB_UNIFORM] = {"uniform", 2},
    [ELV_LAB_EXPONENTIAL] = {"exponential", 2}, [ELV_LAB_LOGNORMAL] = {"lognormal", 2},
    [ELV_LAB_HALF_NORMAL] = {"half-normal", 2}, [ELV_LAB_CLASSES] = {"classes", 0},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static bool number(struct elv_text t, bool seconds, double *v)
{
    elv_time_us us;
    if (elv_value_number(t, v))
        return true;
    if (!seconds || !elv_value_duration(t, &us))
        return false;
    *v = (double)us / 1e6;
    return true;
}

static bool within(double v, double least, double most) { return v >= least && v <= most; }

static enum elv_err read_classes(struct elv_lab_draw *d, const struct elv_text *words, uint32_t n,
                                 bool seconds, double least, double most)
{
    double sum = 0;
    if (n == 0 || n > ELV_LAB_CLASSES_MAX)
        return ELV_ERR_FORMAT;
    for (uint32_t i = 0; i < n; i++) {
        struct elv_text parts[2];
        if (elv_value_parts(words[i], ':', parts, 2) != 2 ||
            !elv_value_number(parts[0], &d->share[i]) || !number(parts[1], seconds, &d->value[i]))
            return ELV_ERR_FORMAT;
        if (!within(d->share[i], 0, 1) || !within(d->value[i], least, most))
            return ELV_ERR_RANGE;
        sum += d->share[i];
    }
    d->n_classes = n;
    return fabs(sum - 1) <= SHARES_SLACK ? ELV_OK : ELV_ERR_RANGE;
}

/* What the two numbers mean decides their range. */
static enum elv_err check(const struct elv_lab_draw *d, double least, double most)
{
    bool ok = within(d->a, least, most);
    if (d->shape == ELV_LAB_UNIFORM)
        ok = ok && within(d->b, d->a, most);
    else if (d->shape == ELV_LAB_LOGNORMAL)
        ok = ok && within(d->b, 0, SIGMA_MAX);
    else
        ok = ok && within(d->b, 0, most);
    return ok ? ELV_OK : ELV_ERR_RANGE;
}

static enum elv_err read_numbers(struct elv_lab_draw *d, const struct elv_text *words, uint32_t n,
                                 bool seconds)
{
    if (n != shapes[d->shape].n || !number(words[0], seconds, &d->a))
        return ELV_ERR_FORMAT;
    const bool plain = d->shape == ELV_LAB_LOGNORMAL; /* sigma has no unit */
    return n < 2 || number(words[1], seconds && !plain, &d->b) ? ELV_OK : ELV_ERR_FORMAT;
}

enum elv_err elv_lab_draw_read(struct elv_lab_draw *d, struct elv_text text, bool seconds,
                               double least, double most)
{
    struct elv_text words[WORDS_MAX];
    struct elv_lab_draw got = {0};
    const uint32_t n = elv_value_words(text, words, WORDS_MAX);
    uint32_t shape = 0;
    while (n > 0 && shape < SHAPES && !elv_value_is(words[0], shapes[shape].name))
        shape++;
    if (n == 0 || n > WORDS_MAX || shape == SHAPES)
        return ELV_ERR_FORMAT;
    got.shape = (enum elv_lab_shape)shape;
    enum elv_err err;
    if (got.shape == ELV_LAB_CLASSES) {
        err = read_classes(&got, words + 1, n - 1, seconds, least, most);
    } else {
        err = read_numbers(&got, words + 1, n - 1, seconds);
        if (err == ELV_OK)
            err = check(&got, least, most);
    }
    if (err == ELV_OK)
        *d = got;
    return err;
}

static void put_number(struct elv_line *out, const char *before, double v)
{
    elv_line_add(out, before);
    elv_line_f64(out, v);
}

void elv_lab_draw_print(const struct elv_lab_draw *d, struct elv_line *out)
{
    elv_line_add(out, shapes[d->shape].name);
    for (uint32_t i = 0; i < d->n_classes; i++) {
        put_number(out, " ", d->share[i]);
        put_number(out, ":", d->value[i]);
    }
    if (d->shape == ELV_LAB_CLASSES)
        return;
    put_number(out, " ", d->a);
    if (shapes[d->shape].n > 1)
        put_number(out, " ", d->b);
}
