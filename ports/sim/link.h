/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/link.h - one direction of a link: what becomes of a datagram that is put on it.
 *
 * A model in values: a datagram of so many bytes at one moment arrives once, twice or never, and
 * this says when or why not. A way is what a direction is like and is shared; a lane is how one
 * such direction stands, and every random number comes from the caller's stream. So the simulated
 * world uses it on virtual time, and a relay between real sockets on real time.
 *
 * A datagram first waits for the line (rate and queue), then meets what loses it, and then takes
 * its delay. What is lost in the air has used the line.
 *
 * Source of the bursts: Gilbert, "Capacity of a Burst-Noise Channel", Bell System Technical Journal
 * 39, 1960; Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", ibid. 42, 1963.
 * A chain of two states, good and bad, moves with each datagram; the bad one loses more. */
#ifndef ELV_PORTS_SIM_LINK_H
#define ELV_PORTS_SIM_LINK_H

#include "ports/sim/draw.h"

/* Bursts of losses: 1 / leave datagrams long on average, enter / (enter + leave) of the time. */
struct elv_sim_bursts {
    uint32_t enter_ppm; /* chance to turn bad, with each datagram; 0: there are no bursts */
    uint32_t leave_ppm; /* chance to turn good again */
    uint32_t loss_ppm;  /* in the bad state, on top of the independent loss */
};

/* Moments that come back: first, first + every, ... */
struct elv_sim_times {
    elv_time_us first_us; /* 0: never */
    elv_time_us every_us; /* 0: once */
};

/* The first of them after `after`; ELV_NEVER: there is none. */
elv_time_us elv_sim_times_next(const struct elv_sim_times *t, elv_time_us after);

/* What one direction is like. All zero: everything arrives at once. */
struct elv_sim_way {
    struct elv_sim_delay delay; /* one way, its spread is the jitter */
    /* Draws a datagram's delay instead of that; NULL: nobody does. */
    elv_time_us (*draw)(void *draw_self, struct elv_rng *rng);
    void *draw_self;
    uint32_t bps;         /* the line's rate, bytes per second; 0: no limit */
    uint32_t queue_bytes; /* what would make the queue longer than this is dropped; 0: no limit */
    elv_time_us queue_us; /* what would wait longer for the line is dropped; 0: no limit */
    uint32_t loss_ppm;    /* of each datagram by itself */
    struct elv_sim_bursts bursts;
    uint32_t duplicate_ppm;
    uint32_t reorder_ppm;           /* chance to be held back on top of the delay ... */
    struct elv_sim_delay held_back; /* ... by so much */
    bool in_order;                  /* those not held back do not overtake each other */
    uint32_t mtu;                   /* longer datagrams vanish without a word; 0: no limit */
    struct elv_sim_times outages;   /* nothing passes from then on ... */
    elv_time_us outage_us;          /* ... for so long */
    struct elv_sim_times moves;     /* the receiver's address changes: what is on its way is lost */
    bool cut;                       /* nothing passes */
};

/* How a direction stands. All zero: nothing passed yet. */
struct elv_sim_lane {
    elv_time_us free_us; /* the line is taken until then */
    elv_time_us last_us; /* when the latest one arrives */
    bool bad;            /* the state of the bursts */
};

enum elv_sim_fate {
    ELV_SIM_ARRIVED,
    ELV_SIM_LOST,  /* by itself */
    ELV_SIM_BURST, /* in a bad spell */
    ELV_SIM_FULL,  /* the queue was */
    ELV_SIM_LONG,  /* above the MTU */
    ELV_SIM_OUT,   /* in an outage */
    ELV_SIM_MOVED, /* its receiver's address changed on the way */
    ELV_SIM_CUT,
    ELV_SIM_FATES
};

const char *elv_sim_fate_name(enum elv_sim_fate fate);

struct elv_sim_passage {
    enum elv_sim_fate fate;
    uint32_t n;          /* times it arrives: 0, 1 or 2 */
    elv_time_us at[2];   /* when; of two the second need not be the later one */
    elv_time_us wait_us; /* in the queue, before its own turn */
    bool held_back;      /* it, or its duplicate */
};

/* Puts a datagram of `bytes`, all headers included, on the lane. `now` never goes back. */
struct elv_sim_passage elv_sim_pass(struct elv_sim_lane *lane, const struct elv_sim_way *way,
                                    struct elv_rng *rng, elv_time_us now, size_t bytes);

/* What became of all that was put on a lane, or on several. */
struct elv_sim_fates {
    uint64_t put, bytes;       /* datagrams and their bytes */
    uint64_t n[ELV_SIM_FATES]; /* of those, by fate */
    uint64_t duplicated;       /* arrived, and once more */
    uint64_t held_back;        /* reordered, unless nothing followed */
    elv_time_us wait_us;       /* all waiting in the queue */
    elv_time_us wait_longest_us;
};

void elv_sim_fates_count(struct elv_sim_fates *f, const struct elv_sim_passage *p, size_t bytes);
uint64_t elv_sim_fates_lost(const struct elv_sim_fates *f); /* for whatever reason */

/* A link that people know, in both directions. */
struct elv_sim_profile {
    const char *name;
    struct elv_sim_way up, down; /* from, to the device */
};

/* The names as a message lists them. */
#define ELV_SIM_PROFILES "lan, lte, lte-m, nb-iot, satellite or lossy"

const struct elv_sim_profile *elv_sim_profile(const char *name, size_t len); /* NULL: none */
const struct elv_sim_profile *elv_sim_profile_at(size_t i); /* NULL past the last */

/* Mean share of datagrams that get lost by themselves or in bursts. */
double elv_sim_way_loss(const struct elv_sim_way *way);

#endif
