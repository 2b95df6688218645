/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/elver_sim.c - program: many clients and a server in simulated time.
 *
 * Reads a job and a world, makes all runs that were asked for on as many threads as there are
 * processors, and tells what they came to: a line a run, a table and a line a label on standard
 * output, files where --out says. The runs' own parts are in ports/sim/lab. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ports/posix/clock.h"
#include "ports/posix/file.h"
#include "ports/sim/elver_sim_folder.h"
#include "ports/sim/elver_sim_joint.h"
#include "ports/sim/elver_sim_sweep.h"
#include "ports/sim/lab/spread.h"
#include "ports/sim/queue.h"

static atomic_bool stop;
static volatile sig_atomic_t stopped_by;

/* The second time it ends at once. */
static void on_signal(int number)
{
    if (stopped_by != 0)
        _exit(128 + number);
    stopped_by = number;
    atomic_store(&stop, true);
}

static double seconds(void)
{
    const struct elv_clock clock = elv_posix_clock();
    return (double)clock.now(clock.self) / 1e6;
}

/* What is told. */

static void say(const struct elv_line *l) { printf("%s\n", l->at); }

static void tell_runs(const struct elv_sim_experiment *x)
{
    char text[1024];
    for (uint32_t i = 0; i < x->n_runs; i++) {
        struct elv_line l = elv_line_of(text, sizeof text);
        if (!x->runs[i].finished)
            continue;
        elv_lab_outcome_line(&l, &x->runs[i].outcome);
        say(&l);
    }
}

static uint32_t widest_label(const struct elv_sim_experiment *x)
{
    size_t width = 12;
    for (uint32_t v = 0; v < x->n_variants; v++) {
        const size_t len = strlen(x->variants[v].label);
        width = len > width ? len : width;
    }
    return (uint32_t)width;
}

static int tell_labels(const struct elv_sim_experiment *x)
{
    char text[2048];
    const uint32_t width = widest_label(x);
    struct elv_lab_outcome *outcomes = calloc(x->n_seeds, sizeof *outcomes);
    struct elv_lab_spread *spreads = calloc(x->n_variants, sizeof *spreads);
    struct elv_line l = elv_line_of(text, sizeof text);
    const bool room = outcomes != NULL && spreads != NULL;
    if (room) {
        elv_lab_spread_head(&l, width);
        printf("\n%s", text);
    }
    for (uint32_t v = 0; room && v < x->n_variants; v++) {
        elv_sim_spread(x, v, outcomes, &spreads[v]);
        spreads[v].label = x->variants[v].label;
        l = elv_line_of(text, sizeof text);
        elv_lab_spread_row(&l, &spreads[v], width);
        printf("%s", text);
    }
    printf("\n");
    for (uint32_t v = 0; room && v < x->n_variants; v++) {
        l = elv_line_of(text, sizeof text);
        elv_lab_spread_line(&l, &spreads[v]);
        say(&l);
    }
    free(outcomes);
    free(spreads);
    return room ? EXIT_SUCCESS : elv_sim_complain("table", "out of memory");
}

static uint32_t count_finished(const struct elv_sim_experiment *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n_runs; i++)
        n += x->runs[i].finished;
    return n;
}

static int tell_interrupted(const struct elv_sim_experiment *x)
{
    fprintf(stderr, "elver-sim: interrupted: %u of %u runs are finished%s%s%s\n", count_finished(x),
            x->n_runs, x->asked->out != NULL ? " and kept in " : "",
            x->asked->out != NULL ? x->asked->out : "",
            x->asked->out != NULL ? "; the same command goes on from there" : "");
    return 128 + stopped_by;
}

/* Where there is a horizon, nothing happens until then either. */
static bool ended_early(const struct elv_sim_run *run)
{
    return run->outcome.end == ELV_LAB_END_STUCK ||
           (run->outcome.end == ELV_LAB_END_IDLE && run->variant->setup.world.world.horizon_s <= 0);
}

static const char *reason_of(const struct elv_lab_outcome *o)
{
    if (o->end == ELV_LAB_END_IDLE)
        return "nothing could happen any more; are there clients enough, and do they stay?";
    if (o->summary.discarded > o->summary.used)
        return "no version came in a day and a thousand deadlines, and updates are discarded; does "
               "the training diverge?";
    return "no version came in a day and a thousand deadlines; are they long enough, and clients "
           "enough for the quorum? A horizon would be waited for";
}

static void warn_of(const struct elv_sim_experiment *x, const struct elv_lab_outcome *first,
                    uint32_t n)
{
    fprintf(stderr, "elver-sim: %s: %" PRIu32 " of %" PRIu32 " runs ended early, the first at ",
            first->label, n, x->n_seeds);
    fprintf(stderr, "%.1f s with version %" PRIu32 ": %s\n", (double)first->summary.ended / 1e6,
            first->summary.version, reason_of(first));
}

/* Of each label, once. */
static void warn_of_early_ends(const struct elv_sim_experiment *x)
{
    for (uint32_t v = 0; v < x->n_variants; v++) {
        const struct elv_sim_run *runs = &x->runs[v * x->n_seeds];
        const struct elv_lab_outcome *first = NULL;
        uint32_t n = 0;
        for (uint32_t i = 0; i < x->n_seeds; i++) {
            if (!runs[i].finished || !ended_early(&runs[i]))
                continue;
            first = n++ == 0 ? &runs[i].outcome : first;
        }
        if (n > 0)
            warn_of(x, first, n);
    }
}

static int missed(const struct elv_sim_experiment *x)
{
    for (uint32_t i = 0; i < x->n_runs; i++) {
        const struct elv_lab_outcome *o = &x->runs[i].outcome;
        if ((o->has_target && !o->summary.reached) || ended_early(&x->runs[i]))
            return ELV_SIM_MISSED;
    }
    return EXIT_SUCCESS;
}

/* All runs, and what is made of them. */
static int run_all(struct elv_sim_experiment *x)
{
    struct elv_sim_folder folder;
    const double began = seconds();
    const uint32_t threads = elv_sim_threads(x->asked);
    int status = elv_sim_folder_open(&folder, x);
    if (status != EXIT_SUCCESS) {
        elv_sim_folder_close(&folder);
        return status;
    }
    status = elv_sim_sweep_run(x, threads, &stop);
    const bool complete = status == EXIT_SUCCESS && count_finished(x) == x->n_runs;
    tell_runs(x);
    warn_of_early_ends(x);
    if (complete)
        status = tell_labels(x);
    if (complete && status == EXIT_SUCCESS)
        status = elv_sim_folder_finish(&folder, x);
    if (status == EXIT_SUCCESS &&
        elv_sim_folder_host(&folder, x, threads, seconds() - began) != EXIT_SUCCESS)
        status = EXIT_FAILURE;
    elv_sim_folder_close(&folder);
    if (status == EXIT_SUCCESS)
        status = complete ? missed(x) : tell_interrupted(x);
    return status;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* A reader that is gone and a limit on files are errors of writing like others. */
static void ignore_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_IGN};
    sigemptyset(&action.sa_mask);
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

/* On whatever thread; what was written so far is under names of its own. */
static void no_memory(void)
{
    static const char text[] = "elver-sim: out of memory; fewer clients, or fewer --threads, take "
                               "less\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(128);
    _exit(EXIT_FAILURE);
}

/* What is printed is a result, too. */
static int flushed(int status)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return status;
    return elv_sim_complain("standard output", "it cannot be written");
}

/* Each variant is checked; what is printed holds for all of them. */
static int print_config(const struct elv_sim_options *o, struct elv_sim_experiment *x)
{
    int status = EXIT_SUCCESS;
    struct elv_lab_setup setup = o->setup;
    if (o->job_path != NULL) {
        status = elv_sim_experiment_check(x, o);
        if (x->n_variants > 0)
            elv_sim_common_setup(x, &setup);
    }
    elv_sim_options_print(o, &setup);
    return status;
}

int main(int argc, char **argv)
{
    static struct elv_sim_options asked;
    static struct elv_sim_experiment x;
    if (elv_posix_keep_streams() != ELV_OK)
        return EXIT_FAILURE;
    ignore_signals();
    elv_sim_on_no_memory(no_memory);
    int status = elv_sim_options_take(argc, argv, &asked);
    if (status >= 0)
        return flushed(status);
    if (asked.print) {
        status = print_config(&asked, &x);
    } else {
        status = elv_sim_experiment_make(&x, &asked);
        catch_signals();
        if (status == EXIT_SUCCESS)
            status = run_all(&x);
    }
    elv_sim_experiment_free(&x);
    return flushed(status);
}
