/* SPDX-License-Identifier: Apache-2.0 */
/* The lists: a new policy is a file of its own, named after it (sync_bsp.c defines elv_sync_bsp),
 * and one line here. */
#include "server/policies.h"

#include <string.h>

#include "common/assert.h"
#include "common/text.h"
#include "server/param.h"

#define SYNCS(X)                                                                                   \
    X(sync, bsp)                                                                                   \
    X(sync, backup)                                                                                \
    X(sync, ebsp)                                                                                  \
    X(sync, overselect)                                                                            \
    X(sync, dbw)                                                                                   \
    X(sync, asp)                                                                                   \
    X(sync, ssp)                                                                                   \
    X(sync, dssp)                                                                                  \
    X(sync, psp)                                                                                   \
    X(sync, fedasync)                                                                              \
    X(sync, fedbuff)                                                                               \
    /* one line each */
#define RULES(X)                                                                                   \
    X(rule, fedavg)                                                                                \
    X(rule, fedavgm)                                                                               \
    X(rule, fednova)                                                                               \
    /* one line each */
#define SELECTS(X) X(select, uniform)
#define SIZINGS(X) X(sizing, fixed)

#define DECLARED(kind, name) extern const struct elv_##kind elv_##kind##_##name;
SYNCS(DECLARED)
RULES(DECLARED)
SELECTS(DECLARED)
SIZINGS(DECLARED)

#define LISTED(kind, name) &elv_##kind##_##name,
static const struct elv_sync *const syncs[] = {SYNCS(LISTED)};
static const struct elv_rule *const rules[] = {RULES(LISTED)};
static const struct elv_select *const selects[] = {SELECTS(LISTED)};
static const struct elv_sizing *const sizings[] = {SIZINGS(LISTED)};

#define N_OF(list) (sizeof(list) / sizeof(list)[0])

size_t elv_sync_count(void) { return N_OF(syncs); }

const struct elv_sync *elv_sync_at(size_t i)
{
    ELV_ASSERT(i < N_OF(syncs));
    return syncs[i];
}

/* The same two functions for each kind of policy. */
#define LOOK_UP(kind, list)                                                                        \
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
    struct elv_line l = elv_line_of(why, ELV_JOB_ERROR_MAX);
    elv_line_add(&l, asked);
    elv_line_add(&l, " is not known here; there is: ");
    for (size_t i = 0; i < n; i++) {
        elv_line_add(&l, i > 0 ? ", " : "");
        elv_line_add(&l, name_of(i));
    }
    return ELV_ERR_MISSING;
}

static struct elv_sync_cfg sync_cfg_of(const struct elv_job *job)
{
    return (struct elv_sync_cfg){.quorum = job->quorum,
                                 .deadline_us = job->deadline_us,
                                 .publish_us = job->publish_us,
                                 .seed = job->seed,
                                 .params = &job->sync_params};
}

static enum elv_err check_sync(const struct elv_job *job, const struct elv_sync *sync,
                               char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    const struct elv_sync_cfg cfg = sync_cfg_of(job);
    const enum elv_err err = elv_param_check_names(&job->sync_params, sync->params, why, line);
    if (err != ELV_OK)
        return err;
    if (job->masking != ELV_MASKING_NONE) {
        *line = elv_job_line(job, "aggregate.masking");
        return elv_param_refuse(
            why,
            sync->single
                ? "this [sync] policy needs the update of each client by itself, which masking "
                  "hides; take masking = none, or a policy that sums: bsp, backup, dbw, ebsp, "
                  "overselect or fedbuff"
                : "this version has no masking = additive yet; give none");
    }
    return sync->check == NULL ? ELV_OK : sync->check(&cfg, why, line);
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

static enum elv_err too_many(const char *name, uint32_t n, char why[ELV_JOB_ERROR_MAX])
{
    struct elv_line l = elv_line_of(why, ELV_JOB_ERROR_MAX);
    elv_line_add(&l, name);
    elv_line_add(&l, " is at most ");
    elv_line_uint(&l, n);
    elv_line_add(&l, ", as many clients as there can be");
    return ELV_ERR_RANGE;
}

enum elv_err elv_policies_fit(const struct elv_job *job, const struct elv_policies *p, uint32_t n,
                              char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    const struct {
        const char *path, *name;
        uint32_t value;
    } counts[] = {{"sync.quorum", "quorum", job->quorum},
                  {"select.count", "count", job->select_count},
                  {"select.min_clients", "min_clients", job->min_clients}};
    for (size_t i = 0; i < N_OF(counts); i++) {
        *line = elv_job_line(job, counts[i].path);
        if (counts[i].value > n)
            return too_many(counts[i].name, n, why);
    }
    struct elv_sync_cfg cfg = sync_cfg_of(job);
    cfg.clients_max = p->sync->call == NULL && job->select_count > 0 ? job->select_count : n;
    *line = 0;
    return p->sync->check == NULL ? ELV_OK : p->sync->check(&cfg, why, line);
}
