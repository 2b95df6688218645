/* SPDX-License-Identifier: Apache-2.0 */
/* tests/relay_main.c - the bad network of relay.h as a program.
 *
 *     relay_main --server HOST:PORT [--listen PORT] [--seed N] [--loss PPM] [--duplicate PPM]
 *                [--delay-us N] [--jitter-us N] [--profile NAME] [--mtu N]
 *
 * A profile (ports/sim/profiles.c) takes the place of the four before it. Prints "port N" once it
 * listens, runs until SIGTERM or SIGINT, moves all clients to new addresses at SIGUSR1, and then
 * prints what it did to the datagrams, and how many of them were foreign: not whole DTLS 1.2
 * records, or with contents before there were keys. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay.h"

enum { CHANGE_CIPHER_SPEC = 20, HANDSHAKE = 22, WITH_CID = 25 };
enum { HEAD = 13, CID = 8 }; /* of our servers; clients ask for none */

static volatile sig_atomic_t stop, move;
static uint64_t foreign[2]; /* [0] towards the server */

/* The length of the record at the front; 0: none is. */
static size_t record_len(bool from_client, const uint8_t *at, size_t len)
{
    const size_t head = HEAD + (len > 0 && at[0] == WITH_CID && from_client ? CID : 0);
    if (len < head || at[0] < CHANGE_CIPHER_SPEC || at[0] > WITH_CID || at[1] != 0xfe ||
        (at[2] != 0xfd && at[2] != 0xff))
        return 0;
    const bool encrypted = at[3] != 0 || at[4] != 0; /* the epoch */
    if (!encrypted && at[0] > HANDSHAKE)
        return 0;
    const size_t whole = head + (size_t)at[head - 2] * 256 + at[head - 1];
    return whole <= len ? whole : 0;
}

static void look(void *ctx, bool from_client, const uint8_t *datagram, size_t len)
{
    size_t at = 0, n = 1;
    (void)ctx;
    while (at < len && n > 0) {
        n = record_len(from_client, datagram + at, len - at);
        at += n;
    }
    if (len == 0 || n == 0)
        foreign[from_client ? 0 : 1]++;
}

static void on_signal(int number)
{
    if (number == SIGUSR1)
        move = 1;
    else
        stop = 1;
}

static long long number(const char *text)
{
    char *end;
    const long long n = strtoll(text, &end, 10);
    if (*text == '\0' || *end != '\0' || n < 0) {
        fprintf(stderr, "relay: not a number: %s\n", text);
        exit(2);
    }
    return n;
}

enum { IP_AND_UDP = 28 };

static void take_profile(struct relay_cfg *cfg, const char *name)
{
    const struct elv_sim_profile *p = elv_sim_profile(name, strlen(name));
    if (p == NULL) {
        fprintf(stderr, "relay: unknown profile %s; give " ELV_SIM_PROFILES "\n", name);
        exit(2);
    }
    cfg->up = &p->up;
    cfg->down = &p->down;
    cfg->headers = IP_AND_UDP;
}

static void parse(int argc, char **argv, struct relay_cfg *cfg, uint32_t *mtu)
{
    static char host[256];
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        const char *colon = strrchr(value, ':');
        if (strcmp(name, "--server") == 0 && colon != NULL && colon - value < 255) {
            memcpy(host, value, (size_t)(colon - value));
            cfg->server_host = host;
            cfg->server_port = (uint16_t)number(colon + 1);
        } else if (strcmp(name, "--listen") == 0) {
            cfg->listen_port = (uint16_t)number(value);
        } else if (strcmp(name, "--seed") == 0) {
            cfg->seed = (uint64_t)number(value);
        } else if (strcmp(name, "--loss") == 0) {
            cfg->loss_ppm = (uint32_t)number(value);
        } else if (strcmp(name, "--duplicate") == 0) {
            cfg->duplicate_ppm = (uint32_t)number(value);
        } else if (strcmp(name, "--delay-us") == 0) {
            cfg->delay_us = number(value);
        } else if (strcmp(name, "--jitter-us") == 0) {
            cfg->jitter_us = number(value);
        } else if (strcmp(name, "--profile") == 0) {
            take_profile(cfg, value);
        } else if (strcmp(name, "--mtu") == 0) {
            *mtu = (uint32_t)number(value);
        } else {
            fprintf(stderr, "relay: unknown argument %s\n", name);
            exit(2);
        }
    }
    if (cfg->server_host == NULL || argc % 2 == 0) {
        fprintf(stderr, "usage: relay_main --server HOST:PORT [--listen PORT] [--seed N]"
                        " [--loss PPM] [--duplicate PPM] [--delay-us N] [--jitter-us N]"
                        " [--profile NAME] [--mtu N]\n");
        exit(2);
    }
}

static void print_way(const struct relay_stats *s, int way)
{
    const struct elv_sim_fates *f = &s->fates[way];
    printf("%s datagrams=%llu lost=%llu duplicated=%llu bytes=%llu foreign=%llu\n",
           way ? "down" : "up", (unsigned long long)s->datagrams[way],
           (unsigned long long)elv_sim_fates_lost(&s->fates[way]),
           (unsigned long long)s->fates[way].duplicated, (unsigned long long)s->bytes[way],
           (unsigned long long)foreign[way]);
    printf("%s queued_ms=%lld", way ? "down" : "up", (long long)(f->wait_longest_us / 1000));
    for (int i = ELV_SIM_BURST; i < ELV_SIM_FATES; i++)
        if (f->n[i] != 0)
            printf(" %s=%llu", elv_sim_fate_name((enum elv_sim_fate)i),
                   (unsigned long long)f->n[i]);
    printf("\n");
}

int main(int argc, char **argv)
{
    struct relay_cfg cfg = {.seed = 1, .tap = look};
    uint32_t mtu = 0;
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_signal;
    parse(argc, argv, &cfg, &mtu);
    struct relay *r = relay_open(&cfg);
    if (r == NULL) {
        perror("relay");
        return 1;
    }
    if (mtu > 0)
        relay_set_mtu(r, mtu);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGUSR1, &sa, NULL);
    printf("port %u\n", (unsigned)relay_port(r));
    fflush(stdout);
    while (!stop) {
        relay_wait(r, 1000000);
        if (move) {
            move = 0;
            relay_move(r);
        }
        relay_step(r);
    }
    print_way(relay_stats(r), 0);
    print_way(relay_stats(r), 1);
    relay_close(r);
    return 0;
}
