/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim_job.h - a job drawn from a seed: every synchronisation policy in turn, with the other
 * settings mixed in. */
#ifndef ELV_TESTS_SIM_JOB_H
#define ELV_TESTS_SIM_JOB_H

#include "tests/sim_fleet.h"

#define SIM_JOB_KEYS 40u

/* Fills `keys`, ended as fleet_cfg wants it, and returns what the policy is called. `clients`: how
 * many there will be. */
const char *sim_job_of(uint64_t seed, uint32_t clients, struct fleet_key keys[SIM_JOB_KEYS]);

/* The same job after its operator took another policy, of those that the seed draws. */
const char *sim_job_other(uint64_t seed, uint32_t clients, struct fleet_key keys[SIM_JOB_KEYS]);

/* Its bodies have some twenty chunks instead of a few, so that crashes fall into transfers. */
bool sim_job_is_wide(uint64_t seed);

/* So many seeds in a row have each policy, in each of its variants, once. */
uint32_t sim_job_variants(void);

#endif
