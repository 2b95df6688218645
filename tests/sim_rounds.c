/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim_rounds.c - whole runs on a bad network with crashes, replayed by seed.
 *
 *     sim_rounds FIRST COUNT [-v] [--only FAULTS] [--plant A,B]
 *
 * Six to nine clients and up to two vandals train under a synchronisation policy, each in its turn,
 * while links lose, repeat and reorder packets, clients and server die between any two actions,
 * some with their whole machine, leave and come back, are cut off or revoked, and the disk fails
 * (sim_case.h). Every seed runs twice and must give the same events.
 *
 * For a seed that fails, the faults that it takes are looked for and printed with a line that
 * replays it. --only replays with just those faults, -v prints all events, --plant pretends that
 * two faults together break something, to try the search. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim_explain.h"
#include "tests/sim_shrink.h"

enum { EXPLAINED_MAX = 3, TRIES = 400 };

struct options {
    uint64_t from, n;
    bool verbose, some;
    bool on[SIM_CASE_FAULTS_MAX];
    uint32_t planted[2];
};

static bool read_pair(const char *text, uint32_t pair[2])
{
    char *end = NULL;
    pair[0] = (uint32_t)strtoul(text, &end, 10);
    if (end == text || *end != ',')
        return false;
    text = end + 1;
    pair[1] = (uint32_t)strtoul(text, &end, 10);
    return end != text && *end == '\0';
}

static bool read_options(int argc, char **argv, struct options *o)
{
    if (argc < 3)
        return false;
    o->from = strtoull(argv[1], NULL, 10);
    o->n = strtoull(argv[2], NULL, 10);
    for (int i = 3; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "-v") == 0) {
            o->verbose = true;
            continue;
        }
        if (strcmp(argv[i], "--only") == 0) {
            o->some = true;
            if (!shrink_read(value, o->on, SIM_CASE_FAULTS_MAX))
                return false;
        } else if (strcmp(argv[i], "--plant") != 0 || !read_pair(value, o->planted)) {
            return false;
        }
        i++;
    }
    return true;
}

static void line(void *ctx, const char *text)
{
    (void)ctx;
    puts(text);
}

/* All its events, or twice without. */
static bool check(const struct options *o, struct sim_case_cfg *cfg, struct sim_case_end *end)
{
    if (!o->verbose)
        return sim_case_same(cfg, end);
    cfg->line = line;
    sim_case_run(cfg, end);
    cfg->line = NULL;
    return end->why[0] == '\0';
}

static void report(const struct sim_case_sums *t, uint64_t failed)
{
    printf("%" PRIu64 " seeds, %" PRIu64 " failed\n", t->seeds, failed);
    printf("%" PRIu64 " events, %" PRIu64 " spins, %" PRIu64 " faults, %" PRIu64
           " crashes, %" PRIu64 " failed transactions\n",
           t->events, t->spins, t->faults, t->crashes, t->store_failures);
    printf("%" PRIu64 " versions from %" PRIu64 " updates; %" PRIu64 " refused, %" PRIu64
           " late, %" PRIu64 " lapsed, %" PRIu64 " declined, %" PRIu64 " failed; %" PRIu64
           " rounds abandoned, %" PRIu64 " logs lost; the last versions were evaluated %" PRIu64
           " times\n",
           t->versions, t->updates, t->refused, t->late, t->lapsed, t->declined, t->failed,
           t->abandoned, t->log_losses, t->evaluations);
    printf("after restarts clients read back %" PRIu64 " versions and %" PRIu64
           " chunks, and took up %" PRIu64 " updates\n",
           t->restored, t->replayed, t->resumed);
    printf("%.0f s of virtual time; %.3f s without a version once all was healed, %.3f s kept from "
           "work, at worst\n",
           (double)t->virtual_us / 1e6, (double)t->worst_gap_us / 1e6,
           (double)t->worst_wait_us / 1e6);
}

int main(int argc, char **argv)
{
    static struct options o;
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "usage: %s FIRST COUNT [-v] [--only FAULTS] [--plant A,B]\n", argv[0]);
        return 2;
    }
    struct sim_case_sums sums = {0};
    uint64_t failed = 0;
    for (uint64_t seed = o.from; seed - o.from < o.n; seed++) {
        struct sim_case_end end;
        struct sim_case_cfg cfg = {.seed = seed,
                                   .on = o.some ? o.on : NULL,
                                   .n_on = SIM_CASE_FAULTS_MAX,
                                   .planted = {o.planted[0], o.planted[1]}};
        const bool fine = check(&o, &cfg, &end);
        sim_case_add(&sums, &end.sums);
        failed += !fine;
        if (!fine)
            sim_explain(&cfg, &end, o.some || failed > EXPLAINED_MAX ? 0 : TRIES, argv[0]);
    }
    report(&sums, failed);
    return failed == 0 ? 0 : 1;
}
