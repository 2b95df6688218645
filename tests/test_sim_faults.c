/* SPDX-License-Identifier: Apache-2.0 */
/* Faults strike when and how they would, whatever others do, and heal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ports/sim/faults.h"

enum { CLIENTS = 3, STRIKES_MAX = 400, UNTIL_S = 100 };
#define SECOND ((elv_time_us)1000000)

static const struct elv_sim_delay often = {.shape = ELV_SIM_EXPONENTIAL, .spread_us = 5 * SECOND};

/* A node that does nothing. */
static void step(void *self, const struct elv_event *ev, struct elv_actions *out)
{
    (void)self;
    out->n = 0;
    if (ev->kind == ELV_EV_STOP)
        out->at[out->n++] = (struct elv_action){.kind = ELV_DO_END};
}

static elv_time_us deadline(const void *self)
{
    (void)self;
    return ELV_NEVER;
}

static enum elv_err start(void *self, uint32_t node, elv_time_us now, struct elv_node *out)
{
    (void)node, (void)now;
    *out = (struct elv_node){.self = self, .actions_max = 4, .step = step, .deadline = deadline};
    return ELV_OK;
}

struct trouble {
    struct elv_sim *w;
    struct elv_sim_disk *disk;
    struct elv_sim_faults *f;
    uint32_t server, clients[CLIENTS];
    uint32_t n, left_out; /* every so many; 0: none */
    char what[STRIKES_MAX][96];
    bool struck[STRIKES_MAX];
    uint32_t calls;
};

static bool happens(void *self, uint32_t number, const char *what)
{
    struct trouble *t = self;
    assert_int_equal(number, t->n);
    assert_true(number < STRIKES_MAX);
    snprintf(t->what[t->n++], sizeof t->what[0], "%s", what);
    return t->left_out == 0 || number % t->left_out != 0;
}

static void struck(void *self, uint32_t number) { ((struct trouble *)self)->struck[number] = true; }

static void call(void *ctx, uint32_t arg) { ((struct trouble *)ctx)->calls += arg; }

static void open_world(struct trouble *t)
{
    memset(t, 0, sizeof *t);
    t->w = elv_sim_new(&(struct elv_sim_cfg){.seed = 3});
    t->disk = elv_sim_disk_new(&(struct elv_sim_disk_cfg){.clock = elv_sim_clock(t->w)});
    t->server = elv_sim_add_server(
        t->w, &(struct elv_sim_node_cfg){.host = {.self = t, .start = start}, .disk = t->disk});
    for (uint32_t i = 0; i < CLIENTS; i++)
        t->clients[i] = elv_sim_add_client(
            t->w, &(struct elv_sim_node_cfg){
                      .host = {.self = t, .start = start}, .server = t->server, .number = i + 1});
    t->f = elv_sim_faults_new(t->w, 7, UNTIL_S * SECOND);
    elv_sim_faults_set_watch(
        t->f, &(struct elv_sim_faults_watch){.self = t, .happens = happens, .struck = struck});
}

static void close_world(struct trouble *t)
{
    elv_sim_free(t->w);
    elv_sim_faults_free(t->f);
    elv_sim_disk_free(t->disk);
}

static void add_all(struct trouble *t)
{
    elv_sim_faults_crash(t->f, t->server,
                         (struct elv_sim_crashes){.every = often,
                                                  .down = {.spread_us = SECOND},
                                                  .power_ppm = ELV_SIM_PPM / 2,
                                                  .actions_max = 0});
    elv_sim_faults_leave(t->f, t->clients[0],
                         (struct elv_sim_leaves){.every = often, .away = {.spread_us = SECOND}});
    elv_sim_faults_cut(t->f, t->clients[1],
                       (struct elv_sim_cuts){.every = often, .lasts = {.spread_us = SECOND}});
    elv_sim_faults_part(t->f, t->clients[0], CLIENTS,
                        (struct elv_sim_cuts){.every = often, .lasts = {.spread_us = SECOND}});
    elv_sim_faults_disk(
        t->f, t->disk,
        (struct elv_sim_bad_spells){.every = often, .lasts = {.spread_us = SECOND}, .fail_ppm = 9});
    elv_sim_faults_once(t->f, 50 * SECOND, "a call with", call, t, 5);
}

static void what_is_left_out_changes_nothing_about_the_others(void **state)
{
    (void)state;
    static struct trouble all, some;
    open_world(&all);
    add_all(&all);
    elv_sim_run(all.w, 2 * UNTIL_S * SECOND);
    assert_true(all.n > 60);
    assert_int_equal(all.calls, 5);
    for (uint32_t left_out = 1; left_out < 5; left_out++) {
        open_world(&some);
        some.left_out = left_out;
        add_all(&some);
        elv_sim_run(some.w, 2 * UNTIL_S * SECOND);
        assert_int_equal(some.n, all.n);
        for (uint32_t i = 0; i < all.n; i++) {
            assert_string_equal(some.what[i], all.what[i]);
            assert_false(some.struck[i] && i % left_out == 0);
        }
        close_world(&some);
    }
    close_world(&all);
}

static void all_is_whole_once_the_faults_end(void **state)
{
    (void)state;
    static struct trouble t;
    open_world(&t);
    add_all(&t);
    elv_sim_run(t.w, (UNTIL_S + 5) * SECOND);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const struct elv_sim_link *link = elv_sim_link(t.w, t.clients[i]);
        assert_false(link->cut_up || link->cut_down);
        assert_true(elv_sim_up(t.w, t.clients[i]));
    }
    assert_true(elv_sim_up(t.w, t.server));
    assert_int_equal(elv_sim_disk_cfg(t.disk)->fail_ppm, 0);
    close_world(&t);
}

/* Each second of the world: is the link cut where a strike says that it is? */
static void a_link_stays_cut_while_anything_cuts_it(void **state)
{
    (void)state;
    static struct trouble t;
    uint32_t n_cut = 0, n_whole = 0;
    open_world(&t);
    const struct elv_sim_cuts how = {
        .every = {.min_us = 5 * SECOND},
        .lasts = {.min_us = 5 * SECOND},
    };
    elv_sim_faults_cut(t.f, t.clients[1], how);
    elv_sim_faults_part(t.f, t.clients[0], CLIENTS, how);
    for (elv_time_us s = 1; s < UNTIL_S; s++) {
        elv_sim_run(t.w, s * SECOND + 1);
        const struct elv_sim_link *both = elv_sim_link(t.w, t.clients[1]);
        const struct elv_sim_link *one = elv_sim_link(t.w, t.clients[2]);
        const bool cut = s % 10 >= 5;
        assert_int_equal(both->cut_up || both->cut_down, cut);
        assert_int_equal(one->cut_up || one->cut_down, cut);
        assert_true(both->cut_up >= one->cut_up && both->cut_down >= one->cut_down);
        n_cut += cut;
        n_whole += !cut;
    }
    assert_true(n_cut > 40 && n_whole > 40);
    close_world(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_changes_nothing_about_the_others),
        cmocka_unit_test(all_is_whole_once_the_faults_end),
        cmocka_unit_test(a_link_stays_cut_while_anything_cuts_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
