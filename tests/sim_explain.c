/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim_explain.h"

#include <inttypes.h>
#include <stdio.h>

#include "tests/sim_shrink.h"

static void print_fault(void *ctx, uint32_t number, const char *what)
{
    (void)ctx;
    printf("    %3" PRIu32 "  %s\n", number, what);
}

void sim_explain(const struct sim_case_cfg *cfg, const struct sim_case_end *end, uint32_t tries,
                 const char *program)
{
    char title[1024], list[2048];
    bool on[SIM_CASE_FAULTS_MAX];
    sim_case_title(cfg->seed, title, sizeof title);
    printf("seed %" PRIu64 " at %.3f s: %s\n  %s\n", cfg->seed, (double)end->at / 1e6, end->why,
           title);
    if (tries > 0) {
        const uint32_t left = sim_case_shrink(cfg, end, tries, on);
        printf("  it takes %" PRIu32 " of %" PRIu32 " faults:\n", left, end->n_faults);
        sim_case_tell(cfg->seed, on, end->n_faults, print_fault, NULL);
        shrink_write(on, end->n_faults, list, sizeof list);
        printf("replay: %s %" PRIu64 " 1 --only %s", program, cfg->seed, list);
    } else {
        printf("replay: %s %" PRIu64 " 1", program, cfg->seed);
    }
    if (cfg->planted[0] != cfg->planted[1])
        printf(" --plant %" PRIu32 ",%" PRIu32, cfg->planted[0], cfg->planted[1]);
    printf(" -v\n");
    fflush(stdout);
}
