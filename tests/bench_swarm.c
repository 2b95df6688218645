/* SPDX-License-Identifier: Apache-2.0 */
/* The timing-only swarm: client events per second of one core with every draw switched on, and a
 * thousand rounds of a thousand clients out of a million. The memory is the peak of this whole
 * process. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "tests/bench.h"
#include "tests/swarm_case.h"

enum { BUDGET_EVENTS = 500000, BUDGET_SECONDS = 60, BUDGET_MB = 2048 };

static struct swarm_case c;

/* Log-normal devices on links with latency, stragglers and dropouts. */
static void fill_world(struct elv_lab_world *w)
{
    w->device.speed = (struct elv_lab_draw){.shape = ELV_LAB_LOGNORMAL, .a = 1.0, .b = 0.5};
    w->device.compute = (struct elv_lab_draw){.shape = ELV_LAB_LOGNORMAL, .a = 1.0, .b = 0.3};
    w->device.jitter = 0.1;
    w->device.straggler_share = 0.02;
    w->device.straggler_factor = 5.0;
    w->link.latency = (struct elv_lab_draw){.shape = ELV_LAB_UNIFORM, .a = 0.02, .b = 0.1};
    w->link.up = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 1e6};
    w->link.down = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 5e6};
    w->availability.dropout = 0.05;
}

static double run(const struct swarm_key *keys, uint32_t n_clients, uint32_t rounds,
                  struct elv_lab_summary *sum)
{
    const double began = bench_now_s();
    swarm_case_init(&c, keys, n_clients);
    fill_world(&c.world);
    c.learner.bytes_down = 100000;
    c.cfg.sink = (struct elv_lab_sink){0};
    c.cfg.rounds = rounds;
    *sum = swarm_case_run(&c);
    swarm_case_free(&c);
    return bench_now_s() - began;
}

static void events(const char *name, const struct swarm_key *keys, uint32_t rounds)
{
    struct elv_lab_summary sum;
    const double took = run(keys, 1000, rounds, &sum), rate = (double)sum.events / took;
    printf("bench swarm_events_%s %.0f events/s ref budget %d ratio %.2f\n", name, rate,
           BUDGET_EVENTS, rate / BUDGET_EVENTS);
}

static void million(void)
{
    static const struct swarm_key keys[] = {{"sync", "policy", "backup"},
                                            {"sync", "k", "800"},
                                            {"select", "count", "1000"},
                                            {NULL, NULL, NULL}};
    struct elv_lab_summary sum;
    const double took = run(keys, 1000000, 1000, &sum);
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    printf("bench swarm_million %.2f s ref budget %d ratio %.2f\n", took, BUDGET_SECONDS,
           took / BUDGET_SECONDS);
    printf("bench swarm_million_memory %.0f MB ref budget %d ratio %.2f\n",
           (double)use.ru_maxrss / 1024, BUDGET_MB, (double)use.ru_maxrss / 1024 / BUDGET_MB);
    if (sum.version != 1000)
        exit(1);
}

int main(void)
{
    static const struct swarm_key backup[] = {
        {"sync", "policy", "backup"}, {"sync", "backup", "100"}, {NULL, NULL, NULL}};
    static const struct swarm_key asp[] = {{"sync", "policy", "asp"}, {NULL, NULL, NULL}};
    static const struct swarm_key ssp[] = {{"sync", "policy", "ssp"}, {NULL, NULL, NULL}};
    static const struct swarm_key fedbuff[] = {{"sync", "policy", "fedbuff"},
                                               {"sync", "buffer", "100"},
                                               {"sync", "concurrency", "500"},
                                               {NULL, NULL, NULL}};
    events("backup", backup, 2000);
    events("asp", asp, 1000);
    events("ssp", ssp, 1000);
    events("fedbuff", fedbuff, 1000);
    million();
    return 0;
}
