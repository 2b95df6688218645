/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/plan.h"

#include <string.h>

#include "common/text.h"
#include "server/param.h"
#include "server/policies.h"
#include "server/value.h"

/* Keys that name a policy. */

static const char *const *sync_params(const char *name)
{
    const struct elv_sync *p = elv_sync_by_name(name);
    return p != NULL ? p->params : NULL;
}

static const char *const *rule_params(const char *name)
{
    const struct elv_rule *p = elv_rule_by_name(name);
    return p != NULL ? p->params : NULL;
}

static const char *const *select_params(const char *name)
{
    const struct elv_select *p = elv_select_by_name(name);
    return p != NULL ? p->params : NULL;
}

static const char *const *sizing_params(const char *name)
{
    const struct elv_sizing *p = elv_sizing_by_name(name);
    return p != NULL ? p->params : NULL;
}

struct policy_key {
    const char *section, *key;
    size_t params; /* offset in struct elv_job */
    const char *const *(*params_of)(const char *name);
};
static const struct policy_key policy_keys[] = {
    {"sync", "policy", offsetof(struct elv_job, sync_params), sync_params},
    {"aggregate", "rule", offsetof(struct elv_job, rule_params), rule_params},
    {"select", "policy", offsetof(struct elv_job, select_params), select_params},
    {"size", "policy", offsetof(struct elv_job, sizing_params), sizing_params},
};

static const struct policy_key *policy_key_of(const struct elv_lab_sweep *s)
{
    for (size_t i = 0; i < sizeof policy_keys / sizeof policy_keys[0]; i++)
        if (strcmp(policy_keys[i].section, s->section) == 0 &&
            strcmp(policy_keys[i].key, s->key) == 0)
            return &policy_keys[i];
    return NULL;
}

/* Reading. */

static enum elv_err misuse(enum elv_err err, const char *sentence, char why[ELV_JOB_ERROR_MAX])
{
    elv_param_refuse(why, sentence);
    return err;
}

static bool copy(char *out, size_t cap, const char *from, size_t len)
{
    if (len == 0 || len >= cap)
        return false;
    memcpy(out, from, len);
    out[len] = '\0';
    return true;
}

static bool same_text(struct elv_text a, struct elv_text b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

static enum elv_err read_values(struct elv_lab_sweep *s, const char *text,
                                char why[ELV_JOB_ERROR_MAX])
{
    const char separator = strchr(text, '|') != NULL ? '|' : ',';
    s->n = elv_value_parts(elv_value_of(text), separator, s->values, ELV_LAB_VALUES_MAX);
    if (s->n > ELV_LAB_VALUES_MAX)
        return misuse(ELV_ERR_FULL, "a sweep has room for 64 values of a key", why);
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->values[i].len == 0)
            return misuse(ELV_ERR_FORMAT, "a value is empty; give SECTION.KEY=VALUE,VALUE,...",
                          why);
        for (uint32_t j = 0; j < i; j++)
            if (same_text(s->values[i], s->values[j]))
                return misuse(ELV_ERR_BUSY, "a value is given twice", why);
    }
    return ELV_OK;
}

enum elv_err elv_lab_plan_sweep(struct elv_lab_plan *p, const char *text,
                                char why[ELV_JOB_ERROR_MAX])
{
    const char *dot = strchr(text, '.'), *equals = strchr(text, '=');
    if (p->n_sweeps == ELV_LAB_SWEEPS_MAX)
        return misuse(ELV_ERR_FULL, "there is room for 8 sweeps", why);
    struct elv_lab_sweep *s = &p->sweeps[p->n_sweeps];
    if (dot == NULL || equals == NULL || equals < dot ||
        !copy(s->section, sizeof s->section, text, (size_t)(dot - text)) ||
        !copy(s->key, sizeof s->key, dot + 1, (size_t)(equals - dot - 1)))
        return misuse(ELV_ERR_FORMAT, "give SECTION.KEY=VALUE,VALUE,...", why);
    for (uint32_t i = 0; i < p->n_sweeps; i++)
        if (strcmp(p->sweeps[i].section, s->section) == 0 && strcmp(p->sweeps[i].key, s->key) == 0)
            return misuse(ELV_ERR_BUSY, "this key is swept already; give all values at once", why);
    if (strcmp(s->section, "job") == 0 && strcmp(s->key, "seed") == 0)
        return misuse(ELV_ERR_FORMAT, "seeds are swept by --seeds", why);
    const enum elv_err err = read_values(s, equals + 1, why);
    p->n_sweeps += err == ELV_OK;
    return err;
}

static enum elv_err count_seeds(struct elv_lab_plan *p, uint64_t n, uint64_t first,
                                char why[ELV_JOB_ERROR_MAX])
{
    if (n == 0 || n > ELV_LAB_SEEDS_MAX || first > UINT64_MAX - n)
        return misuse(ELV_ERR_RANGE, "give 1 to 1000 seeds", why);
    for (uint64_t i = 0; i < n; i++)
        p->seeds[i] = first + i;
    p->n_seeds = (uint32_t)n;
    return ELV_OK;
}

enum elv_err elv_lab_plan_seeds(struct elv_lab_plan *p, const char *text, uint64_t first,
                                char why[ELV_JOB_ERROR_MAX])
{
    static const char form[] = "give a number of seeds, or different seeds such as 1,2,5";
    struct elv_text parts[ELV_LAB_SEEDS_MAX];
    uint64_t seed;
    const uint32_t n = elv_value_parts(elv_value_of(text), ',', parts, ELV_LAB_SEEDS_MAX);
    if (n > ELV_LAB_SEEDS_MAX)
        return misuse(ELV_ERR_RANGE, "give 1 to 1000 seeds", why);
    if (n == 1 && elv_text_uint(parts[0].at, parts[0].len, &seed))
        return count_seeds(p, seed, first, why);
    for (uint32_t i = 0; i < n; i++) {
        if (n == 1 || !elv_text_uint(parts[i].at, parts[i].len, &seed))
            return misuse(ELV_ERR_FORMAT, form, why);
        for (uint32_t j = 0; j < i; j++)
            if (p->seeds[j] == seed)
                return misuse(ELV_ERR_BUSY, form, why);
        p->seeds[i] = seed;
    }
    p->n_seeds = n;
    return ELV_OK;
}

uint32_t elv_lab_plan_variants(const struct elv_lab_plan *p)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < p->n_sweeps && n <= ELV_LAB_RUNS_MAX; i++)
        n *= p->sweeps[i].n;
    const uint64_t runs = n * (p->n_seeds > 0 ? p->n_seeds : 1);
    return runs <= ELV_LAB_RUNS_MAX ? (uint32_t)n : 0;
}

/* Variants. */

/* The last sweep's values follow each other fastest. */
static struct elv_text value_of(const struct elv_lab_plan *p, uint32_t v, uint32_t sweep)
{
    for (uint32_t i = p->n_sweeps - 1; i > sweep; i--)
        v /= p->sweeps[i].n;
    return p->sweeps[sweep].values[v % p->sweeps[sweep].n];
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("._=:,+-", c) != NULL;
}

static void add_parts(const struct elv_lab_plan *p, uint32_t v, struct elv_line *l)
{
    for (uint32_t i = 0; i < p->n_sweeps; i++) {
        const struct elv_lab_sweep *s = &p->sweeps[i];
        const struct elv_text value = value_of(p, v, i);
        elv_line_add(l, i > 0 ? "," : "");
        if (strcmp(s->section, "sync") != 0 || strcmp(s->key, "policy") != 0) {
            elv_line_add(l, s->section);
            elv_line_add(l, ".");
            elv_line_add(l, s->key);
            elv_line_add(l, "=");
        }
        elv_line_chars(l, value.at, value.len);
    }
}

/* A comma in a value may make two variants look alike. */
static bool has_comma(const struct elv_lab_plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_sweeps; i++) {
        const struct elv_text value = value_of(p, v, i);
        if (memchr(value.at, ',', value.len) != NULL)
            return true;
    }
    return false;
}

static void digest_of(const struct elv_lab_plan *p, uint32_t v, uint8_t digest[ELV_SHA256_LEN])
{
    struct elv_sha256 h;
    elv_sha256_init(&h);
    for (uint32_t i = 0; i < p->n_sweeps; i++) {
        const struct elv_text value = value_of(p, v, i);
        elv_sha256_update(&h, value.at, value.len);
        elv_sha256_update(&h, "", 1);
    }
    elv_sha256_final(&h, digest);
}

void elv_lab_plan_label(const struct elv_lab_plan *p, uint32_t v, const char *alone,
                        char label[ELV_LAB_LABEL_MAX])
{
    enum { DIGITS = 8, TEXT_MAX = ELV_LAB_SWEEPS_MAX * (ELV_JOB_TEXT_MAX + 70) };
    char text[TEXT_MAX];
    uint8_t digest[ELV_SHA256_LEN];
    struct elv_line whole = elv_line_of(text, sizeof text);
    if (p->n_sweeps == 0)
        elv_line_add(&whole, alone);
    add_parts(p, v, &whole);
    digest_of(p, v, digest);
    const size_t room = ELV_LAB_LABEL_MAX - 1;
    bool unique = whole.len <= room && text[0] != '.' && !has_comma(p, v);
    for (size_t i = 0; i < whole.len; i++) {
        unique = unique && is_plain(text[i]);
        text[i] = is_plain(text[i]) ? text[i] : '_';
    }
    struct elv_line out = elv_line_of(label, ELV_LAB_LABEL_MAX);
    if (unique) {
        elv_line_add(&out, text);
        return;
    }
    const size_t kept = room - 2 * DIGITS - 1;
    text[0] = text[0] == '.' ? '_' : text[0];
    elv_line_chars(&out, text, whole.len < kept ? whole.len : kept);
    elv_line_add(&out, "-");
    elv_line_hex(&out, digest, DIGITS);
}

static bool knows(const struct policy_key *k, struct elv_text value, const char *param)
{
    struct elv_text name;
    char text[64];
    elv_value_parts(value, ':', &name, 1);
    const char *const *names =
        copy(text, sizeof text, name.at, name.len) ? k->params_of(text) : NULL;
    for (size_t i = 0; names != NULL && names[i] != NULL; i++)
        if (strcmp(names[i], param) == 0)
            return true;
    return false;
}

static bool known_to_another(const struct policy_key *k, const struct elv_lab_sweep *s,
                             const char *param)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (knows(k, s->values[i], param))
            return true;
    return false;
}

/* Leaves out the parameters that are meant for another value. */
static void choose_params(const struct policy_key *k, const struct elv_lab_sweep *s,
                          struct elv_text value, struct elv_job *job)
{
    struct elv_params *params = (struct elv_params *)((uint8_t *)job + k->params);
    uint32_t n = 0;
    for (uint32_t i = 0; i < params->n; i++)
        if (knows(k, value, params->at[i].name) || !known_to_another(k, s, params->at[i].name))
            params->at[n++] = params->at[i];
    params->n = n;
}

static enum elv_err set_pair(struct elv_lab_setup *s, const char *section, struct elv_text key,
                             struct elv_text value, char why[ELV_JOB_ERROR_MAX])
{
    char k[64], v[ELV_JOB_TEXT_MAX];
    if (!copy(k, sizeof k, key.at, key.len) || !copy(v, sizeof v, value.at, value.len))
        return misuse(ELV_ERR_FORMAT, "a key or a value is missing or too long", why);
    return elv_lab_setup_set(s, section, k, v, ELV_JOB_OVERRIDE, why);
}

static struct elv_text text_of(const char *s) { return (struct elv_text){s, strlen(s)}; }

/* That a part before has not given the key, and that it is not the one that names the policy. */
static enum elv_err check_once(const struct policy_key *k, const struct elv_text *parts, uint32_t i,
                               struct elv_text key, char why[ELV_JOB_ERROR_MAX])
{
    if (elv_value_is(key, k->key))
        return misuse(ELV_ERR_FORMAT, "a policy is named first, and then its parameters", why);
    for (uint32_t j = 1; j < i; j++) {
        struct elv_text name;
        elv_value_parts(parts[j], '=', &name, 1);
        if (same_text(name, key))
            return misuse(ELV_ERR_BUSY, "a policy's parameter is given twice", why);
    }
    return ELV_OK;
}

/* NAME[:KEY=VALUE]... */
static enum elv_err set_policy(struct elv_lab_setup *s, const struct elv_lab_sweep *sweep,
                               const struct policy_key *k, struct elv_text value,
                               char why[ELV_JOB_ERROR_MAX])
{
    struct elv_text parts[1 + ELV_JOB_PARAMS_MAX];
    const uint32_t n = elv_value_parts(value, ':', parts, 1 + ELV_JOB_PARAMS_MAX);
    if (n > 1 + ELV_JOB_PARAMS_MAX)
        return misuse(ELV_ERR_FULL, "a policy takes at most 16 parameters", why);
    enum elv_err err = set_pair(s, k->section, text_of(k->key), parts[0], why);
    choose_params(k, sweep, value, &s->job);
    for (uint32_t i = 1; err == ELV_OK && i < n; i++) {
        struct elv_text pair[2];
        if (elv_value_parts(parts[i], '=', pair, 2) != 2)
            return misuse(ELV_ERR_FORMAT,
                          "a policy's parameters are given as POLICY:NAME=VALUE:NAME=VALUE", why);
        err = check_once(k, parts, i, pair[0], why);
        if (err == ELV_OK)
            err = set_pair(s, k->section, pair[0], pair[1], why);
    }
    return err;
}

enum elv_err elv_lab_plan_apply(const struct elv_lab_plan *p, uint32_t v, struct elv_lab_setup *s,
                                char why[ELV_JOB_ERROR_MAX])
{
    enum elv_err err = ELV_OK;
    for (uint32_t i = 0; err == ELV_OK && i < p->n_sweeps; i++) {
        const struct elv_lab_sweep *sweep = &p->sweeps[i];
        const struct policy_key *k = policy_key_of(sweep);
        const struct elv_text value = value_of(p, v, i);
        err = k != NULL ? set_policy(s, sweep, k, value, why)
                        : set_pair(s, sweep->section, text_of(sweep->key), value, why);
    }
    return err;
}
