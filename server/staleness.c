/* SPDX-License-Identifier: Apache-2.0 */
#include "server/staleness.h"

#include <stddef.h>

#include "common/exact.h"
#include "server/param.h"

static const char *const kinds[] = {"constant", "polynomial", "hinge", "exponential", NULL};

static enum elv_staleness_kind kind_of(const struct elv_params *params,
                                       enum elv_staleness_kind otherwise)
{
    return (enum elv_staleness_kind)elv_param_word(params, "staleness", kinds, (int)otherwise);
}

struct elv_staleness elv_staleness_of(const struct elv_params *params,
                                      enum elv_staleness_kind otherwise)
{
    static const double usual_a[] = {0, 0.5, 10, 0.1};
    const enum elv_staleness_kind kind = kind_of(params, otherwise);
    return (struct elv_staleness){
        .kind = kind,
        .a = elv_param_get(params, "staleness_a", usual_a[kind]),
        .b = elv_param_get(params, "staleness_b", 4),
    };
}

enum elv_err elv_staleness_check(const struct elv_params *params, enum elv_staleness_kind otherwise,
                                 char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    const struct elv_param *a = elv_param_find(params, "staleness_a");
    const struct elv_param *b = elv_param_find(params, "staleness_b");
    if (elv_param_word(params, "staleness", kinds, (int)otherwise) < 0) {
        *line = elv_param_find(params, "staleness")->line;
        return elv_param_refuse(why, "staleness is constant, polynomial, hinge or exponential");
    }
    const enum elv_staleness_kind kind = kind_of(params, otherwise);
    if (a && (kind == ELV_STALENESS_CONSTANT || !elv_param_is_number(a, 0, 1000))) {
        *line = a->line;
        return elv_param_refuse(why, "staleness_a is a number from 0 to 1000, for staleness = "
                                     "polynomial, hinge or exponential");
    }
    if (b && (kind != ELV_STALENESS_HINGE || !elv_param_is_number(b, 0, 1e6))) {
        *line = b->line;
        return elv_param_refuse(why,
                                "staleness_b is a number from 0 to 1000000, for staleness = hinge");
    }
    return ELV_OK;
}

static double fall(struct elv_staleness s, uint32_t tau)
{
    switch (s.kind) {
    case ELV_STALENESS_CONSTANT:
        break;
    case ELV_STALENESS_POLYNOMIAL:
        return (double)elv_exp((float)-s.a * elv_ln(1.0f + (float)tau));
    case ELV_STALENESS_HINGE:
        return tau <= s.b ? 1.0 : 1.0 / (s.a * (tau - s.b) + 1.0);
    case ELV_STALENESS_EXPONENTIAL:
        return (double)elv_exp((float)-s.a * (float)tau);
    }
    return 1.0;
}

double elv_staleness_factor(struct elv_staleness s, uint32_t tau)
{
    const double least = 0x1p-100; /* old beyond all use, but never worth nothing */
    const double f = fall(s, tau);
    return f < least ? least : f < 1.0 ? f : 1.0;
}
