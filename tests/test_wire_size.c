/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire_size.c and the counters of ports/libcoap against datagrams that were really sent:
 * their lengths as a relay sees them, and the 28 bytes of IPv4 and UDP that it does not see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/wire_size.h"
#include "tests/coap_world.h"

enum { PATIENCE_MS = 5000, BELOW = 28, SEEN_MAX = 512 };

static const char key[] = "0123456789abcdef";

static struct tap {
    uint32_t n;
    bool up[SEEN_MAX];
    uint32_t len[SEEN_MAX];
} tap;

static void look(void *ctx, bool from_client, const uint8_t *datagram, size_t len)
{
    struct tap *t = ctx;
    (void)datagram;
    assert_true(t->n < SEEN_MAX);
    t->up[t->n] = from_client;
    t->len[t->n++] = (uint32_t)len + BELOW;
}

static uint32_t sum(bool up)
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < tap.n; i++)
        all += tap.up[i] == up ? tap.len[i] : 0;
    return all;
}

static struct elv_wire_way way_of(void) { return elv_wire_usual((struct elv_text){"demo", 4}); }

static int open_world(void **state)
{
    static struct world w;
    world_init(&w);
    world_add_key(&w, "dev-1", key, 1);
    world_open_server(&w, (struct elv_coap_server_cfg){0});
    tap = (struct tap){0};
    world_open_relay(&w, (struct relay_cfg){.tap = look, .tap_ctx = &tap});
    world_open_client(&w, (struct elv_coap_client_cfg){.ack_timeout_ms = 100}, "dev-1", key);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    world_close(*state);
    return 0;
}

/* One exchange through an association that stands; the tap has seen nothing else. */
static void exchange(struct world *w, uint32_t id, struct elv_request r, bool reliable)
{
    struct world_client *c = w->client[0];
    const uint32_t before = c->answered;
    tap = (struct tap){0};
    world_send(c, id, r, reliable);
    assert_true(world_answered(w, c, before + 1, PATIENCE_MS));
    world_pass(w, 5); /* what is acknowledged at last */
}

static struct elv_response response_of(const struct world *w, uint32_t id)
{
    const struct world_answer *a = &w->client[0]->answer[id];
    return (struct elv_response){
        .code = a->code, .max_age_s = a->max_age_s, .body = {a->body, a->len}};
}

static const struct ask {
    enum elv_op op;
    uint64_t digest;
    uint32_t assignment, chunk;
    size_t len;
    bool reliable, observe;
} asks[] = {
    {.op = ELV_OP_JOIN, .len = 61, .reliable = true},
    {.op = ELV_OP_JOIN, .len = 300, .reliable = true},
    {.op = ELV_OP_TICKET, .reliable = true},
    {.op = ELV_OP_TICKET, .reliable = true, .observe = true},
    {.op = ELV_OP_MODEL_CHUNK, .digest = 1, .chunk = 0},
    {.op = ELV_OP_MODEL_CHUNK, .digest = UINT64_C(0xfedcba9876543210), .chunk = 12345},
    {.op = ELV_OP_STEP_CHUNK, .digest = 99, .chunk = 7},
    {.op = ELV_OP_UPDATE_CHUNK, .assignment = 1, .chunk = 0, .len = 1024},
    {.op = ELV_OP_UPDATE_CHUNK, .assignment = 4000000000u, .chunk = 4000000000u, .len = 1023},
    {.op = ELV_OP_UPDATE_CHUNK, .assignment = 77, .chunk = 10, .len = 1},
    {.op = ELV_OP_COMMIT, .assignment = 12, .len = 80, .reliable = true},
    {.op = ELV_OP_LEAVE, .reliable = true},
};

static void each_request_and_its_response_are_as_long_as_they_are_said_to_be(void **state)
{
    static const uint8_t body[1024];
    struct world *w = *state;
    const struct elv_wire_way way = way_of();
    exchange(w, 1, (struct elv_request){.op = ELV_OP_TICKET}, true); /* opens the association */
    for (uint32_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        const struct ask *a = &asks[i];
        const struct elv_request r = {.op = a->op,
                                      .digest = a->digest,
                                      .assignment = a->assignment,
                                      .chunk = a->chunk,
                                      .observe = a->observe,
                                      .body = {body, a->len}};
        exchange(w, 2 + i, r, a->reliable);
        const struct elv_response back = response_of(w, 2 + i);
        assert_int_equal(tap.n, 2);
        assert_true(tap.up[0] && !tap.up[1]);
        assert_int_equal(tap.len[0], elv_wire_request(&way, &r));
        assert_int_equal(tap.len[1], elv_wire_response(&way, a->op, &back, a->observe));
    }
}

static void refusals_are_as_long_as_they_are_said_to_be(void **state)
{
    struct world *w = *state;
    const struct elv_wire_way way = way_of();
    const struct elv_request r = {.op = ELV_OP_COMMIT, .assignment = 3};
    exchange(w, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    w->refuse = ELV_REASON_ROUND_CLOSED;
    exchange(w, 2, r, true);
    const struct elv_response back = response_of(w, 2);
    assert_int_equal(back.code, ELV_CODE_CONFLICT);
    assert_int_equal(sum(true), elv_wire_request(&way, &r));
    assert_int_equal(sum(false), elv_wire_response(&way, r.op, &back, false));
}

static void a_manifest_in_blocks_is_counted_whole(void **state)
{
    static const size_t lens[] = {1, 1024, 1025, 2048, 5000, ELV_MANIFEST_MAX};
    struct world *w = *state;
    const struct elv_wire_way way = way_of();
    const struct elv_request r = {.op = ELV_OP_MANIFEST};
    exchange(w, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    for (uint32_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        w->manifest_len = lens[i];
        exchange(w, 2 + i, r, true);
        struct elv_response back = response_of(w, 2 + i);
        assert_int_equal(back.body.len, lens[i]);
        back.max_age_s = 0; /* as it was sent */
        assert_int_equal(sum(true),
                         elv_wire_request(&way, &r) + elv_wire_more_requests(&way, lens[i]));
        assert_int_equal(sum(false), elv_wire_response(&way, r.op, &back, false));
    }
}

static bool one_is_kept(const void *ctx) { return ((const struct world *)ctx)->n_kept == 1; }

static void an_answer_that_comes_later_costs_two_acknowledgements(void **state)
{
    struct world *w = *state;
    const struct elv_wire_way way = way_of();
    const struct elv_request r = {.op = ELV_OP_COMMIT, .assignment = 3};
    exchange(w, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    tap = (struct tap){0};
    w->later = true;
    world_send(w->client[0], 2, r, true);
    assert_true(world_run(w, one_is_kept, w, PATIENCE_MS));
    world_pass(w, 5);
    assert_int_equal(sum(false), elv_wire_empty(&way, false));
    world_answer_kept(w);
    assert_true(world_answered(w, w->client[0], 2, PATIENCE_MS));
    world_pass(w, 5);
    const struct elv_response back = response_of(w, 2);
    assert_int_equal(sum(true), elv_wire_request(&way, &r) + elv_wire_empty(&way, true));
    assert_int_equal(sum(false),
                     elv_wire_empty(&way, false) + elv_wire_response(&way, r.op, &back, false));
}

static bool stands(const void *ctx)
{
    const struct world *w = ctx;
    return elv_coap_client_status(w->client[0]->coap)->link == ELV_COAP_LINK_UP;
}

static void a_handshake_is_as_long_as_it_is_said_to_be(void **state)
{
    struct world *w = *state;
    const struct elv_wire_way way = way_of();
    const struct elv_request r = {.op = ELV_OP_MODEL_CHUNK};
    assert_true(world_run(w, stands, w, PATIENCE_MS));
    assert_int_equal(sum(true), elv_wire_handshake(&way, true, 5));
    assert_int_equal(sum(false), elv_wire_handshake(&way, false, 5));
    exchange(w, 1, r, false);
    assert_int_equal(sum(true), elv_wire_request(&way, &r));
}

static const struct elv_coap_traffic *of_client(const struct world *w)
{
    return &elv_coap_client_status(w->client[0]->coap)->traffic;
}

static const struct elv_coap_traffic *of_server(const struct world *w)
{
    return &elv_coap_server_stats(w->server)->traffic;
}

static bool stood_twice(const void *ctx)
{
    const struct world *w = ctx;
    return elv_coap_client_status(w->client[0]->coap)->handshakes == 2;
}

/* Everything: the handshake, a ticket told without being asked for, an end by the server, a second
 * handshake. */
static void both_ends_count_what_a_relay_between_them_sees(void **state)
{
    static const uint8_t body[700];
    struct world *w = *state;
    struct world_client *c = w->client[0];
    world_send(c, 1, (struct elv_request){.op = ELV_OP_MANIFEST}, true);
    world_send(c, 2, (struct elv_request){.op = ELV_OP_TICKET, .observe = true}, true);
    assert_true(world_answered(w, c, 2, PATIENCE_MS));
    world_send(
        c, 3, (struct elv_request){.op = ELV_OP_UPDATE_CHUNK, .assignment = 3, .body = {body, 700}},
        false);
    assert_true(world_answered(w, c, 3, PATIENCE_MS));
    const struct elv_action notify = {.kind = ELV_DO_NOTIFY, .peer = 1};
    struct elv_net net = elv_coap_server_net(w->server);
    net.act(net.self, &notify);
    assert_true(world_answered(w, c, 4, PATIENCE_MS));
    elv_coap_server_drop(w->server, 1);
    world_pass(w, 20);
    world_act(c, ELV_DO_RELINK, 0);
    assert_true(world_run(w, stood_twice, w, PATIENCE_MS));
    world_pass(w, 20);
    assert_true(tap.n > 20);
    assert_int_equal(of_client(w)->wire_out, sum(true));
    assert_int_equal(of_client(w)->wire_in, sum(false));
    assert_int_equal(of_server(w)->wire_in, sum(true));
    assert_int_equal(of_server(w)->wire_out, sum(false));
    assert_int_equal(of_client(w)->datagrams_out + of_client(w)->datagrams_in, tap.n);
}

static void repeats_over_a_bad_network_are_counted_at_both_ends(void **state)
{
    struct world *w = *state;
    struct world_client *c = w->client[0];
    relay_set_loss(w->relay, 200000);
    for (uint32_t id = 1; id <= 10; id++)
        world_send(c, id, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, 10, 60000));
    relay_set_loss(w->relay, 0);
    world_pass(w, 20);
    const struct relay_stats *r = relay_stats(w->relay);
    assert_true(elv_sim_fates_lost(&r->fates[0]) + elv_sim_fates_lost(&r->fates[1]) > 0);
    assert_int_equal(of_client(w)->wire_out, sum(true));
    assert_int_equal(of_server(w)->wire_out, sum(false));
    assert_int_equal(of_server(w)->datagrams_in, r->fates[0].n[ELV_SIM_ARRIVED]);
    assert_int_equal(of_client(w)->datagrams_in, r->fates[1].n[ELV_SIM_ARRIVED]);
}

/* From a chunk's 1,024 bytes to IPv6 and back: by hand, from the documents. */
static void other_ways_differ_by_what_the_documents_say(void **state)
{
    (void)state;
    static const uint8_t body[1024];
    const struct elv_request r = {
        .op = ELV_OP_UPDATE_CHUNK, .assignment = 5, .chunk = 3, .body = {body, sizeof body}};
    struct elv_wire_way way = way_of();
    const uint32_t coap = 4 + 4 + 2 + 5 + 2 + 2 + 2 + 2 + 1 + 1024;
    way.cid_up = 0;
    assert_int_equal(elv_wire_request(&way, &r), 28 + 13 + 8 + coap + 8);
    way.ipv6 = true;
    assert_int_equal(elv_wire_request(&way, &r), 48 + 13 + 8 + coap + 8);
    way.seal = ELV_SEAL_GCM;
    assert_int_equal(elv_wire_request(&way, &r), 48 + 13 + 8 + coap + 16);
    way.seal = ELV_SEAL_CHACHA20;
    assert_int_equal(elv_wire_request(&way, &r), 48 + 13 + coap + 16);
    way.seal = ELV_SEAL_CLEAR;
    way.identity_len = 5;
    assert_int_equal(elv_wire_request(&way, &r), 48 + coap + 1 + 7);
    assert_int_equal(elv_wire_handshake(&way, true, 5), 0);
    assert_int_equal(elv_wire_request(&way, &(struct elv_request){.op = ELV_OP_COMMIT}), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_ways_differ_by_what_the_documents_say),
        cmocka_unit_test_setup_teardown(
            each_request_and_its_response_are_as_long_as_they_are_said_to_be, open_world,
            close_world),
        cmocka_unit_test_setup_teardown(refusals_are_as_long_as_they_are_said_to_be, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(a_manifest_in_blocks_is_counted_whole, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(an_answer_that_comes_later_costs_two_acknowledgements,
                                        open_world, close_world),
        cmocka_unit_test_setup_teardown(both_ends_count_what_a_relay_between_them_sees, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(repeats_over_a_bad_network_are_counted_at_both_ends,
                                        open_world, close_world),
        cmocka_unit_test_setup_teardown(a_handshake_is_as_long_as_it_is_said_to_be, open_world,
                                        close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
