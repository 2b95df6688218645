/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "ports/sim/elver_sim_joint.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "ports/sim/elver_sim_pen.h"
#include "ports/sim/lab/spread.h"

static int no_file(const struct elv_sim_pen *p)
{
    return elv_sim_complain(p->file.path, strerror(p->file.fault));
}

/* manifest.json */

static void put_seeds(struct elv_sim_pen *p, const struct elv_lab_plan *plan)
{
    elv_sim_pen_key(p, 1, "seeds");
    for (uint32_t i = 0; i < plan->n_seeds; i++) {
        elv_sim_pen_put(p, i > 0 ? ", " : "[");
        elv_sim_pen_uint(p, plan->seeds[i]);
    }
    elv_sim_pen_put(p, "]");
}

static void put_value(struct elv_sim_pen *p, struct elv_text value)
{
    char text[ELV_JOB_TEXT_MAX];
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_line_chars(&l, value.at, value.len);
    elv_sim_pen_text(p, text);
}

static void put_sweeps(struct elv_sim_pen *p, const struct elv_lab_plan *plan)
{
    elv_sim_pen_key(p, 1, "sweep");
    elv_sim_pen_begin(p, '{');
    for (uint32_t i = 0; i < plan->n_sweeps; i++) {
        const struct elv_lab_sweep *s = &plan->sweeps[i];
        char path[80];
        snprintf(path, sizeof path, "%s.%s", s->section, s->key);
        elv_sim_pen_key(p, 2, path);
        for (uint32_t k = 0; k < s->n; k++) {
            elv_sim_pen_put(p, k > 0 ? ", " : "[");
            put_value(p, s->values[k]);
        }
        elv_sim_pen_put(p, "]");
    }
    elv_sim_pen_end(p, 1, '}');
}

static void put_digest(struct elv_sim_pen *p, const char *key, const uint8_t *digest)
{
    static const uint8_t none[ELV_SHA256_LEN];
    elv_sim_pen_put(p, ", ");
    elv_sim_pen_text(p, key);
    elv_sim_pen_put(p, ": ");
    elv_sim_pen_digest(p, digest != NULL ? digest : none);
}

/* SHA-256 of what each label is made from. */
static void put_inputs(struct elv_sim_pen *p, const struct elv_sim_experiment *x)
{
    elv_sim_pen_key(p, 1, "data");
    elv_sim_pen_begin(p, '[');
    for (uint32_t i = 0; i < x->n_variants; i++) {
        const struct elv_sim_inputs *in = &x->variants[i].inputs;
        elv_sim_pen_item(p, 2);
        elv_sim_pen_put(p, "{\"label\": ");
        elv_sim_pen_text(p, x->variants[i].label);
        put_digest(p, "train", in->train != NULL ? in->train->digest : NULL);
        put_digest(p, "test", in->test != NULL ? in->test->digest : NULL);
        put_digest(p, "start", in->start_digest);
        put_digest(p, "trace", in->trace_digest);
        elv_sim_pen_put(p, "}");
    }
    elv_sim_pen_end(p, 1, ']');
}

static void put_runs(struct elv_sim_pen *p, const struct elv_sim_experiment *x)
{
    elv_sim_pen_key(p, 1, "runs");
    elv_sim_pen_begin(p, '[');
    for (uint32_t i = 0; i < x->n_runs; i++) {
        const struct elv_sim_run *run = &x->runs[i];
        char folder[sizeof run->name + 8];
        elv_sim_pen_item(p, 2);
        elv_sim_pen_put(p, "{\"label\": ");
        elv_sim_pen_text(p, run->outcome.label);
        elv_sim_pen_put(p, ", \"seed\": ");
        elv_sim_pen_uint(p, run->outcome.seed);
        elv_sim_pen_put(p, ", \"folder\": ");
        snprintf(folder, sizeof folder, "%s%s", run->name[0] != '\0' ? "runs/" : ".", run->name);
        elv_sim_pen_text(p, folder);
        put_digest(p, "configuration", run->outcome.configuration);
        put_digest(p, "partition", run->outcome.partition);
        elv_sim_pen_put(p, "}");
    }
    elv_sim_pen_end(p, 1, ']');
}

static void put_setup(struct elv_sim_pen *p, const struct elv_sim_options *o,
                      const struct elv_lab_setup *s, enum elv_lab_origin which)
{
    enum elv_lab_origin of;
    const char *section, *key;
    char value[ELV_JOB_TEXT_MAX], origin[ELV_SIM_ORIGIN_MAX], path[128];
    uint32_t line;
    elv_sim_pen_key(p, 1, which == ELV_LAB_OF_JOB ? "job" : "world");
    elv_sim_pen_begin(p, '{');
    for (size_t i = 0; elv_lab_setup_key(s, i, &of, &section, &key, value, &line); i++) {
        if (of != which)
            continue;
        snprintf(path, sizeof path, "%s.%s", section, key);
        elv_sim_origin(o, of, line, origin);
        elv_sim_pen_key(p, 2, path);
        elv_sim_pen_put(p, "{\"value\": ");
        elv_sim_pen_text(p, value);
        elv_sim_pen_put(p, ", \"from\": ");
        elv_sim_pen_text(p, origin);
        elv_sim_pen_put(p, "}");
    }
    elv_sim_pen_end(p, 1, '}');
}

/* The files' values with the defaults that depend on others filled in; what a sweep changes is told
 * beside them, so whether they go together without it does not matter here. */
void elv_sim_common_setup(const struct elv_sim_experiment *x, struct elv_lab_setup *out)
{
    struct elv_lab_fault unused;
    *out = x->asked->plan.n_sweeps == 0 ? x->variants[0].setup : x->asked->setup;
    if (x->asked->plan.n_sweeps == 0)
        return;
    out->world.world.trace = x->variants[0].setup.world.world.trace;
    (void)elv_lab_setup_check(out, &unused);
}

int elv_sim_write_manifest(const struct elv_sim_experiment *x)
{
    static const char *const levels[] = {"none", "rounds", "all"};
    struct elv_sim_pen p;
    struct elv_lab_setup setup;
    elv_sim_common_setup(x, &setup);
    if (!elv_sim_pen_open(&p, x->asked->out, "manifest.json"))
        return no_file(&p);
    elv_sim_pen_key(&p, 1, "configuration");
    elv_sim_pen_digest(&p, x->configuration);
    elv_sim_pen_key(&p, 1, "arithmetic");
    elv_sim_pen_text(&p, setup.job.arithmetic == ELV_ARITHMETIC_FAST ? "fast" : "reference");
    elv_sim_pen_key(&p, 1, "clients");
    elv_sim_pen_uint(&p, setup.world.world.clients);
    elv_sim_pen_key(&p, 1, "events");
    elv_sim_pen_text(&p, levels[x->asked->events]);
    put_seeds(&p, &x->asked->plan);
    put_sweeps(&p, &x->asked->plan);
    put_inputs(&p, x);
    put_runs(&p, x);
    put_setup(&p, x->asked, &setup, ELV_LAB_OF_JOB);
    put_setup(&p, x->asked, &setup, ELV_LAB_OF_WORLD);
    return elv_sim_pen_close(&p);
}

/* summary.json of a sweep */

void elv_sim_spread(const struct elv_sim_experiment *x, uint32_t v,
                    struct elv_lab_outcome *outcomes, struct elv_lab_spread *out)
{
    for (uint32_t i = 0; i < x->n_seeds; i++)
        outcomes[i] = x->runs[v * x->n_seeds + i].outcome;
    *out = elv_lab_spread_of(outcomes, x->n_seeds);
}

static void put_labels(struct elv_sim_pen *p, const struct elv_sim_experiment *x,
                       struct elv_lab_outcome *outcomes)
{
    char text[ELV_LAB_SPREAD_MAX];
    elv_sim_pen_key(p, 1, "labels");
    elv_sim_pen_put(p, "[");
    for (uint32_t v = 0; v < x->n_variants; v++) {
        struct elv_lab_spread spread;
        struct elv_line l = elv_line_of(text, sizeof text);
        elv_sim_spread(x, v, outcomes, &spread);
        elv_lab_spread_json(&l, &spread);
        elv_sim_pen_put(p, v > 0 ? ",\n" : "\n");
        elv_sim_pen_put(p, text);
    }
    elv_sim_pen_put(p, "\n  ]");
}

int elv_sim_write_summary(const struct elv_sim_experiment *x)
{
    struct elv_sim_pen p;
    struct elv_lab_outcome *outcomes = calloc(x->n_seeds, sizeof *outcomes);
    if (outcomes == NULL)
        return elv_sim_complain("summary.json", "out of memory");
    if (!elv_sim_pen_open(&p, x->asked->out, "summary.json")) {
        free(outcomes);
        return no_file(&p);
    }
    elv_sim_pen_key(&p, 1, "kind");
    elv_sim_pen_text(&p, "sweep");
    elv_sim_pen_key(&p, 1, "configuration");
    elv_sim_pen_digest(&p, x->configuration);
    elv_sim_pen_key(&p, 1, "runs");
    elv_sim_pen_uint(&p, x->n_runs);
    put_labels(&p, x, outcomes);
    free(outcomes);
    return elv_sim_pen_close(&p);
}

/* host.json */

/* As Linux says it; other systems have no such file. */
static void processor(char name[128])
{
    char line[512];
    FILE *f = fopen("/proc/cpuinfo", "r");
    name[0] = '\0';
    while (f != NULL && name[0] == '\0' && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL)
            snprintf(name, 128, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
    }
    if (f != NULL)
        fclose(f);
}

static void put_machine(struct elv_sim_pen *p)
{
    struct utsname system;
    char name[128];
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    processor(name);
    elv_sim_pen_key(p, 1, "processor");
    elv_sim_pen_text(p, name);
    elv_sim_pen_key(p, 1, "processors");
    elv_sim_pen_uint(p, cpus > 0 ? (uint64_t)cpus : 0);
    elv_sim_pen_key(p, 1, "memory_bytes");
    elv_sim_pen_uint(p, pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0);
    elv_sim_pen_key(p, 1, "system");
    elv_sim_pen_text(p, uname(&system) == 0 ? system.sysname : "");
    elv_sim_pen_key(p, 1, "machine");
    elv_sim_pen_text(p, uname(&system) == 0 ? system.machine : "");
}

static void put_times(struct elv_sim_pen *p, const struct elv_sim_experiment *x)
{
    elv_sim_pen_key(p, 1, "runs");
    elv_sim_pen_begin(p, '[');
    for (uint32_t i = 0; i < x->n_runs; i++) {
        const struct elv_sim_run *run = &x->runs[i];
        if (!run->finished || run->wall_s <= 0)
            continue;
        elv_sim_pen_item(p, 2);
        elv_sim_pen_put(p, "{\"label\": ");
        elv_sim_pen_text(p, run->outcome.label);
        elv_sim_pen_put(p, ", \"seed\": ");
        elv_sim_pen_uint(p, run->outcome.seed);
        elv_sim_pen_put(p, ", \"wall_s\": ");
        elv_sim_pen_number(p, run->wall_s, 6);
        elv_sim_pen_put(p, "}");
    }
    elv_sim_pen_end(p, 1, ']');
}

int elv_sim_write_host(const struct elv_sim_experiment *x, uint32_t threads, double wall_s)
{
    struct elv_sim_pen p;
    struct rusage use = {0};
    (void)getrusage(RUSAGE_SELF, &use);
    if (!elv_sim_pen_open(&p, x->asked->out, "host.json"))
        return no_file(&p);
    elv_sim_pen_key(&p, 1, "kernels");
    elv_sim_pen_text(&p, x->kernels->name);
    elv_sim_pen_key(&p, 1, "threads");
    elv_sim_pen_uint(&p, threads);
    elv_sim_pen_key(&p, 1, "wall_s");
    elv_sim_pen_number(&p, wall_s, 6);
    elv_sim_pen_key(&p, 1, "cpu_s");
    elv_sim_pen_number(&p,
                       (double)use.ru_utime.tv_sec + (double)use.ru_stime.tv_sec +
                           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6,
                       6);
    elv_sim_pen_key(&p, 1, "peak_rss_kib");
    elv_sim_pen_uint(&p, (uint64_t)use.ru_maxrss);
    put_machine(&p);
    put_times(&p, x);
    return elv_sim_pen_close(&p);
}
