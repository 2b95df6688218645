/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/elver_sim_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ports/posix/clock.h"
#include "ports/sim/elver_sim_engine.h"
#include "ports/sim/elver_sim_learner.h"
#include "ports/sim/lab/rounds_csv.h"

#define PARTICIPATION_MAX 100000u /* clients of which a file is written */

/* A slice of a run: as much virtual time as takes about this long. */
#define SLICE_US 50000
#define SLICE_FIRST_US 1000000
#define SLICE_MAX_US ((elv_time_us)1 << 50)

/* So many deadlines, and a day, without a version end a run that nothing else is sure to end. */
#define PATIENCE 1000
#define PATIENCE_LEAST_US ((elv_time_us)86400 * 1000000)

struct recorder {
    const struct elv_sim_experiment *x;
    struct elv_sim_run *run;
    struct elv_sim_watch *watch;
    struct elv_sim_file rounds, events, participation, summary;
    bool writes;
    uint32_t n_clients;
    uint32_t *used; /* [n_clients] updates, and one more once it has joined; NULL: not kept */
    elv_time_us version_at; /* the newest version came */
    bool stuck;
};

bool elv_sim_run_folder(const struct elv_sim_experiment *x, const struct elv_sim_run *run,
                        char path[ELV_SIM_PATH_MAX])
{
    const bool alone = run->name[0] == '\0';
    const int n =
        snprintf(path, ELV_SIM_PATH_MAX, "%s%s%s", x->asked->out, alone ? "" : "/runs/", run->name);
    return n > 0 && (size_t)n < ELV_SIM_PATH_MAX;
}

/* What is told. */

static void put_line(struct elv_sim_file *f, struct elv_line *l)
{
    elv_line_add(l, "\n");
    elv_sim_file_put(f, l->at, l->len);
}

static void write_head(struct recorder *r)
{
    char text[ELV_LAB_ROW_MAX];
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_lab_csv_head(&l);
    put_line(&r->rounds, &l);
}

/* How much of the run is done: of its time or of its rounds, whichever is further. */
static void show(struct elv_sim_watch *watch, const struct elv_lab_setup *setup, elv_time_us now)
{
    const uint32_t version = atomic_load_explicit(&watch->version, memory_order_relaxed);
    const double horizon = setup->world.world.horizon_s * 1e6;
    const double by_time = horizon > 0 ? (double)now / horizon : 0;
    const double by_rounds =
        setup->job.rounds > 0 ? (double)version / (double)setup->job.rounds : 0;
    const double share = by_time > by_rounds ? by_time : by_rounds;
    atomic_store_explicit(&watch->ppm, (unsigned)(share < 1 ? share * 1e6 : 1e6),
                          memory_order_relaxed);
}

static void take_round(void *self, const struct elv_lab_round *round)
{
    struct recorder *r = self;
    char text[ELV_LAB_ROW_MAX];
    struct elv_line l = elv_line_of(text, sizeof text);
    atomic_store_explicit(&r->watch->version, round->version, memory_order_relaxed);
    if (!round->abandoned)
        r->version_at = round->closed;
    show(r->watch, &r->run->variant->setup, round->closed);
    if (!r->writes)
        return;
    elv_lab_csv_row(&l, round);
    put_line(&r->rounds, &l);
    if (r->x->asked->events == ELV_SIM_EVENTS_NONE)
        return;
    l = elv_line_of(text, sizeof text);
    elv_lab_round_event(&l, round);
    put_line(&r->events, &l);
}

static void take_event(void *self, const struct elv_lab_event *e)
{
    struct recorder *r = self;
    char text[ELV_LAB_ROW_MAX];
    struct elv_line l = elv_line_of(text, sizeof text);
    if (r->used != NULL && e->kind == ELV_LAB_JOINED && r->used[e->client - 1] == 0)
        r->used[e->client - 1] = 1;
    if (r->used != NULL && e->kind == ELV_LAB_USED)
        r->used[e->client - 1]++;
    if (r->x->asked->events != ELV_SIM_EVENTS_ALL)
        return;
    elv_lab_client_event(&l, e);
    put_line(&r->events, &l);
}

static void write_participation(struct recorder *r)
{
    static const char head[] = "client,used\n";
    elv_sim_file_put(&r->participation, head, sizeof head - 1);
    for (uint32_t c = 0; r->used != NULL && c < r->n_clients; c++) {
        char text[40];
        if (r->used[c] == 0)
            continue; /* it never came */
        const int n =
            snprintf(text, sizeof text, "%" PRIu32 ",%" PRIu32 "\n", c + 1, r->used[c] - 1);
        elv_sim_file_put(&r->participation, text, (size_t)n);
    }
}

/* Files. */

static bool open_files(struct recorder *r)
{
    char folder[ELV_SIM_PATH_MAX] = "";
    if (!r->writes)
        return true;
    (void)elv_sim_run_folder(r->x, r->run, folder); /* it was made */
    if (!elv_sim_file_open(&r->rounds, folder, "rounds.csv") ||
        !elv_sim_file_open(&r->summary, folder, "summary.json"))
        return false;
    if (r->used != NULL && !elv_sim_file_open(&r->participation, folder, "participation.csv"))
        return false;
    if (r->x->asked->events != ELV_SIM_EVENTS_NONE &&
        !elv_sim_file_open(&r->events, folder, "events.jsonl"))
        return false;
    write_head(r);
    return true;
}

/* The summary last: it makes the run a finished one. */
static bool keep_files(struct recorder *r)
{
    return elv_sim_file_keep(&r->rounds) && elv_sim_file_keep(&r->events) &&
           elv_sim_file_keep(&r->participation) && elv_sim_file_keep(&r->summary);
}

static void drop_files(struct recorder *r)
{
    elv_sim_file_drop(&r->rounds);
    elv_sim_file_drop(&r->events);
    elv_sim_file_drop(&r->participation);
    elv_sim_file_drop(&r->summary);
}

/* The first file that something went wrong with; NULL: none. */
static const struct elv_sim_file *bad_file(const struct recorder *r)
{
    const struct elv_sim_file *const all[] = {&r->rounds, &r->events, &r->participation,
                                              &r->summary};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]->fault != 0)
            return all[i];
    return NULL;
}

static enum elv_err tell_bad_file(const struct recorder *r, char why[ELV_JOB_ERROR_MAX])
{
    const struct elv_sim_file *f = bad_file(r);
    const char *leaf = f != NULL ? strrchr(f->path, '/') : NULL;
    snprintf(why, ELV_JOB_ERROR_MAX, "%.40s: %.100s", leaf != NULL ? leaf + 1 : "its files",
             f != NULL ? strerror(f->fault) : "they cannot be written");
    return ELV_ERR_IO;
}

/* What is printed of a run is what its file says, so that it is the same when it is read later. */
static enum elv_err write_summary(struct recorder *r)
{
    char text[ELV_LAB_OUTCOME_MAX];
    struct elv_line l = elv_line_of(text, sizeof text);
    r->run->outcome.rounds_bytes = r->rounds.size;
    r->run->outcome.events_bytes = r->events.size;
    r->run->outcome.participation_bytes = r->participation.size;
    elv_lab_outcome_json(&l, &r->run->outcome);
    elv_sim_file_put(&r->summary, l.at, l.len);
    return elv_lab_outcome_read((struct elv_text){l.at, l.len}, &r->run->outcome) ? ELV_OK
                                                                                  : ELV_ERR_FORMAT;
}

/* Running. */

static elv_time_us sum_of(elv_time_us a, elv_time_us b)
{
    return a < ELV_NEVER - b ? a + b : ELV_NEVER;
}

/* The last moment at which the world is known to change for good. */
static elv_time_us last_change(const struct elv_lab_device *d)
{
    elv_time_us last = d->start_spread;
    for (uint32_t i = 0; i < d->n_regimes; i++) {
        const struct elv_lab_regime *g = &d->regimes[i];
        const elv_time_us at = g->until < ELV_NEVER ? g->until : g->from;
        last = at > last ? at : last;
    }
    return last;
}

/* When it is to be given up: never where there is a horizon, or a trace, which ends by itself. */
static elv_time_us patience_ends(const struct recorder *r)
{
    const struct elv_lab_setup *setup = &r->run->variant->setup;
    const struct elv_lab_world *w = &setup->world.world;
    const elv_time_us patience = PATIENCE * setup->job.deadline_us;
    const elv_time_us change = last_change(&w->device);
    if (w->horizon_s > 0 || w->trace != NULL)
        return ELV_NEVER;
    return sum_of(r->version_at > change ? r->version_at : change,
                  patience > PATIENCE_LEAST_US ? patience : PATIENCE_LEAST_US);
}

/* A slice ends where patience does, so that it is the same moment however long slices are. */
static enum elv_err run_slices(struct recorder *r, const struct elv_sim_engine *e)
{
    const struct elv_clock clock = elv_posix_clock();
    elv_time_us slice = SLICE_FIRST_US, until = 0;
    for (;;) {
        const elv_time_us from = clock.now(clock.self);
        const elv_time_us now = e->now(e->self), last = patience_ends(r);
        until = sum_of(now > until ? now : until, slice);
        until = until < last ? until : last;
        const enum elv_err err = e->run(e->self, until);
        if (err != ELV_ERR_BUSY)
            return err;
        if (atomic_load(r->watch->stop))
            return ELV_ERR_CANCELLED;
        if (bad_file(r) != NULL)
            return ELV_ERR_IO;
        r->stuck = e->now(e->self) >= patience_ends(r);
        if (r->stuck) {
            e->stop(e->self);
            return ELV_OK;
        }
        show(r->watch, &r->run->variant->setup, e->now(e->self));
        const elv_time_us took = clock.now(clock.self) - from;
        if (took < SLICE_US / 2 && slice < SLICE_MAX_US)
            slice *= 2;
        else if (took > SLICE_US * 2 && slice > 1)
            slice /= 2;
    }
}

static enum elv_lab_end end_of(const struct recorder *r)
{
    const struct elv_lab_setup *setup = &r->run->variant->setup;
    const struct elv_lab_summary *s = &r->run->outcome.summary;
    if (s->reached)
        return ELV_LAB_END_TARGET;
    if (setup->job.rounds > 0 && s->version >= setup->job.rounds)
        return ELV_LAB_END_ROUNDS;
    if (r->stuck)
        return ELV_LAB_END_STUCK;
    const double horizon = setup->world.world.horizon_s * 1e6;
    return horizon > 0 && (double)s->ended >= horizon - 1 ? ELV_LAB_END_HORIZON : ELV_LAB_END_IDLE;
}

static enum elv_err simulate(struct recorder *r, struct elv_lab_learner *learner,
                             char why[ELV_JOB_ERROR_MAX])
{
    const struct elv_lab_setup *setup = &r->run->variant->setup;
    const bool learns = setup->world.world.learning != ELV_LAB_NOTHING;
    const bool tells_events = r->used != NULL || r->x->asked->events == ELV_SIM_EVENTS_ALL;
    const struct elv_swarm_cfg cfg = {
        .job = &setup->job,
        .seed = r->run->outcome.seed,
        .world = &setup->world.world,
        .n_clients = r->n_clients,
        .learner = learns ? learner : NULL,
        .kernels = r->x->kernels,
        .sink = {.self = r,
                 .round = take_round,
                 .event = r->writes && tells_events ? take_event : NULL},
        .target_accuracy = setup->job.target_accuracy,
        .target_loss = setup->world.world.target_loss,
        .rounds = setup->job.rounds};
    struct elv_sim_engine engine;
    enum elv_err err = elv_sim_engine_make(&engine, &cfg, why);
    if (err != ELV_OK)
        return err;
    err = run_slices(r, &engine);
    if (err == ELV_OK) {
        engine.summary(engine.self, &r->run->outcome.summary);
        r->run->outcome.end = end_of(r);
    } else if (err == ELV_ERR_IO && bad_file(r) != NULL)
        tell_bad_file(r, why);
    else
        snprintf(why, ELV_JOB_ERROR_MAX, "training or evaluating fails: %s", elv_err_text(err));
    engine.free(engine.self);
    return err;
}

/* Writes down what happens; the run's outcome is complete when this returns ELV_OK. */
static enum elv_err record(struct recorder *r, struct elv_lab_learner *learner,
                           char why[ELV_JOB_ERROR_MAX])
{
    if (!open_files(r))
        return tell_bad_file(r, why);
    enum elv_err err = simulate(r, learner, why);
    if (err != ELV_OK)
        return err;
    write_participation(r);
    err = write_summary(r);
    return err == ELV_OK && keep_files(r) ? ELV_OK : tell_bad_file(r, why);
}

enum elv_err elv_sim_run_do(const struct elv_sim_experiment *x, struct elv_sim_run *run,
                            struct elv_sim_watch *watch, char why[ELV_JOB_ERROR_MAX])
{
    const struct elv_clock clock = elv_posix_clock();
    const elv_time_us from = clock.now(clock.self);
    struct elv_sim_learner learner;
    struct recorder r = {.x = x,
                         .run = run,
                         .watch = watch,
                         .writes = x->asked->out != NULL,
                         .n_clients = run->variant->setup.world.world.clients};
    enum elv_err err = elv_sim_learner_make(&learner, x, run, why);
    if (err != ELV_OK)
        return err;
    if (r.writes && r.n_clients <= PARTICIPATION_MAX)
        r.used = calloc(r.n_clients, sizeof *r.used);
    err = record(&r, &learner.learner, why);
    drop_files(&r);
    free(r.used);
    elv_sim_learner_free(&learner);
    run->finished = err == ELV_OK;
    run->wall_s = (double)(clock.now(clock.self) - from) / 1e6;
    return err;
}
