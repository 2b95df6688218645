/* SPDX-License-Identifier: Apache-2.0 */
/* The lists: a new policy is its own file and one line here. */
#include "server/policies.h"

#include <string.h>

#include "common/assert.h"
#include "server/param.h"

static const struct elv_sync *const syncs[] = {&elv_sync_bsp, &elv_sync_backup};
static const struct elv_rule *const rules[] = {&elv_rule_fedavg};
static const struct elv_select *const selects[] = {&elv_select_uniform};
static const struct elv_sizing *const sizings[] = {&elv_sizing_fixed};

#define N_OF(list) (sizeof(list) / sizeof(list)[0])

/* The same three functions for each kind of policy. */
#define LOOK_UP(kind, list)                                                                        \
    size_t elv_##kind##_count(void) { return N_OF(list); }                                         \
    const struct elv_##kind *elv_##kind##_at(size_t i)                                             \
    {                                                                                              \
        ELV_ASSERT(i < N_OF(list));                                                                \
        return list[i];                                                                            \
    }                                                                                              \
    const struct elv_##kind *elv_##kind##_by_name(const char *name)                                \
    {                                                                                              \
        for (size_t i = 0; i < N_OF(list); i++)                                                    \
            if (strcmp(list[i]->name, name) == 0)                                                  \
                return list[i];                                                                    \
        return NULL;                                                                               \
    }                                                                                              \
    static const char *kind##_name(size_t i) { return list[i]->name; }
LOOK_UP(sync, syncs)
LOOK_UP(rule, rules)
LOOK_UP(select, selects)
LOOK_UP(sizing, sizings)

static enum elv_err none_such(char why[ELV_JOB_ERROR_MAX], const char *asked,
                              const char *(*name_of)(size_t i), size_t n)
{
    elv_param_say(why, asked);
    elv_param_add(why, " is not known here; there is: ");
    for (size_t i = 0; i < n; i++) {
        elv_param_add(why, i > 0 ? ", " : "");
        elv_param_add(why, name_of(i));
    }
    return ELV_ERR_MISSING;
}

static enum elv_err check_sync(const struct elv_job *job, const struct elv_sync *sync,
                               char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    const struct elv_sync_cfg cfg = {
        .quorum = job->quorum, .deadline_us = job->deadline_us, .params = &job->sync_params};
    const enum elv_err err = elv_param_check_names(&job->sync_params, sync->params, why, line);
    return err != ELV_OK || sync->check == NULL ? err : sync->check(&cfg, why, line);
}

static enum elv_err check_params(const struct elv_params *params, const char *const *names,
                                 enum elv_err (*check)(const struct elv_params *params,
                                                       char why[ELV_JOB_ERROR_MAX], uint32_t *line),
                                 char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    const enum elv_err err = elv_param_check_names(params, names, why, line);
    return err != ELV_OK || check == NULL ? err : check(params, why, line);
}

static enum elv_err check_all(const struct elv_job *job, const struct elv_policies *p,
                              char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    enum elv_err err = check_sync(job, p->sync, why, line);
    if (err == ELV_OK)
        err = check_params(&job->rule_params, p->rule->params, p->rule->check, why, line);
    if (err == ELV_OK)
        err = check_params(&job->select_params, p->select->params, p->select->check, why, line);
    if (err == ELV_OK)
        err = check_params(&job->sizing_params, p->sizing->params, p->sizing->check, why, line);
    return err;
}

enum elv_err elv_policies_of(const struct elv_job *job, struct elv_policies *p,
                             char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    *p = (struct elv_policies){
        .sync = elv_sync_by_name(job->sync),
        .rule = elv_rule_by_name(job->rule),
        .select = elv_select_by_name(job->select),
        .sizing = elv_sizing_by_name(job->sizing),
    };
    if (p->sync == NULL) {
        *line = elv_job_line(job, "sync.policy");
        return none_such(why, job->sync, sync_name, N_OF(syncs));
    }
    if (p->rule == NULL) {
        *line = elv_job_line(job, "aggregate.rule");
        return none_such(why, job->rule, rule_name, N_OF(rules));
    }
    if (p->select == NULL) {
        *line = elv_job_line(job, "select.policy");
        return none_such(why, job->select, select_name, N_OF(selects));
    }
    if (p->sizing == NULL) {
        *line = elv_job_line(job, "size.policy");
        return none_such(why, job->sizing, sizing_name, N_OF(sizings));
    }
    *line = 0;
    return check_all(job, p, why, line);
}
