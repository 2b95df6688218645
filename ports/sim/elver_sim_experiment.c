/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/elver_sim_experiment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elver/version.h"
#include "kernels/kernels.h"
#include "ports/sim/lab/learn_network.h"

static int pick_kernels(struct elv_sim_experiment *x)
{
    const char *name = getenv("ELV_KERNELS");
    x->kernels = name != NULL ? elv_kernels_by_name(name) : elv_kernels_best();
    if (x->kernels != NULL)
        return EXIT_SUCCESS;
    elv_sim_complain(name, "this processor or build has no such kernels");
    return ELV_SIM_USAGE;
}

/* "" when there is nothing to tell apart. */
static const char *label_of(const struct elv_sim_experiment *x, const struct elv_sim_variant *v)
{
    return x->asked->plan.n_sweeps > 0 ? v->label : "";
}

/* `line` 0: of the job file as a whole. */
static int refuse(const struct elv_sim_experiment *x, const struct elv_sim_variant *v,
                  uint32_t line, const char *why)
{
    struct elv_lab_fault fault = {.of = ELV_LAB_OF_JOB, .line = line};
    snprintf(fault.why, sizeof fault.why, "%s", why);
    return elv_sim_judge(x->asked, label_of(x, v), &fault);
}

static int make_variant(struct elv_sim_experiment *x, uint32_t i)
{
    struct elv_sim_variant *v = &x->variants[i];
    struct elv_lab_fault fault;
    v->setup = x->asked->setup;
    v->setup.job.seed = x->asked->plan.seeds[0];
    const enum elv_err err = elv_lab_plan_apply(&x->asked->plan, i, &v->setup, fault.why);
    elv_lab_plan_label(&x->asked->plan, i, v->setup.job.sync, v->label);
    if (err != ELV_OK)
        return refuse(x, v, ELV_JOB_OVERRIDE, fault.why);
    int status = elv_sim_data_trace(&x->data, &v->setup, &v->inputs);
    if (status != EXIT_SUCCESS)
        return status;
    if (elv_lab_setup_check(&v->setup, &fault) != ELV_OK)
        return elv_sim_judge(x->asked, label_of(x, v), &fault);
    return EXIT_SUCCESS;
}

/* Who has which example; also tells early that there are too few. */
static int find_partition(const struct elv_sim_experiment *x, struct elv_sim_run *run)
{
    const struct elv_sim_variant *v = run->variant;
    char why[ELV_JOB_ERROR_MAX];
    struct elv_lab_split split;
    const struct elv_lab_split_cfg cfg = {.data = v->inputs.train,
                                          .seed = run->outcome.seed,
                                          .n_clients = v->setup.world.world.clients,
                                          .partition = v->setup.job.partition,
                                          .owner = v->inputs.owner,
                                          .holdout = v->setup.job.holdout};
    const struct elv_lab_network_cfg network = {.job = &v->setup.job,
                                                .train = v->inputs.train,
                                                .test =
                                                    v->inputs.test ? &v->inputs.test->feed : NULL};
    if (v->inputs.train == NULL)
        return EXIT_SUCCESS;
    if (elv_lab_network_check(&network, why) != ELV_OK)
        return refuse(x, v, 0, why);
    const enum elv_err err = elv_lab_split_new(&split, &cfg, why);
    if (err == ELV_ERR_MEMORY)
        return elv_sim_complain("data.partition", why);
    if (err != ELV_OK)
        return refuse(x, v, 0, why);
    memcpy(run->outcome.partition, split.digest, sizeof split.digest);
    elv_lab_split_free(&split);
    return EXIT_SUCCESS;
}

static void add_data(struct elv_sha256 *h, const struct elv_lab_data *data)
{
    static const uint8_t none[ELV_SHA256_LEN];
    elv_sha256_update(h, data != NULL ? data->digest : none, ELV_SHA256_LEN);
}

/* Everything that decides a run. Fast arithmetic depends on the kernels, too. */
static void find_configuration(const struct elv_sim_experiment *x, struct elv_sim_run *run)
{
    const struct elv_sim_variant *v = run->variant;
    const bool fast = v->setup.job.arithmetic == ELV_ARITHMETIC_FAST;
    const uint8_t events = (uint8_t)x->asked->events;
    struct elv_lab_setup setup = v->setup;
    struct elv_sha256 h;
    setup.job.seed = run->outcome.seed;
    elv_sha256_init(&h);
    elv_sha256_update(&h, ELV_VERSION, strlen(ELV_VERSION) + 1);
    elv_lab_setup_digest(&setup, &h);
    elv_sha256_update(&h, fast ? x->kernels->name : "", fast ? strlen(x->kernels->name) : 0);
    elv_sha256_update(&h, &events, 1);
    add_data(&h, v->inputs.train);
    add_data(&h, v->inputs.test);
    elv_sha256_update(&h, v->inputs.trace_digest, ELV_SHA256_LEN);
    elv_sha256_update(&h, v->inputs.start_digest, ELV_SHA256_LEN);
    elv_sha256_update(&h, run->outcome.partition, ELV_SHA256_LEN);
    elv_sha256_final(&h, run->outcome.configuration);
}

static int make_run(struct elv_sim_experiment *x, uint32_t i)
{
    struct elv_sim_run *run = &x->runs[i];
    const struct elv_sim_options *o = x->asked;
    run->variant = &x->variants[i / x->n_seeds];
    run->outcome.seed = o->plan.seeds[i % x->n_seeds];
    run->outcome.has_target = elv_lab_setup_has_target(&run->variant->setup);
    memcpy(run->outcome.label, run->variant->label, sizeof run->outcome.label);
    if (o->plan.n_sweeps > 0 || x->n_seeds > 1)
        snprintf(run->name, sizeof run->name, "%s-seed-%" PRIu64, run->variant->label,
                 run->outcome.seed);
    const int status = find_partition(x, run);
    find_configuration(x, run);
    return status;
}

int elv_sim_experiment_check(struct elv_sim_experiment *x, const struct elv_sim_options *asked)
{
    x->asked = asked;
    x->n_seeds = asked->plan.n_seeds;
    x->n_variants = elv_lab_plan_variants(&asked->plan);
    x->variants = calloc(x->n_variants, sizeof *x->variants);
    if (x->variants == NULL)
        return elv_sim_complain("runs", "out of memory");
    int status = EXIT_SUCCESS;
    for (uint32_t i = 0; status == EXIT_SUCCESS && i < x->n_variants; i++)
        status = make_variant(x, i);
    return status;
}

static int make_runs(struct elv_sim_experiment *x)
{
    x->n_runs = x->n_variants * x->n_seeds;
    x->runs = calloc(x->n_runs, sizeof *x->runs);
    int status = x->runs != NULL ? EXIT_SUCCESS : elv_sim_complain("runs", "out of memory");
    for (uint32_t i = 0; status == EXIT_SUCCESS && i < x->n_runs; i++)
        status = make_run(x, i);
    return status;
}

/* Names count, too: they say where the files are. */
static void find_all(struct elv_sim_experiment *x)
{
    struct elv_sha256 h;
    elv_sha256_init(&h);
    for (uint32_t i = 0; i < x->n_runs; i++) {
        elv_sha256_update(&h, x->runs[i].name, strlen(x->runs[i].name) + 1);
        elv_sha256_update(&h, x->runs[i].outcome.configuration, ELV_SHA256_LEN);
    }
    elv_sha256_final(&h, x->configuration);
}

int elv_sim_experiment_make(struct elv_sim_experiment *x, const struct elv_sim_options *asked)
{
    int status = elv_sim_experiment_check(x, asked);
    if (status == EXIT_SUCCESS)
        status = pick_kernels(x);
    for (uint32_t i = 0; status == EXIT_SUCCESS && i < x->n_variants; i++)
        status = elv_sim_data_take(&x->data, &x->variants[i].setup, &x->variants[i].inputs);
    if (status == EXIT_SUCCESS)
        status = make_runs(x);
    if (status == EXIT_SUCCESS)
        find_all(x);
    return status;
}

void elv_sim_experiment_free(struct elv_sim_experiment *x)
{
    for (uint32_t i = 0; x->variants != NULL && i < x->n_variants; i++)
        elv_sim_inputs_free(&x->variants[i].inputs);
    free(x->variants);
    free(x->runs);
    elv_sim_data_free(&x->data);
}
