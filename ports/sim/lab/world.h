/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/world.h - the world an experiment happens in: devices, links, who is there when.
 *
 * Values only, read from a world file by lab/world_file.h or filled in by a test. Zero everywhere
 * is a world without cost: work takes no time, everybody is always there, nothing is lost. One seed
 * decides everything: a draw's stream is named by (seed, client, piece of work, purpose), never by
 * the order of events. */
#ifndef ELV_PORTS_SIM_LAB_WORLD_H
#define ELV_PORTS_SIM_LAB_WORLD_H

#include "ports/sim/draw.h"
#include "ports/sim/lab/trace.h"
#include "ports/sim/link.h"

enum elv_lab_shape {
    ELV_LAB_CONSTANT,    /* a */
    ELV_LAB_UNIFORM,     /* a .. b */
    ELV_LAB_EXPONENTIAL, /* a + b * Exp(1): shifted by a */
    ELV_LAB_LOGNORMAL,   /* median a, sigma b */
    ELV_LAB_HALF_NORMAL, /* a + b * |N(0, 1)| */
    ELV_LAB_CLASSES,     /* value[i] with probability share[i] */
};

#define ELV_LAB_CLASSES_MAX 8u

/* A random number of whatever unit its user says: seconds, bytes per second, or a factor. */
struct elv_lab_draw {
    enum elv_lab_shape shape;
    double a, b;
    double value[ELV_LAB_CLASSES_MAX], share[ELV_LAB_CLASSES_MAX]; /* CLASSES; shares sum to 1 */
    uint32_t n_classes;
};

/* What the compute time of one piece of work grows with. */
enum elv_lab_per {
    ELV_LAB_PER_TASK,   /* it is the whole piece's */
    ELV_LAB_PER_STEP,   /* one local step's */
    ELV_LAB_PER_SAMPLE, /* one sample's, so it grows with batch and steps */
};

#define ELV_LAB_REGIMES_MAX 8u
struct elv_lab_regime { /* from `from` on until `until`, a share of the devices is slower */
    elv_time_us from, until;
    double share;  /* the devices with the lowest numbers, of all registered */
    double factor; /* on their compute time */
};

struct elv_lab_device {
    struct elv_lab_draw speed;   /* factor on a device's compute times, drawn once for each;
                                    shape CONSTANT with a == 0: 1 */
    struct elv_lab_draw compute; /* seconds, drawn for each piece of work */
    enum elv_lab_per per;
    double jitter;          /* each piece's time is multiplied by max(0.05, 1 + jitter * N(0, 1)) */
    double straggler_share; /* so many of the pieces of work take ... */
    double straggler_factor; /* ... so many times as long */
    bool straggler_fixed;    /* it is always the same devices: a share of the registered */
    struct elv_lab_regime regimes[ELV_LAB_REGIMES_MAX];
    uint32_t n_regimes;
    elv_time_us start_spread; /* devices come one after the other, evenly in [0, this) */
    bool cohort_start;        /* each at a random moment of it instead */
};

struct elv_lab_link {
    struct elv_lab_draw latency;  /* seconds one way, drawn for each message */
    struct elv_lab_draw up, down; /* bytes per second, drawn once for each device; 0: no limit */
    double loss;                  /* of packets, 0 to below 1: each is sent until it arrives */
    double duplicate, reorder;    /* detail = messages only */
    /* One that is known, instead of all of the above; NULL: none. */
    const struct elv_sim_profile *profile;
};

struct elv_lab_availability {
    double dropout;           /* probability that a piece of work is never delivered */
    double churn_rate;        /* devices that come for good per second, Poisson; 0: all are there */
    struct elv_lab_draw stay; /* seconds until one goes for good; all zero: for ever */
    struct elv_lab_draw on,
        off; /* seconds it is there, and away, in turn; all zero: always there */
};

/* Only where every message is simulated. Mean times between events, 0: never. */
struct elv_lab_faults {
    elv_time_us server_crash, client_crash, partition, disk_error;
    elv_time_us down, lasts; /* mean length of an outage, of a partition or bad spell */
};

enum elv_lab_detail {
    ELV_LAB_TIMING,  /* the policies, rules and training are the real ones; messages are times */
    ELV_LAB_MESSAGES /* the server and client nodes themselves exchange every message */
};

/* What the clients learn. */
enum elv_lab_learning {
    ELV_LAB_NETWORK,   /* the job's network on the job's data */
    ELV_LAB_QUADRATIC, /* model Q */
    ELV_LAB_LOGISTIC,  /* model L */
    ELV_LAB_NOTHING,   /* time only */
};

struct elv_lab_world {
    enum elv_lab_detail detail;
    enum elv_lab_learning learning;
    uint32_t clients;    /* registered; 0: not said */
    double horizon_s;    /* virtual time after which a run ends; 0: no limit */
    double noise;        /* Q: sigma of a gradient with a batch of 1, as a total over coordinates */
    double loss_noise;   /* Q: relative noise of reported losses */
    double target_loss;  /* Q, L: the run's target; 0: none */
    double spread;       /* Q: how far apart the clients' optima are; L: Dirichlet's alpha */
    uint32_t dimensions; /* Q, L; 0: 40 and 20 */
    uint32_t samples;    /* L: per client; NOTHING, Q: what each claims; 0: 1 */
    double more_share;   /* Q: so many of the clients, those with the lowest numbers, have ... */
    double more_factor;  /* ... so many times as many samples; 0: none have */
    struct elv_lab_device device;
    struct elv_lab_link link;
    struct elv_lab_availability availability;
    struct elv_lab_faults faults;
    const struct elv_lab_trace
        *trace; /* borrowed; NULL: none. Replaces device, up, down, on, off */
};

/* One draw; never negative. */
double elv_lab_draw(const struct elv_lab_draw *d, struct elv_rng *r);
bool elv_lab_draw_is_set(const struct elv_lab_draw *d); /* it may be above zero */

/* What is drawn once for each device. */
struct elv_lab_facts {
    float speed;    /* factor on its compute times */
    float up, down; /* bytes per second; 0: no limit */
    bool straggles; /* with straggler_fixed: one of those that always do */
};

/* Fills `facts` [n] for the devices 1 to n. Exactly straggler_share of them, rounded, straggle. */
void elv_lab_facts(const struct elv_lab_world *w, uint64_t seed, struct elv_lab_facts *facts,
                   uint32_t n);

/* One piece of work of one client. */
struct elv_lab_piece {
    uint32_t client, piece; /* numbers, from 1: with the seed they name what is drawn */
    uint32_t n_clients;     /* registered */
    uint32_t steps, seen;   /* what it takes */
    elv_time_us at;         /* when its computing starts, for regimes and traces */
    struct elv_lab_facts facts;
};

/* How long computing takes; 1 us or more. */
elv_time_us elv_lab_compute(const struct elv_lab_world *w, uint64_t seed,
                            const struct elv_lab_piece *p);
/* Will never be delivered. */
bool elv_lab_is_dropped(const struct elv_lab_world *w, uint64_t seed,
                        const struct elv_lab_piece *p);

enum elv_lab_way { ELV_LAB_DOWN, ELV_LAB_UP, ELV_LAB_TELL };
/* One way over the link: its latency, then the bytes. A notice (TELL) has none to speak of. */
elv_time_us elv_lab_transfer(const struct elv_lab_world *w, uint64_t seed,
                             const struct elv_lab_piece *p, enum elv_lab_way way, uint64_t bytes);

/* When the client comes first; ELV_NEVER: not by itself (churn_rate, or no span of the trace). */
elv_time_us elv_lab_comes(const struct elv_lab_world *w, uint64_t seed, uint32_t client,
                          uint32_t n_clients);
/* The k-th gap between devices that come for good, k from 1. */
elv_time_us elv_lab_gap(const struct elv_lab_world *w, uint64_t seed, uint32_t k);
/* How long it stays, having come for the k-th time, k from 1. ELV_NEVER: for ever. */
elv_time_us elv_lab_stays(const struct elv_lab_world *w, uint64_t seed, uint32_t client,
                          uint32_t k);
/* The end of its k-th stretch of being there and away in turn, k from 0 and there, that started at
 * `from`, 1 us or more unless a trace says so. ELV_NEVER: it has no end. */
elv_time_us elv_lab_stretch(const struct elv_lab_world *w, uint64_t seed, uint32_t client,
                            uint32_t k, elv_time_us from);
/* The span of the client's trace at `at`; NULL: away, or there is no trace. A trace of fewer
 * clients is shared by those whose numbers differ by a multiple. */
const struct elv_lab_span *elv_lab_span_at(const struct elv_lab_trace *t, uint32_t client,
                                           elv_time_us at);

#endif
