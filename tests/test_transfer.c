/* SPDX-License-Identifier: Apache-2.0 */
#include "client/transfer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum { MS = 1000, CHUNKS_MAX = 700, QUEUE_MAX = 4096 };

/* A receiver at the other end of a link with a fate for each transmission and answer. */
struct answer {
    elv_time_us at;
    uint32_t id;
    struct elv_missing missing;
};

struct peer {
    uint64_t words[ELV_BITMAP_WORDS(CHUNKS_MAX)];
    struct elv_bitmap got;
    uint32_t times[CHUNKS_MAX]; /* each chunk arrived so often */
    struct answer queue[QUEUE_MAX];
    uint32_t n_queue;
};

struct world {
    struct elv_transfer t;
    struct elv_flight flights[ELV_WINDOW_MAX];
    uint64_t words[ELV_BITMAP_WORDS(CHUNKS_MAX)];
    struct peer peer;
    elv_time_us now;
    uint32_t id, n_messages, n_sent, flying_max;
    /* Message number `n` (requests and answers alike) is lost, or late by this much. */
    bool (*lost)(uint32_t n);
    elv_time_us (*delay)(uint32_t n);
};

static bool never(uint32_t n) { return n == UINT32_MAX; }
static elv_time_us steady(uint32_t n) { return n == UINT32_MAX ? 0 : 25 * MS; }
static elv_time_us scrambled(uint32_t n) { return 5 * MS + (elv_time_us)(n * 37 % 11) * 7 * MS; }

static void start(struct world *w, uint32_t n, bool (*lost)(uint32_t),
                  elv_time_us (*delay)(uint32_t))
{
    *w = (struct world){.lost = lost, .delay = delay};
    elv_bitmap_init(&w->peer.got, w->peer.words, n);
    elv_transfer_init(&w->t, w->flights, ELV_WINDOW_MAX);
    elv_transfer_grant(&w->t, ELV_WINDOW_MAX);
    elv_transfer_begin(&w->t, w->words, n);
}

/* The chunk arrives (or not), and its answer is on its way back (or not). */
static void carry(struct world *w, const struct elv_transmission *s, uint32_t id)
{
    const uint32_t n = w->n_messages;
    w->n_messages += 2;
    w->n_sent++;
    if (w->lost(n))
        return;
    w->peer.times[s->chunk]++;
    elv_bitmap_set(&w->peer.got, s->chunk);
    if (w->lost(n + 1))
        return;
    assert_in_range(w->peer.n_queue, 0, QUEUE_MAX - 1);
    struct answer *a = &w->peer.queue[w->peer.n_queue++];
    *a = (struct answer){.at = w->now + w->delay(n) + w->delay(n + 1), .id = id};
    elv_missing_of(&w->peer.got, &a->missing);
}

static bool arrived(struct world *w, struct answer *out)
{
    for (uint32_t i = 0; i < w->peer.n_queue; i++) {
        if (w->peer.queue[i].at > w->now)
            continue;
        *out = w->peer.queue[i];
        w->peer.queue[i] = w->peer.queue[--w->peer.n_queue];
        return true;
    }
    return false;
}

static elv_time_us next_event(const struct world *w)
{
    elv_time_us at = elv_transfer_deadline(&w->t);
    for (uint32_t i = 0; i < w->peer.n_queue; i++)
        at = w->peer.queue[i].at < at ? w->peer.queue[i].at : at;
    return at;
}

static void turn(struct world *w)
{
    struct answer a;
    struct elv_transmission s;
    while (arrived(w, &a)) {
        uint32_t chunk;
        if (!elv_transfer_answered(&w->t, w->now, a.id, &chunk))
            continue;
        elv_transfer_have(&w->t, chunk);
        elv_transfer_progress(&w->t, &a.missing);
    }
    elv_transfer_expire(&w->t, w->now);
    while (elv_transfer_next(&w->t, w->now, w->id + 1, &s))
        carry(w, &s, ++w->id);
    w->flying_max = w->t.n_flying > w->flying_max ? w->t.n_flying : w->flying_max;
}

/* Until the sender believes it is done; then the receiver must agree. */
static void finish(struct world *w)
{
    for (int i = 0; i < 100000 && !elv_transfer_complete(&w->t); i++) {
        turn(w);
        const elv_time_us at = next_event(w);
        if (elv_transfer_complete(&w->t))
            break;
        assert_true(at != ELV_NEVER);
        w->now = at > w->now ? at : w->now;
    }
    assert_true(elv_transfer_complete(&w->t));
    assert_int_equal(w->peer.got.n_set, w->peer.got.n);
}

static void a_clean_link_carries_each_chunk_once_and_the_window_grows_to_the_grant(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 4, 5, 31, 32, 33, 63, 64, 65, 511, 512, 513, 700};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        static struct world w;
        start(&w, sizes[i], never, steady);
        finish(&w);
        assert_int_equal(w.n_sent, sizes[i]);
        assert_in_range(w.flying_max, 1, ELV_WINDOW_MAX);
        if (sizes[i] >= 511)
            assert_int_equal(w.flying_max, ELV_WINDOW_MAX);
    }
}

static uint32_t nth; /* every nth message is lost */
static bool every_nth(uint32_t n) { return n % nth == nth - 1; }
static bool a_burst(uint32_t n) { return n >= 40 && n < 110; }
static bool all_answers_of_the_first_hundred(uint32_t n) { return n < 200 && n % 2 == 1; }
static bool mixed(uint32_t n) { return (n * 2654435761u >> 24) < 77; } /* three in ten */

static void any_pattern_of_losses_is_filled(void **state)
{
    (void)state;
    static bool (*const patterns[])(uint32_t) = {a_burst, all_answers_of_the_first_hundred, mixed};
    static struct world w;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        start(&w, 600, patterns[i], steady);
        finish(&w);
        start(&w, 600, patterns[i], scrambled);
        finish(&w);
    }
    for (nth = 3; nth <= 17; nth += 2) { /* odd: requests and answers are hit in turn */
        start(&w, 300, every_nth, scrambled);
        finish(&w);
    }
}

static void what_the_receivers_list_shows_is_not_sent_again(void **state)
{
    (void)state;
    static struct world w;
    start(&w, 600, all_answers_of_the_first_hundred, steady);
    finish(&w);
    uint32_t twice = 0;
    for (uint32_t i = 0; i < 600; i++)
        twice += w.peer.times[i] > 1;
    assert_in_range(w.n_sent, 600, 700);
    assert_in_range(twice, 0, 100);
    assert_in_range(w.t.flow.delivered, 600, 600 + w.n_sent - 600); /* the list counts as answers */
}

static void in_silence_one_is_repeated_and_then_one_at_a_time(void **state)
{
    (void)state;
    static struct world w;
    start(&w, 600, never, steady);
    while (w.n_sent < 400) {
        turn(&w);
        w.now = next_event(&w);
    }
    turn(&w);
    w.peer.n_queue = 0; /* nothing comes any more */
    const elv_time_us since = w.now;
    struct elv_transmission s;
    for (int i = 0; i < 6; i++) {
        w.now = elv_transfer_deadline(&w.t);
        elv_transfer_expire(&w.t, w.now);
        uint32_t n = 0;
        while (elv_transfer_next(&w.t, w.now, ++w.id, &s)) {
            n++;
            assert_true(s.repeated);
        }
        assert_int_equal(n, 1);
        assert_true(i == 0 || w.t.n_flying == 1);
    }
    assert_in_range(w.now - since, 1000 * MS, 6000 * MS);
    uint32_t chunk, last = 0;
    for (uint32_t i = 0; i < w.t.n_flights; i++)
        last = w.t.flights[i].state == ELV_FLIGHT_FLYING ? w.t.flights[i].id[0] : last;
    assert_true(w.t.flow.window > 2 * ELV_WINDOW_FIRST);
    assert_true(elv_transfer_answered(&w.t, w.now + 50 * MS, last, &chunk));
    assert_true(w.t.flow.quick); /* after so long it is taken for another path */
    assert_in_range(w.t.flow.window, ELV_WINDOW_FIRST, 2 * ELV_WINDOW_FIRST);
}

static void a_shrunken_window_does_not_keep_a_silence_from_being_looked_into(void **state)
{
    (void)state;
    static struct world w;
    start(&w, 600, never, steady);
    while (w.n_sent < 100) {
        turn(&w);
        w.now = next_event(&w);
    }
    turn(&w);
    w.t.flow.window = 1;
    assert_true(w.t.n_flying > 5);
    struct elv_transmission s;
    w.now = elv_transfer_deadline(&w.t);
    elv_transfer_expire(&w.t, w.now);
    assert_true(elv_transfer_next(&w.t, w.now, 9000, &s));
    assert_true(s.repeated);
    assert_false(elv_transfer_next(&w.t, w.now, 9001, &s));
}

/* A body of `n` chunks of which eight were answered, one by one, in 100 ms each. Returns a time
 * when nothing holds the next ones back. */
static elv_time_us fly(struct world *w, uint32_t n)
{
    start(w, n, never, steady);
    struct elv_transmission s;
    uint32_t chunk;
    elv_time_us now = 0;
    for (int i = 0; i < 8; i++, now += 100 * MS) { /* until there is a window of some */
        assert_true(elv_transfer_next(&w->t, now, ++w->id, &s));
        const uint32_t id = w->id;
        assert_true(elv_transfer_answered(&w->t, now + 100 * MS, id, &chunk));
        elv_transfer_have(&w->t, chunk);
    }
    return now + 5000 * MS;
}

static uint32_t send_all(struct world *w, elv_time_us now, uint32_t most)
{
    struct elv_transmission s;
    uint32_t n = 0;
    while (n < most && elv_transfer_next(&w->t, now, w->id + 1, &s)) {
        w->id++;
        n++;
    }
    return n;
}

static void a_request_that_others_overtook_is_lost_after_a_margin(void **state)
{
    (void)state;
    static struct world w;
    const elv_time_us now = fly(&w, 100);
    const uint32_t first = w.id + 1;
    assert_int_equal(send_all(&w, now, 3), 3);
    elv_transfer_expire(&w.t, now + 50 * MS);
    assert_int_equal(w.t.n_flying, 3);
    uint32_t chunk;
    assert_true(elv_transfer_answered(&w.t, now + 100 * MS, first + 2, &chunk));
    elv_transfer_have(&w.t, chunk);
    assert_true(elv_transfer_deadline(&w.t) <= now + 125 * MS); /* a quarter of 100 ms later */
    elv_transfer_expire(&w.t, now + 125 * MS - 1);
    assert_int_equal(w.t.n_flying, 2);
    elv_transfer_expire(&w.t, now + 125 * MS);
    assert_int_equal(w.t.n_flying, 0);
    struct elv_transmission s;
    assert_true(elv_transfer_next(&w.t, now + 125 * MS, 900, &s));
    assert_true(s.repeated && s.chunk == chunk - 2);
}

static void an_answer_after_its_repeat_widens_the_margin(void **state)
{
    (void)state;
    static struct world w;
    const elv_time_us now = fly(&w, 100);
    const uint32_t first = w.id + 1;
    uint32_t chunk;
    assert_int_equal(send_all(&w, now, 2), 2);
    assert_true(elv_transfer_answered(&w.t, now + 100 * MS, first + 1, &chunk));
    elv_transfer_have(&w.t, chunk);
    elv_transfer_expire(&w.t, now + 125 * MS);
    assert_int_equal(w.t.margin, 1);
    assert_int_equal(send_all(&w, now + 125 * MS, 1), 1); /* again */
    assert_true(elv_transfer_answered(&w.t, now + 130 * MS, first, &chunk));
    elv_transfer_have(&w.t, chunk);
    assert_int_equal(w.t.margin, 2);
    assert_int_equal(w.t.flow.n_lost, 0);
    w.t.flow.round += 16; /* without another one */
    const elv_time_us later = now + 1000 * MS;
    assert_int_equal(send_all(&w, later, 1), 1);
    assert_true(elv_transfer_answered(&w.t, later + 100 * MS, w.id, &chunk));
    assert_int_equal(w.t.margin, 1);
}

static void requests_sent_in_one_moment_have_an_order(void **state)
{
    (void)state;
    static struct world w;
    const elv_time_us now = fly(&w, 100);
    const uint32_t first = w.id + 1;
    uint32_t chunk;
    assert_int_equal(send_all(&w, now, 3), 3);
    assert_true(elv_transfer_answered(&w.t, now + 100 * MS, first + 1, &chunk));
    elv_transfer_have(&w.t, chunk);
    elv_transfer_expire(&w.t, now + 126 * MS);
    assert_int_equal(w.t.n_flying, 1); /* the first is lost, the third is not */
    assert_true(elv_transfer_knows(&w.t, first + 2));
}

static void the_last_chunk_is_repeated_before_a_timeout_is_over(void **state)
{
    (void)state;
    static struct world w;
    start(&w, 60, never, steady);
    w.lost = never;
    while (w.t.have.n_set < 59) {
        turn(&w);
        for (uint32_t i = 0; i < w.peer.n_queue; i++) /* the last one's answer is lost */
            if (w.n_sent == 60 && w.peer.queue[i].id == w.id)
                w.peer.queue[i] = w.peer.queue[--w.peer.n_queue];
        memset(&w.peer.queue[w.peer.n_queue], 0, sizeof w.peer.queue[0]);
        for (uint32_t i = 0; i < w.peer.n_queue; i++) { /* and nobody tells of it */
            w.peer.queue[i].missing.first = 0;
            memset(w.peer.queue[i].missing.have, 0, sizeof w.peer.queue[i].missing.have);
        }
        const elv_time_us at = next_event(&w);
        if (w.t.have.n_set < 59)
            w.now = at > w.now ? at : w.now;
    }
    const elv_time_us sent = w.t.sent_us, wait = elv_transfer_deadline(&w.t) - sent;
    assert_in_range(wait, 60 * MS,
                    130 * MS); /* of a round trip of 50 ms; no timeout is below 200 */
    assert_true(elv_rto(&w.t.flow.rtt) >= 200 * MS);
}

static void few_losses_leave_the_window_and_many_shrink_it(void **state)
{
    (void)state;
    static struct world w;
    nth = 20; /* every tenth round trip */
    start(&w, 700, every_nth, steady);
    finish(&w);
    assert_int_equal(w.flying_max, ELV_WINDOW_MAX);
    assert_true(w.t.flow.ceiling == ELV_WINDOW_MAX);
    struct elv_flow f = w.t.flow;
    for (int i = 0; i < 70; i++) {
        if (i % 2 == 0)
            elv_flow_lost(&f);
        else
            elv_flow_delivered(&f);
    }
    assert_in_range(f.ceiling, ELV_WINDOW_FIRST, ELV_WINDOW_MAX * 7 / 10);
    assert_true(f.window <= f.ceiling);
    for (int i = 0; i < 2000; i++) { /* as many whatever the window is: nothing is gained by less */
        if (i % 2 == 0)
            elv_flow_lost(&f);
        else
            elv_flow_delivered(&f);
    }
    assert_int_equal(f.ceiling, ELV_WINDOW_MAX);
}

static void what_the_window_frees_at_once_is_not_sent_at_once(void **state)
{
    (void)state;
    static struct world w;
    start(&w, 700, never, steady);
    while (w.n_sent < 500) {
        turn(&w);
        w.now = next_event(&w);
    }
    /* Half of the window is answered in one moment. */
    const uint32_t before = w.n_sent;
    w.now += 20 * MS;
    turn(&w);
    assert_in_range(w.n_sent - before, 1, ELV_WINDOW_MAX / 2);
    assert_true(elv_transfer_deadline(&w.t) > w.now);
    assert_true(elv_transfer_deadline(&w.t) < w.now + 10 * MS);
    finish(&w);
}

static void repeats_wait_twice_as_long_up_to_ten_seconds(void **state)
{
    (void)state;
    struct elv_transfer t;
    struct elv_flight flights[ELV_WINDOW_MAX];
    uint64_t words[1];
    struct elv_transmission s;
    elv_transfer_init(&t, flights, ELV_WINDOW_MAX);
    elv_transfer_begin(&t, words, 1);
    static const elv_time_us waits[] = {3000000, 6000000, 10000000, 10000000};
    elv_time_us now = 5;
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(elv_transfer_next(&t, now, 10 + i, &s));
        assert_int_equal(s.repeated, i > 0);
        assert_false(elv_transfer_next(&t, now, 99, &s));
        assert_int_equal(elv_transfer_deadline(&t), now + waits[i]);
        elv_transfer_expire(&t, now + waits[i] - 1);
        assert_true(elv_transfer_waits(&t));
        now += waits[i];
        elv_transfer_expire(&t, now);
        assert_false(elv_transfer_waits(&t));
    }
}

static void a_late_answer_counts_and_its_time_is_measured_from_its_own_sending(void **state)
{
    (void)state;
    struct elv_transfer t;
    struct elv_flight flights[ELV_WINDOW_MAX];
    uint64_t words[1];
    struct elv_transmission s;
    uint32_t chunk;
    elv_transfer_init(&t, flights, ELV_WINDOW_MAX);
    elv_transfer_begin(&t, words, 1);
    assert_true(elv_transfer_next(&t, 0, 1, &s));
    elv_transfer_expire(&t, 3000000);
    assert_true(elv_transfer_next(&t, 3000000, 2, &s));
    assert_int_equal(s.forget[0], 0);
    assert_true(elv_transfer_answered(&t, 3500000, 1, &chunk)); /* the first one, at last */
    assert_int_equal(chunk, 0);
    assert_int_equal(t.flow.rtt.smoothed, 3500000);
    assert_false(elv_transfer_answered(&t, 3500000, 1, &chunk)); /* a duplicate of it */
    elv_transfer_have(&t, 0);
    assert_true(elv_transfer_complete(&t));
    assert_false(elv_transfer_answered(&t, 3500000, 2, &chunk)); /* nobody waits any more */
    assert_false(elv_transfer_answered(&t, 3500000, 77, &chunk));
}

static void an_id_is_forgotten_once_its_place_is_needed(void **state)
{
    (void)state;
    struct elv_transfer t;
    struct elv_flight flights[ELV_WINDOW_MAX];
    uint64_t words[1];
    struct elv_transmission s;
    elv_transfer_init(&t, flights, ELV_WINDOW_MAX);
    elv_transfer_grant(&t, 1);
    elv_transfer_begin(&t, words, 2);
    elv_time_us now = 0;
    assert_true(elv_transfer_next(&t, now, 1, &s));
    for (uint32_t id = 2; id <= 3; id++) {
        now = elv_transfer_deadline(&t);
        elv_transfer_expire(&t, now);
        assert_true(elv_transfer_next(&t, now, id, &s));
    }
    assert_int_equal(s.forget[0], 1); /* two transmissions are remembered, not three */
    assert_true(elv_transfer_knows(&t, 2) && elv_transfer_knows(&t, 3));
    elv_transfer_have(&t, 0);
    assert_true(elv_transfer_next(&t, now, 4, &s));
    assert_int_equal(s.chunk, 1);
    assert_true(s.forget[0] == 2 && s.forget[1] == 3);
    assert_false(elv_transfer_knows(&t, 2) || elv_transfer_knows(&t, 3));
}

static void an_answer_to_the_body_before_means_nothing_for_this_one(void **state)
{
    (void)state;
    struct elv_transfer t;
    struct elv_flight flights[ELV_WINDOW_MAX];
    uint64_t words[1];
    struct elv_transmission s;
    uint32_t chunk;
    elv_transfer_init(&t, flights, ELV_WINDOW_MAX);
    elv_transfer_begin(&t, words, 3);
    assert_true(elv_transfer_next(&t, 0, 1, &s));
    elv_transfer_begin(&t, words, 3);
    assert_false(elv_transfer_answered(&t, 10, 1, &chunk));
    elv_transfer_end(&t);
    assert_false(elv_transfer_complete(&t));
    assert_true(elv_transfer_deadline(&t) == ELV_NEVER);
}

static void what_the_receiver_lost_is_sent_again(void **state)
{
    (void)state;
    static struct world w;
    start(&w, 600, never, steady);
    finish(&w);
    /* It says: the first 40 are there, of the next 512 every third is not, the rest unknown. */
    struct elv_missing m = {.first = 40};
    uint32_t n_lost = 0;
    for (uint32_t i = 0; i < ELV_MISSING_BITS; i++) {
        const bool lost = i % 3 == 0;
        n_lost += lost;
        m.have[i / 8] |= (uint8_t)(!lost << i % 8);
        if (lost)
            elv_bitmap_clear(&w.peer.got, 40 + i);
    }
    elv_transfer_missing(&w.t, &m);
    assert_false(elv_transfer_complete(&w.t));
    const uint32_t before = w.n_sent;
    finish(&w);
    assert_int_equal(w.n_sent - before, n_lost);
}

static void a_list_beyond_the_body_is_harmless(void **state)
{
    (void)state;
    struct elv_transfer t;
    struct elv_flight flights[ELV_WINDOW_MAX];
    uint64_t words[1];
    elv_transfer_init(&t, flights, ELV_WINDOW_MAX);
    elv_transfer_begin(&t, words, 10);
    struct elv_missing m = {.first = 8};
    for (size_t i = 0; i < sizeof m.have; i++)
        m.have[i] = 0xFF;
    elv_transfer_progress(&t, &m);
    assert_true(elv_transfer_complete(&t));
    m.first = UINT32_MAX;
    elv_transfer_missing(&t, &m);
    assert_true(elv_transfer_complete(&t));
    elv_transfer_end(&t);
    elv_transfer_progress(&t, &m);
    elv_transfer_missing(&t, &m);
    elv_transfer_have(&t, 0);
    assert_false(elv_transfer_complete(&t));
}

static void after_a_new_association_one_request_asks_the_way(void **state)
{
    (void)state;
    static struct world w;
    start(&w, 600, never, steady);
    for (turn(&w); w.n_sent < 200; turn(&w))
        w.now = next_event(&w);
    w.peer.n_queue = 0; /* the receiver has all that was sent; its answers died with the link */
    const uint32_t before = w.n_sent;
    w.now += 3000 * MS;
    elv_transfer_relink(&w.t);
    turn(&w);
    assert_int_equal(w.t.n_flying, 1);
    finish(&w);
    assert_int_equal(w.n_sent, 600 + 1); /* that one request is all that was sent twice */
    assert_in_range(before, 200, 599);
}

static void what_the_old_association_took_along_is_sent_once_more_and_no_oftener(void **state)
{
    (void)state;
    static struct world w;
    start(&w, 600, never, steady);
    for (turn(&w); w.n_sent < 200; turn(&w))
        w.now = next_event(&w);
    uint32_t ids[ELV_WINDOW_MAX], n = 0;
    for (uint32_t i = 0; i < ELV_WINDOW_MAX; i++)
        if (w.t.flights[i].state == ELV_FLIGHT_FLYING)
            ids[n++] = w.t.flights[i].id[0];
    assert_in_range(n, 2, ELV_WINDOW_MAX);
    w.peer.n_queue = 0;
    w.now += 3000 * MS;
    elv_transfer_relink(&w.t);
    turn(&w);
    for (uint32_t i = 0; i < n; i++) { /* of each in turn, while one asks the way */
        elv_transfer_unanswered(&w.t, ids[i]);
        turn(&w);
        assert_int_equal(w.t.n_flying, 1);
    }
    finish(&w);
    assert_int_equal(w.n_sent, 600 + 1);
}

static void time_that_the_device_slept_does_not_count(void **state)
{
    (void)state;
    static struct world w;
    start(&w, 600, never, steady);
    for (turn(&w); w.n_sent < 200; turn(&w))
        w.now = next_event(&w);
    const elv_time_us rto = elv_rto(&w.t.flow.rtt), asleep = 3600 * 1000 * (elv_time_us)MS;
    w.now += asleep;
    for (uint32_t i = 0; i < w.peer.n_queue; i++)
        w.peer.queue[i].at += asleep; /* they wait to be read */
    elv_transfer_slept(&w.t, asleep);
    finish(&w);
    assert_int_equal(w.n_sent, 600);
    assert_in_range(elv_rto(&w.t.flow.rtt), 1, 2 * rto);
}

static void a_pause_holds_everything_back_and_then_all_is_sent(void **state)
{
    (void)state;
    static struct world w;
    start(&w, 100, never, steady);
    turn(&w);
    elv_transfer_pause(&w.t, 5000 * MS);
    struct elv_transmission s;
    assert_false(elv_transfer_next(&w.t, 4999 * MS, 1000, &s));
    assert_int_equal(elv_transfer_deadline(&w.t), 5000 * MS);
    w.peer.n_queue = 0;
    w.now = 5000 * MS;
    finish(&w);
}

static void the_grant_bounds_what_is_in_flight(void **state)
{
    (void)state;
    static const struct {
        uint32_t grant, most;
    } rows[] = {{0, 1}, {1, 1}, {3, 3}, {8, 8}, {64, 64}, {65, 64}, {UINT32_MAX, 64}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct world w;
        start(&w, 700, never, steady);
        elv_transfer_grant(&w.t, rows[i].grant);
        finish(&w);
        assert_int_equal(w.flying_max, rows[i].most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_link_carries_each_chunk_once_and_the_window_grows_to_the_grant),
        cmocka_unit_test(any_pattern_of_losses_is_filled),
        cmocka_unit_test(what_the_receivers_list_shows_is_not_sent_again),
        cmocka_unit_test(in_silence_one_is_repeated_and_then_one_at_a_time),
        cmocka_unit_test(a_shrunken_window_does_not_keep_a_silence_from_being_looked_into),
        cmocka_unit_test(a_request_that_others_overtook_is_lost_after_a_margin),
        cmocka_unit_test(an_answer_after_its_repeat_widens_the_margin),
        cmocka_unit_test(requests_sent_in_one_moment_have_an_order),
        cmocka_unit_test(the_last_chunk_is_repeated_before_a_timeout_is_over),
        cmocka_unit_test(few_losses_leave_the_window_and_many_shrink_it),
        cmocka_unit_test(what_the_window_frees_at_once_is_not_sent_at_once),
        cmocka_unit_test(repeats_wait_twice_as_long_up_to_ten_seconds),
        cmocka_unit_test(a_late_answer_counts_and_its_time_is_measured_from_its_own_sending),
        cmocka_unit_test(an_id_is_forgotten_once_its_place_is_needed),
        cmocka_unit_test(an_answer_to_the_body_before_means_nothing_for_this_one),
        cmocka_unit_test(what_the_receiver_lost_is_sent_again),
        cmocka_unit_test(a_list_beyond_the_body_is_harmless),
        cmocka_unit_test(after_a_new_association_one_request_asks_the_way),
        cmocka_unit_test(what_the_old_association_took_along_is_sent_once_more_and_no_oftener),
        cmocka_unit_test(time_that_the_device_slept_does_not_count),
        cmocka_unit_test(a_pause_holds_everything_back_and_then_all_is_sent),
        cmocka_unit_test(the_grant_bounds_what_is_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
