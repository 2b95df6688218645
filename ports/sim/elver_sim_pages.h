/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/elver_sim_pages.h - part of the program elver-sim: memory by the page, which the system
 * takes back where nothing is needed. */
#ifndef ELV_PORTS_SIM_ELVER_SIM_PAGES_H
#define ELV_PORTS_SIM_ELVER_SIM_PAGES_H

#include "ports/sim/lab/deploy.h"

/* Any number of deployments on any threads may use them. */
struct elv_deploy_pages elv_sim_pages(void);

#endif
