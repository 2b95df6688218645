/* SPDX-License-Identifier: Apache-2.0 */
#include "server/job.h"

#include <string.h>

#include "common/assert.h"
#include "common/codec.h"
#include "common/text.h"
#include "server/job_keys.h"
#include "server/value.h"

static const char sections_text[] =
    "job, data, model, client, sync, aggregate, select, size, transfer, eval, state, trainer";

/* Sections that name a policy keep the parameters they do not know for it. */
static const struct {
    const char *section;
    size_t params; /* offset in struct elv_job */
} policies[] = {
    {"sync", offsetof(struct elv_job, sync_params)},
    {"aggregate", offsetof(struct elv_job, rule_params)},
    {"select", offsetof(struct elv_job, select_params)},
    {"size", offsetof(struct elv_job, sizing_params)},
};
enum { POLICIES = sizeof policies / sizeof policies[0] };

static struct elv_params *params_at(struct elv_job *job, size_t policy)
{
    return (struct elv_params *)((uint8_t *)job + policies[policy].params);
}

static const struct elv_params *params_of(const struct elv_job *job, size_t policy)
{
    return (const struct elv_params *)((const uint8_t *)job + policies[policy].params);
}

void elv_job_init(struct elv_job *job)
{
    *job = (struct elv_job){
        .seed = 1,
        .scale = 1,
        .std = 1,
        .loss = ELV_LOSS_SOFTMAX_XENT,
        .local_epochs = 1,
        .batch_size = 32,
        .optimizer = ELV_OPT_SGD,
        .learning_rate = 0.05f,
        .learning_rate_decay = 1,
        .arithmetic = ELV_ARITHMETIC_FAST,
        .sync = "bsp",
        .deadline_us = 60000000,
        .publish_us = 1000000,
        .quorum = 1,
        .rule = "fedavg",
        .weight = ELV_WEIGHT_SAMPLES,
        .max_weight = 100000,
        .masking = ELV_MASKING_NONE,
        .select = "uniform",
        .sizing = "fixed",
        .up = {{.id = ELV_CODEC_Q8}},
        .n_up = 1,
        .down = {.id = ELV_CODEC_F32},
        .bound = 8,
        .eval_every = 1,
        .eval_on = ELV_EVAL_SERVER,
        .keep = 3,
    };
}

static struct elv_line sentence(char why[ELV_JOB_ERROR_MAX])
{
    return elv_line_of(why, ELV_JOB_ERROR_MAX);
}

static void say(char why[ELV_JOB_ERROR_MAX], const char *before, const char *name,
                const char *after)
{
    struct elv_line l = sentence(why);
    elv_line_add(&l, before);
    elv_line_add(&l, name);
    elv_line_add(&l, after);
}

/* A name out of a file, cut so that the rest of the sentence has room. */
static void add_name(struct elv_line *l, const char *name)
{
    elv_line_chars(l, name, strlen(name) < 40 ? strlen(name) : 40);
}

static void suggest(struct elv_line *l, const char *best, uint32_t distance, const char *asked)
{
    if (best == NULL || distance > 2 || distance >= strlen(asked))
        return;
    elv_line_add(l, "; did you mean ");
    elv_line_add(l, best);
    elv_line_add(l, "?");
}

static enum elv_err no_such_section(const char *section, char why[ELV_JOB_ERROR_MAX])
{
    const char *best = NULL;
    uint32_t least = 99;
    for (size_t i = 0; i < elv_job_keys_count(); i++) {
        const char *known = elv_job_keys_at(i)->section;
        const uint32_t d = elv_value_distance(section, known);
        best = d < least ? known : best;
        least = d < least ? d : least;
    }
    struct elv_line l = sentence(why);
    elv_line_add(&l, "there is no section [");
    add_name(&l, section);
    elv_line_add(&l, "]; there are ");
    elv_line_add(&l, sections_text);
    suggest(&l, best, least, section);
    return ELV_ERR_MISSING;
}

static enum elv_err no_such_key(const char *section, const char *name, char why[ELV_JOB_ERROR_MAX])
{
    const char *best = NULL;
    uint32_t least = 99;
    struct elv_line l = sentence(why);
    elv_line_add(&l, "[");
    elv_line_add(&l, section);
    elv_line_add(&l, "] has no key ");
    add_name(&l, name);
    elv_line_add(&l, "; it has ");
    bool any = false;
    for (size_t i = 0; i < elv_job_keys_count(); i++) {
        const struct elv_job_key *key = elv_job_keys_at(i);
        if (strcmp(key->section, section) != 0)
            continue;
        elv_line_add(&l, any ? ", " : "");
        elv_line_add(&l, key->name);
        any = true;
        const uint32_t d = elv_value_distance(name, key->name);
        best = d < least ? key->name : best;
        least = d < least ? d : least;
    }
    suggest(&l, best, least, name);
    return ELV_ERR_MISSING;
}

static enum elv_err bad_value(const char *name, struct elv_text value, const char *accepts,
                              enum elv_err err, char why[ELV_JOB_ERROR_MAX])
{
    struct elv_line l = sentence(why);
    add_name(&l, name);
    if (value.len == 0) {
        elv_line_add(&l, " has no value; give ");
    } else {
        elv_line_add(&l, " cannot be \"");
        elv_line_chars(&l, value.at, value.len < 60 ? value.len : 60);
        elv_line_add(&l, value.len > 60 ? "...\"; give " : "\"; give ");
    }
    elv_line_add(&l, accepts);
    return err;
}

static enum elv_err given_before(const char *name, uint32_t line, char why[ELV_JOB_ERROR_MAX])
{
    struct elv_line l = sentence(why);
    add_name(&l, name);
    elv_line_add(&l, " is given twice; line ");
    elv_line_uint(&l, line);
    elv_line_add(&l, " has it already");
    return ELV_ERR_BUSY;
}

static bool known_section(const char *section)
{
    for (size_t i = 0; i < elv_job_keys_count(); i++)
        if (strcmp(elv_job_keys_at(i)->section, section) == 0)
            return true;
    return false;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static bool param_value(struct elv_text t, struct elv_param *p)
{
    elv_time_us us;
    bool on;
    p->kind = ELV_PARAM_NUMBER;
    if (elv_value_number(t, &p->value))
        return true;
    p->kind = ELV_PARAM_DURATION;
    if (elv_value_duration(t, &us)) {
        p->value = (double)us;
        return true;
    }
    p->kind = ELV_PARAM_WORD;
    for (size_t i = 0; i < t.len; i++)
        if (!is_name_char(t.at[i]))
            return false;
    if (t.len >= sizeof p->word)
        return false;
    memcpy(p->word, t.at, t.len);
    p->value = elv_value_bool(t, &on) && on ? 1 : 0;
    return true;
}

static bool param_name_ok(const char *name)
{
    size_t n = 0;
    for (; name[n] != '\0'; n++)
        if (!is_name_char(name[n]))
            return false;
    return n > 0 && n < sizeof((struct elv_param *)0)->name;
}

static enum elv_err set_param(struct elv_params *params, const char *section, const char *name,
                              struct elv_text value, uint32_t line, char why[ELV_JOB_ERROR_MAX])
{
    static const char accepts[] = "a number, a time such as 500ms or 30s, or a word";
    struct elv_param p = {.line = line};
    uint32_t i = 0;
    if (!param_name_ok(name))
        return no_such_key(section, name, why);
    while (i < params->n && strcmp(params->at[i].name, name) != 0)
        i++;
    if (i < params->n && line != ELV_JOB_OVERRIDE)
        return given_before(name, params->at[i].line, why);
    if (i == ELV_JOB_PARAMS_MAX) {
        say(why, "[", section, "] has no room for another parameter");
        return ELV_ERR_FULL;
    }
    if (!param_value(value, &p))
        return bad_value(name, value, accepts, ELV_ERR_FORMAT, why);
    memcpy(p.name, name, strlen(name));
    params->at[i] = p;
    params->n += i == params->n;
    return ELV_OK;
}

enum elv_err elv_job_set(struct elv_job *job, const char *section, const char *key,
                         const char *value, uint32_t line, char why[ELV_JOB_ERROR_MAX])
{
    const struct elv_text text = elv_value_of(value);
    ELV_ASSERT(line > 0);
    why[0] = '\0';
    if (strcmp(section, "trainer") == 0)
        return ELV_OK;
    if (!known_section(section))
        return no_such_section(section, why);
    for (size_t i = 0; i < elv_job_keys_count(); i++) {
        const struct elv_job_key *k = elv_job_keys_at(i);
        if (strcmp(k->section, section) != 0 || strcmp(k->name, key) != 0)
            continue;
        if (job->line[i] != 0 && line != ELV_JOB_OVERRIDE)
            return given_before(key, job->line[i], why);
        const enum elv_err err = text.len > 0 ? elv_job_key_read(k, job, text) : ELV_ERR_FORMAT;
        if (err != ELV_OK)
            return bad_value(key, text, k->accepts, err, why);
        job->line[i] = line;
        return ELV_OK;
    }
    for (size_t p = 0; p < POLICIES; p++)
        if (strcmp(policies[p].section, section) == 0)
            return set_param(params_at(job, p), section, key, text, line, why);
    return no_such_key(section, key, why);
}

static void put_param(struct elv_line *out, const struct elv_param *p)
{
    if (p->kind == ELV_PARAM_WORD)
        elv_line_add(out, p->word);
    else if (p->kind == ELV_PARAM_DURATION)
        elv_value_put_duration(out, (elv_time_us)p->value);
    else
        elv_line_f64(out, p->value);
}

bool elv_job_key(const struct elv_job *job, size_t i, const char **section, const char **key,
                 char value[ELV_JOB_TEXT_MAX], uint32_t *line)
{
    struct elv_line out = elv_line_of(value, ELV_JOB_TEXT_MAX);
    if (i < elv_job_keys_count()) {
        const struct elv_job_key *k = elv_job_keys_at(i);
        elv_job_key_print(k, job, &out);
        *section = k->section;
        *key = k->name;
        *line = job->line[i];
        return true;
    }
    i -= elv_job_keys_count();
    for (size_t p = 0; p < POLICIES; p++) {
        const struct elv_params *params = params_of(job, p);
        if (i < params->n) {
            put_param(&out, &params->at[i]);
            *section = policies[p].section;
            *key = params->at[i].name;
            *line = params->at[i].line;
            return true;
        }
        i -= params->n;
    }
    return false;
}

/* Values are the same when they print alike, for parameters as for keys. */
static bool same_param(const struct elv_param *a, const struct elv_param *b)
{
    char text[2][40];
    struct elv_line l0 = elv_line_of(text[0], sizeof text[0]);
    struct elv_line l1 = elv_line_of(text[1], sizeof text[1]);
    put_param(&l0, a);
    put_param(&l1, b);
    return strcmp(text[0], text[1]) == 0;
}

static bool same_params(const struct elv_params *a, const struct elv_params *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++) {
        uint32_t j = 0;
        while (j < b->n && strcmp(a->at[i].name, b->at[j].name) != 0)
            j++;
        same = j < b->n && same_param(&a->at[i], &b->at[j]);
    }
    return same;
}

static bool same_value(const struct elv_job_key *k, const struct elv_job *a,
                       const struct elv_job *b)
{
    char text[2][ELV_JOB_TEXT_MAX];
    struct elv_line l0 = elv_line_of(text[0], sizeof text[0]);
    struct elv_line l1 = elv_line_of(text[1], sizeof text[1]);
    if (strcmp(k->path, "model.input") == 0 || strcmp(k->path, "model.layers") == 0)
        if (memcmp(a->model.fingerprint, b->model.fingerprint, sizeof a->model.fingerprint) == 0)
            return true; /* written differently, but the same network */
    elv_job_key_print(k, a, &l0);
    elv_job_key_print(k, b, &l1);
    return strcmp(text[0], text[1]) == 0;
}

const char *elv_job_changed(const struct elv_job *before, const struct elv_job *now)
{
    for (size_t i = 0; i < elv_job_keys_count(); i++) {
        const struct elv_job_key *k = elv_job_keys_at(i);
        if (!k->may_change && !same_value(k, before, now))
            return k->path;
    }
    return same_params(&before->rule_params, &now->rule_params) ? NULL : "aggregate.rule";
}

static struct elv_text text_of(const char *s)
{
    return (struct elv_text){.at = s, .len = strlen(s)};
}

void elv_job_manifest(const struct elv_job *job, const uint8_t run[ELV_RUN_ID_LEN],
                      struct elv_manifest *m)
{
    *m = (struct elv_manifest){
        .wire_min = ELV_WIRE_MIN,
        .wire_max = ELV_WIRE_MAX,
        .seed = job->seed,
        .job = text_of(job->name),
        .input = text_of(job->input),
        .layers = text_of(job->layers),
        .n_params = job->model.n_shared,
        .loss = job->loss,
        .optimizer = job->optimizer,
        .momentum = job->momentum,
        .weight_decay = job->weight_decay,
        .scale = job->scale,
        .mean = job->mean,
        .std = job->std,
        .partition = text_of(job->partition),
        .holdout = job->holdout,
        .arithmetic = job->arithmetic,
        .n_up = job->n_up,
        .down = job->down,
        .deflate = job->deflate,
        .bound = job->bound,
        .clip = job->clip,
        .weight_max = job->max_weight,
        .proximal = job->proximal,
    };
    memcpy(m->run, run, ELV_RUN_ID_LEN);
    memcpy(m->fingerprint, job->model.fingerprint, sizeof m->fingerprint);
    memcpy(m->up, job->up, sizeof m->up);
}

void elv_job_print(const struct elv_job *job, struct elv_line *out)
{
    const char *section, *key, *before = "";
    char value[ELV_JOB_TEXT_MAX];
    uint32_t line;
    for (size_t i = 0; elv_job_key(job, i, &section, &key, value, &line); i++) {
        if (value[0] == 0)
            continue;
        if (strcmp(section, before) != 0) {
            elv_line_add(out, "[");
            elv_line_add(out, section);
            elv_line_add(out, "]\n");
            before = section;
        }
        elv_line_add(out, key);
        elv_line_add(out, " = ");
        elv_line_add(out, value);
        elv_line_add(out, "\n");
    }
}
