/* SPDX-License-Identifier: Apache-2.0 */
/* The swarm against the server itself: eight clients of different, constant speed on a network that
 * takes no time, once as times and once as the real server and clients exchanging every message,
 * use the same clients in the same rounds, which take as long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim_fleet.h"
#include "tests/swarm_case.h"

enum { CLIENTS = 8, ROUNDS = 12, EPOCHS = 10, STEP_US = 10000 };
#define SECOND ((elv_time_us)1000000)

struct seen {      /* one round */
    uint32_t used; /* a bit for each client */
    elv_time_us took;
};

struct row { /* one policy */
    const char *policy, *key, *value;
};

static struct seen messages[ROUNDS + 1], times[ROUNDS + 1];
static uint32_t n_messages;

/* As the toy data of a fleet has it: batches of 8 out of 24 examples and some more. */
static uint32_t examples_of(uint32_t client) { return 24 + 4 * (client % 5); }

static void take_notes(struct fleet *f, uint64_t *number)
{
    const struct elv_note *n;
    while ((n = elv_note_next(&f->server->notes, number)) != NULL) {
        if (n->round > ROUNDS)
            continue;
        if (n->kind == ELV_NOTE_UPDATE_ACCEPTED)
            messages[n->round].used |= 1u << n->client;
        if (n->kind == ELV_NOTE_ROUND_CLOSED) {
            messages[n->round].took = n->report.took;
            n_messages = n->round;
        }
    }
}

static void run_messages(const struct row *row)
{
    const struct fleet_key keys[] = {
        {"sync", "policy", row->policy},
        {"sync", row->key, row->value},
        {"sync", "quorum", "1"},
        {"select", "min_clients", "8"},
        {"client", "local_epochs", "10"},
        {"job", "rounds", "12"},
        {NULL, NULL, NULL},
    };
    uint64_t number = 0;
    memset(messages, 0, sizeof messages);
    n_messages = 0;
    struct fleet *f = fleet_new(&(struct fleet_cfg){.seed = 1,
                                                    .n_clients = CLIENTS,
                                                    .keys = keys,
                                                    .slice = 1,
                                                    .step_us = STEP_US,
                                                    .slow = CLIENTS,
                                                    .steady = true});
    while (n_messages < ROUNDS && fleet_wrong(f) == NULL && elv_sim_now(f->w) < 600 * SECOND) {
        elv_sim_run(f->w, elv_sim_now(f->w) + STEP_US);
        take_notes(f, &number);
    }
    assert_null(fleet_wrong(f));
    fleet_free(f);
}

static uint32_t samples(void *self, uint32_t client)
{
    (void)self;
    return examples_of(client);
}

static struct elv_lab_trace speeds(void)
{
    char text[1024], why[256];
    struct elv_lab_trace t;
    uint32_t line;
    int len = sprintf(text, "client,start,end,compute_ms,up_bytes_s,down_bytes_s\n");
    for (int i = 1; i <= CLIENTS; i++)
        len += sprintf(text + len, "%d,0,100000,%d,0,0\n", i, STEP_US / 1000 * (1 + i));
    const struct elv_bytes bytes = {.at = (const uint8_t *)text, .len = (size_t)len};
    assert_int_equal(elv_lab_trace_parse(&t, bytes, why, &line), ELV_OK);
    return t;
}

static void run_times(const struct row *row)
{
    static struct swarm_case c;
    const struct swarm_key keys[] = {
        {"sync", "policy", row->policy}, {"sync", row->key, row->value},
        {"select", "min_clients", "8"},  {"client", "local_epochs", "10"},
        {"client", "batch_size", "8"},   {NULL, NULL, NULL},
    };
    struct elv_lab_trace t = speeds();
    memset(times, 0, sizeof times);
    swarm_case_init(&c, keys, CLIENTS);
    c.learner.samples = samples;
    c.world.trace = &t;
    c.world.device.per = ELV_LAB_PER_STEP;
    c.cfg.rounds = ROUNDS;
    swarm_case_run(&c);
    for (uint32_t i = 0; i < c.n_events; i++)
        if (c.events[i].kind == ELV_LAB_USED)
            times[c.events[i].round].used |= 1u << c.events[i].client;
    for (uint32_t i = 0; i < c.n_rounds; i++)
        times[c.rounds[i].seq].took = c.rounds[i].closed - c.rounds[i].opened;
    swarm_case_free(&c);
    elv_lab_trace_free(&t);
}

static void rounds_use_the_same_clients_and_take_as_long(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"bsp", "deadline", "60s"},
        {"bsp", "deadline", "2600ms"}, /* the slow ones are late, and late again */
        {"backup", "k", "5"},
        {"backup", "backup", "1"},
        {"dbw", "rule", "blind"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        run_messages(&rows[i]);
        run_times(&rows[i]);
        assert_int_equal(n_messages, ROUNDS);
        for (uint32_t r = 1; r <= ROUNDS; r++) {
            const struct seen *a = &messages[r], *b = &times[r];
            const elv_time_us off = a->took > b->took ? a->took - b->took : b->took - a->took;
            if (a->used != b->used || off > b->took / 20)
                fail_msg("%s, round %u: %x in %.3f s, and %x in %.3f s", rows[i].policy, r, a->used,
                         (double)a->took / 1e6, b->used, (double)b->took / 1e6);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_use_the_same_clients_and_take_as_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
