/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim_job.h"

#include <string.h>

#include "common/assert.h"
#include "common/rng.h"

struct pair {
    const char *key, *value;
};

struct variant {
    const char *name;
    bool stream;
    uint32_t quorum_max; /* 0: as ROUNDS has it */
    struct pair sync[8]; /* ends with key NULL */
};

/* Short memories and small numbers: what happens seldom must happen in a dozen versions. */
static const struct variant variants[] = {
    {"bsp", false, 0, {{"policy", "bsp"}}},
    {"asp", true, 0, {{"policy", "asp"}}},
    {"backup", false, 0, {{"policy", "backup"}, {"backup", "2"}}},
    {"ssp", true, 0, {{"policy", "ssp"}, {"threshold", "1"}}},
    {"dbw", false, 0, {{"policy", "dbw"}}},
    {"ebsp", true, 0, {{"policy", "ebsp"}, {"lookahead", "5"}}},
    {"backup late", false, 0, {{"policy", "backup"}, {"k", "4"}, {"late", "finish"}}},
    {"dssp", true, 0, {{"policy", "dssp"}, {"low", "1"}, {"high", "4"}}},
    {"overselect", false, 3, {{"policy", "overselect"}, {"goal", "4"}, {"factor", "1.5"}}},
    {"psp", true, 0, {{"policy", "psp"}, {"beta", "2"}, {"threshold", "1"}}},
    {"dbw psi blind",
     false,
     0,
     {{"policy", "dbw"}, {"variant", "psi"}, {"rule", "blind"}, {"memory", "2"}}},
    {"fedasync", true, 0, {{"policy", "fedasync"}}},
    {"dbw pull adasync",
     false,
     0,
     {{"policy", "dbw"}, {"variant", "pull"}, {"rule", "adasync"}, {"k0", "2"}}},
    {"fedbuff", true, 0, {{"policy", "fedbuff"}, {"buffer", "4"}}},
    {"dbw psw",
     false,
     0,
     {{"policy", "dbw"}, {"variant", "psw"}, {"depth", "3"}, {"slack", "0"}, {"memory", "0"}}},
    {"ebsp last",
     true,
     0,
     {{"policy", "ebsp"},
      {"predictor", "last"},
      {"r_min", "1"},
      {"lookahead", "3"},
      {"slack", "0"},
      {"tiers", "2"}}},
    {"overselect few",
     false,
     2,
     {{"policy", "overselect"},
      {"goal", "6"},
      {"factor", "1.3"},
      {"minimum", "0.1"},
      {"selection_timeout", "3s"}}},
    {"fedbuff few",
     true,
     0,
     {{"policy", "fedbuff"},
      {"buffer", "3"},
      {"concurrency", "3"},
      {"max_staleness", "3"},
      {"normalise", "weights"},
      {"staleness", "hinge"}}},
    {"ssp lockstep",
     true,
     0,
     {{"policy", "ssp"}, {"threshold", "0"}, {"staleness", "exponential"}}},
    {"fedasync few",
     true,
     0,
     {{"policy", "fedasync"},
      {"concurrency", "3"},
      {"max_staleness", "5"},
      {"alpha", "0.9"},
      {"staleness", "hinge"},
      {"staleness_b", "2"}}},
    {"dssp early",
     true,
     0,
     {{"policy", "dssp"}, {"low", "0"}, {"high", "3"}, {"strict", "off"}, {"early", "on"}}},
    {"psp pbsp",
     true,
     0,
     {{"policy", "psp"},
      {"barrier", "pbsp"},
      {"beta", "0.3"},
      {"resample", "off"},
      {"staleness", "polynomial"}}},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static const char *const quorums[] = {"1", "2", "3"};
static const char *const least[] = {"3", "4"};
static const char *const deadlines[] = {"12s", "16s", "20s"};
static const char *const paces[] = {"0s", "1s", "3s", "3s"};
static const char *const few_rounds[] = {"10", "12", "14"};
static const char *const many_rounds[] = {"18", "24"};
static const char *const codecs[] = {"f32", "q8"};
static const char *const lossy[] = {"q8",
                                    "q4",
                                    "sign",
                                    "ternary 0.05",
                                    "ternary 0.01",
                                    "topk 0.1",
                                    "rotate 2",
                                    "rotate 3 unbiased",
                                    "q8 stochastic",
                                    "q4 stochastic",
                                    "f16",
                                    "topk 0.02, q8"};
static const char *const steps[] = {"q4", "f16", "ternary 0.2", "topk 0.3", "rotate 4", "sign"};
static const char *const feedbacks[] = {"auto", "auto", "f16", "none"};
static const char *const ages[] = {"0", "1", "1", "3"};
static const char *const rules[] = {"fedavg", "fedavg", "fedavgm", "fednova"};
static const char *const rates[] = {"1", "0.5"};
static const char *const weights[] = {"samples", "samples", "seen", "uniform"};
static const char *const caps[] = {"100000", "30"};
static const char *const clips[] = {"none", "none", "0.5"};
static const char *const places[] = {"server", "clients", "both", "both"};
static const char *const paused[] = {"1", "2", "never"};
static const char *const holdouts[] = {"0", "0.2"};
static const char *const optimizers[] = {"sgd", "sgd", "sgd momentum 0.9"};
static const char *const pulls[] = {"0", "0", "0.1"};
static const char *const decays[] = {"1", "0.9"};
static const char *const counts[] = {"0", "0", "5"};
static const char *const kept[] = {"3", "2", "5"};

uint32_t sim_job_variants(void) { return VARIANTS; }

struct draft {
    struct elv_rng rng;
    struct fleet_key *keys;
    uint32_t n;
};

static void put(struct draft *d, const char *section, const char *key, const char *value)
{
    ELV_ASSERT(d->n + 1 < SIM_JOB_KEYS);
    d->keys[d->n++] = (struct fleet_key){section, key, value};
}

static const char *any(struct draft *d, const char *const *of, uint32_t n)
{
    return of[elv_rng_below(&d->rng, n)];
}
#define ANY(d, of) any((d), (of), sizeof(of) / sizeof(of)[0])

static void put_sync(struct draft *d, const struct variant *v, uint32_t clients)
{
    uint32_t most = v->quorum_max > 0 ? v->quorum_max : sizeof quorums / sizeof quorums[0];
    if (most > clients / 2)
        most = clients / 2;
    put(d, "sync", "quorum", any(d, quorums, most));
    for (const struct pair *p = v->sync; p->key != NULL; p++)
        put(d, "sync", p->key, p->value);
    put(d, "sync", "deadline", ANY(d, deadlines));
    put(d, "sync", "publish_interval", ANY(d, paces));
    const char *many = ANY(d, many_rounds), *few = ANY(d, few_rounds);
    put(d, "job", "rounds", v->stream ? many : few);
}

static void put_rule(struct draft *d)
{
    const char *rule = ANY(d, rules);
    put(d, "aggregate", "rule", rule);
    put(d, "aggregate", "server_learning_rate", ANY(d, rates));
    put(d, "aggregate", "weight", ANY(d, weights));
    put(d, "aggregate", "max_weight", ANY(d, caps));
}

/* For codecs that send a share of the coordinates. */
static void put_sparse(struct draft *d, bool feeds_back)
{
    if (elv_rng_below(&d->rng, 2) == 0)
        put(d, "transfer", "warm_up", "4");
    if (feeds_back && elv_rng_below(&d->rng, 2) == 0)
        put(d, "transfer", "momentum_correction", "0.5");
}

/* By dice of its own, so that what else a seed draws stays as it was. */
static void put_codecs(struct draft *d, uint64_t seed, const char *up, const char *down)
{
    const struct elv_rng before = d->rng;
    d->rng = elv_rng_of((struct elv_rng_key){.seed = seed, .round = 56, .purpose = ELV_RNG_TEST});
    const bool is_lossy = elv_rng_below(&d->rng, 3) > 0;
    const char *feedback = ANY(d, feedbacks);
    if (is_lossy)
        up = ANY(d, lossy);
    if (is_lossy && elv_rng_below(&d->rng, 2) == 0)
        down = ANY(d, steps);
    put(d, "transfer", "up", up);
    put(d, "transfer", "down", down);
    put(d, "transfer", "feedback", feedback);
    put(d, "transfer", "feedback_age", ANY(d, ages));
    if (strncmp(up, "t", 1) == 0)
        put_sparse(d, strcmp(feedback, "none") != 0);
    d->rng = before;
}

static void put_transfer(struct draft *d, uint64_t seed)
{
    const char *up = ANY(d, codecs), *down = ANY(d, codecs);
    put_codecs(d, seed, up, down);
    put(d, "transfer", "deflate", elv_rng_below(&d->rng, 3) == 0 ? "on" : "off");
    put(d, "transfer", "clip", ANY(d, clips));
}

static void put_clients(struct draft *d)
{
    put(d, "client", "optimizer", ANY(d, optimizers));
    put(d, "client", "proximal", ANY(d, pulls));
    put(d, "client", "learning_rate_decay", ANY(d, decays));
    put(d, "select", "count", ANY(d, counts));
    put(d, "select", "min_clients", ANY(d, least));
}

static void put_evaluation(struct draft *d)
{
    const bool aims = elv_rng_below(&d->rng, 6) == 0;
    put(d, "eval", "on", ANY(d, places));
    put(d, "eval", "every", aims ? "1" : ANY(d, paused));
    put(d, "data", "holdout", ANY(d, holdouts));
    if (aims)
        put(d, "job", "target_accuracy", "0.95");
    put(d, "state", "keep", ANY(d, kept));
}

static const char *make(uint64_t seed, const struct variant *v, uint32_t clients,
                        struct fleet_key keys[SIM_JOB_KEYS])
{
    struct draft d = {
        .rng = elv_rng_of((struct elv_rng_key){.seed = seed, .round = 55, .purpose = ELV_RNG_TEST}),
        .keys = keys};
    put_sync(&d, v, clients);
    put_rule(&d);
    put_transfer(&d, seed);
    put_clients(&d);
    put_evaluation(&d);
    keys[d.n] = (struct fleet_key){NULL, NULL, NULL};
    return v->name;
}

const char *sim_job_of(uint64_t seed, uint32_t clients, struct fleet_key keys[SIM_JOB_KEYS])
{
    return make(seed, &variants[seed % VARIANTS], clients, keys);
}

/* The same draws give the same in all that a job may not change. */
const char *sim_job_other(uint64_t seed, uint32_t clients, struct fleet_key keys[SIM_JOB_KEYS])
{
    const uint64_t other = seed % VARIANTS + 1 + seed / VARIANTS % (VARIANTS - 1);
    return make(seed, &variants[other % VARIANTS], clients, keys);
}
