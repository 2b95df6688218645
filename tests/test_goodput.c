/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_goodput.c - what the transfer engine must make of a link, on virtual time.
 *
 * Virtual time makes each figure the same on every machine, so bounds can be asserted; they leave
 * room for other seeds. `bench_goodput` prints the figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "common/codec.h"
#include "tests/transfer_track.h"

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
#define MBIT 125000u

enum { SEEDS = 3, GRANT = ELV_WINDOW_MAX };

static struct racer racers[TRACK_RACERS_MAX];

static struct elv_sim_way way(elv_time_us delay, uint32_t bps, uint32_t loss_ppm)
{
    return (struct elv_sim_way){.delay = {.min_us = delay},
                                .bps = bps,
                                .queue_bytes = bps == 0 ? 0 : 64000,
                                .loss_ppm = loss_ppm};
}

struct result {
    double rate; /* the model's bytes per second */
    elv_time_us took, queue;
    uint32_t sent;
};

static struct result move(const struct elv_sim_way *up, const struct elv_sim_way *down,
                          uint64_t seed, bool upload, uint32_t n, uint32_t header)
{
    struct track k;
    track_open(&k, up, down, seed);
    k.header = header;
    track_enter(&k, &racers[0], upload, n, GRANT, 1);
    const bool done = track_run(&k, 600 * SECOND);
    if (k.broken != NULL)
        print_message("%s\n", k.broken);
    assert_true(done);
    const struct elv_sim_fates *f = upload ? &k.fates_up : &k.fates_down;
    const struct result r = {.rate = (double)n * TRACK_VALUES * 1e6 / (double)racers[0].done_us,
                             .took = racers[0].done_us,
                             .queue = f->wait_longest_us,
                             .sent = racers[0].n_sent};
    track_close(&k);
    return r;
}

/* One kilobyte in each round trip, without a single loss. */
static double block1(elv_time_us trip) { return TRACK_VALUES * 1e6 / (double)trip; }

static void a_window_of_chunks_is_many_times_as_fast_as_one_in_a_round_trip(void **state)
{
    (void)state;
    static const elv_time_us trips[] = {50 * MS, 100 * MS};
    static const uint32_t losses[] = {0, 10000, 50000};
    for (int t = 0; t < 2; t++) {
        for (int l = 0; l < 3; l++) {
            const struct elv_sim_way w = way(trips[t] / 2, 0, losses[l]);
            for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                const struct result up = move(&w, &w, seed, true, 1000, 0);
                const struct result down = move(&w, &w, seed, false, 1000, 0);
                assert_true(up.rate > 20 * block1(trips[t]));
                assert_true(down.rate > 20 * block1(trips[t]));
                assert_true(t == 1 || (up.rate > 600e3 && down.rate > 600e3));
            }
        }
    }
}

static void a_megabit_is_filled(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        for (int upload = 0; upload < 2; upload++) {
            const struct elv_sim_way clean = way(50 * MS, MBIT, 0);
            const struct result all = move(&clean, &clean, seed, upload, 2000, 0);
            assert_true(all.rate >= 0.85 * MBIT);
            assert_in_range(all.queue, 0, 200 * MS);
            assert_int_equal(all.sent, 2000);
            const struct elv_sim_way bad = way(50 * MS, MBIT, 50000);
            assert_true(move(&bad, &bad, seed, upload, 2000, 0).rate >= 0.75 * MBIT);
        }
    }
}

/* What the first one gets of all that two get from `from` to `to`. */
static double share(struct track *k, elv_time_us from, elv_time_us to)
{
    track_run(k, from);
    const uint32_t a = racers[0].t.have.n_set, b = racers[1].t.have.n_set;
    track_run(k, to);
    const double first = racers[0].t.have.n_set - a, second = racers[1].t.have.n_set - b;
    assert_null(k->broken);
    assert_true((first + second) * TRACK_VALUES >
                0.85 * MBIT * (double)(to - from) / (double)SECOND);
    return first / (first + second);
}

static void two_transfers_share_a_megabit(void **state)
{
    (void)state;
    static const elv_time_us later[] = {0, 300 * MS, 1000 * MS, 3000 * MS, 4900 * MS};
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        for (int upload = 0; upload < 2; upload++) {
            struct track k;
            const struct elv_sim_way w = way(50 * MS, MBIT, 0);
            track_open(&k, &w, &w, 1);
            track_enter(&k, &racers[0], upload, 6000, GRANT, 1);
            track_enter(&k, &racers[1], upload, 6000, GRANT, 1 + later[i]);
            struct elv_sim_fates *f = upload ? &k.fates_up : &k.fates_down;
            const elv_time_us both = later[i] + 3 * SECOND;
            track_run(&k, both);
            const elv_time_us starting = f->wait_longest_us;
            f->wait_longest_us = 0;
            const double ten = share(&k, both, both + 10 * SECOND);
            const double more = share(&k, both + 10 * SECOND, both + 30 * SECOND);
            print_message("%d ms later: %.2f, then %.2f, queue %d ms, at the start %d ms\n",
                          (int)(later[i] / MS), ten, more, (int)(f->wait_longest_us / MS),
                          (int)(starting / MS));
            assert_true(ten > 0.4 && ten < 0.6 && more > 0.4 && more < 0.6);
            assert_in_range(f->wait_longest_us, 0, 200 * MS);
            assert_in_range(starting, 0, 230 * MS);
            track_close(&k);
        }
    }
}

/* A line that carries no more than a dozen requests. */
static void four_transfers_starve_none_of_them(void **state)
{
    (void)state;
    enum { N = 4 };
    struct track k;
    const struct elv_sim_way w = way(50 * MS, MBIT, 0);
    uint32_t before[N], all = 0, least = UINT32_MAX;
    track_open(&k, &w, &w, 1);
    for (uint32_t i = 0; i < N; i++)
        track_enter(&k, &racers[i], true, 6000, GRANT, 1 + i * SECOND);
    track_run(&k, 10 * SECOND);
    for (uint32_t i = 0; i < N; i++)
        before[i] = racers[i].t.have.n_set;
    k.fates_up.wait_longest_us = 0;
    track_run(&k, 40 * SECOND);
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t got = racers[i].t.have.n_set - before[i];
        all += got;
        least = got < least ? got : least;
    }
    assert_null(k.broken);
    assert_true(least * N > all * 6 / 10);
    assert_int_equal(k.fates_up.n[ELV_SIM_FULL], 0);
    assert_in_range(k.fates_up.wait_longest_us, 0, 420 * MS);
    track_close(&k);
}

static void known_links_are_used_well(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t n;
        double up, down; /* the least share of the line, in bytes of the model */
    } rows[] = {
        {"lan", 2000, 0.80, 0.80},  {"lte", 1000, 0.50, 0.30},      {"lte-m", 300, 0.60, 0.60},
        {"nb-iot", 80, 0.60, 0.60}, {"satellite", 500, 0.35, 0.07}, {"lossy", 500, 0.08, 0.05},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_sim_profile *p = elv_sim_profile(rows[i].name, strlen(rows[i].name));
        print_message("%s\n", rows[i].name);
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            const struct result up = move(&p->up, &p->down, seed, true, rows[i].n, TRACK_IP_UDP);
            const struct result down = move(&p->up, &p->down, seed, false, rows[i].n, TRACK_IP_UDP);
            print_message("%.2f and %.2f of the line\n", up.rate / p->up.bps,
                          down.rate / p->down.bps);
            assert_true(up.rate > rows[i].up * p->up.bps);
            assert_true(down.rate > rows[i].down * p->down.bps);
        }
    }
}

/* Long round trips without losses: no timer may be so hasty that anything is sent twice. */
static void long_round_trips_repeat_nothing_that_arrives(void **state)
{
    (void)state;
    static const char *const names[] = {"nb-iot", "satellite", "lte-m", "lte"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct elv_sim_profile *p = elv_sim_profile(names[i], strlen(names[i]));
        struct elv_sim_way up = p->up, down = p->down;
        up.loss_ppm = down.loss_ppm = 0;
        up.bursts.enter_ppm = down.bursts.enter_ppm = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            assert_in_range(move(&up, &down, seed, true, 200, TRACK_IP_UDP).sent, 200, 202);
            assert_in_range(move(&up, &down, seed, false, 200, TRACK_IP_UDP).sent, 200, 202);
        }
    }
}

/* Bytes of `n` parameters in a codec, as chunks travel, and how many chunks. */
static size_t encoded(const char *name, float param, uint32_t n, uint32_t *n_chunks)
{
    static float v[20000];
    static uint8_t bytes[ELV_CHUNK_PAYLOAD_MAX];
    static struct elv_codec_plan plan;
    const struct elv_codec *codec = elv_codec_by_name(name, strlen(name));
    struct elv_rng rng = elv_rng_of((struct elv_rng_key){.seed = 1});
    assert_in_range(n, 1, 20000);
    for (uint32_t i = 0; i < n; i++) {
        float sum = 0;
        for (int k = 0; k < 12; k++) /* close to a normal distribution */
            sum += (float)elv_rng_below(&rng, 65536) / 65536.0f;
        v[i] = sum - 6.0f;
    }
    struct elv_codec_arg arg = {.param = param};
    elv_codec_plan(codec, &plan, v, n, &arg);
    size_t total = 0;
    *n_chunks = 0;
    for (uint32_t first = 0, count; first < n; first += count, ++*n_chunks) {
        size_t len;
        assert_int_equal(
            codec->encode(v, n, first, *n_chunks, &arg, bytes, sizeof bytes, &len, &count), ELV_OK);
        total += len + ELV_CHUNK_HEAD_LEN;
    }
    return total;
}

/* A model of 20,000 parameters over 26 kbit/s: a round up or down is a chunk of some hundred bytes,
 * and that much of the line even when each is lost twice. The whole model as f32 takes 27.5 s of
 * the line before anything is lost, as f16 half of that. */
static void a_narrow_link_carries_a_round_in_seconds(void **state)
{
    (void)state;
    const struct elv_sim_profile *p = elv_sim_profile("nb-iot", 6);
    uint32_t n_ternary, n_f32, n_f16;
    const size_t ternary = encoded("ternary", 0.01f, 20000, &n_ternary);
    encoded("f32", 0, 20000, &n_f32);
    encoded("f16", 0, 20000, &n_f16);
    print_message("ternary: %zu bytes in %u chunks; f32: %u chunks; f16: %u\n", ternary, n_ternary,
                  n_f32, n_f16);
    assert_int_equal(n_ternary, 1);
    assert_in_range(ternary, 150, 350);
    assert_int_equal(n_f32, 80);
    assert_int_equal(n_f16, 40);
    elv_time_us f32 = 0, f16 = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const elv_time_us one = move(&p->up, &p->down, seed, true, n_ternary, TRACK_IP_UDP).took;
        assert_in_range(one, 1, 10 * SECOND);
        f32 += move(&p->up, &p->down, seed, false, n_f32, TRACK_IP_UDP).took / SEEDS;
        f16 += move(&p->up, &p->down, seed, false, n_f16, TRACK_IP_UDP).took / SEEDS;
    }
    print_message("all of it: f32 %.1f s, f16 %.1f s\n", (double)f32 / 1e6, (double)f16 / 1e6);
    assert_in_range(f16, 1, 22 * SECOND);
    assert_in_range(f32, 1, 36 * SECOND);
}

/* The receiver has any part of the body already. Its list reaches 512 chunks from the first it
 * lacks, so what lies further on may be sent for a round trip: a window for each long stretch. */
static void what_the_receiver_has_is_not_sent_again(void **state)
{
    (void)state;
    enum { N = 5000 };
    const struct elv_sim_way clean = way(50 * MS, MBIT, 0), bad = way(30 * MS, 0, 100000);
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct track k;
        struct elv_rng rng = elv_rng_of((struct elv_rng_key){.seed = seed});
        struct elv_sim_way w = seed % 2 ? clean : bad;
        w.duplicate_ppm = seed % 3 ? 0 : 50000;
        w.delay.spread_us = seed % 5 ? 0 : 20 * MS;
        track_open(&k, &w, &w, seed);
        track_enter(&k, &racers[0], true, N, GRANT, 1);
        uint32_t stretches = 1;
        const uint32_t longest = 1u << elv_rng_below(&rng, 12);
        for (uint32_t i = 0, there = 0; i < N; there = !there) {
            const uint32_t run = 1 + elv_rng_below(&rng, longest);
            stretches += there && run > GRANT;
            for (uint32_t j = 0; j < run && i < N; j++, i++)
                if (there)
                    elv_bitmap_set(&racers[0].got, i);
        }
        const uint32_t missing = N - racers[0].got.n_set;
        assert_true(track_run(&k, 3600 * SECOND));
        assert_null(k.broken);
        const uint64_t lost = elv_sim_fates_lost(&k.fates_up) + elv_sim_fates_lost(&k.fates_down);
        assert_in_range(racers[0].n_sent, missing,
                        missing + lost + (uint64_t)stretches * GRANT + 8);
        track_close(&k);
    }
}

/* A server that restarts, or an address that is another one: what was on its way is gone, and it
 * takes a silence and a handshake to go on. */
static void a_lost_association_costs_two_windows_at_most(void **state)
{
    (void)state;
    enum { N = 10000, TIMES = 20 };
    for (int upload = 0; upload < 2; upload++) {
        struct track k;
        const struct elv_sim_way w = way(25 * MS, 4 * MBIT, upload ? 10000 : 0);
        struct elv_rng rng = elv_rng_of((struct elv_rng_key){.seed = 7});
        track_open(&k, &w, &w, 1);
        track_enter(&k, &racers[0], upload, N, GRANT, 1);
        for (uint32_t i = 0; i < TIMES; i++) {
            const uint32_t at = N / TIMES * i + elv_rng_below(&rng, N / TIMES);
            while (racers[0].t.have.n_set < at)
                track_run(&k, k.now + MS);
            track_cut(&racers[0]);
        }
        assert_true(track_run(&k, 300 * SECOND));
        assert_null(k.broken);
        assert_in_range(racers[0].n_relinks, TIMES, 2 * TIMES);
        const uint64_t lost = elv_sim_fates_lost(&k.fates_up) + elv_sim_fates_lost(&k.fates_down);
        assert_in_range(racers[0].n_sent, N, N + lost + TIMES * 2 * GRANT);
        track_close(&k);
    }
}

/* After a second of the start the path gets three times as long, then half again. */
static void a_path_that_gets_longer_is_learnt(void **state)
{
    (void)state;
    static const elv_time_us trips[] = {150 * MS, 45 * MS};
    for (size_t i = 0; i < 2; i++) {
        struct track k;
        struct elv_sim_way w = way(15 * MS, 4 * MBIT, 0);
        track_open(&k, &w, &w, 1);
        track_enter(&k, &racers[0], true, TRACK_CHUNKS_MAX, GRANT, 1);
        track_run(&k, SECOND);
        k.up.delay.min_us = trips[i] - 15 * MS;
        track_run(&k, 20 * SECOND);
        const uint32_t before = racers[0].t.have.n_set;
        track_run(&k, 23 * SECOND);
        const double rate = (racers[0].t.have.n_set - before) * (double)TRACK_VALUES / 3;
        const double path = GRANT * TRACK_VALUES * 1e6 / (double)trips[i];
        print_message("%d ms: %.0f bytes/s\n", (int)(trips[i] / MS), rate);
        assert_true(rate > 0.75 * (path < 4 * MBIT ? path : 4 * MBIT));
        track_close(&k);
    }
}

static void a_silence_is_answered_with_one_request_at_a_time(void **state)
{
    (void)state;
    struct track k;
    struct elv_sim_way w = way(25 * MS, 0, 0);
    w.outages = (struct elv_sim_times){.first_us = 500 * MS};
    w.outage_us = 60 * SECOND;
    track_open(&k, &w, &w, 1);
    track_enter(&k, &racers[0], false, 3000, GRANT, 1);
    track_run(&k, 500 * MS);
    const uint32_t before = racers[0].n_sent;
    track_run(&k, 60 * SECOND);
    assert_in_range(racers[0].n_sent - before, 5, 2 * GRANT);
    assert_true(racers[0].t.n_flying <= 1);
    assert_true(track_run(&k, 100 * SECOND));
    assert_in_range(racers[0].n_sent, 3000, 3000 + 2 * GRANT);
    track_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_of_chunks_is_many_times_as_fast_as_one_in_a_round_trip),
        cmocka_unit_test(a_megabit_is_filled),
        cmocka_unit_test(two_transfers_share_a_megabit),
        cmocka_unit_test(four_transfers_starve_none_of_them),
        cmocka_unit_test(known_links_are_used_well),
        cmocka_unit_test(long_round_trips_repeat_nothing_that_arrives),
        cmocka_unit_test(a_narrow_link_carries_a_round_in_seconds),
        cmocka_unit_test(what_the_receiver_has_is_not_sent_again),
        cmocka_unit_test(a_lost_association_costs_two_windows_at_most),
        cmocka_unit_test(a_path_that_gets_longer_is_learnt),
        cmocka_unit_test(a_silence_is_answered_with_one_request_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
