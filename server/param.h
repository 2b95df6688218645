/* SPDX-License-Identifier: Apache-2.0 */
/* server/param.h - reading a policy's own parameters. */
#ifndef ELV_SERVER_PARAM_H
#define ELV_SERVER_PARAM_H

#include "job.h"

/* NULL when it is not given. `params` may be NULL: none. */
const struct elv_param *elv_param_find(const struct elv_params *params, const char *name);
double elv_param_get(const struct elv_params *params, const char *name, double otherwise);

/* A whole number in [least, most]. */
bool elv_param_is_count(const struct elv_param *p, double least, double most);

/* A number in [least, most]; a time in [least, most] microseconds. */
bool elv_param_is_number(const struct elv_param *p, double least, double most);
bool elv_param_is_duration(const struct elv_param *p, double least, double most);

/* The place of the parameter's word in `words` (NULL ends the list); `otherwise` when it is not
 * given; -1 when it is none of them. */
int elv_param_word(const struct elv_params *params, const char *name, const char *const *words,
                   int otherwise);

/* ELV_ERR_MISSING: `params` holds a name that is not in `names` (NULL ends the list; NULL instead
 * of a list: there are none); `why` lists those that are. */
enum elv_err elv_param_check_names(const struct elv_params *params, const char *const *names,
                                   char why[ELV_JOB_ERROR_MAX], uint32_t *line);

/* Copies the sentence, cut to fit; returns ELV_ERR_RANGE. */
enum elv_err elv_param_refuse(char why[ELV_JOB_ERROR_MAX], const char *sentence);

#endif
