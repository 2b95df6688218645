/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_coap.c - CoAP over DTLS on loopback sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coap_world.h"

static const char key_a[] = "0123456789abcdef";
static const char key_b[] = "fedcba9876543210";
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_operation_reaches_the_node_and_comes_back, begin, end),
    };
    (void)put_chunk;
    (void)key_b;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
