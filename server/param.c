/* SPDX-License-Identifier: Apache-2.0 */
#include "server/param.h"

#include <string.h>

#include "common/text.h"

const struct elv_param *elv_param_find(const struct elv_params *params, const char *name)
{
    for (uint32_t i = 0; params && i < params->n; i++)
        if (strcmp(params->at[i].name, name) == 0)
            return &params->at[i];
    return NULL;
}

double elv_param_get(const struct elv_params *params, const char *name, double otherwise)
{
    const struct elv_param *p = elv_param_find(params, name);
    return p ? p->value : otherwise;
}

bool elv_param_is_count(const struct elv_param *p, double least, double most)
{
    return elv_param_is_number(p, least, most) && p->value == (double)(int64_t)p->value;
}

bool elv_param_is_number(const struct elv_param *p, double least, double most)
{
    return p->kind == ELV_PARAM_NUMBER && p->value >= least && p->value <= most;
}

bool elv_param_is_duration(const struct elv_param *p, double least, double most)
{
    return p->kind == ELV_PARAM_DURATION && p->value >= least && p->value <= most;
}

int elv_param_word(const struct elv_params *params, const char *name, const char *const *words,
                   int otherwise)
{
    const struct elv_param *p = elv_param_find(params, name);
    if (p == NULL)
        return otherwise;
    for (int i = 0; p->kind == ELV_PARAM_WORD && words[i]; i++)
        if (strcmp(words[i], p->word) == 0)
            return i;
    return -1;
}

enum elv_err elv_param_refuse(char why[ELV_JOB_ERROR_MAX], const char *sentence)
{
    struct elv_line l = elv_line_of(why, ELV_JOB_ERROR_MAX);
    elv_line_add(&l, sentence);
    return ELV_ERR_RANGE;
}

static bool is_listed(const char *const *names, const char *name)
{
    for (size_t i = 0; names && names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

enum elv_err elv_param_check_names(const struct elv_params *params, const char *const *names,
                                   char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    for (uint32_t i = 0; i < params->n; i++) {
        if (is_listed(names, params->at[i].name))
            continue;
        struct elv_line l = elv_line_of(why, ELV_JOB_ERROR_MAX);
        elv_line_add(&l, params->at[i].name);
        elv_line_add(&l, " is not a parameter of this policy; it takes ");
        for (size_t k = 0; names && names[k]; k++) {
            elv_line_add(&l, k > 0 ? ", " : "");
            elv_line_add(&l, names[k]);
        }
        elv_line_add(&l, names && names[0] ? "" : "none");
        *line = params->at[i].line;
        return ELV_ERR_MISSING;
    }
    return ELV_OK;
}
