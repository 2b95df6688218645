/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench_transfer.c - how fast a body gets through a bad link: chunks against block-wise.
 *
 * Over DTLS on loopback, with a relay between that delays and loses datagrams. First 1 MB up at
 * two round-trip times and three rates of loss, by libcoap's Block1 and Q-Block1 and by the
 * client's own engine: one line for each, the ratio is to Block1. Block1 goes in lockstep, one
 * kilobyte for each round trip however long it lasts, so it is measured on 100 KB; what does not
 * finish in its time is said to. Then a line of 1 Mbit/s, counted on UDP payloads, with 100 ms
 * there and back and a queue of 64 KB: how much of it the bytes of a model fill, how long they wait
 * in its queue, and how two transfers share it. */
#include <stdio.h>
#include <string.h>

#include "tests/transfer_rig.h"

#define MS 1000
#define SECOND 1000000
enum { KB = 1000, MB = 1000000, LINE = 125000, LINE_QUEUE = 64000 };

static int status;

static struct elv_sim_way way(int64_t rtt_us, uint32_t loss_ppm)
{
    return (struct elv_sim_way){.delay.min_us = rtt_us / 2, .loss_ppm = loss_ppm};
}

static double rate_of(const struct rig_result *r)
{
    return r->finished && r->us > 0 ? (double)r->bytes[0] / (double)r->us : 0.0; /* MB/s */
}

static void finish(const struct rig_cell *cell, struct rig_run run, struct rig_result *r)
{
    memset(r, 0, sizeof *r);
    if (!rig_wait(run, r) || r->wrong) {
        fprintf(stderr, "bench_transfer: %s: %s\n", cell->name,
                r->wrong ? "what arrived was not what was sent" : "broke down");
        status = 1;
    }
}

/* ---- block-wise against chunks */

enum { RTTS = 2, LOSSES = 3, CELLS = RTTS * LOSSES };
static const int rtt_ms[RTTS] = {50, 100};
static const uint32_t loss_percent[LOSSES] = {0, 1, 5};

static struct rig_cell cell_of(int i, enum rig_method method)
{
    static const char *const names[] = {"block1", "q_block1", "chunks"};
    const uint32_t loss = loss_percent[i % LOSSES] * 10000;
    const int64_t rtt = rtt_ms[i / LOSSES] * MS;
    return (struct rig_cell){.name = names[method],
                             .method = method,
                             .bytes = method == RIG_BLOCK1 ? 100 * KB : MB,
                             .n_players = 1,
                             .limit_us = (method == RIG_BLOCK1 ? 60 : 45) * (int64_t)SECOND,
                             .up = way(rtt, loss),
                             .down = way(rtt, loss)};
}

static void print_cell(int i, const char *method, const struct rig_cell *cell,
                       const struct rig_result *r, double block1)
{
    const int rtt = rtt_ms[i / LOSSES];
    const unsigned loss = loss_percent[i % LOSSES];
    const double rate = rate_of(r);
    if (r->missing)
        printf("transfer_%s_%dms_%upct: this libcoap was built without it\n", method, rtt, loss);
    else if (!r->finished)
        printf("transfer_%s_%dms_%upct did not finish %u KB: %s after %.0f s\n", method, rtt, loss,
               cell->bytes / KB, r->us < cell->limit_us ? "it failed" : "stopped",
               (double)r->us / SECOND);
    else if (block1 > 0.0)
        printf("bench transfer_%s_%dms_%upct %.3f MB/s ref block1 %.4f ratio %.1f\n", method, rtt,
               loss, rate, block1, rate / block1);
    else
        printf("bench transfer_%s_%dms_%upct %.3f MB/s ref block1 - ratio -\n", method, rtt, loss,
               rate);
    if (cell->method == RIG_BLOCK1 && r->finished)
        printf("transfer_%s_%dms_%upct was measured on %u KB; 1 MB would take %.0f s\n", method,
               rtt, loss, cell->bytes / KB, 1.0 / rate);
    fflush(stdout);
}

static void compare(void)
{
    struct rig_cell block[2 * CELLS];
    struct rig_run run[2 * CELLS];
    struct rig_result found[2 * CELLS], ours;
    /* These wait nearly all the time: side by side. */
    for (int i = 0; i < 2 * CELLS; i++) {
        block[i] = cell_of(i / 2, i % 2 == 0 ? RIG_BLOCK1 : RIG_Q_BLOCK1);
        run[i] = rig_start(&block[i]);
    }
    for (int i = 0; i < 2 * CELLS; i++)
        finish(&block[i], run[i], &found[i]);
    for (int i = 0; i < CELLS; i++) {
        const struct rig_cell cell = cell_of(i, RIG_CHUNKS_UP);
        /* An unfinished Block1 is taken to have been as fast as if it had finished at its limit. */
        const struct rig_result *b = &found[2 * i];
        const double block1 =
            b->finished ? rate_of(b) : (double)block[2 * i].bytes / (double)block[2 * i].limit_us;
        print_cell(i, "block1", &block[2 * i], b, block1);
        print_cell(i, "q_block1", &block[2 * i + 1], &found[2 * i + 1], block1);
        finish(&cell, rig_start(&cell), &ours);
        print_cell(i, "chunks", &cell, &ours, block1);
        printf("transfer_chunks_%dms_%upct sent %llu requests, %llu of them again\n",
               rtt_ms[i / LOSSES], (unsigned)loss_percent[i % LOSSES],
               (unsigned long long)ours.sent, (unsigned long long)ours.repeated);
        fflush(stdout);
    }
}

/* ---- a narrow line */

static struct elv_sim_way line(uint32_t loss_ppm)
{
    struct elv_sim_way w = way(100 * MS, loss_ppm);
    w.bps = LINE;
    w.queue_bytes = LINE_QUEUE;
    return w;
}

static double queue_ms(const struct elv_sim_fates *f) { return (double)f->wait_longest_us / MS; }

static double queue_mean_ms(const struct elv_sim_fates *f)
{
    return f->put > 0 ? (double)f->wait_us / (double)f->put / MS : 0.0;
}

/* The direction that carries the body. */
static const struct elv_sim_fates *laden(const struct rig_cell *cell, const struct rig_result *r)
{
    return cell->method == RIG_CHUNKS_DOWN ? &r->down : &r->up;
}

static void print_queue(const struct rig_cell *cell, const struct rig_result *r)
{
    const struct elv_sim_fates *f = laden(cell, r);
    printf("bench transfer_%s_queue %.0f ms ref budget 200 ratio %.2f\n", cell->name, queue_ms(f),
           queue_ms(f) / 200.0);
    printf("transfer_%s waited %.0f ms on average; %llu of %llu datagrams found the queue full\n",
           cell->name, queue_mean_ms(f), (unsigned long long)f->n[ELV_SIM_FULL],
           (unsigned long long)f->put);
    fflush(stdout);
}

static void print_fill(const struct rig_cell *cell, const struct rig_result *r, double budget)
{
    if (!r->finished) {
        printf("transfer_%s did not finish %u KB in %.0f s\n", cell->name, cell->bytes / KB,
               (double)cell->limit_us / SECOND);
        return;
    }
    const double share = 100.0 * (double)r->bytes[0] / ((double)r->us / SECOND) / LINE;
    printf("bench transfer_%s_fill %.1f %% ref budget %.0f ratio %.2f\n", cell->name, share, budget,
           share / budget);
    print_queue(cell, r);
}

static void print_share(const struct rig_cell *cell, const struct rig_result *r)
{
    const double a = (double)r->bytes[0], b = (double)r->bytes[1], all = a + b;
    const double less = all > 0.0 ? 100.0 * (a < b ? a : b) / all : 0.0;
    const double us = (double)(cell->limit_us - cell->from_us);
    printf("bench transfer_%s_share %.1f %% ref budget 40 ratio %.2f\n", cell->name, less,
           less / 40.0);
    printf("bench transfer_%s_fill %.1f %% ref line 100 ratio %.2f\n", cell->name,
           100.0 * all / (us / SECOND) / LINE, all / (us / SECOND) / LINE);
    print_queue(cell, r);
}

static void narrow(void)
{
    enum { N = 8 };
    const struct {
        const char *name;
        enum rig_method method;
        uint32_t players, loss_ppm;
        double budget;
    } rows[N] = {{"1mbit_up_0pct", RIG_CHUNKS_UP, 1, 0, 85},
                 {"1mbit_up_5pct", RIG_CHUNKS_UP, 1, 50000, 75},
                 {"1mbit_down_0pct", RIG_CHUNKS_DOWN, 1, 0, 85},
                 {"1mbit_down_5pct", RIG_CHUNKS_DOWN, 1, 50000, 75},
                 {"1mbit_two_up_0pct", RIG_CHUNKS_UP, 2, 0, 0},
                 {"1mbit_two_down_0pct", RIG_CHUNKS_DOWN, 2, 0, 0},
                 {"1mbit_two_up_5pct", RIG_CHUNKS_UP, 2, 50000, 0},
                 {"1mbit_two_down_5pct", RIG_CHUNKS_DOWN, 2, 50000, 0}};
    struct rig_cell cell[N];
    struct rig_run run[N];
    struct rig_result r[N];
    for (int i = 0; i < N; i++) {
        const bool two = rows[i].players == 2;
        cell[i] = (struct rig_cell){.name = rows[i].name,
                                    .method = rows[i].method,
                                    .bytes = two ? 4 * MB : 2 * MB,
                                    .n_players = rows[i].players,
                                    .stagger_us = 2 * SECOND,
                                    .limit_us = (two ? 25 : 60) * (int64_t)SECOND,
                                    .from_us = 5 * SECOND,
                                    .up = line(rows[i].loss_ppm),
                                    .down = line(rows[i].loss_ppm)};
        run[i] = rig_start(&cell[i]);
    }
    for (int i = 0; i < N; i++) {
        finish(&cell[i], run[i], &r[i]);
        if (rows[i].players == 2)
            print_share(&cell[i], &r[i]);
        else
            print_fill(&cell[i], &r[i], rows[i].budget);
    }
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    if (strcmp(only, "narrow") != 0)
        compare();
    if (strcmp(only, "compare") != 0)
        narrow();
    return status;
}
