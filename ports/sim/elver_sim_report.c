/* SPDX-License-Identifier: Apache-2.0 */
/* report.html, made from the files of the runs, those that ended in an earlier call included. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "elver/version.h"
#include "ports/posix/file.h"
#include "ports/sim/elver_sim_joint.h"
#include "ports/sim/elver_sim_run.h"
#include "ports/sim/lab/html.h"
#include "ports/sim/lab/rounds_csv.h"
#include "server/value.h"

#define CSV_MAX ((size_t)4 << 30)
#define ROUNDS_MAX                                                                                 \
    200000u              /* in the report, of all runs together; of longer ones every so many-th */
#define ROUNDS_LEAST 50u /* of each */
enum { SETTINGS_MAX = 256 };

struct text {
    char *at;
    size_t len;
};

/* DIR/LEAF of a run; `at` is NULL: there is none. */
static struct text load(const struct elv_sim_experiment *x, const struct elv_sim_run *run,
                        const char *leaf)
{
    char folder[ELV_SIM_PATH_MAX], path[ELV_SIM_PATH_MAX];
    uint8_t *bytes = NULL;
    size_t len = 0;
    if (!elv_sim_run_folder(x, run, folder) || !elv_sim_path(path, folder, leaf) ||
        elv_posix_load(path, CSV_MAX, &bytes, &len) != ELV_OK)
        return (struct text){0};
    return (struct text){(char *)bytes, len};
}

static uint32_t count_lines(const struct text *t)
{
    uint32_t n = 0;
    for (size_t i = 0; i < t->len; i++)
        n += t->at[i] == '\n';
    return n;
}

/* The next line without its end, cut off `rest`. */
static struct elv_text next_line(struct elv_text *rest)
{
    const char *end = memchr(rest->at, '\n', rest->len);
    const size_t len = end != NULL ? (size_t)(end - rest->at) : rest->len;
    const struct elv_text line = {rest->at, len};
    rest->at += len + (end != NULL);
    rest->len -= len + (end != NULL);
    return line;
}

static enum elv_err read_rounds(const struct text *csv, uint32_t most, struct elv_html_run *out)
{
    struct elv_text rest;
    if (csv->at == NULL || !elv_lab_csv_begins((struct elv_text){csv->at, csv->len}, &rest))
        return ELV_ERR_FORMAT;
    const uint32_t n = count_lines(csv) - 1, every = 1 + n / most;
    struct elv_lab_round *rounds = calloc(n / every + 1, sizeof *rounds);
    if (rounds == NULL)
        return ELV_ERR_MEMORY;
    out->rounds = rounds;
    for (uint32_t i = 1; rest.len > 0; i++) {
        const struct elv_text line = next_line(&rest);
        if (i % every == 0 && !elv_lab_csv_read(line, &rounds[out->n_rounds++]))
            return ELV_ERR_FORMAT;
    }
    return ELV_OK;
}

static enum elv_err read_uses(const struct text *csv, struct elv_html_run *out)
{
    struct elv_text rest = {csv->at, csv->len}, parts[2];
    if (csv->at == NULL)
        return ELV_OK; /* too many clients */
    uint32_t *uses = calloc(count_lines(csv) + 1, sizeof *uses);
    if (uses == NULL)
        return ELV_ERR_MEMORY;
    out->uses = uses;
    next_line(&rest); /* the head */
    while (rest.len > 0) {
        uint64_t v;
        if (elv_value_parts(next_line(&rest), ',', parts, 2) != 2 ||
            !elv_text_uint(parts[1].at, parts[1].len, &v))
            return ELV_ERR_FORMAT;
        uses[out->n_clients++] = (uint32_t)v;
    }
    return ELV_OK;
}

static enum elv_err read_run(const struct elv_sim_experiment *x, uint32_t i, uint32_t most,
                             struct elv_html_run *out)
{
    const struct elv_sim_run *run = &x->runs[i];
    *out = (struct elv_html_run){
        .label = run->outcome.label, .seed = run->outcome.seed, .summary = run->outcome.summary};
    struct text csv = load(x, run, "rounds.csv");
    enum elv_err err = read_rounds(&csv, most, out);
    free(csv.at);
    if (err != ELV_OK)
        return err;
    csv = load(x, run, "participation.csv");
    err = read_uses(&csv, out);
    free(csv.at);
    return err;
}

static void free_runs(struct elv_html_run *runs, uint32_t n)
{
    for (uint32_t i = 0; runs != NULL && i < n; i++) {
        free((void *)(uintptr_t)runs[i].rounds);
        free((void *)(uintptr_t)runs[i].uses);
    }
    free(runs);
}

/* The configuration in force. */

struct settings {
    struct elv_html_setting at[SETTINGS_MAX];
    char values[SETTINGS_MAX][ELV_JOB_TEXT_MAX];
    char origins[SETTINGS_MAX][ELV_SIM_ORIGIN_MAX];
    struct elv_lab_setup setup;
    uint32_t n;
};

static const struct elv_lab_sweep *sweep_of(const struct elv_lab_plan *p, const char *section,
                                            const char *key)
{
    for (uint32_t i = 0; i < p->n_sweeps; i++)
        if (strcmp(p->sweeps[i].section, section) == 0 && strcmp(p->sweeps[i].key, key) == 0)
            return &p->sweeps[i];
    return NULL;
}

static void put_values(const struct elv_lab_sweep *s, char out[ELV_JOB_TEXT_MAX])
{
    struct elv_line l = elv_line_of(out, ELV_JOB_TEXT_MAX);
    for (uint32_t i = 0; i < s->n; i++) {
        elv_line_add(&l, i > 0 ? ", " : "");
        elv_line_chars(&l, s->values[i].at, s->values[i].len);
    }
}

static void take_settings(const struct elv_sim_experiment *x, struct settings *s)
{
    enum elv_lab_origin of;
    const char *section, *key;
    uint32_t line;
    elv_sim_common_setup(x, &s->setup);
    for (s->n = 0; s->n < SETTINGS_MAX &&
                   elv_lab_setup_key(&s->setup, s->n, &of, &section, &key, s->values[s->n], &line);
         s->n++) {
        const struct elv_lab_sweep *sweep = sweep_of(&x->asked->plan, section, key);
        elv_sim_origin(x->asked, of, line, s->origins[s->n]);
        if (sweep != NULL) {
            put_values(sweep, s->values[s->n]);
            snprintf(s->origins[s->n], ELV_SIM_ORIGIN_MAX, "sweep");
        }
        s->at[s->n] = (struct elv_html_setting){
            .section = section, .key = key, .value = s->values[s->n], .origin = s->origins[s->n]};
    }
}

/* The page. */

static void put(void *ctx, const char *text, size_t len) { elv_sim_file_put(ctx, text, len); }

static enum elv_err write_page(const struct elv_html_report *report, struct elv_sim_file *file)
{
    const size_t len = elv_html_scratch(report);
    void *scratch = malloc(len > 0 ? len : 1);
    if (scratch == NULL)
        return ELV_ERR_MEMORY;
    const struct elv_html_out out = {.ctx = file, .put = put};
    const enum elv_err err = elv_html_write(report, out, scratch, len);
    free(scratch);
    if (err != ELV_OK)
        return err;
    return elv_sim_file_keep(file) ? ELV_OK : ELV_ERR_IO;
}

/* NULL, or what went wrong. */
static const char *write_report(const struct elv_sim_experiment *x, const struct elv_html_run *runs,
                                const struct settings *s)
{
    char title[128];
    struct elv_sim_file file;
    snprintf(title, sizeof title, "%s, %" PRIu32 " clients", s->setup.job.name,
             x->variants[0].setup.world.world.clients);
    const struct elv_html_report report = {.title = title,
                                           .program = "elver-sim " ELV_VERSION,
                                           .runs = runs,
                                           .n_runs = x->n_runs,
                                           .settings = s->at,
                                           .n_settings = s->n,
                                           .target_accuracy = s->setup.job.target_accuracy,
                                           .target_loss = s->setup.world.world.target_loss};
    if (!elv_sim_file_open(&file, x->asked->out, "report.html"))
        return strerror(file.fault);
    const enum elv_err err = write_page(&report, &file);
    elv_sim_file_drop(&file);
    if (file.fault != 0)
        return strerror(file.fault);
    return err == ELV_OK ? NULL : elv_err_text(err);
}

/* Somebody changed files of a finished run that are as long as they were. */
static int tell_damage(const struct elv_sim_experiment *x, uint32_t i, enum elv_err err)
{
    char folder[ELV_SIM_PATH_MAX] = "report.html";
    if (err == ELV_ERR_FORMAT)
        (void)elv_sim_run_folder(x, &x->runs[i], folder);
    return elv_sim_complain(folder, err == ELV_ERR_FORMAT
                                        ? "a file of this run is damaged; remove its summary.json, "
                                          "and it will be run again"
                                        : elv_err_text(err));
}

static int write_all(const struct elv_sim_experiment *x, struct elv_html_run *runs,
                     struct settings *settings)
{
    const uint32_t share = ROUNDS_MAX / x->n_runs;
    const uint32_t most = share > ROUNDS_LEAST ? share : ROUNDS_LEAST;
    for (uint32_t i = 0; i < x->n_runs; i++) {
        const enum elv_err err = read_run(x, i, most, &runs[i]);
        if (err != ELV_OK)
            return tell_damage(x, i, err);
    }
    take_settings(x, settings);
    const char *why = write_report(x, runs, settings);
    return why == NULL ? EXIT_SUCCESS : elv_sim_complain("report.html", why);
}

int elv_sim_write_report(const struct elv_sim_experiment *x)
{
    struct elv_html_run *runs = calloc(x->n_runs, sizeof *runs);
    struct settings *settings = calloc(1, sizeof *settings);
    const int status = runs == NULL || settings == NULL
                           ? elv_sim_complain("report.html", elv_err_text(ELV_ERR_MEMORY))
                           : write_all(x, runs, settings);
    free_runs(runs, x->n_runs);
    free(settings);
    return status;
}
