/* SPDX-License-Identifier: Apache-2.0 */
/* Whenever the server of a stream dies: what was acknowledged counts, and once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stream_world.h"

enum { PEERS = 3, VERSIONS = 5, NUMBERS = 200 };
static const elv_time_us second = 1000000;

/* A client that keeps what it made until it knows what became of it. */
struct peer {
    bool has;
    struct elv_ticket t;
    struct upload u;
};

static struct peer peers[PEERS + 1];
static uint32_t acknowledged[NUMBERS]; /* claims, by assignment */

static void forget_all(void)
{
    memset(peers, 0, sizeof peers);
    memset(acknowledged, 0, sizeof acknowledged);
}

static void prepare(struct world *w, bool mixes)
{
    stream_init(w);
    forget_all();
    told.enough = 2;
    told.scale.mixes = mixes;
    told.scale.step = mixes ? 0.5 : 1.0;
    w->cfg.limits.clients_max = 4;
    world_set(w, "job", "rounds", "5");
    world_set(w, "sync", "quorum", "2");
    world_set(w, "select", "min_clients", "2");
    world_set(w, "sync", "deadline", "3600s");
    world_set(w, "aggregate", "max_weight", "1000");
    world_set(w, "transfer", "up", "q8");
}

static void make(struct world *w, uint32_t peer)
{
    struct peer *p = &peers[peer];
    p->has = true;
    stream_encode(w, &p->u, peer, &p->t);
    p->u.commit.samples = p->t.assignment; /* so that sums of weights tell who is in them */
}

/* One turn of a peer. False: the server is dead. */
static bool turn(struct world *w, uint32_t peer, bool *stop)
{
    struct peer *p = &peers[peer];
    struct elv_ticket t;
    enum elv_reason reason;
    if (!world_ticket(w, peer, &t)) {
        const struct elv_join join = world_join_of(w, peer);
        if (!w->disk.dead)
            world_join_as(w, peer, &join); /* a disk that fails refuses it */
        return !w->disk.dead;
    }
    *stop = t.what == ELV_WHAT_STOP;
    if (!p->has && t.what == ELV_WHAT_TRAIN) {
        p->t = t;
        make(w, peer);
    }
    if (!p->has)
        return true;
    for (uint32_t i = 0; i < p->u.n_chunks && !w->disk.dead; i++)
        world_put(w, &p->u, i);
    if (w->disk.dead)
        return false;
    const struct world_reply *r = world_commit(w, &p->u);
    if (w->disk.dead || !r->there)
        return !w->disk.dead;
    const enum elv_decision d = world_verdict(r, &reason);
    if (d == ELV_ACCEPTED)
        acknowledged[p->u.assignment] = p->u.assignment;
    p->has = d != ELV_ACCEPTED && r->code != ELV_CODE_CONFLICT;
    return true;
}

static bool drive(struct world *w)
{
    bool stop = false;
    for (uint32_t i = 0; i < 10 * VERSIONS && !stop; i++)
        for (uint32_t peer = 1; peer <= PEERS; peer++)
            if (!turn(w, peer, &stop))
                return false;
    return stop;
}

/* What versions say they were made from, and what the open round counts. */
static uint64_t weight_of_all(struct world *w)
{
    uint64_t sum = 0;
    for (uint32_t v = 1; v <= elv_server_stats(w->s)->version; v++) {
        const struct fake_item *item = fake_disk_record(&w->disk, ELV_TABLE_VERSION, v);
        struct elv_rec_version rec;
        assert_non_null(item);
        assert_int_equal(elv_rec_version_decode((struct elv_bytes){item->at, item->len}, &rec),
                         ELV_OK);
        assert_int_equal(rec.n_used, 2);
        sum += rec.weight_sum;
    }
    return sum;
}

static void check(struct world *w)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < NUMBERS; i++)
        sum += acknowledged[i];
    const struct elv_server_stats *s = elv_server_stats(w->s);
    assert_true(s->over);
    assert_int_equal(s->version, VERSIONS);
    assert_int_equal(s->rounds_abandoned, 0);
    assert_true(s->weight_bits >= 0);
    assert_int_equal(weight_of_all(w), sum << s->weight_bits);
    assert_int_equal(w->disk.n_logs, 0);
    assert_int_equal(s->updates_before + s->updates_used, 2 * VERSIONS);
}

static void dying_at_any_transaction_counts_what_was_acknowledged_once(void **state)
{
    (void)state;
    for (int mixes = 0; mixes < 2; mixes++) {
        bool through = false;
        uint64_t k = 1;
        for (; !through; k++) {
            static struct world w;
            prepare(&w, mixes);
            w.disk.crash_at = k;
            world_start(&w);
            through = drive(&w) && !w.disk.dead;
            if (!through) {
                world_crash(&w, k % 2 == 0);
                assert_int_equal(world_try_start(&w), ELV_OK);
                assert_true(drive(&w));
            }
            check(&w);
            world_free(&w);
        }
        assert_true(k > 20);
    }
}

static void dying_at_any_request_counts_what_was_acknowledged_once(void **state)
{
    (void)state;
    bool through = false;
    for (uint32_t k = 1; !through; k++) {
        static struct world w;
        prepare(&w, true);
        world_start(&w);
        w.requests_left = k;
        through = drive(&w);
        if (!through) {
            world_crash(&w, k % 2 == 0);
            assert_int_equal(world_try_start(&w), ELV_OK);
            assert_true(drive(&w));
        }
        check(&w);
        world_free(&w);
    }
}

static void dying_again_and_again_loses_nothing(void **state)
{
    (void)state;
    for (uint64_t step = 2; step < 9; step++) {
        static struct world w;
        prepare(&w, step % 2 == 0);
        w.disk.crash_at = step;
        world_start(&w);
        for (uint32_t lives = 1; !drive(&w); lives++) {
            assert_true(lives < 200);
            world_crash(&w, lives % 2 == 0);
            w.disk.crash_at = w.disk.n_transactions + step;
            assert_int_equal(world_try_start(&w), ELV_OK);
        }
        check(&w);
        world_free(&w);
    }
}

static void failing_stores_count_what_was_acknowledged_once(void **state)
{
    (void)state;
    for (uint64_t k = 1; k < 60; k++) {
        static struct world w;
        prepare(&w, false);
        world_start(&w);
        bool stop = false;
        for (uint32_t i = 0; i < 40 * VERSIONS && !stop; i++) {
            if (i == k / 3)
                w.disk.fail = 1 + (uint32_t)k % 3;
            for (uint32_t peer = 1; peer <= PEERS; peer++)
                turn(&w, peer, &stop);
            world_advance(&w, second);
        }
        assert_true(stop);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < NUMBERS; i++)
            sum += acknowledged[i];
        /* Who was told of no decision may count all the same. */
        assert_true(weight_of_all(&w) >= sum << elv_server_stats(w.s)->weight_bits);
        assert_int_equal(w.disk.n_logs, 0);
        world_free(&w);
    }
}

/* The version's transaction fails, then the server is told to stop: what it puts down must not name
 * the log that the version would have begun. */
static void stopping_after_a_version_could_not_be_stored_loses_no_update(void **state)
{
    (void)state;
    for (uint32_t fails = 1; fails < 4; fails++) {
        static struct world w;
        struct elv_event stop = {.kind = ELV_EV_STOP};
        prepare(&w, fails % 2 == 0);
        world_start(&w);
        world_join(&w, 1);
        world_join(&w, 2);
        for (uint32_t peer = 1; peer <= 2; peer++) {
            stream_work(&w, peer, &peers[peer].t);
            make(&w, peer);
            for (uint32_t i = 0; i < peers[peer].u.n_chunks; i++)
                world_put(&w, &peers[peer].u, i);
        }
        assert_int_equal(world_verdict(world_commit(&w, &peers[1].u), NULL), ELV_ACCEPTED);
        w.halt_storing = true; /* both count, and the version waits for the disk */
        world_commit(&w, &peers[2].u);
        w.halt_storing = false;
        w.disk.fail = fails;
        world_settle(&w);
        assert_int_equal(elv_server_stats(w.s)->version, 0);
        w.disk.fail = 0;
        world_event(&w, &stop);
        world_settle(&w);
        assert_true(w.ended);
        world_crash(&w, fails % 2 == 0);
        world_start(&w);
        assert_int_equal(elv_server_stats(w.s)->version, 1);
        assert_int_equal(elv_server_stats(w.s)->rounds_abandoned, 0);
        assert_int_equal(weight_of_all(&w), (peers[1].u.assignment + peers[2].u.assignment)
                                                << elv_server_stats(w.s)->weight_bits);
        bool ended = false;
        peers[1].has = peers[2].has = false;
        for (uint32_t i = 0; i < 10 * VERSIONS && !ended; i++)
            for (uint32_t peer = 1; peer <= PEERS; peer++)
                turn(&w, peer, &ended);
        assert_true(ended);
        assert_int_equal(w.disk.n_logs, 0);
        world_free(&w);
    }
}

/* It died when it had just made the file of the next log, and then goes on with the one before:
 * there is an upload half through in it. */
static void an_empty_log_that_is_left_goes(void **state)
{
    (void)state;
    static struct world w;
    struct elv_ticket t;
    prepare(&w, false);
    world_start(&w);
    world_join(&w, 1);
    world_join(&w, 2);
    stream_work(&w, 1, &peers[1].t);
    make(&w, 1);
    world_put(&w, &peers[1].u, 0);
    const struct elv_action empty = {
        .kind = ELV_DO_STORE, .store = {.kind = ELV_STORE_APPEND, .number = w.s->head.next_seq}};
    world_crash(&w, false);
    fake_disk_submit(&w.disk, &empty, 1);
    fake_disk_flush(&w.disk);
    assert_int_equal(w.disk.n_logs, 2);
    world_start(&w);
    for (int i = 0; i < 2; i++) {
        stream_work(&w, 2, &t);
        assert_true(stream_deliver(&w, 2, &t));
    }
    assert_int_equal(elv_server_stats(w.s)->version, 1);
    assert_int_equal(w.disk.n_logs, 1);
    assert_true(drive(&w));
    assert_int_equal(w.disk.n_logs, 0);
    world_free(&w);
}

static void a_transfer_goes_on_where_it_was_over_publications_and_restarts(void **state)
{
    (void)state;
    for (int power = 0; power < 2; power++) {
        static struct world w;
        struct elv_ticket other;
        struct elv_progress p;
        prepare(&w, false);
        told.enough = 0;
        world_set(&w, "transfer", "up", "f32");
        world_start(&w);
        world_join(&w, 1);
        world_join(&w, 2);
        stream_work(&w, 2, &peers[2].t);
        make(&w, 2);
        assert_int_equal(peers[2].u.n_chunks, 5);
        world_put(&w, &peers[2].u, 0);
        world_put(&w, &peers[2].u, 3);
        for (int i = 0; i < 3; i++) {
            told.enough = i == 2 ? 2 : 0; /* the last one publishes, and so syncs the log */
            stream_work(&w, 1, &other);
            assert_true(stream_deliver(&w, 1, &other));
        }
        assert_int_equal(elv_server_stats(w.s)->version, 1);
        world_crash(&w, power);
        world_start(&w);
        assert_true(world_ticket(&w, 2, &other));
        assert_int_equal(other.assignment, peers[2].t.assignment);
        assert_int_equal(other.version, 0);
        assert_memory_equal(other.model, peers[2].t.model, 32);
        const struct world_reply *r = world_put(&w, &peers[2].u, 3);
        assert_int_equal(elv_progress_decode((struct elv_bytes){r->body, r->len}, &p), ELV_OK);
        assert_int_equal(p.missing.first, 1);
        assert_int_equal(elv_server_stats(w.s)->chunks_repeated, 1);
        for (uint32_t i = 0; i < peers[2].u.n_chunks; i++)
            world_put(&w, &peers[2].u, i);
        assert_int_equal(world_verdict(world_commit(&w, &peers[2].u), NULL), ELV_ACCEPTED);
        assert_int_equal(told.update.staleness, 3);
        world_free(&w);
    }
}

static void a_restart_gives_the_rest_of_the_time_and_no_more(void **state)
{
    (void)state;
    static struct world w;
    struct elv_ticket t;
    prepare(&w, false);
    world_set(&w, "sync", "deadline", "30s");
    world_start(&w);
    world_join(&w, 1);
    world_join(&w, 2);
    stream_work(&w, 1, &peers[1].t);
    for (int i = 0; i < 5; i++) {
        world_advance(&w, 5 * second);
        world_crash(&w, i % 2 == 0);
        w.now += 1000 * second; /* it is down for long */
        world_start(&w);
        assert_true(world_ticket(&w, 1, &t));
        assert_int_equal(t.assignment, peers[1].t.assignment);
        const uint32_t left = 30000 - 5000 * (uint32_t)(i + 1);
        assert_true(t.deadline_ms >= left && t.deadline_ms <= left + 1001);
    }
    world_advance(&w, 6 * second);
    assert_int_equal(elv_server_stats(w.s)->lapsed, 1);
    world_free(&w);
}

static void several_updates_of_one_client_fold_again(void **state)
{
    (void)state;
    uint8_t digest[2][32];
    for (int crash = 0; crash < 2; crash++) {
        static struct world w;
        struct elv_ticket t;
        prepare(&w, false);
        told.enough = 4;
        world_start(&w);
        world_join(&w, 1);
        world_join(&w, 2);
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t peer = i == 2 ? 2 : 1;
            stream_work(&w, peer, &t);
            assert_true(stream_deliver(&w, peer, &t));
            if (crash && i < 3) {
                world_crash(&w, true);
                world_start(&w);
                assert_int_equal(w.s->round.n_got, i + 1);
            }
        }
        assert_int_equal(elv_server_stats(w.s)->version, 1);
        assert_true(told.commit.round.n_got == 4);
        memcpy(digest[crash], elv_server_stats(w.s)->model, 32);
        world_free(&w);
    }
    assert_memory_equal(digest[0], digest[1], 32);
}

static void a_restart_under_another_policy_ends_the_round_of_the_one_before(void **state)
{
    (void)state;
    for (int to_rounds = 0; to_rounds < 2; to_rounds++) {
        static struct world w;
        struct elv_ticket t;
        prepare(&w, false);
        told.enough = 0;
        world_set(&w, "select", "min_clients", "3");
        if (!to_rounds)
            w.cfg.sync = NULL; /* bsp */
        world_start(&w);
        for (uint32_t peer = 1; peer <= 3; peer++)
            world_join(&w, peer);
        for (uint32_t peer = 1; peer <= 2; peer++) {
            stream_work(&w, peer, &t);
            assert_true(stream_deliver(&w, peer, &t));
        }
        stream_work(&w, 3, &peers[3].t);
        make(&w, 3);
        world_put(&w, &peers[3].u, 0);
        assert_int_equal(elv_server_stats(w.s)->version, 0);
        world_crash(&w, true);
        w.cfg.sync = to_rounds ? NULL : &streaming;
        told.enough = 2;
        world_start(&w);
        assert_int_equal(elv_server_stats(w.s)->version, 1); /* it had the quorum */
        assert_int_equal(world_put(&w, &peers[3].u, 1)->code, ELV_CODE_CONFLICT);
        forget_all();
        assert_true(drive(&w));
        assert_int_equal(elv_server_stats(w.s)->version, VERSIONS);
        assert_int_equal(w.disk.n_logs, 0);
        world_free(&w);
    }
}

static void more_versions_after_the_end_go_on_from_the_last(void **state)
{
    (void)state;
    static struct world w;
    struct elv_ticket t;
    prepare(&w, false);
    world_start(&w);
    assert_true(drive(&w));
    const uint32_t before = w.s->head.next_assignment;
    world_set(&w, "job", "rounds", "8");
    world_crash(&w, true);
    world_start(&w);
    assert_false(elv_server_stats(w.s)->over);
    forget_all();
    assert_true(stream_work(&w, 1, &t) >= before); /* what was handed out before is void */
    assert_true(drive(&w));
    assert_int_equal(elv_server_stats(w.s)->version, 8);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dying_at_any_transaction_counts_what_was_acknowledged_once),
        cmocka_unit_test(dying_at_any_request_counts_what_was_acknowledged_once),
        cmocka_unit_test(dying_again_and_again_loses_nothing),
        cmocka_unit_test(failing_stores_count_what_was_acknowledged_once),
        cmocka_unit_test(stopping_after_a_version_could_not_be_stored_loses_no_update),
        cmocka_unit_test(an_empty_log_that_is_left_goes),
        cmocka_unit_test(a_transfer_goes_on_where_it_was_over_publications_and_restarts),
        cmocka_unit_test(a_restart_gives_the_rest_of_the_time_and_no_more),
        cmocka_unit_test(several_updates_of_one_client_fold_again),
        cmocka_unit_test(a_restart_under_another_policy_ends_the_round_of_the_one_before),
        cmocka_unit_test(more_versions_after_the_end_go_on_from_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
