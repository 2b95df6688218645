/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_sim_world.c - the simulated world, seen by toy nodes: a client that pings and a server
 * that echoes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "ports/sim/world.h"

#define SECOND 1000000
#define PINGS_MAX 20000u
#define ACTIONS_MAX 8u

/* Asks a numbered question every `every_us` and notes when each was answered. */
struct pinger {
    uint32_t total;
    elv_time_us every_us;
    bool reliable, observe;
    bool relinks;    /* when a question gets no answer */
    uint32_t forget; /* questions to forget right after asking, from 1 */
    uint32_t sent, answered, failed, twice;
    uint32_t moved; /* of those that failed: their association was replaced */
    elv_time_us next_us, asked_us[PINGS_MAX], answered_us[PINGS_MAX];
    uint32_t order[PINGS_MAX]; /* answers in the order they came */
    uint32_t values[16], n_values;
    uint8_t body[4];
    bool stopped;
};

struct echo {
    uint32_t seen[PINGS_MAX];
    uint32_t order[PINGS_MAX], n_order;
    uint32_t n_seen, value, gone, computed, cancelled;
    bool silent;         /* never answers */
    bool notify, cancel; /* at wake_us */
    uint32_t work_units; /* COMPUTE on the first tick */
    uint32_t units_done;
    bool started;
    elv_time_us wake_us, ended_us;
    uint32_t last_id;
    uint8_t body[4];
};

static struct elv_action *add(struct elv_actions *out, enum elv_action_kind kind)
{
    assert_true(out->n < out->cap);
    out->at[out->n] = (struct elv_action){.kind = kind};
    return &out->at[out->n++];
}

static void put_u32(uint8_t out[4], uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t get_u32(struct elv_bytes b)
{
    assert_int_equal(b.len, 4);
    return b.at[0] | (uint32_t)b.at[1] << 8 | (uint32_t)b.at[2] << 16 | (uint32_t)b.at[3] << 24;
}

static void ask(struct pinger *p, elv_time_us now, struct elv_actions *out)
{
    put_u32(p->body, p->sent);
    p->asked_us[p->sent] = now;
    struct elv_action *a = add(out, ELV_DO_SEND);
    a->id = p->sent + 1;
    a->reliable = p->reliable;
    a->request = (struct elv_request){
        .op = ELV_OP_TICKET, .observe = p->observe, .body = {.at = p->body, .len = 4}};
    p->sent++;
    p->next_us = p->sent < p->total ? now + p->every_us : ELV_NEVER;
    if (p->sent <= p->forget)
        add(out, ELV_DO_FORGET)->id = p->sent;
}

static void pinger_step(void *self, const struct elv_event *ev, struct elv_actions *out)
{
    struct pinger *p = self;
    switch (ev->kind) {
    case ELV_EV_TICK:
        if (ev->now >= p->next_us)
            ask(p, ev->now, out);
        break;
    case ELV_EV_RESPONSE:
        if (p->observe) {
            if (p->n_values < 16)
                p->values[p->n_values++] = get_u32(ev->response.body);
            break;
        }
        assert_int_equal(get_u32(ev->response.body), ev->id - 1);
        p->order[p->answered++] = ev->id - 1;
        p->twice += p->answered_us[ev->id - 1] != 0;
        p->answered_us[ev->id - 1] = ev->now;
        break;
    case ELV_EV_NO_ANSWER:
        p->failed++;
        p->moved += ev->err == ELV_ERR_CANCELLED;
        if (p->relinks && ev->err == ELV_OK)
            add(out, ELV_DO_RELINK);
        break;
    case ELV_EV_STOP:
        p->stopped = true;
        add(out, ELV_DO_END)->id = 3;
        break;
    default:
        fail();
    }
}

static elv_time_us pinger_deadline(const void *self)
{
    return ((const struct pinger *)self)->next_us;
}

static void echo_tick(struct echo *e, const struct elv_event *ev, struct elv_actions *out)
{
    const bool woken = ev->now >= e->wake_us;
    if (woken)
        e->wake_us = ELV_NEVER;
    if (e->work_units > 0 && !e->started) {
        struct elv_action *a = add(out, ELV_DO_COMPUTE);
        a->id = 9;
        a->compute = (struct elv_compute){.kind = 1, .input = e};
    } else if (e->cancel && woken) {
        e->cancel = false;
        add(out, ELV_DO_CANCEL)->id = 9;
    }
    if (e->notify && woken) {
        e->notify = false;
        e->value++;
        add(out, ELV_DO_NOTIFY)->peer = 1;
    }
    e->started = true;
}

static void echo_request(struct echo *e, const struct elv_event *ev, struct elv_actions *out)
{
    const bool ours = ev->request.body.len == 4 && !ev->request.observe;
    if (ours) {
        const uint32_t k = get_u32(ev->request.body);
        e->seen[k]++;
        if (e->n_order < PINGS_MAX)
            e->order[e->n_order++] = k;
    }
    e->n_seen++;
    if (e->silent)
        return;
    struct elv_action *a = add(out, ELV_DO_REPLY);
    a->id = ev->id;
    a->response = (struct elv_response){.code = ELV_CODE_CONTENT, .body = ev->request.body};
    if (!ours) {
        put_u32(e->body, e->value);
        a->response.body = (struct elv_bytes){.at = e->body, .len = 4};
    }
}

static void echo_step(void *self, const struct elv_event *ev, struct elv_actions *out)
{
    struct echo *e = self;
    switch (ev->kind) {
    case ELV_EV_TICK:
        echo_tick(e, ev, out);
        break;
    case ELV_EV_REQUEST:
        assert_true(ev->id != 0 && ev->id != e->last_id);
        e->last_id = ev->id;
        echo_request(e, ev, out);
        break;
    case ELV_EV_GONE:
        e->gone = ev->peer;
        break;
    case ELV_EV_COMPUTED:
        e->computed += ev->err == ELV_OK;
        e->cancelled += ev->err == ELV_ERR_CANCELLED;
        e->ended_us = ev->now;
        break;
    default:
        fail();
    }
}

static elv_time_us echo_deadline(const void *self) { return ((const struct echo *)self)->wake_us; }

static enum elv_err echo_run(void *self, const struct elv_compute *work, uint32_t budget)
{
    struct echo *e = self;
    assert_ptr_equal(work->input, e);
    const uint32_t left = e->work_units - e->units_done;
    e->units_done += budget < left ? budget : left;
    return e->units_done < e->work_units ? ELV_ERR_BUSY : ELV_OK;
}

/* A server and one client that outlives no crash: each start begins anew. */
struct fixture {
    struct elv_sim *w;
    uint32_t server, client;
    struct pinger first, p;
    struct echo e;
    uint32_t starts_left; /* the client fails to start so often */
    uint32_t gone;
};

static enum elv_err start_pinger(void *self, uint32_t node, elv_time_us now, struct elv_node *out)
{
    struct fixture *f = self;
    assert_int_equal(node, f->client);
    if (f->starts_left > 0) {
        f->starts_left--;
        return ELV_ERR_IO;
    }
    f->p = f->first;
    f->p.next_us = now;
    *out = (struct elv_node){.self = &f->p,
                             .actions_max = ACTIONS_MAX,
                             .step = pinger_step,
                             .deadline = pinger_deadline};
    return ELV_OK;
}

static enum elv_err start_echo(void *self, uint32_t node, elv_time_us now, struct elv_node *out)
{
    struct fixture *f = self;
    (void)now;
    assert_int_equal(node, f->server);
    *out = (struct elv_node){.self = &f->e,
                             .actions_max = ACTIONS_MAX,
                             .step = echo_step,
                             .deadline = echo_deadline,
                             .run = echo_run};
    return ELV_OK;
}

static void gone(void *self, uint32_t node)
{
    (void)node;
    ((struct fixture *)self)->gone++;
}

static struct fixture *set_up(struct fixture *f, uint64_t seed, struct elv_sim_link link,
                              struct pinger first)
{
    *f = (struct fixture){.first = first};
    f->e.wake_us = ELV_NEVER;
    f->w = elv_sim_new(&(struct elv_sim_cfg){.seed = seed});
    const struct elv_sim_host server = {.self = f, .start = start_echo, .gone = gone};
    const struct elv_sim_host client = {.self = f, .start = start_pinger, .gone = gone};
    f->server = elv_sim_add_server(f->w, &(struct elv_sim_node_cfg){.host = server});
    f->client = elv_sim_add_client(
        f->w,
        &(struct elv_sim_node_cfg){.host = client, .server = f->server, .number = 1, .link = link});
    return f;
}

static struct fixture fx; /* too big for the stack */

static void run(struct fixture *f, elv_time_us until)
{
    elv_sim_run(f->w, until);
    assert_null(elv_sim_broken(f->w));
}

static void delays_and_losses_are_those_asked_for(void **state)
{
    (void)state;
    struct fixture *f =
        set_up(&fx, 1,
               (struct elv_sim_link){
                   .delay = {.shape = ELV_SIM_EXPONENTIAL, .min_us = 20000, .spread_us = 30000},
                   .loss_ppm = 200000},
               (struct pinger){.total = PINGS_MAX, .every_us = 10000});
    run(f, 1000 * (elv_time_us)SECOND);
    double sum = 0;
    for (uint32_t i = 0; i < PINGS_MAX; i++)
        if (f->p.answered_us[i] != 0 && i > 1000) /* the first wait for the association */
            sum += (double)(f->p.answered_us[i] - f->p.asked_us[i]);
    const uint32_t early = 1000;
    const double share = (double)f->p.answered / PINGS_MAX;
    assert_true(fabs(share - 0.64) < 0.02);
    assert_true(fabs(sum / (f->p.answered - 0.64 * early) - 100000) < 3000);
    assert_int_equal(f->p.twice, 0);
    assert_int_equal(f->p.answered + f->p.failed, PINGS_MAX);
    elv_sim_free(f->w);
}

static void a_plain_request_is_sent_once_but_may_arrive_twice(void **state)
{
    (void)state;
    struct fixture *f =
        set_up(&fx, 2, (struct elv_sim_link){.delay.min_us = 1000, .duplicate_ppm = 250000},
               (struct pinger){.total = 4000, .every_us = 10000});
    run(f, 300 * (elv_time_us)SECOND);
    assert_int_equal(f->p.answered, 4000);
    assert_int_equal(f->p.twice, 0);
    assert_true(f->e.n_seen > 4800 && f->e.n_seen < 5200);
    assert_int_equal(elv_sim_stats(f->w).repeats, 0);
    elv_sim_free(f->w);
}

static void a_reliable_request_is_repeated_and_acted_upon_once(void **state)
{
    (void)state;
    struct fixture *f = set_up(
        &fx, 3,
        (struct elv_sim_link){.delay.min_us = 1000, .loss_ppm = 200000, .duplicate_ppm = 100000},
        (struct pinger){.total = 3000, .every_us = SECOND, .reliable = true});
    run(f, 4000 * (elv_time_us)SECOND);
    assert_int_equal(f->p.answered + f->p.failed, 3000);
    assert_true(f->p.failed < 60); /* 0.36^5 = 0.6 %, and those before the association stood */
    for (uint32_t i = 0; i < 3000; i++)
        assert_true(f->e.seen[i] <= 1);
    const struct elv_sim_stats s = elv_sim_stats(f->w);
    assert_true(s.repeats > 1000 && s.recognised > 300);
    assert_int_equal(s.requests, 0);
    elv_sim_free(f->w);
}

static void a_repeat_after_the_servers_memory_or_its_restart_is_a_new_request(void **state)
{
    (void)state;
    /* Answers never come back, so the request is repeated to the end. */
    struct fixture *f =
        set_up(&fx, 4, (struct elv_sim_link){.delay.min_us = 1000},
               (struct pinger){.total = 2, .every_us = 10 * SECOND, .reliable = true});
    run(f, 5 * SECOND);
    elv_sim_link(f->w, f->client)->cut_down = true;
    run(f, 200 * (elv_time_us)SECOND);
    assert_int_equal(f->e.seen[1], 1);
    assert_int_equal(elv_sim_stats(f->w).recognised, 4);
    assert_int_equal(f->p.failed, 1);
    elv_sim_free(f->w);

    f->w = NULL;
    set_up(&fx, 4, (struct elv_sim_link){.delay.min_us = 1000},
           (struct pinger){.total = 2, .every_us = 10 * SECOND, .reliable = true});
    run(f, 5 * SECOND);
    elv_sim_link(f->w, f->client)->cut_down = true;
    run(f, 11 * SECOND);
    elv_sim_crash(f->w, f->server, (struct elv_sim_crash){.down_us = 1});
    run(f, 200 * (elv_time_us)SECOND);
    assert_int_equal(f->e.seen[1], 1); /* the old association is dead to the new server */
    assert_int_equal(elv_sim_stats(f->w).black_holed, 4);
    elv_sim_free(f->w);
}

static void giving_up_takes_as_long_as_the_timers_say(void **state)
{
    (void)state;
    struct fixture *f =
        set_up(&fx, 5, (struct elv_sim_link){.delay.min_us = 1000},
               (struct pinger){.total = 2, .every_us = 10 * SECOND, .reliable = true});
    f->e.silent = true;
    run(f, 11 * SECOND);
    assert_int_equal(f->p.failed, 0);
    run(f, 62 * SECOND);
    assert_int_equal(f->p.failed, 0);
    run(f, 104 * SECOND); /* 10 s + 31 * 3 s */
    assert_int_equal(f->p.failed, 2);
    assert_int_equal(elv_sim_stats(f->w).requests, 2); /* still owed */
    elv_sim_free(f->w);
}

static void a_restarted_server_hears_nothing_until_a_new_association(void **state)
{
    (void)state;
    struct fixture *f = set_up(&fx, 6, (struct elv_sim_link){.delay.min_us = 1000},
                               (struct pinger){.total = 300, .every_us = SECOND, .relinks = true});
    run(f, 9 * SECOND + SECOND / 2);
    assert_int_equal(f->e.n_seen, 10);
    elv_sim_crash(f->w, f->server, (struct elv_sim_crash){.down_us = SECOND});
    run(f, 100 * SECOND);
    assert_int_equal(f->e.n_seen, 10);
    run(f, 200 * (elv_time_us)SECOND); /* the first unanswered question has expired: RELINK */
    assert_true(f->e.n_seen > 10);
    assert_true(elv_sim_stats(f->w).links >= 2);
    elv_sim_free(f->w);
}

/* As every port says it (common/node.h), or it is not said at all. */
static void who_moves_to_a_new_association_may_hear_what_is_lost_with_the_old(void **state)
{
    (void)state;
    uint32_t silent = 0;
    for (uint64_t seed = 1; seed <= 16; seed++) {
        struct fixture *f =
            set_up(&fx, seed, (struct elv_sim_link){.delay.min_us = 1000},
                   (struct pinger){.total = 300, .every_us = SECOND, .relinks = true});
        run(f, 9 * SECOND + SECOND / 2);
        elv_sim_crash(f->w, f->server, (struct elv_sim_crash){.down_us = SECOND});
        while (f->p.failed == 0) /* ends: the first that nobody hears expires */
            run(f, elv_sim_now(f->w) + SECOND / 2);
        run(f, elv_sim_now(f->w) + SECOND / 4);     /* and the new association stands */
        assert_true(f->p.failed == 1 + f->p.moved); /* that one was given up, and brought RELINK */
        assert_int_equal(elv_sim_stats(f->w).links, 2);
        silent += f->p.moved == 0;
        elv_sim_free(f->w);
    }
    assert_in_range(silent, 1, 15);
}

static void packets_overtake_each_other_only_when_told_to(void **state)
{
    (void)state;
    for (uint32_t row = 0; row < 3; row++) {
        struct elv_sim_link link = {.delay = {.min_us = 1000, .spread_us = 50000},
                                    .in_order = row > 0};
        if (row == 2) {
            link.reorder_ppm = 50000;
            link.held_back.min_us = 60000;
        }
        struct fixture *f = set_up(&fx, 7, link, (struct pinger){.total = 2000, .every_us = 10000});
        run(f, 100 * SECOND);
        assert_int_equal(f->e.n_order, 2000);
        uint32_t swaps = 0;
        for (uint32_t i = 1; i < 2000; i++)
            swaps += f->e.order[i] < f->e.order[i - 1];
        assert_true(row == 0 ? swaps > 300 : row == 1 ? swaps == 0 : swaps > 50 && swaps < 200);
        elv_sim_free(f->w);
    }
}

static void a_one_way_partition_is_one_way(void **state)
{
    (void)state;
    struct fixture *f = set_up(&fx, 8, (struct elv_sim_link){.delay.min_us = 1000},
                               (struct pinger){.total = 100, .every_us = SECOND});
    run(f, 5 * SECOND + SECOND / 2);
    elv_sim_link(f->w, f->client)->cut_down = true;
    run(f, 10 * SECOND + SECOND / 2);
    assert_int_equal(f->e.n_seen, 11);
    assert_int_equal(f->p.answered, 6);
    elv_sim_link(f->w, f->client)->cut_down = false;
    elv_sim_link(f->w, f->client)->cut_up = true;
    run(f, 20 * SECOND + SECOND / 2);
    assert_int_equal(f->e.n_seen, 11);
    assert_int_equal(f->p.answered, 6);
    elv_sim_free(f->w);
}

static void a_narrow_line_makes_packets_wait_their_turn(void **state)
{
    (void)state;
    const struct elv_wire_way way = elv_wire_usual((struct elv_text){"job", 3});
    const struct elv_request r = {.op = ELV_OP_TICKET, .body.len = 4};
    const uint32_t bps = 10 * elv_wire_request(&way, &r); /* ten questions a second */
    struct fixture *f = set_up(&fx, 9, (struct elv_sim_link){.up_bps = bps, .delay.min_us = 1000},
                               (struct pinger){.total = 100, .every_us = 1000});
    run(f, 30 * SECOND);
    assert_int_equal(f->p.answered, 100);
    const elv_time_us spread = f->p.answered_us[99] - f->p.answered_us[0];
    assert_true(spread > 9 * SECOND && spread < 10 * SECOND);
    elv_sim_free(f->w);

    set_up(&fx, 9, (struct elv_sim_link){.up_bps = bps, .delay.min_us = 1000, .queue_us = SECOND},
           (struct pinger){.total = 100, .every_us = 1000});
    run(f, 30 * SECOND);
    assert_true(f->p.answered > 8 && f->p.answered < 14); /* the rest found the queue full */
    elv_sim_free(f->w);
}

static void each_direction_can_be_a_way_of_its_own(void **state)
{
    (void)state;
    const struct elv_sim_way up = {.delay.min_us = 300000}, down = {.mtu = 1};
    struct fixture *f = set_up(&fx, 9, (struct elv_sim_link){.up = &up},
                               (struct pinger){.total = 10, .every_us = SECOND});
    run(f, 20 * SECOND);
    assert_int_equal(f->p.answered, 10);
    assert_true(elv_sim_stats(f->w).up.n[ELV_SIM_ARRIVED] >= 10);
    elv_sim_free(f->w);

    set_up(&fx, 9, (struct elv_sim_link){.up = &up, .down = &down, .cut_up = false},
           (struct pinger){.total = 10, .every_us = SECOND});
    run(f, 20 * SECOND);
    assert_int_equal(f->p.answered, 0);
    const struct elv_sim_stats s = elv_sim_stats(f->w);
    assert_true(s.down.put > 0 && s.down.n[ELV_SIM_LONG] == s.down.put);
    elv_sim_free(f->w);
}

static void a_forgotten_question_is_never_answered(void **state)
{
    (void)state;
    struct fixture *f = set_up(&fx, 10, (struct elv_sim_link){.delay.min_us = 1000},
                               (struct pinger){.total = 10, .every_us = SECOND, .forget = 4});
    run(f, 300 * (elv_time_us)SECOND);
    assert_int_equal(f->p.answered, 6);
    assert_int_equal(f->p.failed, 0);
    elv_sim_free(f->w);
}

static void an_observer_hears_of_each_change(void **state)
{
    (void)state;
    struct fixture *f =
        set_up(&fx, 11, (struct elv_sim_link){.delay.min_us = 1000},
               (struct pinger){.total = 1, .every_us = SECOND, .observe = true, .reliable = true});
    /* The server's step on the request arms its own next change. */
    f->e.notify = true;
    f->e.wake_us = SECOND;
    run(f, 10 * SECOND);
    assert_int_equal(f->p.n_values, 2);
    assert_int_equal(f->p.values[0], 0);
    assert_int_equal(f->p.values[1], 1);
    assert_int_equal(elv_sim_stats(f->w).requests, 0);
    elv_sim_free(f->w);
}

static elv_time_us ten_ms_a_unit(void *self, uint32_t node, const struct elv_compute *work,
                                 uint32_t units, struct elv_rng *rng)
{
    (void)self, (void)node, (void)work, (void)rng;
    return units == UINT32_MAX ? SECOND : 10000 * (elv_time_us)units;
}

static struct fixture *set_up_work(struct fixture *f, uint32_t slice)
{
    *f = (struct fixture){.e = {.work_units = 100, .wake_us = ELV_NEVER}};
    f->w = elv_sim_new(&(struct elv_sim_cfg){.seed = 12});
    f->server = elv_sim_add_server(
        f->w, &(struct elv_sim_node_cfg){.host = {.self = f, .start = start_echo, .gone = gone},
                                         .device = {.cost = ten_ms_a_unit},
                                         .slice = slice});
    return f;
}

static void work_takes_its_time_and_other_things_happen_meanwhile(void **state)
{
    (void)state;
    for (uint32_t slice = 0; slice <= 4; slice += 2) {
        struct fixture *f = set_up_work(&fx, slice);
        elv_sim_run(f->w, SECOND / 2);
        assert_int_equal(f->e.computed, 0);
        if (slice > 0)
            assert_true(f->e.units_done > 40 && f->e.units_done <= 54);
        elv_sim_run(f->w, 2 * SECOND);
        assert_int_equal(f->e.computed, 1);
        assert_int_equal(f->e.units_done, 100);
        assert_true(f->e.ended_us >= SECOND && f->e.ended_us <= SECOND + 10000 * slice);
        elv_sim_free(f->w);
    }
}

static void cancelled_work_ends_within_a_slice(void **state)
{
    (void)state;
    for (uint32_t slice = 0; slice <= 4; slice += 2) {
        struct fixture *f = set_up_work(&fx, slice);
        f->e.cancel = true;
        f->e.wake_us = SECOND / 4; /* the second TICK cancels */
        elv_sim_run(f->w, 2 * SECOND);
        assert_int_equal(f->e.computed, 0);
        assert_int_equal(f->e.cancelled, 1);
        assert_true(f->e.ended_us >= SECOND / 4);
        assert_true(f->e.ended_us <= SECOND / 4 + 10000 * (elv_time_us)slice);
        elv_sim_free(f->w);
    }
}

static void a_crash_kills_what_was_under_way(void **state)
{
    (void)state;
    struct fixture *f = set_up_work(&fx, 3);
    elv_sim_run(f->w, SECOND / 2);
    elv_sim_crash(f->w, f->server, (struct elv_sim_crash){.down_us = ELV_NEVER});
    assert_false(elv_sim_up(f->w, f->server));
    assert_int_equal(f->gone, 1);
    assert_false(elv_sim_run(f->w, 100 * SECOND));
    assert_int_equal(f->e.computed, 0);
    assert_true(f->e.units_done < 100);
    elv_sim_free(f->w);
}

/* A node whose one step does five things in this order. */
static void five_step(void *self, const struct elv_event *ev, struct elv_actions *out)
{
    static const uint8_t byte = 'x';
    struct fixture *f = self;
    if (ev->kind != ELV_EV_TICK || f->p.sent++ > 0)
        return;
    for (uint32_t i = 0; i < 5; i++) {
        struct elv_action *a = add(out, i == 1 || i == 3 ? ELV_DO_STORE : ELV_DO_SEND);
        a->id = i + 1;
        a->request.op = ELV_OP_TICKET;
        a->store = (struct elv_store_op){
            .kind = ELV_STORE_APPEND, .number = 1, .bytes = {.at = &byte, .len = 1}};
    }
}

static elv_time_us never(const void *self)
{
    (void)self;
    return ELV_NEVER;
}

static enum elv_err start_five(void *self, uint32_t node, elv_time_us now, struct elv_node *out)
{
    (void)node, (void)now;
    *out = (struct elv_node){
        .self = self, .actions_max = ACTIONS_MAX, .step = five_step, .deadline = never};
    return ELV_OK;
}

struct doom {
    struct fixture *f;
    struct elv_sim_crash how;
};

static void doom_on_first_step(void *self, uint32_t node, const struct elv_event *ev,
                               const struct elv_actions *did)
{
    struct doom *d = self;
    (void)ev;
    if (node == 1 && did->n == 5)
        elv_sim_crash(d->f->w, node, d->how);
}

static void a_crash_may_come_between_any_two_actions(void **state)
{
    (void)state;
    /* Both STOREs are one transaction that goes first, so two bytes are logged or none. The first
     * SEND opens the association: one packet. */
    static const struct {
        uint32_t packets;
        size_t logged;
    } rows[] = {{0, 0}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}};
    for (uint32_t k = 0; k < 6; k++) {
        struct fixture *f = &fx;
        *f = (struct fixture){.e = {.wake_us = ELV_NEVER}};
        struct doom doom = {.f = f, .how = {.actions = k, .down_us = ELV_NEVER}};
        f->w = elv_sim_new(&(struct elv_sim_cfg){
            .seed = k, .watch = {.self = &doom, .stepped = doom_on_first_step}});
        struct elv_sim_disk *disk =
            elv_sim_disk_new(&(struct elv_sim_disk_cfg){.clock = elv_sim_clock(f->w), .seed = k});
        f->server = elv_sim_add_server(
            f->w, &(struct elv_sim_node_cfg){.host = {.self = f, .start = start_echo}});
        f->client = elv_sim_add_client(
            f->w, &(struct elv_sim_node_cfg){.host = {.self = f, .start = start_five},
                                             .disk = disk,
                                             .number = 1,
                                             .link.delay.min_us = 1000});
        elv_sim_run(f->w, 0);
        assert_int_equal(elv_sim_stats(f->w).sent, rows[k].packets);
        uint8_t out[8];
        size_t got = 0;
        const struct elv_disk view = elv_sim_disk_view(disk);
        if (view.read_log(view.self, 1, 0, out, sizeof out, &got) == ELV_ERR_MISSING)
            got = 0;
        assert_int_equal(got, rows[k].logged);
        assert_int_equal(elv_sim_up(f->w, f->client), k == 5);
        elv_sim_free(f->w);
        elv_sim_disk_free(disk);
    }
}

static void a_node_that_cannot_start_is_started_again(void **state)
{
    (void)state;
    struct fixture *f = set_up(&fx, 13, (struct elv_sim_link){.delay.min_us = 1000},
                               (struct pinger){.total = 5, .every_us = SECOND});
    f->starts_left = 3;
    run(f, 2 * SECOND);
    assert_int_equal(f->p.sent, 0);
    run(f, 20 * SECOND);
    assert_int_equal(f->p.answered, 5);
    assert_int_equal(elv_sim_stats(f->w).failed_starts, 3);
    elv_sim_free(f->w);
}

static void a_stopped_node_ends_with_its_exit_code(void **state)
{
    (void)state;
    struct fixture *f = set_up(&fx, 14, (struct elv_sim_link){.delay.min_us = 1000},
                               (struct pinger){.total = 100, .every_us = SECOND});
    run(f, 10 * SECOND);
    elv_sim_stop(f->w, f->client);
    run(f, 20 * SECOND);
    uint32_t code = 0;
    assert_true(elv_sim_ended(f->w, f->client, &code));
    assert_int_equal(code, 3);
    assert_int_equal(f->gone, 1);
    elv_sim_start(f->w, f->client);
    run(f, 30 * SECOND);
    assert_false(elv_sim_ended(f->w, f->client, &code));
    assert_true(elv_sim_up(f->w, f->client));
    elv_sim_free(f->w);
}

static void a_revoked_client_is_cut_off_for_good(void **state)
{
    (void)state;
    struct fixture *f = set_up(&fx, 15, (struct elv_sim_link){.delay.min_us = 1000},
                               (struct pinger){.total = 300, .every_us = SECOND, .relinks = true});
    run(f, 10 * SECOND + SECOND / 2);
    const uint32_t before = f->e.n_seen;
    elv_sim_revoke(f->w, f->server, 1);
    run(f, 300 * (elv_time_us)SECOND);
    assert_int_equal(f->e.gone, 1);
    assert_int_equal(f->e.n_seen, before);
    elv_sim_free(f->w);
}

static void clocks_may_run_fast_and_start_anywhere(void **state)
{
    (void)state;
    struct fixture *f = &fx;
    *f = (struct fixture){.first = {.total = 1000, .every_us = SECOND}};
    f->e.wake_us = ELV_NEVER;
    f->w = elv_sim_new(&(struct elv_sim_cfg){.seed = 16});
    f->server = elv_sim_add_server(
        f->w, &(struct elv_sim_node_cfg){.host = {.self = f, .start = start_echo}});
    f->client = elv_sim_add_client(
        f->w, &(struct elv_sim_node_cfg){.host = {.self = f, .start = start_pinger},
                                         .number = 1,
                                         .odd_clock = true,
                                         .drift_ppm = 100000});
    run(f, 100 * SECOND + SECOND / 2);
    assert_int_equal(f->p.sent, 111); /* 110.55 of its seconds */
    const elv_time_us origin = f->p.asked_us[0];
    elv_sim_crash(f->w, f->client, (struct elv_sim_crash){.down_us = SECOND});
    run(f, 110 * SECOND);
    assert_true(f->p.asked_us[0] != origin);
    elv_sim_free(f->w);
}

static uint64_t hash_of(uint64_t seed, uint32_t crash_at)
{
    struct fixture *f = set_up(&fx, seed,
                               (struct elv_sim_link){.delay = {.min_us = 1000, .spread_us = 90000},
                                                     .loss_ppm = 200000,
                                                     .duplicate_ppm = 100000},
                               (struct pinger){.total = 2000, .every_us = SECOND / 10});
    run(f, 50 * SECOND);
    if (crash_at > 0)
        elv_sim_crash(f->w, f->client, (struct elv_sim_crash){.actions = crash_at, .down_us = 1});
    run(f, 100 * SECOND);
    const uint64_t hash = elv_sim_hash(f->w);
    elv_sim_free(f->w);
    return hash;
}

static void the_same_seed_gives_the_same_events(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        assert_true(hash_of(seed, 0) == hash_of(seed, 0));
        assert_true(hash_of(seed, 3) == hash_of(seed, 3));
        assert_true(hash_of(seed, 0) != hash_of(seed + 1, 0));
        assert_true(hash_of(seed, 0) != hash_of(seed, 3));
    }
}

#define FLEET 10000u
static struct pinger_state { /* a smaller pinger */
    elv_time_us next_us;
    uint32_t sent, answered;
} fleet[FLEET];

static void fleet_step(void *self, const struct elv_event *ev, struct elv_actions *out)
{
    struct pinger_state *p = self;
    p->answered += ev->kind == ELV_EV_RESPONSE;
    if (ev->kind != ELV_EV_TICK || ev->now < p->next_us)
        return;
    struct elv_action *a = add(out, ELV_DO_SEND);
    a->id = ++p->sent;
    a->reliable = true;
    a->request.op = ELV_OP_JOIN;
    p->next_us = p->sent < 3 ? ev->now + 60 * SECOND : ELV_NEVER;
}

static elv_time_us fleet_deadline(const void *self)
{
    return ((const struct pinger_state *)self)->next_us;
}

static enum elv_err start_fleet(void *self, uint32_t node, elv_time_us now, struct elv_node *out)
{
    (void)self, (void)now;
    *out = (struct elv_node){
        .self = &fleet[node - 1], .actions_max = 1, .step = fleet_step, .deadline = fleet_deadline};
    return ELV_OK;
}

static void ten_thousand_clients_fit(void **state)
{
    (void)state;
    struct fixture *f = &fx;
    *f = (struct fixture){.e = {.wake_us = ELV_NEVER}};
    memset(fleet, 0, sizeof fleet);
    f->w = elv_sim_new(&(struct elv_sim_cfg){.seed = 17});
    f->server = elv_sim_add_server(
        f->w, &(struct elv_sim_node_cfg){.host = {.self = f, .start = start_echo}});
    for (uint32_t i = 0; i < FLEET; i++)
        elv_sim_add_client(
            f->w, &(struct elv_sim_node_cfg){.host = {.start = start_fleet},
                                             .number = i + 1,
                                             .start_us = 1000 * (elv_time_us)i,
                                             .link.delay = {.min_us = 50000, .spread_us = 50000}});
    run(f, 300 * (elv_time_us)SECOND);
    assert_int_equal(f->e.n_seen, 3 * FLEET);
    for (uint32_t i = 0; i < FLEET; i++)
        assert_int_equal(fleet[i].answered, 3);
    elv_sim_free(f->w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays_and_losses_are_those_asked_for),
        cmocka_unit_test(a_plain_request_is_sent_once_but_may_arrive_twice),
        cmocka_unit_test(a_reliable_request_is_repeated_and_acted_upon_once),
        cmocka_unit_test(a_repeat_after_the_servers_memory_or_its_restart_is_a_new_request),
        cmocka_unit_test(giving_up_takes_as_long_as_the_timers_say),
        cmocka_unit_test(a_restarted_server_hears_nothing_until_a_new_association),
        cmocka_unit_test(who_moves_to_a_new_association_may_hear_what_is_lost_with_the_old),
        cmocka_unit_test(packets_overtake_each_other_only_when_told_to),
        cmocka_unit_test(a_one_way_partition_is_one_way),
        cmocka_unit_test(a_narrow_line_makes_packets_wait_their_turn),
        cmocka_unit_test(each_direction_can_be_a_way_of_its_own),
        cmocka_unit_test(a_forgotten_question_is_never_answered),
        cmocka_unit_test(an_observer_hears_of_each_change),
        cmocka_unit_test(work_takes_its_time_and_other_things_happen_meanwhile),
        cmocka_unit_test(cancelled_work_ends_within_a_slice),
        cmocka_unit_test(a_crash_kills_what_was_under_way),
        cmocka_unit_test(a_crash_may_come_between_any_two_actions),
        cmocka_unit_test(a_node_that_cannot_start_is_started_again),
        cmocka_unit_test(a_stopped_node_ends_with_its_exit_code),
        cmocka_unit_test(a_revoked_client_is_cut_off_for_good),
        cmocka_unit_test(clocks_may_run_fast_and_start_anywhere),
        cmocka_unit_test(the_same_seed_gives_the_same_events),
        cmocka_unit_test(ten_thousand_clients_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
