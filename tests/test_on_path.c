/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_on_path.c - somebody on the path who holds records back, sends them again and from
 * other addresses, but cannot read them.
 *
 * Blocking, delaying, replaying and relaying work through DTLS: Mattsson, Fornehed, Selander,
 * Palombini, Amsuess, "Attacks on the Constrained Application Protocol (CoAP)", draft-ietf-core-
 * attacks-on-coap. What must hold: no request acts twice, no answer is taken for another's, nobody
 * else is sent anything, and an address changes with a new record only (RFC 9146, section 6). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/transfer.h"
#include "coap_world.h"

static const char key_a[] = "0123456789abcdef";
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

enum { PATIENCE_MS = 20000, BLOCKED = 1000000, RECORD_WITH_CID = 25, RECORD_PLAIN = 23 };
enum { TAPE_MAX = 256 };

/* Everything that passed the relay since it was wound back. */
static struct tape {
    uint32_t n;
    struct piece {
        bool from_client;
        size_t len;
        uint8_t bytes[1500];
    } piece[TAPE_MAX];
    size_t bytes_up, bytes_down;
} tape;

static void record(void *ctx, bool from_client, const uint8_t *at, size_t len)
{
    struct tape *t = ctx;
    *(from_client ? &t->bytes_up : &t->bytes_down) += len;
    if (t->n == TAPE_MAX || len > sizeof t->piece[0].bytes)
        return;
    struct piece *p = &t->piece[t->n++];
    p->from_client = from_client;
    p->len = len;
    memcpy(p->bytes, at, len);
}

static void wind_back(void)
{
    tape.n = 0;
    tape.bytes_up = tape.bytes_down = 0;
}

/* The first one of that direction; it is there. */
static const struct piece *held(bool from_client)
{
    for (uint32_t i = 0; i < tape.n; i++)
        if (tape.piece[i].from_client == from_client)
            return &tape.piece[i];
    fail_msg("nothing was recorded");
    return NULL;
}

static int begin(void **state)
{
    static struct world w;
    world_init(&w);
    world_add_key(&w, "dev-1", key_a, 1);
    world_open_server(&w, (struct elv_coap_server_cfg){0});
    world_open_relay(&w, (struct relay_cfg){.tap = record, .tap_ctx = &tape});
    *state = &w;
    return 0;
}

static int end(void **state)
{
    world_close(*state);
    return 0;
}

/* A client whose association stands: question 1 was answered. */
static struct world_client *met(struct world *w)
{
    struct world_client *c = world_open_client(w, (struct elv_coap_client_cfg){0}, "dev-1", key_a);
    world_send(c, 1, (struct elv_request){.op = ELV_OP_TICKET}, true);
    assert_true(world_answered(w, c, 1, PATIENCE_MS));
    wind_back();
    return c;
}

static struct elv_request chunk_of(uint32_t n)
{
    static uint8_t body[1000];
    return (struct elv_request){
        .op = ELV_OP_UPDATE_CHUNK, .assignment = 1, .chunk = n, .body = {body, sizeof body}};
}

/* From a socket of its own; returns it. */
static int send_from_elsewhere(const struct world *w, const struct piece *p)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    to.sin_port = htons(elv_coap_server_info(w->server)->port[0]);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(sendto(fd, p->bytes, p->len, 0, (struct sockaddr *)&to, sizeof to), p->len);
    return fd;
}

static size_t got(int fd)
{
    uint8_t bytes[2048];
    size_t sum = 0;
    ssize_t n;
    while ((n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        sum += (size_t)n;
    close(fd);
    return sum;
}

static void ask(struct world *w, struct world_client *c, uint32_t id, uint32_t answers)
{
    world_send(c, id, (struct elv_request){.op = ELV_OP_TICKET}, false);
    assert_true(world_answered(w, c, answers, 1000)); /* sooner than any repetition would help */
}

/* ---- requests */

static void a_request_held_back_acts_once_and_moves_nobody(void **state)
{
    struct world *w = *state;
    struct world_client *c = met(w);
    relay_set_loss(w->relay, BLOCKED);
    world_send(c, 2, chunk_of(7), false);
    world_pass(w, 20);
    const struct piece old = *held(true);
    assert_int_equal(old.bytes[0], RECORD_WITH_CID);
    world_act(c, ELV_DO_FORGET, 2);
    relay_set_loss(w->relay, 0);
    for (uint32_t id = 3; id <= 6; id++)
        ask(w, c, id, id - 1);
    const uint32_t before = w->requests;
    /* It is genuine and never arrived, but older than others that did: it counts, and its answer
     * goes where the client is. */
    for (int i = 0; i < 3; i++) {
        const int fd = send_from_elsewhere(w, &old);
        world_pass(w, 20);
        assert_int_equal(got(fd), 0);
        relay_inject(w->relay, true, old.bytes, old.len);
        world_pass(w, 20);
    }
    assert_int_equal(w->requests, before + 1);
    assert_int_equal(w->last.chunk, 7);
    assert_int_equal(c->answer[2].n, 0);
    ask(w, c, 7, 6);
    assert_int_equal(elv_coap_client_status(c->coap)->handshakes, 1);
}

static void a_window_of_requests_sent_again_from_elsewhere_is_answered_to_nobody(void **state)
{
    enum { WINDOW = 64 };
    struct world *w = *state;
    struct world_client *c = met(w);
    for (uint32_t i = 0; i < WINDOW; i++)
        world_send(c, 2 + i,
                   (struct elv_request){.op = ELV_OP_MODEL_CHUNK, .digest = 1, .chunk = i}, false);
    assert_true(world_answered(w, c, 1 + WINDOW, PATIENCE_MS));
    const uint32_t requests = w->requests, n = tape.n;
    const size_t up = tape.bytes_up, down = tape.bytes_down;
    /* To who has proved who it is: one answer for each request. */
    assert_true(down <= WINDOW * 1150u && up > WINDOW * 50u);
    size_t leaked = 0;
    for (uint32_t i = 0; i < n; i++)
        if (tape.piece[i].from_client)
            leaked += got(send_from_elsewhere(w, &tape.piece[i]));
    int fd[8];
    for (int i = 0; i < 8; i++)
        fd[i] = send_from_elsewhere(w, &tape.piece[i % (int)n]);
    wind_back();
    world_pass(w, 100);
    for (int i = 0; i < 8; i++)
        leaked += got(fd[i]);
    assert_int_equal(leaked, 0);
    assert_int_equal(tape.bytes_down, 0);
    assert_int_equal(w->requests, requests);
}

static void bytes_of_no_association_are_answered_with_no_more_than_they_are(void **state)
{
    struct world *w = *state;
    struct piece p = {.len = 60};
    met(w);
    /* A plain CoAP GET, and records of every type and epoch with nothing genuine in them. */
    static const uint8_t get[] = {0x41, 0x01, 0x12, 0x34, 0x01, 0xb1, 'm'};
    memcpy(p.bytes, get, sizeof get);
    for (int type = 19; type <= 26; type++) {
        for (uint8_t epoch = 0; epoch <= 1; epoch++) {
            const int fd = send_from_elsewhere(w, &p);
            world_pass(w, 5);
            assert_true(got(fd) <= p.len);
            memset(p.bytes, 0, sizeof p.bytes);
            p.bytes[0] = (uint8_t)type;
            p.bytes[1] = 0xfe;
            p.bytes[2] = 0xfd;
            p.bytes[4] = epoch;
            p.bytes[12] = (uint8_t)(p.len - 13);
        }
    }
}

/* ---- answers */

static void an_answer_held_back_is_taken_for_no_other(void **state)
{
    struct world *w = *state;
    struct world_client *c = met(w);
    w->later = true;
    world_send(c, 2, (struct elv_request){.op = ELV_OP_COMMIT, .assignment = 1}, false);
    for (int i = 0; i < 200 && w->n_kept == 0; i++)
        world_pass(w, 1);
    assert_int_equal(w->n_kept, 1);
    wind_back();
    relay_set_loss(w->relay, BLOCKED);
    world_answer_kept(w);
    world_pass(w, 20);
    const struct piece old = *held(false);
    assert_int_equal(old.bytes[0], RECORD_PLAIN);
    relay_set_loss(w->relay, 0);
    world_act(c, ELV_DO_FORGET, 2);
    w->later = true;
    world_send(c, 3, (struct elv_request){.op = ELV_OP_COMMIT, .assignment = 2}, false);
    for (int i = 0; i < 200 && w->n_kept == 0; i++)
        world_pass(w, 1);
    /* The verdict on the first comes while the second is undecided. */
    for (int i = 0; i < 3; i++)
        relay_inject(w->relay, false, old.bytes, old.len);
    world_pass(w, 50);
    assert_int_equal(c->answer[2].n + c->answer[3].n, 0);
    world_answer_kept(w);
    assert_true(world_answered(w, c, 2, PATIENCE_MS));
    assert_int_equal(c->answer[3].n, 1);
    /* And both answers once more. */
    for (uint32_t i = 0; i < tape.n; i++)
        if (!tape.piece[i].from_client)
            relay_inject(w->relay, false, tape.piece[i].bytes, tape.piece[i].len);
    world_pass(w, 50);
    assert_int_equal(c->answered, 2);
}

/* ---- a download whose answers go to somebody else */

static void a_download_that_nobody_answers_any_more_asks_ever_more_rarely(void **state)
{
    enum { N = 4000, WARM = 500 };
    static struct elv_flight flights[ELV_WINDOW_MAX];
    static uint64_t words[(N + 63) / 64];
    struct elv_transfer t;
    struct elv_transmission out;
    elv_time_us now = 1000000;
    uint32_t id = 0, chunk, asked = 0;
    (void)state;
    elv_transfer_init(&t, flights, ELV_WINDOW_MAX);
    elv_transfer_grant(&t, ELV_WINDOW_MAX);
    elv_transfer_begin(&t, words, N);
    /* Answered at once for a while, */
    while (t.have.n_set < WARM) {
        elv_transfer_expire(&t, now);
        const uint32_t first = id + 1;
        while (elv_transfer_next(&t, now, id + 1, &out))
            id++;
        now += 20000;
        for (uint32_t i = first; i <= id; i++)
            if (elv_transfer_answered(&t, now, i, &chunk))
                elv_transfer_have(&t, chunk);
    }
    /* then somebody writes another sender's address on the requests, for ten minutes. */
    const elv_time_us end = now + 600 * (elv_time_us)1000000;
    while (now < end) {
        elv_transfer_expire(&t, now);
        while (elv_transfer_next(&t, now, id + 1, &out)) {
            id++;
            asked++;
        }
        const elv_time_us due = elv_transfer_deadline(&t);
        now = due > now ? due : now + 1;
    }
    print_message("asked %u more times in ten minutes\n", asked);
    assert_true(asked <= 2 * ELV_WINDOW_MAX + 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_held_back_acts_once_and_moves_nobody),
        TEST(a_window_of_requests_sent_again_from_elsewhere_is_answered_to_nobody),
        TEST(bytes_of_no_association_are_answered_with_no_more_than_they_are),
        TEST(an_answer_held_back_is_taken_for_no_other),
        cmocka_unit_test(a_download_that_nobody_answers_any_more_asks_ever_more_rarely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
