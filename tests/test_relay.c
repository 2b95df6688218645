/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_relay.c - the bad network between real sockets does what it is told. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/relay.h"

#define MS 1000

/* A server that says everything back, and a client of it. */
struct pair {
    int server, client;
    struct relay *relay;
    uint16_t from; /* port of whom the server heard last */
    uint32_t heard, echoed;
};

static int open_socket(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static void open_pair(struct pair *p, struct relay_cfg cfg)
{
    uint16_t port;
    *p = (struct pair){.server = open_socket(&port)};
    cfg.server_host = "127.0.0.1";
    cfg.server_port = port;
    p->relay = relay_open(&cfg);
    assert_non_null(p->relay);
    p->client = open_socket(&port);
}

static void close_pair(struct pair *p)
{
    relay_close(p->relay);
    close(p->server);
    close(p->client);
}

static void say(const struct pair *p, size_t len)
{
    static uint8_t bytes[2000];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(relay_port(p->relay))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(sendto(p->client, bytes, len, 0, (struct sockaddr *)&to, sizeof to), len);
}

static void step(struct pair *p)
{
    uint8_t bytes[2000];
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    ssize_t n;
    relay_wait(p->relay, MS);
    relay_step(p->relay);
    while ((n = recvfrom(p->server, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&from,
                         &len)) >= 0) {
        p->heard++;
        p->from = ntohs(from.sin_port);
        (void)sendto(p->server, bytes, (size_t)n, 0, (struct sockaddr *)&from, len);
    }
    while (recv(p->client, bytes, sizeof bytes, MSG_DONTWAIT) >= 0)
        p->echoed++;
}

/* Until the relay holds nothing any more. */
static void drain(struct pair *p)
{
    for (int quiet = 0; quiet < 20; quiet++) {
        const uint32_t before = p->heard + p->echoed;
        step(p);
        if (p->heard + p->echoed > before || relay_deadline(p->relay) != INT64_MAX)
            quiet = 0;
    }
}

static void each_direction_is_as_its_way_says(void **state)
{
    (void)state;
    const struct elv_sim_way up = {.duplicate_ppm = 1000000, .delay.min_us = 2 * MS};
    const struct elv_sim_way down = {.mtu = 128};
    struct pair p;
    open_pair(&p, (struct relay_cfg){.up = &up, .down = &down, .headers = 28});
    for (int i = 0; i < 10; i++)
        say(&p, i % 2 == 0 ? 100 : 101);
    drain(&p);
    const struct relay_stats *s = relay_stats(p.relay);
    assert_int_equal(p.heard, 20);
    assert_int_equal(p.echoed, 10);
    assert_int_equal(s->fates[0].duplicated, 10);
    assert_int_equal(s->fates[1].n[ELV_SIM_LONG], 10);
    assert_int_equal(elv_sim_fates_lost(&s->fates[1]), 10);
    assert_int_equal(s->bytes[0], 5 * 201);
    close_pair(&p);
}

static void a_narrow_line_drops_what_its_queue_does_not_hold(void **state)
{
    (void)state;
    const struct elv_sim_way up = {.bps = 100000, .queue_bytes = 10000}, down = {.loss_ppm = 0};
    struct pair p;
    open_pair(&p, (struct relay_cfg){.up = &up, .down = &down});
    for (int i = 0; i < 100; i++)
        say(&p, 1000);
    relay_wait(p.relay, 1000 * MS); /* all of them at one moment, or nearly */
    drain(&p);
    const struct elv_sim_fates *f = &relay_stats(p.relay)->fates[0];
    assert_int_equal(f->put, 100);
    assert_int_equal(f->n[ELV_SIM_ARRIVED] + f->n[ELV_SIM_FULL], 100);
    assert_true(f->n[ELV_SIM_ARRIVED] >= 10 && f->n[ELV_SIM_FULL] > 0);
    assert_int_equal(p.heard, f->n[ELV_SIM_ARRIVED]);
    assert_true(f->wait_longest_us >= 80 * MS && f->wait_longest_us <= 100 * MS);
    close_pair(&p);
}

static void addresses_change_when_told_and_by_schedule(void **state)
{
    (void)state;
    const struct elv_sim_way up = {.loss_ppm = 0};
    const struct elv_sim_way down = {.moves = {.first_us = 20 * MS, .every_us = 20 * MS}};
    struct pair p;
    for (int row = 0; row < 2; row++) {
        open_pair(&p,
                  row == 0 ? (struct relay_cfg){0} : (struct relay_cfg){.up = &up, .down = &down});
        say(&p, 10);
        while (p.heard < 1)
            step(&p);
        const uint16_t before = p.from;
        if (row == 0)
            relay_move(p.relay);
        while (relay_stats(p.relay)->moves < 1)
            step(&p);
        const uint32_t heard = p.heard;
        say(&p, 10);
        while (p.heard < heard + 1)
            step(&p);
        assert_int_not_equal(p.from, before);
        close_pair(&p);
    }
}

static void losses_are_counted_as_they_happen(void **state)
{
    (void)state;
    uint32_t heard[3];
    for (uint32_t i = 0; i < 3; i++) {
        struct pair p;
        open_pair(&p, (struct relay_cfg){.seed = i / 2, .loss_ppm = 300000});
        for (int k = 0; k < 50; k++) {
            say(&p, 10);
            step(&p);
        }
        drain(&p);
        heard[i] = p.heard;
        assert_int_equal(relay_stats(p.relay)->fates[0].n[ELV_SIM_LOST], 50 - p.heard);
        close_pair(&p);
    }
    assert_true(heard[0] > 20 && heard[0] < 50);
    assert_true(heard[2] > 20 && heard[2] < 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_direction_is_as_its_way_says),
        cmocka_unit_test(a_narrow_line_drops_what_its_queue_does_not_hold),
        cmocka_unit_test(addresses_change_when_told_and_by_schedule),
        cmocka_unit_test(losses_are_counted_as_they_happen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
