/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/disk.h - a disk that takes time, fails and loses power, in memory.
 *
 * It keeps the contract of the STORE action (common/node.h) and of ports/sqlite, and not an inch
 * more. Transactions wait in a queue; a sync takes all that wait, lasts a drawn time, and makes
 * them durable together. What is not yet durable is not visible either, but for appended bytes,
 * which can be read at once.
 *
 * A transaction that fails takes with it all that is submitted until the node is told; appended
 * bytes stay. A log that could not be appended to is broken: it takes no more, and everything fails
 * until a transaction drops it. A disk that `dies` fails everything after ELV_ERR_IO until the node
 * is started again, and then turns out to have kept the fatal transaction, or not.
 *
 * A crash keeps a prefix of the queued transactions, of a length drawn by lot. Appended bytes all
 * stay when the process dies; when the power goes, each log keeps at least what is durable and what
 * a kept transaction came after, and a drawn part of the rest. Everything follows from the seed.
 * Not thread-safe. */
#ifndef ELV_PORTS_SIM_DISK_H
#define ELV_PORTS_SIM_DISK_H

#include "common/port.h"
#include "ports/sim/draw.h"

struct elv_sim_disk_cfg {
    struct elv_clock clock; /* virtual */
    uint64_t seed;
    uint32_t number;           /* tells the disks of one seed apart */
    struct elv_sim_delay sync; /* how long a sync takes */
    uint32_t fail_ppm;         /* chance that a transaction fails */
    uint32_t append_fail_ppm;  /* chance that an APPEND fails */
    uint32_t read_fail_ppm;    /* chance that a read fails, with ELV_ERR_IO */
    enum elv_err fail_with;    /* ELV_OK means ELV_ERR_IO; a full disk says ELV_ERR_FULL */
    uint64_t fail_at;          /* this transaction fails, counted from 1; 0: none */
    uint64_t space;            /* bytes it can hold; beyond: ELV_ERR_FULL; 0: no limit */
    bool torn;                 /* a power loss may cut an APPEND anywhere, not only after it */
    bool dies;                 /* of ELV_ERR_IO */
};

struct elv_sim_disk_stats {
    uint64_t transactions, failed, syncs;
    uint64_t lost;       /* transactions that a crash took */
    uint64_t lost_bytes; /* appended bytes that a crash took */
    uint64_t used, peak; /* bytes held now and at most */
    uint32_t logs;       /* now */
    bool dead;
};

struct elv_sim_disk;

struct elv_sim_disk *elv_sim_disk_new(const struct elv_sim_disk_cfg *cfg);
void elv_sim_disk_free(struct elv_sim_disk *d);

/* May be changed at any time; takes effect with the next transaction. */
struct elv_sim_disk_cfg *elv_sim_disk_cfg(struct elv_sim_disk *d);

struct elv_store elv_sim_disk_store(struct elv_sim_disk *d);
struct elv_disk elv_sim_disk_view(struct elv_sim_disk *d);

/* When `elv_sim_disk_poll` will have something; ELV_NEVER: nothing to do. */
elv_time_us elv_sim_disk_due(const struct elv_sim_disk *d);

/* Finishes what is due by the clock. True: STORE `*id` ended with `*err`; call again. */
bool elv_sim_disk_poll(struct elv_sim_disk *d, uint32_t *id, enum elv_err *err);

/* The process, or (`power`) the whole machine, stops now. No STORED follows for what was queued. */
void elv_sim_disk_crash(struct elv_sim_disk *d, bool power);

/* An orderly end: all that is queued becomes durable; no STORED follows. */
void elv_sim_disk_flush(struct elv_sim_disk *d);

struct elv_sim_disk_stats elv_sim_disk_stats(const struct elv_sim_disk *d);

#endif
