/* SPDX-License-Identifier: Apache-2.0 */
/* What holds in every world: random fleets, devices, links, comings and goings, for every policy.
 *
 * A failure names the policy and the seed; `test_swarm_random POLICY SEED` runs that one alone. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/swarm_case.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { WORLDS = 25 };
#else
enum { WORLDS = 150 };
#endif
enum { CLIENTS_MAX = 60 };
#define SECOND ((elv_time_us)1000000)

/* What a policy may be told, "KEY VALUE KEY VALUE"; one of them is drawn. */
static const struct {
    const char *policy;
    const char *told[5];
} tunings[] = {
    {"bsp", {""}},
    {"backup", {"k 1", "backup 1", "backup 3", "k 1 late finish", "backup 2 late finish"}},
    {"ebsp", {"", "lookahead 4 r_min 1", "predictor last tiers 0", "tiers 3", "slack 3"}},
    {"overselect", {"goal 1", "goal 1 factor 3", "goal 1 selection_timeout 0s"}},
    {"dbw", {"", "variant psw", "variant psi rule blind", "variant pull", "rule adasync"}},
    {"asp", {"", "staleness polynomial", "staleness hinge staleness_b 2"}},
    {"ssp", {"", "threshold 0", "threshold 1 staleness exponential"}},
    {"dssp", {"", "low 0 high 2", "strict off", "early on", "low 1 high 3 strict off"}},
    {"psp", {"", "beta 0.5", "beta 1 barrier pbsp", "beta 0", "resample off threshold 1"}},
    {"fedasync", {"", "alpha 1", "concurrency 3", "max_staleness 2 staleness constant"}},
    {"fedbuff", {"", "buffer 1", "buffer 3 concurrency 4", "normalise weights"}},
};

struct watch {
    struct swarm_case c;
    const struct elv_sync *sync;
    bool at_work[CLIENTS_MAX + 1];
    uint64_t started, ended, n_under_way;
    uint32_t n_rounds, n_abandoned;
    elv_time_us closed; /* of the round before */
    uint64_t used, late, discarded, dropped;
    double waiting_us, working_us;
    char wrong[320]; /* "": nothing so far */
};

static void complain(struct watch *w, const char *what, uint64_t a, uint64_t b)
{
    if (w->wrong[0] == '\0')
        snprintf(w->wrong, sizeof w->wrong, "%s: %llu, %llu", what, (unsigned long long)a,
                 (unsigned long long)b);
}

static void must(struct watch *w, bool holds, const char *what, uint64_t a, uint64_t b)
{
    if (!holds)
        complain(w, what, a, b);
}

static void take_round(void *self, const struct elv_lab_round *r)
{
    struct watch *w = self;
    const uint32_t all = r->n_used + r->n_late + r->n_discarded + r->n_dropped;
    w->n_rounds++;
    must(w, r->seq == w->n_rounds, "rounds are numbered", r->seq, w->n_rounds);
    w->n_abandoned += r->abandoned;
    must(w, r->version == w->n_rounds - w->n_abandoned, "each makes a version or none", r->version,
         w->n_rounds);
    must(w, r->opened >= w->closed, "one after the other", (uint64_t)r->opened,
         (uint64_t)w->closed);
    must(w, r->closed >= r->opened && r->closed <= r->deadline, "within its deadline",
         (uint64_t)r->closed, (uint64_t)r->deadline);
    must(w, r->abandoned || r->n_used >= w->c.job.quorum, "with a quorum", r->n_used,
         w->c.job.quorum);
    if (w->sync->flow == ELV_SYNC_ROUNDS)
        must(w, all == r->n_asked, "asked are used, late, discarded or dropped", all, r->n_asked);
    w->closed = r->closed;
    w->used += r->n_used;
    w->late += r->n_late;
    w->discarded += r->n_discarded;
    w->dropped += r->n_dropped;
    w->waiting_us += r->waiting_us;
    w->working_us += r->working_us;
}

static void take_event(void *self, const struct elv_lab_event *e)
{
    struct watch *w = self;
    bool *at_work = &w->at_work[e->client];
    switch (e->kind) {
    case ELV_LAB_STARTED:
        must(w, !*at_work, "one piece of work at a time", e->client, (uint64_t)e->at);
        *at_work = true;
        w->started++;
        break;
    case ELV_LAB_USED:
    case ELV_LAB_LATE:
    case ELV_LAB_DISCARDED:
    case ELV_LAB_DROPPED:
    case ELV_LAB_INTERRUPTED:
        must(w, *at_work, "what ends has started", e->client, (uint64_t)e->at);
        *at_work = false;
        w->ended++;
        break;
    case ELV_LAB_JOINED:
    case ELV_LAB_LEFT:
    case ELV_LAB_HELD:
    case ELV_LAB_LAPSED:
        break;
    }
}

/* Drawing a world. */

static bool chance(struct elv_rng *r, double p) { return (double)elv_rng_unit(r) < p; }

static double between(struct elv_rng *r, double low, double high)
{
    return low + (high - low) * (double)elv_rng_unit(r);
}

static struct elv_lab_draw any_draw(struct elv_rng *r, double scale)
{
    struct elv_lab_draw d = {.shape = (enum elv_lab_shape)elv_rng_below(r, 6)};
    d.a = scale * between(r, 0.05, 1);
    d.b = d.shape == ELV_LAB_LOGNORMAL ? between(r, 0, 1.5) : d.a + scale * between(r, 0, 1);
    if (d.shape != ELV_LAB_CLASSES)
        return d;
    d.n_classes = 2;
    d.share[0] = 0.75;
    d.share[1] = 0.25;
    d.value[0] = d.a;
    d.value[1] = d.b * 4;
    return d;
}

static void draw_device(struct elv_rng *r, struct elv_lab_device *d)
{
    d->compute = any_draw(r, 2);
    d->per = (enum elv_lab_per)elv_rng_below(r, 2);
    if (chance(r, 0.5))
        d->speed = any_draw(r, 2);
    if (chance(r, 0.3))
        d->jitter = between(r, 0, 1);
    if (chance(r, 0.4)) {
        d->straggler_share = between(r, 0, 0.5);
        d->straggler_factor = between(r, 1, 30);
        d->straggler_fixed = chance(r, 0.5);
    }
    for (d->n_regimes = 0; d->n_regimes < 3 && chance(r, 0.3); d->n_regimes++) {
        const elv_time_us from = (elv_time_us)between(r, 0, 300e6);
        d->regimes[d->n_regimes] =
            (struct elv_lab_regime){.from = from,
                                    .until = from + 1 + (elv_time_us)between(r, 0, 200e6),
                                    .share = between(r, 0, 1),
                                    .factor = between(r, 0.1, 20)};
    }
    if (chance(r, 0.3))
        d->start_spread = 1 + (elv_time_us)between(r, 0, 100e6);
    d->cohort_start = chance(r, 0.3);
}

static void draw_world(struct elv_rng *r, struct elv_lab_world *w)
{
    *w = (struct elv_lab_world){.horizon_s = between(r, 50, 1000)};
    draw_device(r, &w->device);
    if (chance(r, 0.5))
        w->link.latency = any_draw(r, 0.3);
    if (chance(r, 0.3))
        w->link.up = any_draw(r, 100);
    if (chance(r, 0.3))
        w->link.down = any_draw(r, 100);
    if (chance(r, 0.3))
        w->link.loss = between(r, 0, 0.9);
    if (chance(r, 0.5))
        w->availability.dropout = between(r, 0, 0.6);
    if (chance(r, 0.3))
        w->availability.stay = any_draw(r, 200);
    if (chance(r, 0.3)) {
        w->availability.on = any_draw(r, 60);
        w->availability.off = any_draw(r, 30);
    }
    if (chance(r, 0.3)) {
        w->availability.churn_rate = between(r, 0.01, 3);
        w->device.start_spread = 0;
    }
}

static void set(struct watch *w, const char *section, const char *key, const char *value)
{
    if (elv_job_set(&w->c.job, section, key, value, ELV_JOB_OVERRIDE, w->c.why) != ELV_OK)
        complain(w, w->c.why, 0, 0);
}

static void set_number(struct watch *w, const char *section, const char *key, const char *unit,
                       uint32_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%u%s", (unsigned)number, unit);
    set(w, section, key, text);
}

static void tune(struct watch *w, struct elv_rng *r)
{
    char text[100], *rest = text;
    size_t row = 0;
    uint32_t n = 0;
    while (strcmp(tunings[row].policy, w->sync->name) != 0)
        row++;
    while (n < 5 && tunings[row].told[n] != NULL)
        n++;
    strcpy(text, tunings[row].told[elv_rng_below(r, n)]);
    for (char *key; (key = strtok_r(rest, " ", &rest)) != NULL;)
        set(w, "sync", key, strtok_r(rest, " ", &rest));
}

/* A quorum above one only where no parameter has to be as great. */
static void draw_job(struct watch *w, struct elv_rng *r, uint32_t n)
{
    set(w, "sync", "policy", w->sync->name);
    tune(w, r);
    const bool takes_any = w->c.job.sync_params.n == 0 && strcmp(w->sync->name, "fedbuff") != 0;
    if (takes_any && chance(r, 0.4))
        set_number(w, "sync", "quorum", "", 1 + elv_rng_below(r, n));
    set_number(w, "sync", "deadline", "ms", 500 + elv_rng_below(r, 30000));
    set_number(w, "sync", "publish_interval", "ms", elv_rng_below(r, 2) * elv_rng_below(r, 5000));
    if (chance(r, 0.3) && w->c.job.quorum == 1)
        set_number(w, "select", "count", "", 1 + elv_rng_below(r, n));
    if (chance(r, 0.3))
        set(w, "transfer", "down", "q8");
    set_number(w, "client", "local_steps", "", 1 + elv_rng_below(r, 4));
    if (w->c.job.min_clients == 0)
        w->c.job.min_clients = w->c.job.quorum;
}

static void make(struct watch *w, const struct elv_sync *sync, uint64_t seed)
{
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_DEVICE});
    const uint32_t n = 1 + elv_rng_below(&r, CLIENTS_MAX);
    memset(w, 0, sizeof *w);
    w->sync = sync;
    swarm_case_init(&w->c, NULL, n);
    draw_job(w, &r, n);
    draw_world(&r, &w->c.world);
    if (chance(&r, 0.8))
        swarm_case_learns(&w->c, 1 + elv_rng_below(&r, 5));
    w->c.cfg.seed = seed;
    w->c.cfg.rounds = chance(&r, 0.5) ? 1 + elv_rng_below(&r, 60) : 0;
    w->c.cfg.sink = (struct elv_lab_sink){w, take_round, take_event};
    if (chance(&r, 0.2))
        w->c.cfg.target_accuracy = 2;
}

/* To its end, in slices of any length. */
static void run(struct watch *w, uint64_t seed, bool sliced, struct elv_lab_summary *sum)
{
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_SELECT});
    elv_time_us until = ELV_NEVER;
    enum elv_err err = elv_swarm_new(&w->c.s, &w->c.cfg, w->c.why);
    if (err != ELV_OK) {
        complain(w, w->c.why, 0, 0);
        return;
    }
    do {
        if (sliced)
            until = elv_swarm_now(w->c.s) + (elv_time_us)between(&r, 0, 100e6);
        err = elv_swarm_run(w->c.s, until);
    } while (err == ELV_ERR_BUSY);
    must(w, err == ELV_OK, "it ends", (uint64_t)err, 0);
    elv_swarm_summary(w->c.s, sum);
}

static void check_end(struct watch *w, const struct elv_lab_summary *s)
{
    const double most = (double)w->c.cfg.n_clients * (double)s->ended;
    uint64_t under_way = 0, stale = 0;
    for (uint32_t i = 0; i <= CLIENTS_MAX; i++)
        under_way += w->at_work[i];
    for (uint32_t i = 0; i < ELV_LAB_STALE_BINS; i++)
        stale += s->stale[i];
    must(w, s->worst_overrun == 0, "no round is too long", (uint64_t)s->worst_overrun, 0);
    must(w, s->started == w->started, "all starts are counted", s->started, w->started);
    must(w,
         s->started == s->used + s->late + s->discarded + s->dropped + s->interrupted + under_way,
         "each piece of work comes to one end", s->started, under_way);
    must(w, s->waiting_us + s->working_us <= most + 1, "nobody does two things at a time",
         (uint64_t)(s->waiting_us + s->working_us), (uint64_t)most);
    must(w, w->waiting_us <= s->waiting_us + 1 && w->working_us <= s->working_us * (1 + 1e-9) + 1,
         "rounds add up to no more than the run", (uint64_t)w->working_us, (uint64_t)s->working_us);
    must(w, s->version == s->rounds - s->abandoned, "a version for each round", s->version,
         s->rounds);
    must(w, s->rounds == w->n_rounds && s->abandoned == w->n_abandoned, "all rounds are told",
         s->rounds, w->n_rounds);
    must(w, stale == s->used, "each update is of some staleness", stale, s->used);
    must(w, w->used <= s->used && w->discarded <= s->discarded, "rounds use no more than the run",
         w->used, s->used);
    if (w->sync->flow == ELV_SYNC_STREAM)
        must(w, w->late <= s->late && w->dropped <= s->dropped, "nor lose more", w->late, s->late);
    must(w, s->fairness >= 0 && s->fairness <= 1 + 1e-9, "fairness is a share",
         (uint64_t)(s->fairness * 1e6), 0);
    for (uint32_t i = 0; i < w->c.learner.n_params; i++)
        must(w, isfinite(elv_swarm_model(w->c.s)[i]), "the model is finite", i, 0);
}

static bool same(const struct elv_lab_summary *a, const struct elv_lab_summary *b)
{
    return a->hash == b->hash && a->ended == b->ended && a->used == b->used &&
           a->version == b->version && a->bytes_up == b->bytes_up &&
           a->waiting_us == b->waiting_us && a->working_us == b->working_us &&
           memcmp(a->model, b->model, sizeof a->model) == 0;
}

static struct watch first, again;

/* NULL: all holds. */
static const char *try(const struct elv_sync *sync, uint64_t seed)
{
    struct elv_lab_summary a = {0}, b = {0};
    make(&first, sync, seed);
    run(&first, seed, false, &a);
    if (first.wrong[0] == '\0')
        check_end(&first, &a);
    swarm_case_free(&first.c);
    if (first.wrong[0] != '\0')
        return first.wrong;
    make(&again, sync, seed);
    run(&again, seed, true, &b);
    if (again.wrong[0] == '\0')
        must(&again, same(&a, &b), "the same again, in slices", a.hash, b.hash);
    swarm_case_free(&again.c);
    return again.wrong[0] != '\0' ? again.wrong : NULL;
}

static void worlds(const char *policy)
{
    const struct elv_sync *sync = elv_sync_by_name(policy);
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        const char *wrong = try(sync, seed);
        if (wrong != NULL)
            fail_msg("%s, seed %llu: %s", policy, (unsigned long long)seed, wrong);
    }
}

static void all_policies_are_tuned(void **state)
{
    (void)state;
    assert_int_equal(sizeof tunings / sizeof tunings[0], elv_sync_count());
    for (size_t i = 0; i < elv_sync_count(); i++)
        assert_non_null(elv_sync_by_name(tunings[i].policy));
}

static void rounds_hold_in_any_world(void **state)
{
    (void)state;
    for (size_t i = 0; i < elv_sync_count(); i++)
        if (elv_sync_at(i)->flow == ELV_SYNC_ROUNDS)
            worlds(elv_sync_at(i)->name);
}

static void streams_hold_in_any_world(void **state)
{
    (void)state;
    for (size_t i = 0; i < elv_sync_count(); i++)
        if (elv_sync_at(i)->flow == ELV_SYNC_STREAM)
            worlds(elv_sync_at(i)->name);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_policies_are_tuned),
        cmocka_unit_test(rounds_hold_in_any_world),
        cmocka_unit_test(streams_hold_in_any_world),
    };
    if (argc != 3)
        return cmocka_run_group_tests(tests, NULL, NULL);
    const struct elv_sync *sync = elv_sync_by_name(argv[1]);
    const char *wrong = sync != NULL ? try(sync, strtoull(argv[2], NULL, 10)) : "no such policy";
    printf("%s\n", wrong != NULL ? wrong : "all holds");
    return wrong != NULL;
}
