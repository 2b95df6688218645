/* SPDX-License-Identifier: Apache-2.0 */
/* Durable commits per second from 100 committers, each with one commit under way: a kilobyte of an
 * upload log and one ledger row, as the server does it.
 *
 *     bench_store [DIRECTORY [SECONDS]]      default: the current directory, 3 seconds */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ports/posix/clock.h"
#include "ports/sqlite/store.h"

enum { COMMITTERS = 100, ROW_LEN = 96, APPEND_LEN = 1000 };

static struct elv_store store;
static uint64_t n_commits, n_failed;
static elv_time_us submit_max_us;
static bool stopping;

static elv_time_us now(void) { return elv_posix_clock().now(NULL); }

static void commit(uint32_t committer)
{
    static const uint8_t bytes[APPEND_LEN];
    const struct elv_action actions[] = {
        {.kind = ELV_DO_STORE,
         .store = {.kind = ELV_STORE_APPEND, .number = 1, .bytes = {bytes, APPEND_LEN}}},
        {.kind = ELV_DO_STORE,
         .id = committer,
         .store = {.kind = ELV_STORE_PUT,
                   .table = 1,
                   .number = n_commits % 20000,
                   .bytes = {bytes, ROW_LEN}}},
    };
    const elv_time_us began = now();
    store.submit(store.self, actions, 2);
    const elv_time_us took = now() - began;
    if (took > submit_max_us)
        submit_max_us = took;
}

static void on_stored(void *self, struct elv_event *ev)
{
    (void)self;
    n_commits++;
    n_failed += ev->err != ELV_OK;
    if (!stopping)
        commit(ev->id);
}

static void serve(const struct elv_source *s)
{
    struct pollfd p = {.fd = (int)s->handle, .events = POLLIN};
    if (poll(&p, 1, 1000) > 0)
        s->ready(s->self);
}

static int measure(struct elv_sqlite *s, double seconds)
{
    const struct elv_source source = elv_sqlite_source(s);
    store = elv_sqlite_store(s);
    elv_sqlite_connect(s, (struct elv_sink){.event = on_stored});
    const elv_time_us began = now();
    for (uint32_t i = 1; i <= COMMITTERS; i++)
        commit(i);
    while (now() - began < (elv_time_us)(seconds * 1e6))
        serve(&source);
    const double took = (double)(now() - began) / 1e6, rate = (double)n_commits / took;
    stopping = true;

    struct elv_sqlite_stats stats;
    elv_sqlite_stats(s, &stats);
    printf("bench store %.0f commits/s ref budget 5000 ratio %.2f\n", rate, rate / 5000);
    printf("bench store_batch %.1f transactions ref alone 1 ratio %.1f\n",
           (double)stats.transactions / (double)stats.batches,
           (double)stats.transactions / (double)stats.batches);
    printf("bench store_longest_submit %.3f ms ref budget 1 ratio %.2f\n",
           (double)submit_max_us / 1e3, (double)submit_max_us / 1e3);
    return n_failed == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    char dir[400], why[ELV_SQLITE_WHY_MAX], command[512];
    snprintf(dir, sizeof dir, "%s/bench_store_XXXXXX", argc > 1 ? argv[1] : ".");
    if (mkdtemp(dir) == NULL) {
        fprintf(stderr, "%s: %s\n", dir, strerror(errno));
        return 1;
    }
    const struct elv_sqlite_cfg cfg = {.dir = dir, .job = "bench"};
    struct elv_sqlite *s = NULL;
    if (elv_sqlite_open(&s, &cfg, why) != ELV_OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    const int rc = measure(s, argc > 2 ? atof(argv[2]) : 3);
    elv_sqlite_close(s);
    snprintf(command, sizeof command, "rm -r '%s'", dir);
    return system(command) == 0 ? rc : 1;
}
