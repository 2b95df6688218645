/* SPDX-License-Identifier: Apache-2.0 */
/* Policies that let clients start: work of their own, whatever is published meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "tests/stream_world.h"

static const elv_time_us second = 1000000;

static const struct elv_server_stats *stats(const struct world *w)
{
    return elv_server_stats(w->s);
}

static void start(struct world *w, uint32_t peers)
{
    stream_init(w);
    world_start(w);
    for (uint32_t peer = 1; peer <= peers; peer++)
        world_join(w, peer);
}

static void a_client_gets_work_when_it_asks_and_again_when_it_has_delivered(void **state)
{
    (void)state;
    static struct world w;
    struct elv_ticket t;
    start(&w, 1);
    assert_int_equal(stats(&w)->rounds_opened, 1);
    const uint32_t first = stream_work(&w, 1, &t), round = t.round;
    assert_int_equal(t.version, 0);
    assert_true(stream_deliver(&w, 1, &t));
    const uint32_t second_one = stream_work(&w, 1, &t);
    assert_true(second_one > first);
    assert_true(t.round != round);  /* other random numbers: not the same update again */
    assert_int_equal(t.version, 0); /* nothing was published yet */
    assert_int_equal(told.n_updates, 1);
    assert_true(told.update.version == 0 && told.update.staleness == 0);
    assert_int_equal(told.pulls, 2);
    world_free(&w);
}

static void who_asks_before_a_round_is_open_need_not_ask_again(void **state)
{
    (void)state;
    static struct world w;
    struct elv_ticket t;
    stream_init(&w);
    world_set(&w, "select", "min_clients", "2");
    world_start(&w);
    world_join(&w, 1);
    const struct elv_request ask = {.op = ELV_OP_TICKET, .observe = true};
    const struct world_reply *r = world_ask(&w, 1, &ask);
    assert_int_equal(elv_ticket_decode((struct elv_bytes){r->body, r->len}, &t), ELV_OK);
    assert_int_equal(t.what, ELV_WHAT_WAIT);
    assert_int_equal(w.n_notified, 0);
    world_join(&w, 2);
    assert_int_equal(w.n_notified, 1);
    assert_int_equal(w.notified[0], 1);
    assert_true(world_ticket(&w, 1, &t));
    assert_int_equal(t.what, ELV_WHAT_TRAIN);
    world_free(&w);
}

static void updates_count_in_whatever_version_is_being_made(void **state)
{
    (void)state;
    static struct world w;
    struct elv_ticket t[4], again;
    start(&w, 3);
    told.enough = 1;
    for (uint32_t peer = 1; peer <= 3; peer++)
        stream_work(&w, peer, &t[peer]);
    assert_true(stream_deliver(&w, 1, &t[1]));
    assert_int_equal(stats(&w)->version, 1);
    assert_true(stream_deliver(&w, 2, &t[2])); /* made from version 0 all the same */
    assert_int_equal(stats(&w)->version, 2);
    assert_true(told.update.version == 0 && told.update.staleness == 1);
    stream_work(&w, 1, &again);
    assert_int_equal(again.version, 1); /* published when its update had been decided */
    assert_true(stream_deliver(&w, 1, &again));
    assert_true(told.update.version == 1 && told.update.staleness == 1);
    assert_true(stream_deliver(&w, 3, &t[3]));
    assert_true(told.update.version == 0 && told.update.staleness == 3);
    assert_int_equal(stats(&w)->version, 4);
    assert_int_equal(stats(&w)->updates_used, 4);
    assert_true(told.commit.round.n_got == 1 && told.commit.version == 4);
    world_free(&w);
}

static void a_publication_leaves_those_at_work_alone(void **state)
{
    (void)state;
    static struct world w;
    static struct upload u;
    struct elv_ticket t, now;
    start(&w, 2);
    told.enough = 1;
    stream_work(&w, 2, &t);
    stream_encode(&w, &u, 2, &t);
    world_put(&w, &u, 0);
    world_put(&w, &u, 1);
    struct elv_ticket other;
    stream_work(&w, 1, &other);
    assert_true(stream_deliver(&w, 1, &other));
    assert_int_equal(stats(&w)->version, 1);
    assert_true(world_ticket(&w, 2, &now));
    assert_int_equal(now.assignment, t.assignment);
    assert_int_equal(now.version, 0);
    assert_int_equal(now.round, t.round);
    assert_memory_equal(now.model, t.model, 32);
    for (uint32_t i = 2; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    assert_int_equal(stats(&w)->chunks_repeated, 0);
    assert_int_equal(stats(&w)->version, 2);
    world_free(&w);
}

static void a_commit_that_comes_while_a_version_is_made_is_decided_after_it(void **state)
{
    (void)state;
    static struct world w;
    static struct upload u;
    struct elv_ticket t, other;
    start(&w, 2);
    told.enough = 1;
    stream_work(&w, 2, &t);
    stream_work(&w, 1, &other);
    stream_encode(&w, &u, 2, &t);
    w.hold_work = ELV_WORK_MAKE;
    assert_true(stream_deliver(&w, 1, &other));
    assert_int_equal(stats(&w)->version, 0);
    for (uint32_t i = 0; i < u.n_chunks; i++)
        assert_int_equal(world_put(&w, &u, i)->code, ELV_CODE_CHANGED);
    const struct world_reply *r = world_commit(&w, &u);
    assert_false(r->there);
    w.hold_work = 0;
    world_settle(&w);
    assert_int_equal(world_verdict(r, NULL), ELV_ACCEPTED);
    assert_int_equal(stats(&w)->version, 2);
    assert_int_equal(told.update.staleness, 1);
    world_free(&w);
}

static void what_a_worker_reads_when_the_round_closes_counts_in_the_next(void **state)
{
    (void)state;
    static struct world w;
    static struct upload u;
    struct elv_ticket t, other;
    start(&w, 2);
    stream_work(&w, 1, &other);
    stream_work(&w, 2, &t);
    stream_encode(&w, &u, 2, &t);
    assert_true(stream_deliver(&w, 1, &other));
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    w.hold_computes = true;
    const struct world_reply *r = world_commit(&w, &u);
    told.enough = 1; /* the policy makes up its mind meanwhile */
    world_advance(&w, second);
    assert_false(r->there);
    w.hold_computes = false;
    world_settle(&w);
    assert_int_equal(world_verdict(r, NULL), ELV_ACCEPTED);
    assert_int_equal(stats(&w)->version, 2);
    assert_int_equal(stats(&w)->updates_used, 2);
    world_free(&w);
}

static void the_interval_paces_what_may_be_published(void **state)
{
    (void)state;
    static struct world w;
    struct elv_ticket t;
    stream_init(&w);
    world_set(&w, "sync", "publish_interval", "2s");
    told.may = true;
    world_start(&w);
    world_join(&w, 1);
    world_advance(&w, second);
    for (int i = 0; i < 3; i++) {
        stream_work(&w, 1, &t);
        assert_true(stream_deliver(&w, 1, &t));
    }
    assert_int_equal(stats(&w)->version, 0);
    world_advance(&w, second - 1);
    assert_int_equal(stats(&w)->version, 0);
    world_advance(&w, 1);
    assert_int_equal(stats(&w)->version, 1);
    assert_int_equal(told.commit.round.n_got, 3); /* of one client */
    world_advance(&w, 3 * second);                /* late is at once */
    stream_work(&w, 1, &t);
    assert_true(stream_deliver(&w, 1, &t));
    assert_int_equal(stats(&w)->version, 2);
    world_free(&w);
}

static void a_round_ends_at_its_deadline_with_the_quorum_or_abandoned(void **state)
{
    (void)state;
    static struct world w;
    struct elv_ticket t, kept;
    stream_init(&w);
    world_set(&w, "sync", "quorum", "2");
    world_set(&w, "select", "min_clients", "2");
    world_start(&w);
    world_join(&w, 1);
    world_join(&w, 2);
    stream_work(&w, 1, &t);
    assert_true(stream_deliver(&w, 1, &t));
    world_advance(&w, 20 * second);
    stream_work(&w, 2, &kept);
    assert_true(world_decline(&w, 1, ELV_STATUS_DECLINED, ELV_REASON_BUSY)); /* it has other work */
    stream_work(&w, 1, &t);
    world_advance(&w, 10 * second);
    assert_int_equal(stats(&w)->rounds_abandoned, 1);
    assert_int_equal(stats(&w)->rounds_opened, 2); /* at once: clients are at work */
    assert_int_equal(stats(&w)->version, 0);
    assert_true(stream_deliver(&w, 2, &kept)); /* its work outlives the round */
    stream_work(&w, 1, &t);
    assert_true(stream_deliver(&w, 1, &t));
    world_advance(&w, 30 * second);
    assert_int_equal(stats(&w)->version, 1);
    assert_int_equal(told.commit.round.n_got, 2);
    world_free(&w);
}

static void silence_past_the_deadline_ends_the_work_and_asking_again_brings_more(void **state)
{
    (void)state;
    static struct world w;
    static struct upload u;
    struct elv_ticket t, again;
    start(&w, 2);
    stream_work(&w, 1, &t);
    stream_encode(&w, &u, 1, &t);
    world_put(&w, &u, 0);
    assert_int_equal(told.joins, 2);
    world_advance(&w, 30 * second - 1);
    assert_int_equal(told.leaves, 0);
    assert_true(world_ticket(&w, 1, &again));
    assert_int_equal(again.assignment, t.assignment);
    assert_int_equal(again.deadline_ms, 1);
    world_advance(&w, 1);
    assert_int_equal(told.leaves, 1);
    assert_int_equal(stats(&w)->lapsed, 1);
    assert_int_equal(stats(&w)->n_joined, 2);
    assert_int_equal(elv_roster_there(&w.s->roster), 1);
    assert_int_equal(world_notes(&w, ELV_NOTE_LAPSED), 1);
    assert_true(world_refused(world_put(&w, &u, 1), ELV_CODE_CONFLICT, ELV_REASON_ROUND_CLOSED));
    assert_true(world_refused(world_commit(&w, &u), ELV_CODE_CONFLICT, ELV_REASON_ROUND_CLOSED));
    assert_int_equal(told.joins, 2);
    assert_true(stream_work(&w, 1, &again) > t.assignment);
    assert_int_equal(told.joins, 3);
    assert_true(stream_deliver(&w, 1, &again));
    world_free(&w);
}

static void a_commit_that_is_being_decided_does_not_lapse(void **state)
{
    (void)state;
    static struct world w;
    static struct upload u;
    struct elv_ticket t;
    start(&w, 1);
    stream_work(&w, 1, &t);
    stream_encode(&w, &u, 1, &t);
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    w.hold_computes = true;
    const struct world_reply *r = world_commit(&w, &u);
    world_advance(&w, 40 * second);
    w.hold_computes = false;
    world_settle(&w);
    assert_int_equal(world_verdict(r, NULL), ELV_ACCEPTED);
    assert_int_equal(told.leaves, 0);
    world_free(&w);
}

static void who_leaves_gives_its_work_back(void **state)
{
    (void)state;
    static struct world w;
    static struct upload u;
    struct elv_ticket t, again;
    start(&w, 2);
    stream_work(&w, 1, &t);
    stream_encode(&w, &u, 1, &t);
    world_put(&w, &u, 0);
    assert_int_equal(w.s->round.n_waiting, 1);
    world_leave(&w, 1);
    assert_int_equal(told.leaves, 1);
    assert_int_equal(w.s->round.n_waiting, 0);
    assert_int_equal(stats(&w)->n_uploads, 0);
    assert_null(fake_disk_record(&w.disk, ELV_TABLE_OFFER, 1));
    world_join(&w, 1);
    assert_true(stream_work(&w, 1, &again) > t.assignment);
    world_advance(&w, 31 * second);
    world_leave(&w, 1); /* the policy knows already */
    assert_int_equal(told.leaves, 2);
    assert_int_equal(elv_roster_there(&w.s->roster), 1);
    world_free(&w);
}

static void the_policy_holds_clients_and_names_those_that_may_start(void **state)
{
    (void)state;
    static struct world w;
    struct elv_ticket t;
    start(&w, 3);
    told.hold = true;
    for (uint32_t peer = 1; peer <= 3; peer++) {
        assert_true(world_ticket(&w, peer, &t));
        assert_int_equal(t.what, ELV_WHAT_WAIT);
    }
    told.next[told.n_next++] = elv_roster_find(&w.s->roster, 2);
    told.next[told.n_next++] = elv_roster_find(&w.s->roster, 3);
    world_advance(&w, 1); /* any event will do */
    assert_int_equal(w.s->round.n_waiting, 2);
    told.hold = false;
    assert_true(world_ticket(&w, 2, &t));
    assert_int_equal(t.what, ELV_WHAT_TRAIN);
    assert_int_equal(told.pulls, 3); /* it had started already */
    world_free(&w);
}

static void the_policy_may_send_a_client_away_for_a_while(void **state)
{
    (void)state;
    static struct world w;
    struct elv_refusal refusal;
    start(&w, 1);
    told.reject_ms = 7000;
    const struct world_reply *r = world_ask(&w, 1, &(struct elv_request){.op = ELV_OP_TICKET});
    assert_int_equal(r->code, ELV_CODE_UNAVAILABLE);
    assert_int_equal(elv_refusal_decode((struct elv_bytes){r->body, r->len}, &refusal), ELV_OK);
    assert_int_equal(refusal.retry_ms, 7000);
    world_free(&w);
}

static void with_room_for_some_chance_says_who_starts(void **state)
{
    (void)state;
    uint32_t seen[9] = {0};
    static struct world w;
    struct elv_ticket t;
    stream_init(&w);
    w.cfg.sync = &roomy;
    told.room = 2;
    world_start(&w);
    for (uint32_t peer = 1; peer <= 8; peer++)
        world_join(&w, peer);
    for (int i = 0; i < 60; i++) {
        uint32_t busy = 0;
        for (uint32_t peer = 1; peer <= 8; peer++) {
            assert_true(world_ticket(&w, peer, &t));
            if (t.what != ELV_WHAT_TRAIN)
                continue;
            busy++;
            seen[peer]++;
            assert_true(stream_deliver(&w, peer, &t));
        }
        assert_true(busy >= 1);
        assert_int_equal(w.s->round.n_waiting, 2);
    }
    for (uint32_t peer = 1; peer <= 8; peer++)
        assert_true(seen[peer] > 3);
    world_free(&w);
}

static void a_version_counts_no_more_updates_than_its_sums_can_hold(void **state)
{
    (void)state;
    static struct world w;
    struct elv_ticket t;
    stream_init(&w);
    w.cfg.limits.clients_max = 3;
    world_start(&w);
    world_join(&w, 1);
    for (int i = 0; i < 7; i++) {
        stream_work(&w, 1, &t);
        assert_true(stream_deliver(&w, 1, &t));
    }
    assert_int_equal(stats(&w)->version, 2);
    assert_int_equal(told.commit.round.n_got, 3);
    assert_int_equal(w.s->round.n_got, 1);
    world_free(&w);
}

static void chunks_of_an_older_version_are_those_it_had(void **state)
{
    (void)state;
    static struct world w;
    static uint8_t before[16][ELV_CHUNK_MAX];
    static size_t len[16];
    struct elv_ticket t, other;
    start(&w, 2);
    stream_work(&w, 2, &t);
    assert_true(t.full.n_chunks <= 16);
    told.enough = 1;
    for (int version = 0; version < 7; version++) {
        for (uint32_t i = 0; i < t.full.n_chunks; i++) {
            const struct world_reply *r = stream_model_chunk(&w, 2, &t.full, i);
            assert_int_equal(r->code, ELV_CODE_CONTENT);
            if (version == 0) {
                len[i] = r->len;
                memcpy(before[i], r->body, r->len);
            }
            assert_int_equal(r->len, len[i]);
            assert_memory_equal(r->body, before[i], len[i]);
        }
        stream_work(&w, 1, &other);
        assert_true(stream_deliver(&w, 1, &other));
        if (version == 5) {
            world_crash(&w, false);
            world_start(&w);
        }
    }
    assert_int_equal(stats(&w)->version, 7);
    assert_non_null(fake_disk_file(&w.disk, ELV_FILE_MODEL, 0));
    assert_null(fake_disk_file(&w.disk, ELV_FILE_MODEL, 1)); /* nobody works on it */
    assert_true(stream_deliver(&w, 2, &t));
    assert_null(fake_disk_file(&w.disk, ELV_FILE_MODEL, 0));
    assert_true(world_refused(stream_model_chunk(&w, 2, &t.full, 0), ELV_CODE_NOT_FOUND,
                              ELV_REASON_SUPERSEDED));
    world_free(&w);
}

static void no_more_than_64_versions_are_kept_for_those_at_work(void **state)
{
    (void)state;
    static struct world w;
    static struct elv_ticket t[68], other;
    stream_init(&w);
    world_set(&w, "sync", "deadline", "3600s");
    world_set(&w, "job", "rounds", "1000");
    world_start(&w);
    for (uint32_t peer = 1; peer <= 67; peer++)
        world_join(&w, peer);
    told.enough = 1;
    for (uint32_t peer = 2; peer <= 67; peer++) { /* each starts from another version */
        stream_work(&w, peer, &t[peer]);
        stream_work(&w, 1, &other);
        assert_true(stream_deliver(&w, 1, &other));
        assert_true(w.s->kept.n <= ELV_KEPT_MAX + 1);
    }
    assert_int_equal(stats(&w)->lapsed, 2);
    assert_false(stream_deliver(&w, 2, &t[2]));
    assert_false(stream_deliver(&w, 3, &t[3]));
    assert_true(stream_deliver(&w, 4, &t[4]));
    assert_true(stream_deliver(&w, 67, &t[67]));
    world_free(&w);
}

static void the_end_of_the_job_ends_all_work(void **state)
{
    (void)state;
    static struct world w;
    static struct upload u;
    struct elv_ticket t, other;
    stream_init(&w);
    world_set(&w, "job", "rounds", "1");
    told.enough = 1;
    world_start(&w);
    world_join(&w, 1);
    world_join(&w, 2);
    stream_work(&w, 2, &t);
    stream_encode(&w, &u, 2, &t);
    world_put(&w, &u, 0);
    stream_work(&w, 1, &other);
    assert_true(stream_deliver(&w, 1, &other));
    assert_true(stats(&w)->over);
    assert_true(world_refused(world_put(&w, &u, 1), ELV_CODE_CONFLICT, ELV_REASON_ROUND_CLOSED));
    for (uint32_t peer = 1; peer <= 2; peer++) {
        assert_true(world_ticket(&w, peer, &t));
        assert_int_equal(t.what, ELV_WHAT_STOP);
    }
    assert_int_equal(w.disk.n_logs, 0);
    assert_int_equal(w.s->round.n_waiting, 0);
    world_free(&w);
}

static void a_full_log_has_room_for_saying_what_is_forgotten(void **state)
{
    (void)state;
    static struct world w;
    static struct upload u[6];
    stream_init(&w);
    w.cfg.limits.log_bytes_max = 11 * 1040; /* as many whole chunks */
    world_start(&w);
    for (uint32_t peer = 1; peer <= 5; peer++)
        world_join(&w, peer);
    for (uint32_t i = 0; i < 5; i++)
        for (uint32_t peer = 1; peer <= 5; peer++) {
            struct elv_ticket t;
            stream_work(&w, peer, &t);
            stream_encode(&w, &u[peer], peer, &t);
            world_put(&w, &u[peer], i);
        }
    assert_in_range(stats(&w)->log_bytes, 10 * 1040, 11 * 1040);
    assert_true(stats(&w)->refused[ELV_REASON_FULL] > 0);
    for (uint32_t peer = 1; peer <= 5; peer++)
        world_leave(&w, peer);
    assert_in_range(stats(&w)->log_bytes, 10 * 1040, 11 * 1040);
    world_free(&w);
}

/* The commit of the client waits for its turn when its time is over, and is then sent away. */
static void work_whose_commit_was_dropped_after_its_time_lapses(void **state)
{
    (void)state;
    static struct world w;
    static struct upload u;
    struct elv_ticket t;
    stream_init(&w);
    world_set(&w, "sync", "deadline", "30s");
    world_start(&w);
    world_join(&w, 1);
    stream_work(&w, 1, &t);
    stream_encode(&w, &u, 1, &t);
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    w.hold_computes = true;
    world_commit(&w, &u);
    world_advance(&w, 31 * second);
    assert_int_equal(stats(&w)->lapsed, 0);
    assert_int_equal(w.s->round.n_waiting, 1);
    w.disk.fail = 1; /* the server must find out where its log ends */
    w.hold_computes = false;
    world_advance(&w, 3 * second);
    assert_int_equal(w.s->round.n_waiting, 0);
    world_free(&w);
}

static void a_survey_ends_a_stream_like_any_job(void **state)
{
    (void)state;
    static struct world w;
    struct elv_ticket t, other;
    stream_init(&w);
    world_set(&w, "job", "rounds", "1");
    world_set(&w, "eval", "on", "clients");
    told.enough = 1;
    world_start(&w);
    world_join(&w, 1);
    world_join(&w, 2);
    stream_work(&w, 2, &t);
    stream_work(&w, 1, &other);
    assert_true(stream_deliver(&w, 1, &other));
    assert_false(stats(&w)->over);
    assert_true(world_evaluate(&w, 1, 10, 5));
    assert_true(world_evaluate(&w, 2, 10, 5)); /* its work was over with the last version */
    assert_true(stats(&w)->over);
    assert_int_equal(w.disk.n_logs, 0);
    world_free(&w);
}

static void updates_are_divided_as_the_policy_says(void **state)
{
    (void)state;
    static const struct {
        enum elv_sync_divisor by;
        double is;
    } rows[] = {
        {ELV_SYNC_BY_USED, 10 + 10 + 10},
        {ELV_SYNC_BY_CLAIMED, 10 + 20 + 10},
        {ELV_SYNC_BY_FLEET, 10 + 20 + 30}, /* a client's claim is one, however often it delivers */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct world w;
        static float before[1020], v[1020];
        double sum[1020] = {0};
        start(&w, 3);
        told.enough = 3;
        told.scale = (struct elv_sync_scale){.by = rows[i].by, .step = 1.0};
        memcpy(before, elv_server_model(w.s), sizeof before);
        static const uint32_t order[] = {1, 2, 1};
        for (size_t k = 0; k < 3; k++) {
            struct elv_ticket t;
            told.factor = order[k] == 2 ? 0.5 : 1.0;
            stream_work(&w, order[k], &t);
            world_update(&w, order[k], &t, v);
            for (uint32_t p = 0; p < 1020; p++)
                sum[p] += 10 * (double)v[p];
            assert_true(stream_deliver(&w, order[k], &t));
        }
        assert_int_equal(stats(&w)->version, 1);
        for (uint32_t p = 0; p < 1020; p++)
            assert_true(fabs((double)elv_server_model(w.s)[p] - (double)before[p] -
                             sum[p] / rows[i].is) < 1e-6);
        world_free(&w);
    }
}

static void who_claims_much_and_then_little_moves_the_model_by_no_more(void **state)
{
    (void)state;
    static struct world w;
    static float before[1020], v[1020];
    double sum[1020] = {0};
    start(&w, 2);
    told.enough = 2;
    told.scale = (struct elv_sync_scale){.by = ELV_SYNC_BY_FLEET, .step = 1.0};
    memcpy(before, elv_server_model(w.s), sizeof before);
    static const uint32_t claims[] = {90, 10};
    for (size_t k = 0; k < 2; k++) {
        static struct upload u;
        struct elv_ticket t;
        stream_work(&w, 1, &t);
        world_update(&w, 1, &t, v);
        for (uint32_t p = 0; p < 1020; p++)
            sum[p] += claims[k] * (double)v[p];
        stream_encode(&w, &u, 1, &t);
        u.commit.samples = claims[k];
        for (uint32_t i = 0; i < u.n_chunks; i++)
            world_put(&w, &u, i);
        assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    }
    assert_int_equal(stats(&w)->version, 1);
    for (uint32_t p = 0; p < 1020; p++) /* client 2 has 20 */
        assert_true(fabs((double)elv_server_model(w.s)[p] - (double)before[p] - sum[p] / 110) <
                    1e-6);
    world_free(&w);
}

static void models_are_mixed_with_those_the_clients_started_from(void **state)
{
    (void)state;
    for (int crash = 0; crash < 2; crash++) {
        static struct world w;
        static float base[1020], before[1020], fast[1020], slow[1020];
        struct elv_ticket t, old;
        start(&w, 2);
        told.enough = 1;
        memcpy(base, elv_server_model(w.s), sizeof base);
        stream_work(&w, 2, &old);
        for (int i = 0; i < 4; i++) { /* version 0 is no longer one of those kept anyway */
            stream_work(&w, 1, &t);
            assert_true(stream_deliver(&w, 1, &t));
        }
        told.enough = 2;
        told.scale = (struct elv_sync_scale){.by = ELV_SYNC_BY_USED, .step = 0.3, .mixes = true};
        memcpy(before, elv_server_model(w.s), sizeof before);
        stream_work(&w, 1, &t);
        assert_int_equal(t.version, 4);
        world_update(&w, 1, &t, fast);
        world_update(&w, 2, &old, slow);
        assert_true(stream_deliver(&w, 2, &old));
        if (crash) {
            world_crash(&w, true);
            world_start(&w);
            stream_work(&w, 1, &t);
        }
        assert_true(stream_deliver(&w, 1, &t));
        assert_int_equal(stats(&w)->version, 5);
        for (uint32_t p = 0; p < 1020; p++) {
            const double w0 = (double)before[p];
            const double mean = (20 * ((double)base[p] + (double)slow[p]) +
                                 10 * ((double)before[p] + (double)fast[p])) /
                                30;
            assert_true(fabs((double)elv_server_model(w.s)[p] - (w0 + 0.3 * (mean - w0))) < 1e-6);
        }
        assert_null(fake_disk_file(&w.disk, ELV_FILE_MODEL, 0));
        world_free(&w);
    }
}

static void the_report_says_how_stale_the_updates_were(void **state)
{
    (void)state;
    static struct world w;
    const struct elv_note *n;
    struct elv_ticket t, old;
    double staleness = -1;
    start(&w, 2);
    told.enough = 2;
    stream_work(&w, 2, &old);
    for (int i = 0; i < 3; i++) {
        stream_work(&w, 1, &t);
        assert_true(stream_deliver(&w, 1, &t));
    }
    assert_int_equal(stats(&w)->version, 1);
    assert_true(stream_deliver(&w, 2, &old)); /* three counted since, two since for the other */
    assert_int_equal(stats(&w)->version, 2);
    while ((n = elv_note_next(&w.s->notes, &w.seen_notes)) != NULL)
        if (n->kind == ELV_NOTE_ROUND_CLOSED)
            staleness = n->report.staleness;
    assert_true(staleness == (0 + 3) / 2.0);
    world_free(&w);
}

static void a_log_goes_on_while_somebody_uploads_and_is_another_then(void **state)
{
    (void)state;
    static struct world w;
    static struct upload u;
    struct elv_ticket t, other;
    start(&w, 2);
    told.enough = 1;
    stream_work(&w, 1, &other);
    assert_true(stream_deliver(&w, 1, &other));
    assert_null(fake_disk_log(&w.disk, 1)); /* nothing was under way */
    stream_work(&w, 2, &t);
    stream_encode(&w, &u, 2, &t);
    world_put(&w, &u, 0);
    assert_non_null(fake_disk_log(&w.disk, 2));
    stream_work(&w, 1, &other);
    assert_true(stream_deliver(&w, 1, &other));
    assert_int_equal(stats(&w)->version, 2);
    assert_non_null(fake_disk_log(&w.disk, 2));
    for (uint32_t i = 1; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    assert_int_equal(stats(&w)->version, 3);
    assert_int_equal(w.disk.n_logs, 0);
    world_free(&w);
}

static void a_log_that_goes_on_too_long_waits_for_those_half_through(void **state)
{
    (void)state;
    static struct world w;
    static struct upload u, more;
    struct elv_ticket t, other;
    stream_init(&w);
    w.cfg.limits.log_bytes_max = 40000; /* an update takes about 4,300 */
    world_start(&w);
    for (uint32_t peer = 1; peer <= 3; peer++)
        world_join(&w, peer);
    told.enough = 1;
    stream_work(&w, 2, &t);
    stream_encode(&w, &u, 2, &t);
    world_put(&w, &u, 0);
    for (int i = 0; i < 3; i++) {
        stream_work(&w, 1, &other);
        assert_true(stream_deliver(&w, 1, &other));
    }
    stream_work(&w, 3, &other);
    stream_encode(&w, &more, 3, &other);
    assert_true(world_refused(world_put(&w, &more, 0), ELV_CODE_UNAVAILABLE, ELV_REASON_FULL));
    world_put(&w, &u, 1); /* who is half through goes on */
    for (uint32_t i = 2; i < u.n_chunks; i++)
        assert_int_equal(world_put(&w, &u, i)->code, ELV_CODE_CHANGED);
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    assert_int_equal(world_put(&w, &more, 0)->code, ELV_CODE_CHANGED);
    assert_true(stats(&w)->log_bytes < 2000);
    /* Who stops half way is not waited for. */
    for (int i = 0; i < 3; i++) {
        stream_work(&w, 1, &other);
        assert_true(stream_deliver(&w, 1, &other));
    }
    assert_true(stats(&w)->log_bytes > 10000);
    world_advance(&w, 6 * second);
    stream_work(&w, 1, &other);
    assert_true(stream_deliver(&w, 1, &other));
    assert_int_equal(stats(&w)->log_bytes, 0);
    for (uint32_t i = 0; i < more.n_chunks; i++) /* it sends everything again */
        world_put(&w, &more, i);
    assert_int_equal(world_verdict(world_commit(&w, &more), NULL), ELV_ACCEPTED);
    world_free(&w);
}

static void declines_and_refusals_free_a_client_for_other_work(void **state)
{
    (void)state;
    static struct world w;
    static struct upload u;
    struct elv_ticket t, again;
    enum elv_reason reason = ELV_REASON_NONE;
    start(&w, 1);
    stream_work(&w, 1, &t);
    assert_true(world_decline(&w, 1, ELV_STATUS_DECLINED, ELV_REASON_BUSY));
    assert_true(stream_work(&w, 1, &again) > t.assignment);
    stream_encode(&w, &u, 1, &again);
    u.commit.digest[0] ^= 1;
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    assert_int_equal(world_verdict(world_commit(&w, &u), &reason), ELV_REFUSED);
    assert_int_equal(reason, ELV_REASON_DIGEST);
    assert_true(stream_work(&w, 1, &t) > again.assignment);
    assert_int_equal(world_verdict(world_commit(&w, &u), &reason), ELV_REFUSED); /* for ever */
    assert_int_equal(told.n_updates, 0);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_gets_work_when_it_asks_and_again_when_it_has_delivered),
        cmocka_unit_test(who_asks_before_a_round_is_open_need_not_ask_again),
        cmocka_unit_test(updates_count_in_whatever_version_is_being_made),
        cmocka_unit_test(a_publication_leaves_those_at_work_alone),
        cmocka_unit_test(a_commit_that_comes_while_a_version_is_made_is_decided_after_it),
        cmocka_unit_test(what_a_worker_reads_when_the_round_closes_counts_in_the_next),
        cmocka_unit_test(the_interval_paces_what_may_be_published),
        cmocka_unit_test(a_round_ends_at_its_deadline_with_the_quorum_or_abandoned),
        cmocka_unit_test(silence_past_the_deadline_ends_the_work_and_asking_again_brings_more),
        cmocka_unit_test(a_commit_that_is_being_decided_does_not_lapse),
        cmocka_unit_test(who_leaves_gives_its_work_back),
        cmocka_unit_test(the_policy_holds_clients_and_names_those_that_may_start),
        cmocka_unit_test(the_policy_may_send_a_client_away_for_a_while),
        cmocka_unit_test(with_room_for_some_chance_says_who_starts),
        cmocka_unit_test(a_version_counts_no_more_updates_than_its_sums_can_hold),
        cmocka_unit_test(chunks_of_an_older_version_are_those_it_had),
        cmocka_unit_test(no_more_than_64_versions_are_kept_for_those_at_work),
        cmocka_unit_test(the_end_of_the_job_ends_all_work),
        cmocka_unit_test(a_full_log_has_room_for_saying_what_is_forgotten),
        cmocka_unit_test(work_whose_commit_was_dropped_after_its_time_lapses),
        cmocka_unit_test(a_survey_ends_a_stream_like_any_job),
        cmocka_unit_test(updates_are_divided_as_the_policy_says),
        cmocka_unit_test(who_claims_much_and_then_little_moves_the_model_by_no_more),
        cmocka_unit_test(models_are_mixed_with_those_the_clients_started_from),
        cmocka_unit_test(the_report_says_how_stale_the_updates_were),
        cmocka_unit_test(a_log_goes_on_while_somebody_uploads_and_is_another_then),
        cmocka_unit_test(a_log_that_goes_on_too_long_waits_for_those_half_through),
        cmocka_unit_test(declines_and_refusals_free_a_client_for_other_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
