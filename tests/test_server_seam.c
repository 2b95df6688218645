/* SPDX-License-Identifier: Apache-2.0 */
/* What the server tells a policy with rounds, and what it makes of the answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "tests/server_world.h"

enum { PEERS = 3, PARAMS = 1020 };
static const elv_time_us second = 1000000;

/* A policy that writes down what it hears and answers as a test wants. */
static struct heard {
    uint32_t joins, leaves, opens, joined_before_open;
    uint32_t commits, lates, wanted;
    struct elv_sync_commit commit;
    struct elv_sync_round late_round;
    struct elv_sync_client late;
    uint32_t late_version;
    uint32_t enough; /* updates to close with; 0: everybody */
    double factor[PEERS + 1];
    struct elv_sync_scale scale;
    struct elv_sync_call call;
    bool interrupts;
} heard;

static struct elv_sync_call call(const struct elv_sync_cfg *cfg)
{
    (void)cfg;
    return heard.call;
}

static void on_open(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r)
{
    (void)state, (void)cfg;
    if (heard.opens++ == 0)
        heard.joined_before_open = heard.joins;
    heard.wanted = r->seq * 10;
}

static void on_join(void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c,
                    elv_time_us now)
{
    (void)state, (void)cfg, (void)c, (void)now;
    heard.joins++;
}

static void on_leave(void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c,
                     elv_time_us now)
{
    (void)state, (void)cfg, (void)c, (void)now;
    heard.leaves++;
}

static void on_commit(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_commit *c,
                      elv_time_us now)
{
    (void)state, (void)cfg, (void)now;
    heard.commits++;
    heard.commit = *c;
}

static void on_late(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                    struct elv_sync_client c, uint32_t version, elv_time_us now)
{
    (void)state, (void)cfg, (void)now;
    heard.lates++;
    heard.late = c;
    heard.late_round = *r;
    heard.late_version = version;
}

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    (void)state, (void)cfg, (void)r, (void)now;
    const double factor = heard.factor[u->from.client];
    return (struct elv_sync_worth){.counts = factor > 0, .weight = factor};
}

static enum elv_sync_commit_when should_commit(const void *state, const struct elv_sync_cfg *cfg,
                                               const struct elv_sync_round *r, elv_time_us now)
{
    (void)state, (void)cfg, (void)now;
    const bool enough = heard.enough > 0 && r->n_got >= heard.enough;
    return enough || r->n_waiting == 0 ? ELV_SYNC_MUST : ELV_SYNC_NO;
}

static struct elv_sync_scale scale(const void *state, const struct elv_sync_cfg *cfg,
                                   const struct elv_sync_round *r)
{
    (void)state, (void)cfg, (void)r;
    return heard.scale;
}

static uint32_t wanted(const void *state, const struct elv_sync_cfg *cfg,
                       const struct elv_sync_round *r)
{
    (void)state, (void)cfg, (void)r;
    return heard.wanted;
}

static bool interrupts(const void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c)
{
    (void)state, (void)cfg, (void)c;
    return heard.interrupts;
}

static const struct elv_sync attentive = {
    .name = "attentive",
    .flow = ELV_SYNC_ROUNDS,
    .call = call,
    .on_open = on_open,
    .on_join = on_join,
    .on_leave = on_leave,
    .on_commit = on_commit,
    .on_late = on_late,
    .on_update = on_update,
    .should_commit = should_commit,
    .scale = scale,
    .wanted = wanted,
    .interrupts = interrupts,
};

static void init(struct world *w)
{
    heard = (struct heard){.scale = {.step = 1.0}, .interrupts = true};
    for (uint32_t i = 0; i <= PEERS; i++)
        heard.factor[i] = 1.0;
    world_init(w);
    w->cfg.sync = &attentive;
    world_set(w, "job", "rounds", "6");
    world_set(w, "select", "min_clients", "1");
    world_set(w, "client", "learning_rate", "0.25");
}

static void start(struct world *w)
{
    world_set(w, "select", "min_clients", "3");
    world_start(w);
    for (uint32_t peer = 1; peer <= PEERS; peer++)
        world_join(w, peer);
}

static const struct elv_server_stats *stats(const struct world *w)
{
    return elv_server_stats(w->s);
}

/* The tickets of all peers in the open round, and the model before it. */
struct before {
    struct elv_ticket t[PEERS + 1];
    float w[PARAMS];
};

static void look(struct world *w, struct before *b)
{
    for (uint32_t peer = 1; peer <= PEERS; peer++)
        assert_true(world_ticket(w, peer, &b->t[peer]));
    memcpy(b->w, elv_server_model(w->s), sizeof b->w);
}

/* Step that the weights `u` of the peers ask for, divided by `by`, at one coordinate. */
static double step_at(const struct world *w, const struct before *b, const double *u, double by,
                      uint32_t i)
{
    double sum = 0;
    for (uint32_t peer = 1; peer <= PEERS; peer++) {
        static float v[PARAMS];
        world_update(w, peer, &b->t[peer], v);
        sum += u[peer] * (double)v[i];
    }
    return sum / by;
}

static void assert_steps(const struct world *w, const struct before *b, const double *u, double by)
{
    const float *now = elv_server_model(w->s);
    for (uint32_t i = 0; i < PARAMS; i++)
        assert_true(fabs((double)now[i] - (double)b->w[i] - step_at(w, b, u, by, i)) < 1e-6);
}

static double norm2_of(const struct world *w, const struct before *b, const double *u, double by)
{
    double sum = 0;
    for (uint32_t i = 0; i < PARAMS; i++)
        sum += pow(step_at(w, b, u, by, i), 2);
    return sum;
}

static void a_policy_hears_what_its_version_was_made_from(void **state)
{
    (void)state;
    static struct world w;
    static struct before b;
    init(&w);
    start(&w);
    look(&w, &b);
    heard.factor[3] = 0.5;
    for (uint32_t peer = 1; peer <= PEERS; peer++)
        assert_true(world_contribute(&w, peer));
    const struct elv_sync_commit *c = &heard.commit;
    assert_int_equal(heard.commits, 1);
    assert_int_equal(c->version, 1);
    assert_int_equal(c->round.seq, 1);
    assert_int_equal(c->round.version, 0);
    assert_int_equal(c->round.n_got, 3);
    assert_int_equal(c->round.n_joined, 3);
    assert_true(c->round.opened == 1000 && c->round.deadline == 1000 + 30 * second);
    const double u[PEERS + 1] = {0, 10, 20, 15};
    assert_true(fabs(c->loss - 30.0 / 60.0) < 1e-12);
    assert_true(fabs(c->rate - 0.25 * 2) < 1e-7);
    assert_true(fabs(c->n_effective - 45.0 * 45.0 / (100 + 400 + 225)) < 1e-9);
    double norm2 = 0;
    for (uint32_t peer = 1; peer <= PEERS; peer++) {
        double one[PEERS + 1] = {0};
        one[peer] = 1;
        norm2 += u[peer] / 45 * norm2_of(&w, &b, one, 1);
    }
    assert_true(fabs(c->norm2 / norm2 - 1) < 1e-6);
    assert_true(fabs(c->mean_norm2 / norm2_of(&w, &b, u, 45) - 1) < 1e-4);
    assert_steps(&w, &b, u, 45);
    world_free(&w);
}

static void a_restart_before_the_round_closes_changes_none_of_it(void **state)
{
    (void)state;
    struct elv_sync_commit first = {0};
    for (int crash = 0; crash < 2; crash++) {
        static struct world w;
        init(&w);
        start(&w);
        heard.factor[1] = 0.25;
        assert_true(world_contribute(&w, 3));
        assert_true(world_contribute(&w, 1));
        if (crash) {
            world_crash(&w, true);
            heard.joins = heard.opens = 0;
            world_start(&w);
            assert_int_equal(heard.joins, 3);
            assert_int_equal(heard.opens, 1);
            assert_int_equal(heard.joined_before_open, 3);
        }
        assert_true(world_contribute(&w, 2));
        assert_int_equal(heard.commits, 1);
        if (!crash)
            first = heard.commit;
        assert_memory_equal(&heard.commit.loss, &first.loss, sizeof first.loss);
        assert_memory_equal(&heard.commit.norm2, &first.norm2, sizeof first.norm2);
        assert_memory_equal(&heard.commit.mean_norm2, &first.mean_norm2, sizeof first.mean_norm2);
        assert_memory_equal(&heard.commit.n_effective, &first.n_effective, sizeof first.rate);
        assert_memory_equal(&heard.commit.rate, &first.rate, sizeof first.rate);
        world_free(&w);
    }
}

static void no_version_no_commit(void **state)
{
    (void)state;
    static struct world w;
    init(&w);
    world_set(&w, "sync", "quorum", "3");
    start(&w);
    assert_true(world_contribute(&w, 1));
    world_advance(&w, 30 * second);
    assert_int_equal(stats(&w)->rounds_abandoned, 1);
    assert_int_equal(heard.commits, 0);
    world_free(&w);
}

static void the_policy_says_by_what_a_version_is_divided(void **state)
{
    (void)state;
    static const struct {
        struct elv_sync_scale scale;
        double by;
    } rows[] = {
        {{ELV_SYNC_BY_USED, 1.0, false}, 10 + 10},
        {{ELV_SYNC_BY_USED, 0.5, false}, 2 * (10 + 10)},
        {{ELV_SYNC_BY_CLAIMED, 1.0, false}, 10 + 20},
        {{ELV_SYNC_BY_FLEET, 1.0, false}, 10 + 20 + 30}, /* the third did not deliver */
        {{ELV_SYNC_BY_FLEET, 2.0, false}, (10 + 20 + 30) / 2.0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct world w;
        static struct before b;
        const double u[PEERS + 1] = {0, 10, 10, 0};
        init(&w);
        start(&w);
        look(&w, &b);
        heard.enough = 2;
        heard.factor[2] = 0.5;
        heard.scale = rows[i].scale;
        assert_true(world_contribute(&w, 1));
        assert_true(world_contribute(&w, 2));
        assert_int_equal(stats(&w)->version, 1);
        assert_steps(&w, &b, u, rows[i].by);
        assert_true(fabs(heard.commit.mean_norm2 / norm2_of(&w, &b, u, 20) - 1) < 1e-4);
        world_free(&w);
    }
}

static void what_the_fleet_claims_is_its_last_word_or_a_guess(void **state)
{
    (void)state;
    static struct world w;
    static struct before b;
    init(&w);
    world_set(&w, "select", "min_clients", "3");
    world_start(&w);
    world_join(&w, 1);
    world_join(&w, 2);
    struct elv_join join = world_join_of(&w, 3);
    join.samples = 0; /* it does not say */
    assert_int_equal(world_join_as(&w, 3, &join)->code, ELV_CODE_CHANGED);
    look(&w, &b);
    heard.enough = 1;
    heard.scale.by = ELV_SYNC_BY_FLEET;
    assert_true(world_contribute(&w, 1));
    const double u[PEERS + 1] = {0, 10, 0, 0};
    assert_steps(&w, &b, u, 10 + 20 + 15);
    look(&w, &b); /* who left is no longer there, unless it was used */
    heard.enough = 2;
    assert_true(world_contribute(&w, 3));
    world_leave(&w, 1);
    world_leave(&w, 3);
    assert_int_equal(stats(&w)->version, 1);
    world_leave(&w, 2);
    assert_int_equal(stats(&w)->version, 2);
    const double third[PEERS + 1] = {0, 0, 0, 30};
    assert_steps(&w, &b, third, 30);
    world_free(&w);
}

static double local_steps(const struct elv_job *job, uint32_t steps)
{
    (void)job;
    return steps == 2 ? 4.0 : (double)steps;
}

static void more_work_is_not_more_say(void **state)
{
    (void)state;
    static struct world w;
    static struct before b;
    struct elv_rule rule = *elv_rule_by_name("fedavg");
    rule.effort = local_steps;
    init(&w);
    w.cfg.rule = &rule;
    start(&w);
    look(&w, &b);
    for (uint32_t peer = 1; peer <= PEERS; peer++) {
        static float v[PARAMS];
        static struct upload u;
        world_update(&w, peer, &b.t[peer], v);
        world_encode(&w, &u, peer, &b.t[peer], v, 5);
        u.commit.steps = peer == 3 ? 12 : 2;
        for (uint32_t i = 0; i < u.n_chunks; i++)
            world_put(&w, &u, i);
        assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    }
    /* sum over claims / sum of claims, times the mean of the efforts over the claims */
    const double u[PEERS + 1] = {0, 10.0 / 4, 20.0 / 4, 30.0 / 12};
    const double mean = (10 * 4 + 20 * 4 + 30 * 12) / 60.0;
    assert_int_equal(stats(&w)->version, 1);
    const float *now = elv_server_model(w.s);
    for (uint32_t i = 0; i < PARAMS; i++) /* to within the resolution of the weights */
        assert_true(fabs((double)now[i] - (double)b.w[i] - step_at(&w, &b, u, 60 / mean, i)) <
                    2e-3);
    world_free(&w);
}

static uint32_t wanted_of(struct world *w, enum elv_note_kind kind)
{
    const struct elv_note *n;
    uint32_t found = 0;
    while ((n = elv_note_next(&w->s->notes, &w->seen_notes)) != NULL)
        if (n->kind == kind)
            found = n->report.wanted;
    return found;
}

static void for_how_many_a_round_waits_is_told(void **state)
{
    (void)state;
    static struct world w;
    init(&w);
    start(&w);
    assert_int_equal(stats(&w)->wanted, 10);
    assert_int_equal(wanted_of(&w, ELV_NOTE_ROUND_OPENED), 10);
    heard.wanted = 7; /* it changed its mind */
    for (uint32_t peer = 1; peer <= PEERS; peer++)
        assert_true(world_contribute(&w, peer));
    assert_int_equal(wanted_of(&w, ELV_NOTE_ROUND_CLOSED), 7);
    assert_int_equal(stats(&w)->wanted, 20);
    world_free(&w);
}

static void what_is_of_no_use_is_counted_by_itself(void **state)
{
    (void)state;
    static struct world w;
    const struct elv_note *n;
    init(&w);
    start(&w);
    heard.factor[2] = 0; /* too late to be of use */
    for (uint32_t peer = 1; peer <= PEERS; peer++)
        assert_true(world_contribute(&w, peer) == (peer != 2));
    assert_int_equal(stats(&w)->updates_discarded, 1);
    assert_int_equal(stats(&w)->updates_refused, 1);
    assert_int_equal(heard.commit.round.n_got, 2);
    while ((n = elv_note_next(&w.s->notes, &w.seen_notes)) != NULL)
        if (n->kind == ELV_NOTE_ROUND_CLOSED)
            assert_true(n->report.n_discarded == 1 && n->report.n_refused == 1);
    world_free(&w);
}

/* The third peer's upload for the round that is open, not sent yet. */
static void prepare_late(struct world *w, struct upload *u)
{
    static float v[PARAMS];
    struct elv_ticket t;
    assert_true(world_ticket(w, 3, &t));
    world_update(w, 3, &t, v);
    world_encode(w, u, 3, &t, v, t.assignment);
}

static void make_without_the_third(struct world *w)
{
    heard.enough = 2;
    assert_true(world_contribute(w, 1));
    assert_true(world_contribute(w, 2));
}

static void who_comes_too_late_is_told_of_once_by_chunk_or_commit(void **state)
{
    (void)state;
    for (int by_commit = 0; by_commit < 2; by_commit++) {
        static struct world w;
        static struct upload u;
        init(&w);
        start(&w);
        make_without_the_third(&w);
        assert_int_equal(stats(&w)->version, 1);
        prepare_late(&w, &u); /* of the round that starts from version 1 */
        make_without_the_third(&w);
        assert_int_equal(heard.lates, 0);
        for (int i = 0; i < 2; i++) {
            const struct world_reply *r = by_commit ? world_commit(&w, &u) : world_put(&w, &u, 0);
            assert_int_equal(r->code, ELV_CODE_CONFLICT);
            assert_int_equal(heard.lates, 1);
        }
        world_put(&w, &u, 1);
        assert_int_equal(heard.lates, 1);
        assert_int_equal(heard.late.client, 3);
        assert_int_equal(heard.late_version, 1);
        assert_int_equal(heard.late_round.seq, 3);
        assert_true(world_contribute(&w, 3)); /* for the open round it is in time */
        assert_int_equal(heard.lates, 1);
        world_free(&w);
    }
}

static void who_is_in_time_or_gone_is_not_late(void **state)
{
    (void)state;
    static struct world w;
    static struct upload u;
    init(&w);
    start(&w);
    prepare_late(&w, &u);
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    make_without_the_third(&w);
    world_commit(&w, &u); /* repeated */
    assert_int_equal(heard.lates, 0);
    prepare_late(&w, &u);
    make_without_the_third(&w);
    world_leave(&w, 3);
    assert_int_equal(heard.leaves, 1);
    world_commit(&w, &u);
    assert_int_equal(heard.lates, 0);
    world_free(&w);
}

static void who_is_let_finish_hears_of_nothing_else_until_it_has(void **state)
{
    (void)state;
    for (int by_time = 0; by_time < 2; by_time++) {
        static struct world w;
        static struct upload u;
        struct elv_ticket t;
        init(&w);
        heard.interrupts = false;
        start(&w);
        prepare_late(&w, &u);
        make_without_the_third(&w);
        const struct world_reply *r = world_ask(&w, 3, &(struct elv_request){.op = ELV_OP_TICKET});
        assert_true(world_refused(r, ELV_CODE_UNAVAILABLE, ELV_REASON_POLICY));
        make_without_the_third(&w);
        assert_false(world_ticket(&w, 3, &t)); /* also when a round after that asked it again */
        if (by_time) {
            world_advance(&w, 31 * second);
        } else {
            world_put(&w, &u, 0);
            assert_int_equal(heard.lates, 1);
        }
        assert_true(world_ticket(&w, 3, &t));
        assert_int_equal(t.what, ELV_WHAT_TRAIN);
        assert_true(t.assignment > u.assignment);
        world_free(&w);
    }
}

static void who_is_interrupted_or_comes_back_anew_gets_other_work_at_once(void **state)
{
    (void)state;
    for (int anew = 0; anew < 2; anew++) {
        static struct world w;
        static struct upload u;
        struct elv_ticket t;
        init(&w);
        heard.interrupts = !anew;
        start(&w);
        prepare_late(&w, &u);
        make_without_the_third(&w);
        if (anew) {
            struct elv_join join = world_join_of(&w, 3);
            join.boot = 77; /* another process: what the one before did is lost */
            assert_int_equal(world_join_as(&w, 3, &join)->code, ELV_CODE_CHANGED);
        }
        assert_true(world_ticket(&w, 3, &t));
        assert_true(t.assignment > u.assignment);
        world_free(&w);
    }
}

static void a_round_asks_as_many_as_the_policy_calls(void **state)
{
    (void)state;
    static struct world w;
    struct elv_ticket t;
    uint32_t asked = 0;
    init(&w);
    heard.call = (struct elv_sync_call){.ask = 2};
    world_set(&w, "select", "count", "1");
    start(&w);
    for (uint32_t peer = 1; peer <= PEERS; peer++)
        asked += world_ticket(&w, peer, &t) && t.what == ELV_WHAT_TRAIN;
    assert_int_equal(asked, 2);
    world_free(&w);
}

static void fewer_are_enough_after_a_while(void **state)
{
    (void)state;
    static struct world w;
    init(&w);
    heard.call = (struct elv_sync_call){.ask = 3, .least = 2, .wait_us = 5 * second};
    world_start(&w);
    world_join(&w, 1);
    world_advance(&w, 7 * second);
    assert_int_equal(stats(&w)->rounds_opened, 0);
    world_join(&w, 2); /* the wait is over since long */
    assert_int_equal(stats(&w)->rounds_opened, 1);
    assert_true(world_contribute(&w, 1));
    assert_true(world_contribute(&w, 2));
    assert_int_equal(stats(&w)->version, 1);
    world_advance(&w, 5 * second - 1);
    assert_int_equal(stats(&w)->rounds_opened, 1);
    world_advance(&w, 1);
    assert_int_equal(stats(&w)->rounds_opened, 2);
    assert_true(world_contribute(&w, 1));
    assert_true(world_contribute(&w, 2));
    world_join(&w, 3); /* with all of them there it opens at once */
    assert_int_equal(stats(&w)->rounds_opened, 3);
    world_free(&w);
}

static void without_a_least_it_waits_for_all_it_asks(void **state)
{
    (void)state;
    static struct world w;
    init(&w);
    heard.call = (struct elv_sync_call){.ask = 3};
    world_start(&w);
    world_join(&w, 1);
    world_join(&w, 2);
    world_advance(&w, 1000 * second);
    assert_int_equal(stats(&w)->rounds_opened, 0);
    world_join(&w, 3);
    assert_int_equal(stats(&w)->rounds_opened, 1);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_policy_hears_what_its_version_was_made_from),
        cmocka_unit_test(a_restart_before_the_round_closes_changes_none_of_it),
        cmocka_unit_test(no_version_no_commit),
        cmocka_unit_test(the_policy_says_by_what_a_version_is_divided),
        cmocka_unit_test(what_the_fleet_claims_is_its_last_word_or_a_guess),
        cmocka_unit_test(more_work_is_not_more_say),
        cmocka_unit_test(for_how_many_a_round_waits_is_told),
        cmocka_unit_test(what_is_of_no_use_is_counted_by_itself),
        cmocka_unit_test(who_comes_too_late_is_told_of_once_by_chunk_or_commit),
        cmocka_unit_test(who_is_in_time_or_gone_is_not_late),
        cmocka_unit_test(who_is_let_finish_hears_of_nothing_else_until_it_has),
        cmocka_unit_test(who_is_interrupted_or_comes_back_anew_gets_other_work_at_once),
        cmocka_unit_test(a_round_asks_as_many_as_the_policy_calls),
        cmocka_unit_test(fewer_are_enough_after_a_while),
        cmocka_unit_test(without_a_least_it_waits_for_all_it_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
