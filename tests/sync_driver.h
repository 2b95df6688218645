/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sync_driver.h - drives a policy of the STREAM flow by itself: no models, no messages, only
 * who starts when and whose update comes when.
 *
 * It does what server/sync.h asks of a driver, in the plainest way, so that a policy's figures can
 * be held against a paper's: a client that delivers wants new work at once, a version takes no time
 * to make, and a client's work takes as long as the test says. */
#ifndef ELV_TESTS_SYNC_DRIVER_H
#define ELV_TESTS_SYNC_DRIVER_H

#include "server/sync.h"

/* The client is dead from `at` until `back` (ELV_NEVER: for good): what it works on is lost. */
struct sync_death {
    elv_time_us at, back;
    uint32_t row;
    bool said; /* it says that it leaves; else it lapses, at the deadline of its work */
};

struct sync_drive {
    const struct elv_sync *sync;
    const struct elv_params *params;
    uint32_t n; /* clients, all there from the start; client number = row + 1 */
    uint32_t quorum;
    uint64_t seed;
    elv_time_us deadline_us, publish_us, horizon;
    elv_time_us (*duration)(const void *self, uint32_t row, uint32_t nth); /* of its work; over 0 */
    const void *self;
    const struct sync_death *deaths;
    uint32_t n_deaths;
};

struct sync_driven {
    uint64_t n_updates, n_counted, n_versions, n_abandoned;
    uint32_t gap_max;        /* most updates that one had ahead of another, as one arrived */
    uint32_t working_max;    /* most clients at work at once */
    double working, waiting; /* of all clients together, in microseconds */
    double stale_mean;       /* versions made between an update's and its arrival */
    double weight_mean;
    elv_time_us commit_gap; /* the longest time between two versions, or from the last to the end */
    uint64_t hash;          /* of all that happened */
    uint32_t *delivered;    /* [n] updates of each; free() it */
};

struct sync_driven sync_drive(const struct sync_drive *drive);

/* "a = 1, b = word, c = 0.5" as a policy gets them. */
struct elv_params sync_params(const char *text);

#endif
