/* SPDX-License-Identifier: Apache-2.0 */
/* One decision of the policy dbw with 1000 clients: forgetting, the fit of the time table and the
 * choice of k, after rounds whose updates come at random times.
 *
 *     bench NAME FIGURE UNIT ref REFERENCE FIGURE ratio X
 *
 * By processor time of one core: other load does not count. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/rng.h"
#include "server/sync.h"
#include "tests/bench.h"

enum { CLIENTS = 1000, ROUNDS = 400, DIM = 100 };

static const struct elv_sync *dbw;
static struct elv_sync_cfg cfg;
static struct elv_params params;
static void *state;
static struct elv_rng rng;

/* Ascending times of all clients: order statistics of exponentials, one gap at a time. */
static void play(struct elv_sync_round *r)
{
    const uint32_t k = dbw->wanted(state, &cfg, r);
    double at = 0.2e6;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        at += -log(1.0 - (double)elv_rng_unit(&rng)) * 1e6 / (CLIENTS - i);
        const elv_time_us now = r->opened + (elv_time_us)at;
        const struct elv_sync_update u = {.version = r->version};
        if (i < k) {
            r->n_got += dbw->on_update(state, &cfg, r, &u, now).counts;
            r->n_waiting--;
        } else {
            dbw->on_late(state, &cfg, r, (struct elv_sync_client){i, i + 1}, r->version, now);
        }
    }
}

static void commit(const struct elv_sync_round *r)
{
    const double variance = 2.0 * DIM, norm = 1.0;
    const struct elv_sync_commit c = {.round = *r,
                                      .version = r->version + 1,
                                      .loss = 1.0 + 0.1 / r->seq,
                                      .norm2 = norm + variance,
                                      .mean_norm2 = norm + variance / r->n_got,
                                      .n_effective = r->n_got,
                                      .rate = 1.0};
    dbw->on_commit(state, &cfg, &c, 0);
}

static int bench(const char *name)
{
    double sum = 0.0, most = 0.0;
    state = calloc(1, dbw->state_len(&cfg));
    if (state == NULL)
        return 1;
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        struct elv_sync_round r = {.seq = i,
                                   .version = i,
                                   .n_asked = CLIENTS,
                                   .n_waiting = CLIENTS,
                                   .opened = (elv_time_us)i * 10000000};
        const double from = bench_now_s();
        dbw->on_open(state, &cfg, &r);
        const double took = (bench_now_s() - from) * 1e3;
        sum += took;
        most = took > most ? took : most;
        play(&r);
        commit(&r);
    }
    free(state);
    printf("bench %s %.3f ms ref budget 2 ratio %.2f\n", name, sum / ROUNDS, sum / ROUNDS / 2.0);
    printf("bench %s_longest %.3f ms ref budget 2 ratio %.2f\n", name, most, most / 2.0);
    return 0;
}

int main(void)
{
    params = (struct elv_params){
        .n = 1, .at[0] = {.name = "variant", .kind = ELV_PARAM_WORD, .word = "pull"}};
    cfg = (struct elv_sync_cfg){.clients_max = CLIENTS, .quorum = 1, .params = &params};
    rng = elv_rng_of((struct elv_rng_key){.seed = 1, .purpose = ELV_RNG_DEVICE});
    dbw = elv_sync_by_name("dbw");
    return bench("dbw_decision");
}
