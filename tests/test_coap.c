/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_coap.c - CoAP over DTLS on loopback sockets. */
#define _GNU_SOURCE /* mallinfo2 */
#include <arpa/inet.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "coap_world.h"
#include "ports/mbedtls/certify.h"

static const char key_a[] = "0123456789abcdef";
static const char key_b[] = "fedcba9876543210";
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

enum { PATIENCE_MS = 20000 }; /* a limit for broken code; a correct run takes milliseconds */

static int begin(void **state)
{
    static struct world w;
    world_init(&w);
    world_add_key(&w, "dev-1", key_a, 1);
    world_add_key(&w, "dev-2", key_b, 2);
    *state = &w;
    return 0;
}

static int end(void **state)
{
    world_close(*state);
    return 0;
}

static struct elv_request put_chunk(uint32_t assignment, uint32_t chunk, const uint8_t *at,
                                    size_t n)
{
    return (struct elv_request){
        .op = ELV_OP_UPDATE_CHUNK, .assignment = assignment, .chunk = chunk, .body = {at, n}};
}

static struct world_client *open_client(struct world *w, const char *identity, const char *psk)
{
    return world_open_client(w, (struct elv_coap_client_cfg){0}, identity, psk);
}

static bool answered_id(const void *ctx) { return ((const struct world_answer *)ctx)->n != 0; }

static void nothing(void *self, struct elv_event *ev)
{
    (void)self;
    (void)ev;
}

static enum elv_err no_key(void *self, struct elv_text identity, struct elv_coap_key *key)
{
    (void)self;
    (void)identity;
    (void)key;
    return ELV_ERR_MISSING;
}

static void each_operation_reaches_the_node_and_comes_back(void **state)
{
    static const uint8_t some[] = {1, 2, 3};
    static const struct {
        struct elv_request request;
        uint8_t code;
        size_t len;
    } rows[] = {
        {{.op = ELV_OP_MANIFEST}, ELV_CODE_CONTENT, 5000},
        {{.op = ELV_OP_JOIN, .body = {some, 3}}, ELV_CODE_CHANGED, 4},
        {{.op = ELV_OP_LEAVE}, ELV_CODE_DELETED, 0},
        {{.op = ELV_OP_TICKET}, ELV_CODE_CONTENT, 4},
        {{.op = ELV_OP_MODEL_CHUNK, .digest = UINT64_C(0x0123456789abcdef), .chunk = 7},
         ELV_CODE_CONTENT,
         1024},
        {{.op = ELV_OP_STEP_CHUNK, .digest = 5, .chunk = 70000}, ELV_CODE_CONTENT, 1024},
        {{.op = ELV_OP_UPDATE_CHUNK, .assignment = 3, .chunk = 9, .body = {some, 3}},
         ELV_CODE_CHANGED,
         4},
        {{.op = ELV_OP_COMMIT, .assignment = UINT32_MAX, .body = {some, 3}}, ELV_CODE_CHANGED, 4},
    };
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    struct world_client *c = world_open_client(w, (struct elv_coap_client_cfg){0}, "dev-1", key_a);
    uint32_t n = 0;
    for (int reliable = 1; reliable >= 0; reliable--) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const struct elv_request *r = &rows[i].request;
            const uint32_t id = ++n;
            world_send(c, id, *r, reliable);
            assert_true(world_answered(w, c, n, PATIENCE_MS));
            assert_int_equal(c->answer[id].n, 1);
            assert_int_equal(c->answer[id].code, rows[i].code);
            assert_int_equal(c->answer[id].len, rows[i].len);
            assert_int_equal(w->peer, 1);
            assert_int_equal(w->last.op, r->op);
            assert_int_equal(w->last.digest, r->digest);
            assert_int_equal(w->last.assignment, r->assignment);
            assert_int_equal(w->last.chunk, r->chunk);
            assert_int_equal(w->last.body.len, r->body.len);
            if (r->body.len != 0)
                assert_memory_equal(w->body, some, r->body.len);
        }
    }
    assert_int_equal(elv_coap_client_status(c->coap)->in_flight, 0);
    assert_int_equal(elv_coap_server_stats(w->server)->pending, 0);
    assert_int_equal(w->key[0].used, 1);
}

static bool requests_are(const void *ctx)
{
    const struct world *w = ctx;
    return w->n_kept >= 6;
}

static void a_reply_may_come_later_and_in_any_order(void **state)
{
    struct world *w = *state;
    w->later = true;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    struct world_client *c = open_client(w, "dev-1", key_a);
    for (uint32_t id = 1; id <= 6; id++)
        world_send(c, id, (struct elv_request){.op = ELV_OP_COMMIT, .assignment = id}, id % 2 != 0);
    /* What is sent once does not wait for the handshake; the node repeats it. */
    assert_false(world_run(w, requests_are, w, 200));
    assert_int_equal(w->n_kept, 3);
    for (uint32_t id = 2; id <= 6; id += 2)
        world_send(c, id, (struct elv_request){.op = ELV_OP_COMMIT, .assignment = id}, false);
    assert_true(world_run(w, requests_are, w, PATIENCE_MS));
    assert_int_equal(elv_coap_server_stats(w->server)->pending, 6);
    assert_int_equal(c->answered, 0);
    world_answer_kept(w);
    assert_true(world_answered(w, c, 6, PATIENCE_MS));
    for (uint32_t id = 1; id <= 6; id++)
        assert_int_equal(c->answer[id].code, ELV_CODE_CHANGED);
    assert_int_equal(elv_coap_server_stats(w->server)->pending, 0);
    world_answer_kept(w); /* nothing left; and a second reply would be counted, not sent */
    assert_int_equal(elv_coap_server_stats(w->server)->dropped, 0);
}

static void the_reply_to_a_client_that_has_gone_is_dropped(void **state)
{
    struct world *w = *state;
    w->later = true;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    struct world_client *c = open_client(w, "dev-1", key_a);
    for (uint32_t id = 1; id <= 6; id++)
        world_send(c, id, (struct elv_request){.op = ELV_OP_COMMIT, .assignment = id}, true);
    assert_true(world_run(w, requests_are, w, PATIENCE_MS));
    elv_coap_server_drop(w->server, 1);
    assert_true(world_unanswered(w, c, 6, PATIENCE_MS));
    assert_int_equal(elv_coap_client_status(c->coap)->link, ELV_COAP_LINK_CLOSED);
    world_answer_kept(w);
    assert_int_equal(elv_coap_server_stats(w->server)->dropped, 6);
    assert_int_equal(elv_coap_server_stats(w->server)->pending, 0);
    assert_int_equal(elv_coap_server_stats(w->server)->sessions, 0);
}

static void a_full_table_of_waiting_requests_says_when_to_come_back(void **state)
{
    struct world *w = *state;
    struct elv_refusal refusal;
    w->later = true;
    world_open_server(w, (struct elv_coap_server_cfg){.pending_max = 6});
    struct world_client *c = open_client(w, "dev-1", key_a);
    for (uint32_t id = 1; id <= 7; id++)
        world_send(c, id, (struct elv_request){.op = ELV_OP_COMMIT, .assignment = id}, true);
    assert_true(world_answered(w, c, 1, PATIENCE_MS));
    assert_int_equal(c->answer[7].code, ELV_CODE_UNAVAILABLE);
    assert_int_equal(c->answer[7].max_age_s, 2);
    const struct elv_bytes body = {c->answer[7].body, c->answer[7].len};
    assert_int_equal(elv_refusal_decode(body, &refusal), ELV_OK);
    assert_int_equal(refusal.reason, ELV_REASON_FULL);
    world_answer_kept(w);
    assert_true(world_answered(w, c, 7, PATIENCE_MS));
}

static void another_job_is_not_found(void **state)
{
    struct world *w = *state;
    struct elv_refusal refusal;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    struct world_client *c =
        world_open_client(w, (struct elv_coap_client_cfg){.job = {"other", 5}}, "dev-1", key_a);
    world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, 1, PATIENCE_MS));
    assert_int_equal(c->answer[1].code, ELV_CODE_NOT_FOUND);
    const struct elv_bytes body = {c->answer[1].body, c->answer[1].len};
    assert_int_equal(elv_refusal_decode(body, &refusal), ELV_OK);
    assert_int_equal(refusal.reason, ELV_REASON_NO_SUCH_JOB);
    assert_int_equal(w->requests, 0);
}

static void who_cannot_prove_itself_is_refused_and_told_apart_from_a_missing_server(void **state)
{
    static const struct {
        const char *what, *identity, *psk;
        uint64_t proof, unknown, revoked;
    } rows[] = {
        {"a wrong key", "dev-1", "0123456789abcdeX", 1, 0, 0},
        {"a key of another length", "dev-1", "0123", 1, 0, 0},
        {"an unknown identity", "dev-9", key_a, 0, 1, 0},
        {"an identity outside the alphabet", "dev 1", key_a, 0, 1, 0},
        {"a revoked identity", "dev-3", key_a, 0, 0, 1},
    };
    struct world *w = *state;
    world_add_key(w, "dev-3", key_a, 3);
    w->key[2].revoked = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world_open_server(w, (struct elv_coap_server_cfg){0});
        struct world_client *c = open_client(w, rows[i].identity, rows[i].psk);
        world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
        assert_true(world_unanswered(w, c, 1, PATIENCE_MS));
        const struct elv_coap_client_status *status = elv_coap_client_status(c->coap);
        assert_int_equal(status->link, ELV_COAP_LINK_REFUSED);
        assert_int_equal(status->refused_in_row, 1);
        world_act(c, ELV_DO_RELINK, 0);
        world_send(c, 2, (struct elv_request){.op = ELV_OP_TICKET}, true);
        assert_true(world_unanswered(w, c, 2, PATIENCE_MS));
        world_pass(w, 50);
        assert_in_range(status->refused_in_row, 1, 3);
        const struct elv_coap_server_stats *s = elv_coap_server_stats(w->server);
        assert_int_equal(s->requests, 0);
        assert_int_equal(s->sessions, 0);
        assert_int_equal(s->refused_proof >= 1, rows[i].proof);
        assert_int_equal(s->refused_unknown >= 1, rows[i].unknown);
        assert_int_equal(s->refused_revoked >= 1, rows[i].revoked);
        world_close(w);
        w->client[0] = NULL;
        w->server = NULL;
    }
    assert_int_equal(w->requests, 0);
    assert_int_equal(w->key[0].used, 0);
}

static bool link_is_unreachable(const void *ctx)
{
    const struct world_client *c = ctx;
    return elv_coap_client_status(c->coap)->link == ELV_COAP_LINK_UNREACHABLE;
}

static void a_missing_server_is_unreachable_and_found_once_it_is_there(void **state)
{
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    char uri[64];
    const unsigned port = elv_coap_server_info(w->server)->port[0];
    snprintf(uri, sizeof uri, "coaps://localhost:%u", port);
    elv_coap_server_close(w->server);
    w->server = NULL;
    struct world_client *c =
        world_open_client(w, (struct elv_coap_client_cfg){.server = uri}, "dev-1", key_a);
    assert_true(world_run(w, link_is_unreachable, c, PATIENCE_MS));
    char text[32];
    const char *const same[] = {text};
    snprintf(text, sizeof text, "localhost:%u", port);
    world_open_server(w, (struct elv_coap_server_cfg){.listen = same, .n_listen = 1});
    world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, 1, PATIENCE_MS));
    assert_int_equal(elv_coap_client_status(c->coap)->link, ELV_COAP_LINK_UP);
}

static void two_generations_of_an_identity_are_one_client(void **state)
{
    struct world *w = *state;
    world_add_key(w, "dev-1#2", key_b, 1);
    world_open_server(w, (struct elv_coap_server_cfg){0});
    struct world_client *older = open_client(w, "dev-1", key_a);
    struct world_client *newer = open_client(w, "dev-1#2", key_b);
    world_send(older, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, older, 1, PATIENCE_MS));
    assert_int_equal(w->peer, 1);
    world_send(newer, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, newer, 1, PATIENCE_MS));
    assert_int_equal(w->peer, 1);
    assert_int_equal(w->key[0].used, 1);
    assert_int_equal(w->key[2].used, 1);
    assert_int_equal(elv_coap_server_stats(w->server)->sessions, 2);
    elv_coap_server_drop(w->server, 1);
    world_pass(w, 50);
    assert_int_equal(elv_coap_server_stats(w->server)->sessions, 0);
}

static void a_newer_generation_ends_the_sessions_of_the_older(void **state)
{
    struct world *w = *state;
    world_add_key(w, "dev-1#2", key_b, 1);
    w->key[2].replaces = "dev-1";
    world_open_server(w, (struct elv_coap_server_cfg){0});
    struct world_client *older = open_client(w, "dev-1", key_a);
    struct world_client *other = open_client(w, "dev-2", key_b);
    world_send(older, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    world_send(other, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, older, 1, PATIENCE_MS));
    assert_true(world_answered(w, other, 1, PATIENCE_MS));
    struct world_client *newer = open_client(w, "dev-1#2", key_b);
    world_send(newer, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, newer, 1, PATIENCE_MS));
    world_pass(w, 50);
    assert_int_equal(elv_coap_client_status(older->coap)->link, ELV_COAP_LINK_CLOSED);
    assert_int_equal(elv_coap_client_status(newer->coap)->link, ELV_COAP_LINK_UP);
    assert_int_equal(elv_coap_client_status(other->coap)->link, ELV_COAP_LINK_UP);
    world_send(older, 2, (struct elv_request){.op = ELV_OP_TICKET}, true);
    world_act(older, ELV_DO_RELINK, 0);
    assert_true(world_unanswered(w, older, 1, PATIENCE_MS));
}

static void a_body_beyond_a_chunk_is_refused(void **state)
{
    static const uint8_t body[1100];
    static const struct {
        size_t len;
        uint8_t code;
    } rows[] = {
        {1023, ELV_CODE_CHANGED},
        {1024, ELV_CODE_CHANGED},
        {1025, ELV_CODE_TOO_LARGE},
        {1100, ELV_CODE_TOO_LARGE},
    };
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    struct world_client *c = open_client(w, "dev-1", key_a);
    for (uint32_t i = 0; i < 4; i++) {
        world_send(c, i + 1, put_chunk(1, i, body, rows[i].len), true);
        assert_true(world_answered(w, c, i + 1, PATIENCE_MS));
        assert_int_equal(c->answer[i + 1].code, rows[i].code);
    }
    assert_int_equal(w->requests, 2);
    assert_int_equal(elv_coap_server_stats(w->server)->too_large, 2);
}

static void the_longest_path_and_a_full_chunk_fit_one_datagram(void **state)
{
    static const uint8_t body[1024];
    static const char name[] = "abcdefghijklmnopqrstuvwxyz012345"; /* 32, the most */
    struct world *w = *state;
    const struct elv_text job = {name, 32};
    world_open_server(w, (struct elv_coap_server_cfg){.job = job});
    struct world_client *c =
        world_open_client(w, (struct elv_coap_client_cfg){.job = job}, "dev-1", key_a);
    world_send(c, 1, put_chunk(UINT32_MAX, UINT32_MAX, body, sizeof body), true);
    assert_true(world_answered(w, c, 1, PATIENCE_MS));
    assert_int_equal(c->answer[1].code, ELV_CODE_CHANGED);
    assert_int_equal(w->last.chunk, UINT32_MAX);
}

static void a_manifest_of_any_allowed_length_arrives_whole(void **state)
{
    static const size_t rows[] = {1, 1023, 1024, 1025, 2047, 2048, 2049, 5000, 8191, 8192};
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    struct world_client *c = open_client(w, "dev-1", key_a);
    uint32_t id = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        w->manifest_len = rows[i];
        id++;
        world_send(c, id, (struct elv_request){.op = ELV_OP_MANIFEST}, true);
        assert_true(world_answered(w, c, id, PATIENCE_MS));
        assert_int_equal(c->answer[id].n, 1);
        assert_int_equal(c->answer[id].len, rows[i]);
        for (size_t k = 0; k < rows[i]; k++)
            assert_int_equal(c->answer[id].body[k], world_byte(1, k));
    }
    assert_int_equal(elv_coap_client_status(c->coap)->in_flight, 0);
}

static void a_refusal_keeps_its_reason(void **state)
{
    struct world *w = *state;
    struct elv_refusal refusal;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    struct world_client *c = open_client(w, "dev-1", key_a);
    w->refuse = ELV_REASON_ROUND_CLOSED;
    static const enum elv_op ops[] = {ELV_OP_MANIFEST, ELV_OP_TICKET, ELV_OP_UPDATE_CHUNK};
    for (uint32_t i = 0; i < 3; i++) {
        world_send(c, i + 1, (struct elv_request){.op = ops[i], .assignment = 1}, true);
        assert_true(world_answered(w, c, i + 1, PATIENCE_MS));
        const struct elv_bytes body = {c->answer[i + 1].body, c->answer[i + 1].len};
        assert_int_equal(c->answer[i + 1].code, ELV_CODE_CONFLICT);
        assert_int_equal(elv_refusal_decode(body, &refusal), ELV_OK);
        assert_int_equal(refusal.reason, ELV_REASON_ROUND_CLOSED);
        assert_int_equal(refusal.retry_ms, 3000);
    }
}

static void notify(struct world *w, uint32_t client)
{
    const struct elv_action a = {.kind = ELV_DO_NOTIFY, .peer = client};
    struct elv_net net = elv_coap_server_net(w->server);
    w->ticket++;
    net.act(net.self, &a);
}

static uint32_t ticket_of(const struct world_client *c, uint32_t id)
{
    uint32_t ticket;
    memcpy(&ticket, c->answer[id].body, 4);
    return ticket;
}

static void an_observer_hears_of_its_own_ticket_only_and_until_it_forgets(void **state)
{
    const struct elv_request observe = {.op = ELV_OP_TICKET, .observe = true};
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    struct world_client *a = open_client(w, "dev-1", key_a);
    struct world_client *b = open_client(w, "dev-2", key_b);
    world_send(a, 7, observe, true);
    world_send(b, 7, observe, true);
    assert_true(world_answered(w, a, 1, PATIENCE_MS));
    assert_true(world_answered(w, b, 1, PATIENCE_MS));
    assert_int_equal(a->answer[7].max_age_s, 7);
    for (uint32_t n = 2; n <= 5; n++) { /* the first confirmable, the others not */
        notify(w, 1);
        assert_true(world_answered(w, a, n, PATIENCE_MS));
        assert_int_equal(a->answer[7].n, n);
        assert_int_equal(ticket_of(a, 7), n);
        assert_true(w->last.observe);
    }
    assert_int_equal(b->answer[7].n, 1);
    assert_int_equal(elv_coap_server_stats(w->server)->notifications, 4);

    w->later = true; /* a notification may be answered later, too */
    notify(w, 2);
    world_pass(w, 20);
    assert_int_equal(w->n_kept, 1);
    world_answer_kept(w);
    w->later = false;
    assert_true(world_answered(w, b, 2, PATIENCE_MS));
    assert_int_equal(ticket_of(b, 7), 6);

    world_act(a, ELV_DO_FORGET, 7);
    notify(w, 1); /* is reset, because nobody knows it */
    world_pass(w, 50);
    const uint32_t asked = w->requests;
    notify(w, 1);
    world_pass(w, 50);
    assert_int_equal(w->requests, asked);
    assert_int_equal(a->answered, 5);
}

static void a_server_that_lost_everything_is_found_again_by_a_new_association(void **state)
{
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    world_open_relay(w, (struct relay_cfg){0});
    struct world_client *c = world_open_client(
        w, (struct elv_coap_client_cfg){.ack_timeout_ms = 100, .retries = 1}, "dev-1", key_a);
    world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, 1, PATIENCE_MS));
    relay_set_loss(w->relay, 1000000); /* so that its end is not heard of, as when it is killed */
    world_restart_server(w, (struct elv_coap_server_cfg){0});
    world_pass(w, 20);
    relay_set_loss(w->relay, 0);
    world_send(c, 2, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_unanswered(w, c, 1, PATIENCE_MS));
    assert_int_equal(elv_coap_client_status(c->coap)->link, ELV_COAP_LINK_UP); /* as it seems */
    world_act(c, ELV_DO_RELINK, 0);
    for (uint32_t id = 3; id < 50 && c->answered < 2; id++) {
        world_send(c, id, (struct elv_request){.op = ELV_OP_TICKET}, false);
        world_pass(w, 20);
    }
    assert_int_equal(c->answered, 2);
    assert_int_equal(elv_coap_client_status(c->coap)->handshakes, 2);
}

static void what_waits_on_an_association_that_is_replaced_is_given_back(void **state)
{
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    struct world_client *c = open_client(w, "dev-1", key_a);
    world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, 1, PATIENCE_MS));
    w->later = true; /* not answered now */
    world_send(c, 2, (struct elv_request){.op = ELV_OP_TICKET}, true);
    world_send(c, 3, (struct elv_request){.op = ELV_OP_TICKET}, false);
    world_pass(w, 20);
    world_act(c, ELV_DO_RELINK, 0);
    assert_true(world_unanswered(w, c, 2, PATIENCE_MS));
    assert_int_equal(elv_coap_client_status(c->coap)->handshakes, 2);
    assert_int_equal(c->answer[2].err, ELV_ERR_CANCELLED);
    assert_int_equal(c->answer[3].err, ELV_ERR_CANCELLED);
    w->later = false;
    world_send(c, 4, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, 2, PATIENCE_MS));
}

static void what_is_asked_while_an_association_is_about_to_open_is_given_back(void **state)
{
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    struct world_client *c = open_client(w, "dev-1", key_b); /* not its key: refused */
    world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_unanswered(w, c, 1, PATIENCE_MS));
    assert_int_equal(c->answer[1].err, ELV_OK);
    world_act(c, ELV_DO_RELINK, 0);
    world_send(c, 2, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_unanswered(w, c, 2, PATIENCE_MS));
    assert_int_equal(c->answer[2].err, ELV_ERR_CANCELLED);
    assert_int_equal(elv_coap_client_status(c->coap)->link, ELV_COAP_LINK_OPENING);
    world_send(c, 3, (struct elv_request){.op = ELV_OP_TICKET}, true); /* waits for the handshake */
    assert_true(world_unanswered(w, c, 3, PATIENCE_MS));
    assert_int_equal(c->answer[3].err, ELV_OK);
    assert_int_equal(elv_coap_client_status(c->coap)->refused_in_row, 2);
}

static void a_new_association_opens_beside_the_old_one(void **state)
{
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    world_open_relay(w, (struct relay_cfg){.delay_us = 20000});
    struct world_client *c = open_client(w, "dev-1", key_a);
    uint32_t n = 1;
    world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, 1, PATIENCE_MS));
    world_act(c, ELV_DO_RELINK, 0);
    world_pass(w, 1);
    world_send(c, ++n, (struct elv_request){.op = ELV_OP_TICKET}, false);
    assert_true(world_answered(w, c, n, PATIENCE_MS)); /* 40 ms: the handshake takes 120 */
    assert_int_equal(elv_coap_client_status(c->coap)->link, ELV_COAP_LINK_OPENING);
    world_pass(w, 300);
    assert_int_equal(elv_coap_client_status(c->coap)->link, ELV_COAP_LINK_UP);
    assert_int_equal(elv_coap_client_status(c->coap)->handshakes, 2);
    world_send(c, ++n, (struct elv_request){.op = ELV_OP_TICKET}, false);
    assert_true(world_answered(w, c, n, PATIENCE_MS));
    assert_int_equal(elv_coap_server_stats(w->server)->sessions, 1);
}

static void a_change_of_address_costs_no_handshake(void **state)
{
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    world_open_relay(w, (struct relay_cfg){0});
    struct world_client *c = open_client(w, "dev-1", key_a);
    for (uint32_t n = 1; n <= 5; n++) {
        world_send(c, n, (struct elv_request){.op = ELV_OP_TICKET}, true);
        assert_true(world_answered(w, c, n, PATIENCE_MS));
        relay_move(w->relay);
    }
    assert_int_equal(elv_coap_client_status(c->coap)->handshakes, 1);
    assert_int_equal(elv_coap_server_stats(w->server)->handshakes, 1);
    assert_int_equal(w->peer, 1);
}

struct seen {
    uint32_t datagrams, foreign;
};

/* Each record of a datagram: content type 20 to 25, DTLS 1.0 or 1.2, and its length. */
static void check_record(void *ctx, bool from_client, const uint8_t *at, size_t len)
{
    struct seen *seen = ctx;
    (void)from_client;
    seen->datagrams++;
    const bool is_record = len >= 13 && at[0] >= 20 && at[0] <= 25 && at[1] == 0xfe &&
                           (at[2] == 0xfd || at[2] == 0xff);
    if (!is_record)
        seen->foreign++;
}

static void only_dtls_records_are_on_the_wire(void **state)
{
    static struct seen seen;
    struct world *w = *state;
    seen = (struct seen){0};
    world_open_server(w, (struct elv_coap_server_cfg){0});
    world_open_relay(w, (struct relay_cfg){.tap = check_record, .tap_ctx = &seen});
    struct world_client *c = open_client(w, "dev-1", key_a);
    world_send(c, 1, (struct elv_request){.op = ELV_OP_MANIFEST}, true);
    world_send(c, 2, (struct elv_request){.op = ELV_OP_MODEL_CHUNK}, true);
    world_send(c, 3, (struct elv_request){.op = ELV_OP_TICKET, .observe = true}, true);
    assert_true(world_answered(w, c, 3, PATIENCE_MS));
    notify(w, 1);
    assert_true(world_answered(w, c, 4, PATIENCE_MS));
    elv_coap_server_drop(w->server, 1);
    world_pass(w, 50);
    assert_true(seen.datagrams > 15);
    assert_int_equal(seen.foreign, 0);
}

enum { CHUNKS = 200 };

static void two_hundred_chunks_in_flight_survive_a_bad_network(void **state)
{
    static uint8_t body[1024];
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    world_open_relay(w, (struct relay_cfg){.seed = 3,
                                           .loss_ppm = 100000,
                                           .duplicate_ppm = 50000,
                                           .delay_us = 5000,
                                           .jitter_us = 10000});
    struct world_client *c = world_open_client(
        w, (struct elv_coap_client_cfg){.ack_timeout_ms = 50, .in_flight_max = 512}, "dev-1",
        key_a);
    world_send(c, 0, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, 1, PATIENCE_MS));
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (uint8_t)i;
    uint32_t left = CHUNKS;
    for (int round = 0; round < 100 && left != 0; round++) {
        for (uint32_t id = 1; id <= CHUNKS; id++) {
            if (c->answer[id].n != 0)
                continue;
            if (round > 0)
                world_act(c, ELV_DO_FORGET, id);
            world_send(c, id, put_chunk(1, id, body, sizeof body), false);
        }
        assert_true(elv_coap_client_status(c->coap)->in_flight <= CHUNKS);
        world_pass(w, 60);
        left = 0;
        for (uint32_t id = 1; id <= CHUNKS; id++)
            left += c->answer[id].n == 0;
    }
    assert_int_equal(left, 0);
    assert_int_equal(elv_coap_client_status(c->coap)->in_flight, 0);
    assert_int_equal(relay_stats(w->relay)->overrun, 0);
    assert_true(elv_sim_fates_lost(&relay_stats(w->relay)->fates[0]) > 0);
    assert_true(elv_sim_fates_lost(&relay_stats(w->relay)->fates[1]) > 0);
}

static void confirmable_requests_and_later_replies_get_through_loss(void **state)
{
    struct world *w = *state;
    w->later = true;
    world_open_server(w, (struct elv_coap_server_cfg){.ack_timeout_ms = 60});
    world_open_relay(w, (struct relay_cfg){.seed = 5, .delay_us = 1000});
    struct world_client *c = world_open_client(
        w, (struct elv_coap_client_cfg){.ack_timeout_ms = 60, .retries = 8}, "dev-1", key_a);
    for (uint32_t id = 1; id <= 6; id++)
        world_send(c, id, (struct elv_request){.op = ELV_OP_COMMIT, .assignment = id}, true);
    world_pass(w, 100);
    relay_set_loss(w->relay, 100000);
    for (uint32_t id = 7; id <= 20; id++)
        world_send(c, id, (struct elv_request){.op = ELV_OP_COMMIT, .assignment = id}, true);
    for (int i = 0; i < 200 && c->answered < 20; i++) {
        world_answer_kept(w);
        world_pass(w, 50);
    }
    /* A request whose acknowledgement was lost is repeated, which gives no second answer. */
    for (uint32_t id = 1; id <= 20; id++)
        assert_int_equal(c->answer[id].n, 1);
}

static void requests_that_are_lost_leave_nothing_behind(void **state)
{
    static uint8_t body[1024];
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    world_open_relay(w, (struct relay_cfg){0});
    struct world_client *c = open_client(w, "dev-1", key_a);
    world_send(c, 1000, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, 1, PATIENCE_MS));
    relay_set_loss(w->relay, 1000000);
    size_t before = 0, after = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        if (i == 200)
            before = mallinfo2().uordblks;
        world_send(c, i % 100, put_chunk(1, i, body, sizeof body), false);
        world_act(c, ELV_DO_FORGET, i % 100);
        if (i % 50 == 49)
            world_pass(w, 1);
    }
    after = mallinfo2().uordblks;
    assert_true(after <= before + 16384); /* 1,800 lost requests of 1 KB */
    assert_int_equal(elv_coap_client_status(c->coap)->in_flight, 0);
    relay_set_loss(w->relay, 0);
    world_send(c, 1001, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, 2, PATIENCE_MS));
}

static void the_session_unused_longest_makes_room(void **state)
{
    struct world *w = *state;
    world_add_key(w, "dev-3", key_a, 3);
    world_open_server(w, (struct elv_coap_server_cfg){.sessions_max = 2, .per_client_max = 2});
    static const char *const who[] = {"dev-1", "dev-2", "dev-1", "dev-3", "dev-2"};
    const struct elv_coap_server_stats *s = elv_coap_server_stats(w->server);
    for (uint32_t i = 0; i < 4; i++) {
        struct world_client *c =
            i == 2 ? w->client[0] : open_client(w, who[i], i == 1 ? key_b : key_a);
        world_send(c, i, (struct elv_request){.op = ELV_OP_TICKET}, true);
        assert_true(world_run(w, answered_id, &c->answer[i], PATIENCE_MS));
        world_pass(w, 10);
        assert_true(s->sessions <= 2);
    }
    /* dev-1 was used again after dev-2, so dev-2 went. */
    assert_int_equal(s->sessions_evicted, 1);
    assert_int_equal(elv_coap_client_status(w->client[0]->coap)->link, ELV_COAP_LINK_UP);
    assert_int_equal(elv_coap_client_status(w->client[1]->coap)->link, ELV_COAP_LINK_CLOSED);
}

static void one_client_cannot_take_all_sessions(void **state)
{
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){.per_client_max = 2});
    struct world_client *other = open_client(w, "dev-2", key_b);
    world_send(other, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, other, 1, PATIENCE_MS));
    for (uint32_t i = 0; i < 4; i++) {
        struct world_client *c = open_client(w, "dev-1", key_a);
        world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
        assert_true(world_answered(w, c, 1, PATIENCE_MS));
    }
    world_pass(w, 50);
    assert_int_equal(elv_coap_server_stats(w->server)->sessions, 3);
    assert_int_equal(elv_coap_server_stats(w->server)->sessions_evicted, 2);
    assert_int_equal(elv_coap_client_status(other->coap)->link, ELV_COAP_LINK_UP);
}

static void nothing_is_in_the_clear_unless_allowed(void **state)
{
    static const char *const clear[] = {"coap://127.0.0.1:0"};
    struct world *w = *state;
    struct elv_coap_problem problem;
    struct elv_coap_server *server = NULL;
    struct elv_coap_client *client = NULL;
    world_open_server(
        w, (struct elv_coap_server_cfg){.listen = clear, .n_listen = 1, .insecure = true});
    const struct elv_coap_server_cfg secure = {.listen = clear,
                                               .n_listen = 1,
                                               .job = {"demo", 4},
                                               .sink = {w, nothing},
                                               .keys = {w, no_key, NULL}};
    assert_int_equal(elv_coap_server_open(&secure, &server, &problem), ELV_ERR_ARG);
    assert_null(server);
    assert_non_null(strstr(problem.text, "in the clear"));
    char uri[64];
    snprintf(uri, sizeof uri, "coap://127.0.0.1:%u",
             (unsigned)elv_coap_server_info(w->server)->port[0]);
    const struct elv_coap_client_cfg refused = {.server = uri,
                                                .job = {"demo", 4},
                                                .sink = {w, nothing},
                                                .identity = {"dev-1", 5},
                                                .psk = {(const uint8_t *)key_a, 16}};
    assert_int_equal(elv_coap_client_open(&refused, &client, &problem), ELV_ERR_ARG);
    assert_null(client);

    struct world_client *c = world_open_client(
        w, (struct elv_coap_client_cfg){.server = uri, .insecure = true}, "dev-2", key_b);
    world_pass(w, 1);
    world_send(c, 1, (struct elv_request){.op = ELV_OP_MODEL_CHUNK}, false);
    assert_true(world_answered(w, c, 1, PATIENCE_MS));
    assert_int_equal(w->peer, 2);
    c = world_open_client(w, (struct elv_coap_client_cfg){.server = uri, .insecure = true}, "dev-9",
                          key_b);
    world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, 1, PATIENCE_MS));
    assert_int_equal(c->answer[1].code, ELV_CODE(4, 1));
}

static void a_wrong_configuration_is_refused_with_a_sentence(void **state)
{
    static const char *const rows[] = {
        "",
        "coaps://",
        "127.0.0.1:x",
        "127.0.0.1:65536",
        "::1",
        "[::1",
        "[::1]x:1",
        "127.0.0.1:5684/a",
        "http://127.0.0.1",
        "127.0.0.1:",
        "[]:5684",
        "host:1:2",
        ":5684",
        "[::1]:",
        "coap://127.0.0.1",
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct elv_coap_problem problem;
        struct elv_coap_server *server;
        const struct elv_coap_server_cfg cfg = {.listen = &rows[i],
                                                .n_listen = 1,
                                                .job = {"demo", 4},
                                                .sink = {w, nothing},
                                                .keys = {w, no_key, NULL}};
        assert_int_equal(elv_coap_server_open(&cfg, &server, &problem), ELV_ERR_ARG);
        assert_null(server);
        assert_true(strlen(problem.text) > 10);
    }
}

static void an_address_is_served_by_one_server_only(void **state)
{
    struct world *w = *state;
    char address[32];
    world_open_server(w, (struct elv_coap_server_cfg){0});
    snprintf(address, sizeof address, "127.0.0.1:%u",
             (unsigned)elv_coap_server_info(w->server)->port[0]);
    const char *listen[] = {address};
    const struct elv_coap_server_cfg cfg = {.listen = listen,
                                            .n_listen = 1,
                                            .job = {"demo", 4},
                                            .sink = {w, nothing},
                                            .keys = {w, no_key, NULL}};
    struct elv_coap_server *server;
    struct elv_coap_problem problem;
    assert_int_equal(elv_coap_server_open(&cfg, &server, &problem), ELV_ERR_IO);
    assert_non_null(strstr(problem.text, address));
}

static void several_addresses_are_served_at_once(void **state)
{
    static const char *const both[] = {"127.0.0.1:0", "coaps://[::1]:0"};
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){.listen = both, .n_listen = 2});
    const struct elv_coap_server_info *info = elv_coap_server_info(w->server);
    assert_int_equal(info->n_listen, 2);
    assert_true(info->receive_buffer >= 65536);
    for (uint32_t i = 0; i < 2; i++) {
        char uri[64];
        assert_int_not_equal(info->port[i], 0);
        snprintf(uri, sizeof uri, i == 0 ? "coaps://127.0.0.1:%u" : "[::1]:%u",
                 (unsigned)info->port[i]);
        struct world_client *c =
            world_open_client(w, (struct elv_coap_client_cfg){.server = uri}, "dev-1", key_a);
        world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
        assert_true(world_answered(w, c, 1, PATIENCE_MS));
        assert_true(elv_coap_client_status(c->coap)->receive_buffer >= 65536);
    }
}

/* The newest, or the first, datagram of a client that begins with `type`. */
struct capture {
    uint8_t type;
    bool first;
    size_t len;
    uint8_t bytes[2048];
};

static void keep_record(void *ctx, bool from_client, const uint8_t *at, size_t len)
{
    struct capture *c = ctx;
    if (!from_client || len > sizeof c->bytes || at[0] != c->type || (c->first && c->len != 0))
        return;
    memcpy(c->bytes, at, len);
    c->len = len;
}

/* Sends from an address of its own; returns the socket. */
static int send_from_elsewhere(const struct world *w, const uint8_t *at, size_t len)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    to.sin_port = htons(elv_coap_server_info(w->server)->port[0]);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(sendto(fd, at, len, 0, (struct sockaddr *)&to, sizeof to), len);
    return fd;
}

static bool one_is_kept(const void *ctx) { return ((const struct world *)ctx)->n_kept == 1; }

static void a_forged_or_replayed_record_moves_no_client(void **state)
{
    static struct capture last;
    struct world *w = *state;
    last = (struct capture){.type = 25}; /* records with a Connection ID */
    world_open_server(w, (struct elv_coap_server_cfg){0});
    world_open_relay(w, (struct relay_cfg){.tap = keep_record, .tap_ctx = &last});
    struct world_client *c = open_client(w, "dev-1", key_a);
    for (uint32_t id = 1; id <= 2; id++) {
        w->later = true;
        world_send(c, id, (struct elv_request){.op = ELV_OP_COMMIT, .assignment = 1}, true);
        assert_true(world_run(w, one_is_kept, w, PATIENCE_MS));
        assert_true(last.len > 30);
        if (id == 2)
            last.bytes[last.len - 1] ^= 1;
        const int fd = send_from_elsewhere(w, last.bytes, last.len);
        world_pass(w, 20);
        world_answer_kept(w);
        assert_true(world_answered(w, c, id, 500)); /* sooner than a repetition would help */
        assert_int_equal(recv(fd, last.bytes, sizeof last.bytes, MSG_DONTWAIT), -1);
        close(fd);
    }
}

static void a_flood_of_hellos_keeps_nobody_out(void **state)
{
    enum { FLOOD = 300 };
    static struct capture hello;
    static int fd[FLOOD];
    struct world *w = *state;
    hello = (struct capture){.type = 22, .first = true}; /* without a cookie */
    world_open_server(w, (struct elv_coap_server_cfg){.half_open_max = 16});
    world_open_relay(w, (struct relay_cfg){.tap = keep_record, .tap_ctx = &hello});
    open_client(w, "dev-2", key_b);
    for (int i = 0; i < 100 && hello.len == 0; i++)
        world_pass(w, 1);
    assert_true(hello.len > 50);
    for (int i = 0; i < FLOOD; i++) {
        fd[i] = send_from_elsewhere(w, hello.bytes, hello.len);
        if (i % 50 == 0)
            world_pass(w, 1);
    }
    world_pass(w, 20);
    struct world_client *c = open_client(w, "dev-1", key_a);
    world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, 1, 5000));
    /* What an unproven address is sent is no more than it has sent. */
    size_t got = 0;
    uint8_t bytes[2048];
    for (int i = 0; i < FLOOD; i++) {
        ssize_t n;
        while ((n = recv(fd[i], bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
            got += (size_t)n;
        close(fd[i]);
    }
    assert_true(got <= FLOOD * hello.len);
}

static void garbage_does_not_end_an_association(void **state)
{
    struct world *w = *state;
    uint8_t bytes[40];
    world_open_server(w, (struct elv_coap_server_cfg){0});
    world_open_relay(w, (struct relay_cfg){0});
    struct world_client *c = open_client(w, "dev-1", key_a);
    uint32_t n = 1;
    world_send(c, n, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, n, PATIENCE_MS));
    for (uint8_t type = 19; type <= 26; type++) {
        for (size_t len = 1; len <= sizeof bytes; len++) {
            for (size_t i = 0; i < len; i++)
                bytes[i] = world_byte((uint32_t)(type * 64 + len), i);
            bytes[0] = type;
            if (len > 2) {
                bytes[1] = 0xfe;
                bytes[2] = 0xfd;
            }
            if (len > 14 && len % 2 == 0) { /* a record in itself whole, of the first epoch */
                memset(bytes + 3, 0, 8);
                bytes[11] = 0;
                bytes[12] = (uint8_t)(len - 13);
                bytes[13] = 2; /* fatal, for an alert */
            }
            relay_inject(w->relay, true, bytes, len);
            relay_inject(w->relay, false, bytes, len);
        }
        world_pass(w, 5);
        world_send(c, ++n, (struct elv_request){.op = ELV_OP_TICKET}, true);
        assert_true(world_answered(w, c, n, PATIENCE_MS));
    }
    assert_int_equal(elv_coap_client_status(c->coap)->handshakes, 1);
    assert_int_equal(elv_coap_client_status(c->coap)->link, ELV_COAP_LINK_UP);
}

static bool four_sent(const void *ctx)
{
    return relay_stats(((const struct world *)ctx)->relay)->datagrams[0] >= 4;
}

static void the_first_timer_of_a_handshake_can_be_chosen(void **state)
{
    struct world *w = *state;
    struct elv_coap_problem problem;
    struct elv_coap_client *probe;
    const struct elv_coap_client_cfg quick = {.dtls_timer_ms = 50};
    const struct elv_coap_client_cfg slow = {.dtls_timer_ms = 30000};
    struct elv_coap_client_cfg any = {.server = "localhost",
                                      .job = {"demo", 4},
                                      .sink = {w, nothing},
                                      .identity = {"dev-1", 5},
                                      .psk = {(const uint8_t *)key_a, 16},
                                      .dtls_timer_ms = 2000};
    world_open_server(w, (struct elv_coap_server_cfg){0});
    if (elv_coap_client_open(&any, &probe, &problem) == ELV_ERR_UNSUPPORTED)
        skip();
    elv_coap_client_close(probe);
    world_open_relay(w, (struct relay_cfg){.loss_ppm = 1000000});
    world_open_client(w, quick, "dev-1", key_a);
    assert_true(world_run(w, four_sent, w, PATIENCE_MS));
    elv_coap_client_close(w->client[0]->coap);
    free(w->client[0]);
    w->client[0] = NULL;
    world_open_client(w, slow, "dev-1", key_a);
    world_pass(w, 300);
    assert_int_equal(relay_stats(w->relay)->datagrams[0], 5);
}

static bool is_silent(const void *ctx)
{
    const struct world_client *c = ctx;
    return elv_coap_client_status(c->coap)->link == ELV_COAP_LINK_SILENT;
}

static void a_server_that_says_nothing_is_not_taken_for_one_that_refuses(void **state)
{
    struct world *w = *state;
    world_open_server(w, (struct elv_coap_server_cfg){0});
    world_open_relay(w, (struct relay_cfg){.loss_ppm = 1000000});
    struct world_client *c =
        world_open_client(w, (struct elv_coap_client_cfg){.retries = 1}, "dev-1", key_a);
    world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_run(w, is_silent, c, PATIENCE_MS));
    assert_int_equal(c->unanswered, 1);
    assert_int_equal(elv_coap_client_status(c->coap)->refused_in_row, 0);
}

struct certs {
    struct elv_pem ca, ca_key, server, server_key, device, device_key;
    struct elv_coap_cert at_server, at_device;
};

static struct elv_bytes pem(const struct elv_pem *p)
{
    return (struct elv_bytes){(const uint8_t *)p->text, p->len};
}

static void make_certs(struct certs *c, const char *server, const char *device)
{
    const struct elv_text name = {"fleet", 5};
    assert_int_equal(elv_certify_authority(name, 30, &c->ca, &c->ca_key), ELV_OK);
    const struct elv_certified authority = {pem(&c->ca), pem(&c->ca_key)};
    const struct elv_certify_order host = {{server, strlen(server)}, true, 30};
    const struct elv_certify_order who = {{device, strlen(device)}, false, 30};
    assert_int_equal(elv_certify_issue(&authority, &host, &c->server, &c->server_key), ELV_OK);
    assert_int_equal(elv_certify_issue(&authority, &who, &c->device, &c->device_key), ELV_OK);
    c->at_server = (struct elv_coap_cert){pem(&c->ca), pem(&c->server), pem(&c->server_key)};
    c->at_device = (struct elv_coap_cert){pem(&c->ca), pem(&c->device), pem(&c->device_key)};
}

static struct world_client *with_cert(struct world *w, const struct elv_coap_cert *cert,
                                      const char *server)
{
    return world_open_client(w, (struct elv_coap_client_cfg){.cert = cert, .server_name = server},
                             NULL, NULL);
}

static void a_certificate_proves_a_client_as_a_key_does(void **state)
{
    static const uint8_t body[1024];
    static struct certs certs;
    struct world *w = *state;
    make_certs(&certs, "server.example", "dev-2");
    world_open_server(w, (struct elv_coap_server_cfg){.cert = &certs.at_server});
    struct world_client *c = with_cert(w, &certs.at_device, "server.example");
    world_send(c, 1, put_chunk(1, 1, body, sizeof body), true);
    assert_true(world_answered(w, c, 1, PATIENCE_MS));
    assert_int_equal(c->answer[1].code, ELV_CODE_CHANGED);
    assert_int_equal(w->peer, 2);
    struct world_client *by_key = open_client(w, "dev-1", key_a);
    world_send(by_key, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, by_key, 1, PATIENCE_MS));
    assert_int_equal(w->peer, 1);
    assert_int_equal(w->key[0].used, 1);
    assert_int_equal(w->key[1].used, 1);
    elv_coap_server_drop(w->server, 2);
    world_pass(w, 50);
    assert_int_equal(elv_coap_client_status(c->coap)->link, ELV_COAP_LINK_CLOSED);
    assert_int_equal(elv_coap_client_status(by_key->coap)->link, ELV_COAP_LINK_UP);
}

static void a_certificate_for_nobody_in_the_table_gets_nothing(void **state)
{
    static struct certs certs;
    struct world *w = *state;
    make_certs(&certs, "localhost", "dev-9");
    world_open_server(w, (struct elv_coap_server_cfg){.cert = &certs.at_server});
    struct world_client *c = with_cert(w, &certs.at_device, "localhost");
    world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, 1, PATIENCE_MS));
    assert_int_equal(c->answer[1].code, ELV_CODE(4, 1));
    world_pass(w, 50);
    assert_int_equal(elv_coap_client_status(c->coap)->link, ELV_COAP_LINK_CLOSED);
    assert_int_equal(elv_coap_server_stats(w->server)->refused_unknown, 1);
    assert_int_equal(w->requests, 0);
}

static void a_server_with_another_name_or_authority_is_not_trusted(void **state)
{
    static struct certs certs, foreign;
    struct world *w = *state;
    make_certs(&certs, "server.example", "dev-1");
    make_certs(&foreign, "server.example", "dev-1");
    world_open_server(w, (struct elv_coap_server_cfg){.cert = &certs.at_server});
    const struct elv_coap_cert distrusts = {pem(&foreign.ca), pem(&certs.device),
                                            pem(&certs.device_key)};
    const struct elv_coap_cert unknown = {pem(&certs.ca), pem(&foreign.device),
                                          pem(&foreign.device_key)};
    const struct {
        const struct elv_coap_cert *cert;
        const char *server;
        enum elv_coap_link link;
    } rows[] = {
        {&certs.at_device, "other.example", ELV_COAP_LINK_DISTRUSTED},
        {&distrusts, "server.example", ELV_COAP_LINK_DISTRUSTED},
        {&unknown, "server.example", ELV_COAP_LINK_REFUSED}, /* by the server */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world_client *c = with_cert(w, rows[i].cert, rows[i].server);
        world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
        assert_true(world_unanswered(w, c, 1, PATIENCE_MS));
        assert_int_equal(elv_coap_client_status(c->coap)->link, rows[i].link);
    }
    assert_int_equal(w->requests, 0);
    assert_int_equal(elv_coap_server_stats(w->server)->sessions, 0);
}

static void a_key_that_is_not_the_certificates_is_refused_when_opening(void **state)
{
    static struct certs certs;
    struct world *w = *state;
    struct elv_coap_problem problem;
    struct elv_coap_client *client;
    make_certs(&certs, "localhost", "dev-1");
    const struct elv_coap_cert mixed = {pem(&certs.ca), pem(&certs.device), pem(&certs.server_key)};
    const struct elv_coap_client_cfg cfg = {.server = "localhost",
                                            .job = {"demo", 4},
                                            .sink = {w, nothing},
                                            .cert = &mixed,
                                            .server_name = "localhost"};
    assert_int_equal(elv_coap_client_open(&cfg, &client, &problem), ELV_ERR_AUTH);
    assert_non_null(strstr(problem.text, "not the certificate's"));
    world_open_server(w, (struct elv_coap_server_cfg){0}); /* for the teardown */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_operation_reaches_the_node_and_comes_back),
        TEST(a_reply_may_come_later_and_in_any_order),
        TEST(the_reply_to_a_client_that_has_gone_is_dropped),
        TEST(a_full_table_of_waiting_requests_says_when_to_come_back),
        TEST(another_job_is_not_found),
        TEST(who_cannot_prove_itself_is_refused_and_told_apart_from_a_missing_server),
        TEST(a_missing_server_is_unreachable_and_found_once_it_is_there),
        TEST(two_generations_of_an_identity_are_one_client),
        TEST(a_newer_generation_ends_the_sessions_of_the_older),
        TEST(a_body_beyond_a_chunk_is_refused),
        TEST(the_longest_path_and_a_full_chunk_fit_one_datagram),
        TEST(a_manifest_of_any_allowed_length_arrives_whole),
        TEST(a_refusal_keeps_its_reason),
        TEST(an_observer_hears_of_its_own_ticket_only_and_until_it_forgets),
        TEST(a_server_that_lost_everything_is_found_again_by_a_new_association),
        TEST(a_new_association_opens_beside_the_old_one),
        TEST(what_is_asked_while_an_association_is_about_to_open_is_given_back),
        TEST(what_waits_on_an_association_that_is_replaced_is_given_back),
        TEST(a_change_of_address_costs_no_handshake),
        TEST(only_dtls_records_are_on_the_wire),
        TEST(two_hundred_chunks_in_flight_survive_a_bad_network),
        TEST(confirmable_requests_and_later_replies_get_through_loss),
        TEST(requests_that_are_lost_leave_nothing_behind),
        TEST(the_session_unused_longest_makes_room),
        TEST(one_client_cannot_take_all_sessions),
        TEST(nothing_is_in_the_clear_unless_allowed),
        TEST(a_wrong_configuration_is_refused_with_a_sentence),
        TEST(several_addresses_are_served_at_once),
        TEST(an_address_is_served_by_one_server_only),
        TEST(a_forged_or_replayed_record_moves_no_client),
        TEST(a_flood_of_hellos_keeps_nobody_out),
        TEST(garbage_does_not_end_an_association),
        TEST(the_first_timer_of_a_handshake_can_be_chosen),
        TEST(a_server_that_says_nothing_is_not_taken_for_one_that_refuses),
        TEST(a_certificate_proves_a_client_as_a_key_does),
        TEST(a_certificate_for_nobody_in_the_table_gets_nothing),
        TEST(a_server_with_another_name_or_authority_is_not_trusted),
        TEST(a_key_that_is_not_the_certificates_is_refused_when_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
