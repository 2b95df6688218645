/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/setup.h"

#include <string.h>

#include "common/text.h"
#include "ports/sim/lab/deploy.h"
#include "ports/sim/lab/learn_logistic.h"
#include "server/param.h"
#include "server/policies.h"
#include "server/value.h"
#include "server/weigh.h"

void elv_lab_setup_init(struct elv_lab_setup *s)
{
    elv_job_init(&s->job);
    elv_world_file_init(&s->world);
}

static enum elv_err add_sections(enum elv_err err, const char *section, char *why)
{
    static const char theirs[] = "there is no section";
    if (err != ELV_ERR_MISSING || strncmp(why, theirs, sizeof theirs - 1) != 0)
        return err;
    struct elv_line l = elv_line_of(why, ELV_JOB_ERROR_MAX);
    elv_line_add(&l, "there is no section [");
    elv_line_chars(&l, section, strlen(section) < 40 ? strlen(section) : 40);
    elv_line_add(&l, "]; a job has job, data, model, client, sync, aggregate, select, size, "
                     "transfer, eval and state, a world has world, device, link, availability and "
                     "faults");
    return err;
}

enum elv_err elv_lab_setup_set(struct elv_lab_setup *s, const char *section, const char *key,
                               const char *value, uint32_t line, char why[ELV_JOB_ERROR_MAX])
{
    if (elv_world_file_section(section))
        return elv_world_file_set(&s->world, section, key, value, line, why);
    return add_sections(elv_job_set(&s->job, section, key, value, line, why), section, why);
}

/* Until. */

static const struct {
    const char *name, *section, *key;
    const char *off; /* the value that means: not this */
    bool limit;      /* of time or rounds; else a target */
} ends[] = {
    {"accuracy", "job", "target_accuracy", "0", false},
    {"loss", "world", "target_loss", "0", false},
    {"time", "world", "horizon", "0s", true},
    {"rounds", "job", "rounds", "0", true},
};
enum { ENDS = sizeof ends / sizeof ends[0] };

static enum elv_err set_end(struct elv_lab_setup *s, size_t i, const char *value,
                            char why[ELV_JOB_ERROR_MAX])
{
    return elv_lab_setup_set(s, ends[i].section, ends[i].key, value, ELV_JOB_OVERRIDE, why);
}

static enum elv_err take_end(struct elv_lab_setup *s, const char *text, bool given[ENDS],
                             char why[ELV_JOB_ERROR_MAX])
{
    const char *equals = strchr(text, '=');
    const struct elv_text name = {text, equals != NULL ? (size_t)(equals - text) : 0};
    for (size_t i = 0; i < ENDS; i++) {
        if (!elv_value_is(name, ends[i].name))
            continue;
        given[i] = true;
        return set_end(s, i, equals + 1, why);
    }
    elv_param_refuse(why, "give accuracy=A, loss=L, time=T such as 600s, or rounds=N");
    return ELV_ERR_FORMAT;
}

enum elv_err elv_lab_setup_until(struct elv_lab_setup *s, const char *const *until,
                                 char why[ELV_JOB_ERROR_MAX])
{
    bool given[ENDS] = {false}, limited = false;
    if (until[0] == NULL)
        return ELV_OK;
    for (size_t i = 0; until[i] != NULL; i++) {
        const enum elv_err err = take_end(s, until[i], given, why);
        if (err != ELV_OK)
            return err;
    }
    for (size_t i = 0; i < ENDS; i++)
        limited = limited || (ends[i].limit && given[i]);
    for (size_t i = 0; i < ENDS; i++)
        if (!given[i] && (limited || !ends[i].limit))
            set_end(s, i, ends[i].off, why); /* cannot fail */
    return ELV_OK;
}

/* Checks. */

static enum elv_err refuse(struct elv_lab_fault *f, enum elv_lab_origin of, uint32_t line,
                           const char *sentence)
{
    f->of = of;
    f->line = line;
    return elv_param_refuse(f->why, sentence);
}

static enum elv_err refuse_job(struct elv_lab_fault *f, const struct elv_lab_setup *s,
                               const char *path, const char *sentence)
{
    return refuse(f, ELV_LAB_OF_JOB, elv_job_line(&s->job, path), sentence);
}

static enum elv_err refuse_world(struct elv_lab_fault *f, const struct elv_lab_setup *s,
                                 const char *path, const char *sentence)
{
    return refuse(f, ELV_LAB_OF_WORLD, elv_world_file_line(&s->world, path), sentence);
}

static void put_default(char *member, const char *text)
{
    if (member[0] == '\0')
        memcpy(member, text, strlen(text) + 1);
}

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* Clients that a first round can wait for. Those that go for good may be gone before the last one
 * has come. */
static uint32_t there_at_the_start(const struct elv_lab_world *w, uint64_t seed)
{
    uint32_t n = 0;
    if (elv_lab_draw_is_set(&w->availability.stay) || w->device.cohort_start)
        return 0;
    if (w->trace == NULL && w->availability.churn_rate <= 0 && w->device.start_spread == 0)
        return w->clients;
    for (uint32_t c = 1; c <= w->clients; c++)
        n += elv_lab_comes(w, seed, c, w->clients) == 0;
    return n;
}

/* A job says what is trained, which the cheap models of learning say themselves: such a job may
 * leave it out. */
static enum elv_err check_job(struct elv_lab_setup *s, struct elv_lab_fault *f)
{
    const bool cheap = s->world.world.learning != ELV_LAB_NETWORK;
    const bool no_test = s->job.test[0] == '\0';
    put_default(s->job.name, cheap ? "simulation" : "");
    put_default(s->job.input, cheap ? "1x1x1" : "");
    put_default(s->job.layers, cheap ? "dense 2" : "");
    put_default(s->job.test, cheap ? "-" : ""); /* they evaluate without one */
    if (s->job.min_clients == 0)
        s->job.min_clients =
            larger(there_at_the_start(&s->world.world, s->job.seed), s->job.quorum);
    f->of = ELV_LAB_OF_JOB;
    enum elv_err err = elv_job_check(&s->job, f->why, &f->line);
    if (cheap && no_test)
        s->job.test[0] = '\0';
    return err;
}

static enum elv_err check_world(const struct elv_lab_setup *s, struct elv_lab_fault *f)
{
    f->of = ELV_LAB_OF_WORLD;
    return elv_world_file_check(&s->world, f->why, &f->line);
}

/* How many clients there are is the world's to say, so only here can a job ask for too many. */
static enum elv_err check_policies(const struct elv_lab_setup *s, struct elv_lab_fault *f)
{
    const uint32_t n = s->world.world.clients;
    struct elv_policies policies;
    struct elv_scales unused;
    f->of = ELV_LAB_OF_JOB;
    enum elv_err err = elv_policies_of(&s->job, &policies, f->why, &f->line);
    if (err != ELV_OK)
        return err;
    if (n == 0)
        return refuse_world(f, s, "world.clients",
                            "how many clients are there? Give --clients N, or clients in [world]");
    err = elv_policies_fit(&s->job, &policies, n, f->why, &f->line);
    if (err != ELV_OK)
        return err;
    f->line = elv_job_line(&s->job, "aggregate.max_weight");
    return elv_scales_of(&s->job, elv_swarm_counted_max(&s->job, &policies, n), &unused, f->why);
}

/* Clients that are real nodes read a real job. */
static enum elv_err check_detail(const struct elv_lab_setup *s, struct elv_lab_fault *f)
{
    const struct elv_lab_world *w = &s->world.world;
    if (w->detail == ELV_LAB_MESSAGES && w->learning != ELV_LAB_NETWORK)
        return refuse_world(f, s, "world.detail",
                            "where every message is simulated clients train the job's network; "
                            "give learning = network, or detail = timing");
    if (w->detail == ELV_LAB_MESSAGES && w->clients > ELV_DEPLOY_CLIENTS_MAX)
        return refuse_world(f, s, "world.clients",
                            "with detail = messages there are at most 1000000 clients");
    return ELV_OK;
}

/* What model L cannot be made of, though each number by itself is fine. */
static enum elv_err check_logistic(const struct elv_lab_setup *s, struct elv_lab_fault *f)
{
    const struct elv_lab_world *w = &s->world.world;
    const uint32_t samples = w->samples > 0 ? w->samples : ELV_LAB_LOGISTIC_SAMPLES;
    const uint32_t d = w->dimensions > 0 ? w->dimensions : ELV_LAB_LOGISTIC_DIMENSIONS;
    if (w->learning != ELV_LAB_LOGISTIC)
        return ELV_OK;
    if (samples > ELV_LAB_LOGISTIC_SAMPLES_MAX ||
        (uint64_t)samples * d > ELV_LAB_LOGISTIC_VALUES_MAX)
        return refuse_world(f, s, "world.samples",
                            "with learning = logistic samples is at most 1000000, and samples "
                            "times dimensions at most 2^26");
    if (w->spread != 0 &&
        (w->spread < ELV_LAB_LOGISTIC_ALPHA_MIN || w->spread > ELV_LAB_LOGISTIC_ALPHA_MAX))
        return refuse_world(f, s, "world.spread",
                            "with learning = logistic spread is 0, or from 0.001 to 1000");
    return ELV_OK;
}

/* Who tells how good a version is has to have something to tell it by. */
static enum elv_err check_eval(const struct elv_lab_setup *s, struct elv_lab_fault *f)
{
    const struct elv_lab_world *w = &s->world.world;
    if (s->job.eval_on != ELV_EVAL_CLIENTS || w->learning == ELV_LAB_NOTHING ||
        !elv_lab_setup_has_target(s))
        return ELV_OK;
    if (w->learning != ELV_LAB_NETWORK)
        return refuse_job(f, s, "eval.on",
                          "with learning = quadratic or logistic clients hold nothing out, so that "
                          "no target is ever reached; give [eval] on = server");
    if (s->job.holdout == 0)
        return refuse_job(f, s, "data.holdout",
                          "clients that evaluate need examples for it, or no target is ever "
                          "reached; give [data] holdout, such as 0.2");
    return ELV_OK;
}

static enum elv_err check_learning(const struct elv_lab_setup *s, struct elv_lab_fault *f)
{
    const struct elv_lab_world *w = &s->world.world;
    if (w->learning == ELV_LAB_NETWORK && s->job.train[0] == '\0')
        return refuse_job(f, s, "data.train",
                          "what do clients train on? Give [data] train, or [world] learning = "
                          "quadratic, logistic or nothing");
    const bool aimed = elv_world_file_line(&s->world, "world.target_loss") == ELV_JOB_OVERRIDE;
    if (w->learning == ELV_LAB_NOTHING &&
        (s->job.target_accuracy > 0 || (w->target_loss > 0 && aimed)))
        return refuse_world(f, s, "world.learning",
                            "with learning = nothing no target is ever reached; give time or "
                            "rounds instead");
    if (w->learning == ELV_LAB_QUADRATIC && s->job.target_accuracy > 0)
        return refuse_job(f, s, "job.target_accuracy",
                          "learning = quadratic knows no accuracy; give [world] target_loss, or "
                          "--until loss=L");
    return ELV_OK;
}

static bool takes_time(const struct elv_lab_setup *s)
{
    const struct elv_lab_world *w = &s->world.world;
    return s->world.trace[0] != '\0' || elv_lab_draw_is_set(&w->device.compute) ||
           elv_lab_draw_is_set(&w->link.latency) || elv_lab_draw_is_set(&w->link.up) ||
           elv_lab_draw_is_set(&w->link.down) || w->link.profile != NULL;
}

static enum elv_err check_end(const struct elv_lab_setup *s, struct elv_lab_fault *f)
{
    if (s->job.rounds > 0 || (s->world.world.horizon_s > 0 && takes_time(s)))
        return ELV_OK;
    return s->world.world.horizon_s > 0
               ? refuse_world(f, s, "world.horizon",
                              "nothing takes time in this world, so its horizon is never reached; "
                              "give [job] rounds, or [device] compute")
               : refuse_job(f, s, "job.rounds",
                            "a run needs an end that is sure to come; give [job] rounds, [world] "
                            "horizon, --until rounds=N or --until time=T");
}

enum elv_err elv_lab_setup_check(struct elv_lab_setup *s, struct elv_lab_fault *fault)
{
    *fault = (struct elv_lab_fault){0};
    enum elv_err err = check_job(s, fault);
    if (err == ELV_OK)
        err = check_world(s, fault);
    if (err == ELV_OK)
        err = check_policies(s, fault);
    if (err == ELV_OK)
        err = check_detail(s, fault);
    if (err == ELV_OK)
        err = check_learning(s, fault);
    if (err == ELV_OK)
        err = check_logistic(s, fault);
    if (err == ELV_OK)
        err = check_eval(s, fault);
    if (err == ELV_OK)
        err = check_end(s, fault);
    return err;
}

bool elv_lab_setup_has_target(const struct elv_lab_setup *s)
{
    return s->world.world.learning != ELV_LAB_NOTHING &&
           (s->job.target_accuracy > 0 || s->world.world.target_loss > 0);
}

bool elv_lab_setup_key(const struct elv_lab_setup *s, size_t i, enum elv_lab_origin *of,
                       const char **section, const char **key, char value[ELV_JOB_TEXT_MAX],
                       uint32_t *line)
{
    size_t n = 0; /* keys of the job */
    *of = ELV_LAB_OF_JOB;
    if (elv_job_key(&s->job, i, section, key, value, line))
        return true;
    while (elv_job_key(&s->job, n, section, key, value, line))
        n++;
    *of = ELV_LAB_OF_WORLD;
    return elv_world_file_key(&s->world, i - n, section, key, value, line);
}

static void add_text(struct elv_sha256 *h, const char *text)
{
    elv_sha256_update(h, text, strlen(text) + 1);
}

void elv_lab_setup_digest(const struct elv_lab_setup *s, struct elv_sha256 *h)
{
    enum elv_lab_origin of;
    const char *section, *key;
    char value[ELV_JOB_TEXT_MAX];
    uint32_t line;
    for (size_t i = 0; elv_lab_setup_key(s, i, &of, &section, &key, value, &line); i++) {
        add_text(h, section);
        add_text(h, key);
        add_text(h, value);
    }
}
