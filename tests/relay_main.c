/* SPDX-License-Identifier: Apache-2.0 */
/* tests/relay_main.c - the bad network of relay.h as a program.
 *
 *     relay_main --server HOST:PORT [--listen PORT] [--seed N] [--loss PPM] [--duplicate PPM]
 *                [--delay-us N] [--jitter-us N]
 *
 * Prints "port N" once it listens, runs until SIGTERM or SIGINT, moves all clients to new addresses
 * at SIGUSR1, and then prints what it did to the datagrams, and how many of them were foreign: not
 * whole DTLS 1.2 records, or with contents before there were keys. */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
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

static void parse(int argc, char **argv, struct relay_cfg *cfg)
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
        } else {
            fprintf(stderr, "relay: unknown argument %s\n", name);
            exit(2);
        }
    }
    if (cfg->server_host == NULL || argc % 2 == 0) {
        fprintf(stderr, "usage: relay_main --server HOST:PORT [--listen PORT] [--seed N]"
                        " [--loss PPM] [--duplicate PPM] [--delay-us N] [--jitter-us N]\n");
        exit(2);
    }
}

static void wait_for(struct relay *r)
{
    struct pollfd in = {.fd = relay_fd(r), .events = POLLIN};
    const int64_t due = relay_deadline(r);
    int timeout = 1000;
    if (due != INT64_MAX) {
        const int64_t left = due - relay_now();
        timeout = left <= 0 ? 0 : left < 1000000 ? (int)((left + 999) / 1000) : 1000;
    }
    (void)poll(&in, 1, timeout);
}

int main(int argc, char **argv)
{
    struct relay_cfg cfg = {.seed = 1, .tap = look};
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_signal;
    parse(argc, argv, &cfg);
    struct relay *r = relay_open(&cfg);
    if (r == NULL) {
        perror("relay");
        return 1;
    }
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGUSR1, &sa, NULL);
    printf("port %u\n", (unsigned)relay_port(r));
    fflush(stdout);
    while (!stop) {
        wait_for(r);
        if (move) {
            move = 0;
            relay_move(r);
        }
        relay_step(r);
    }
    const struct relay_stats *s = relay_stats(r);
    for (int way = 0; way < 2; way++)
        printf("%s datagrams=%llu lost=%llu duplicated=%llu bytes=%llu foreign=%llu\n",
               way ? "down" : "up", (unsigned long long)s->datagrams[way],
               (unsigned long long)s->lost[way], (unsigned long long)s->duplicated[way],
               (unsigned long long)s->bytes[way], (unsigned long long)foreign[way]);
    relay_close(r);
    return 0;
}
