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
    bool cohort_start;        /* all start at a random moment of [0, start_spread) */
    elv_time_us start_spread; /* devices come one by one in [0, this) */
};

struct elv_lab_link {
    struct elv_lab_draw latency;  /* seconds one way, drawn for each message */
    struct elv_lab_draw up, down; /* bytes per second, drawn once for each device; 0: no limit */
    double loss;                  /* of packets, 0 to below 1: each is sent until it arrives */
    double duplicate, reorder;    /* detail = messages only */
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
    struct elv_lab_device device;
    struct elv_lab_link link;
    struct elv_lab_availability availability;
    struct elv_lab_faults faults;
    const struct elv_lab_trace
        *trace; /* borrowed; NULL: none. Replaces device, up, down, on, off */
};

/* One draw; never negative. */
double elv_lab_draw(const struct elv_lab_draw *d, struct elv_rng *r);
bool elv_lab_draw_is_set(const struct elv_lab_draw *d);

#endif
