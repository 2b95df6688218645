/* SPDX-License-Identifier: Apache-2.0 */
/* tests/relay_main.c - the bad network of relay.h as a program.
 *
 *     relay_main --server HOST:PORT [--listen PORT] [--seed N] [--loss PPM] [--duplicate PPM]
 *                [--delay-us N] [--jitter-us N]
 *
 * Prints "port N" once it listens, runs until SIGTERM or SIGINT, moves all clients to new addresses
 * at SIGUSR1, and then prints what it did to the datagrams. */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay.h"

static volatile sig_atomic_t stop, move;

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
    struct relay_cfg cfg = {.seed = 1};
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
        printf("%s datagrams=%llu lost=%llu duplicated=%llu bytes=%llu\n", way ? "down" : "up",
               (unsigned long long)s->datagrams[way], (unsigned long long)s->lost[way],
               (unsigned long long)s->duplicated[way], (unsigned long long)s->bytes[way]);
    relay_close(r);
    return 0;
}
