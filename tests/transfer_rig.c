/* SPDX-License-Identifier: Apache-2.0 */
/* tests/transfer_rig.c - see transfer_rig.h. */
#define _POSIX_C_SOURCE 200809L
#include "tests/transfer_rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t ended;

static void on_term(int number)
{
    (void)number;
    ended = 1;
}

bool rig_ended(void) { return ended != 0; }

uint8_t rig_byte(uint32_t i) { return (uint8_t)(i * 2654435761u >> 24); }

struct child {
    pid_t pid;
    int pipe; /* what it writes */
};

/* Forks; in the child `*out` is where to write and pid is 0. */
static struct child begin(int *out)
{
    int fd[2];
    if (pipe(fd) != 0) {
        perror("transfer: pipe");
        exit(1);
    }
    fflush(stdout);
    const pid_t pid = fork();
    if (pid < 0) {
        perror("transfer: fork");
        exit(1);
    }
    if (pid == 0) {
        struct sigaction sa;
        memset(&sa, 0, sizeof sa);
        sa.sa_handler = on_term;
        ended = 0;
        sigaction(SIGTERM, &sa, NULL);
        close(fd[0]);
        *out = fd[1];
        return (struct child){.pid = 0, .pipe = -1};
    }
    close(fd[1]);
    return (struct child){.pid = pid, .pipe = fd[0]};
}

static bool take(int fd, void *into, size_t len)
{
    uint8_t *at = into;
    while (len > 0) {
        const ssize_t n = read(fd, at, len);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static bool give(int fd, const void *from, size_t len)
{
    return write(fd, from, len) == (ssize_t)len;
}

static int end(struct child c)
{
    int status = 0;
    kill(c.pid, SIGTERM);
    close(c.pipe);
    waitpid(c.pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static struct child start_server(const struct rig_cell *cell)
{
    int out;
    const struct child c = begin(&out);
    if (c.pid == 0)
        exit(cell->method < RIG_CHUNKS_UP ? rig_block_serve(cell, out)
                                          : rig_chunks_serve(cell, out));
    return c;
}

static int relay(const struct rig_cell *cell, uint16_t server, int out)
{
    const struct relay_cfg cfg = {.server_host = "127.0.0.1",
                                  .server_port = server,
                                  .seed = 11,
                                  .up = &cell->up,
                                  .down = &cell->down};
    struct relay *r = relay_open(&cfg);
    if (r == NULL)
        return 1;
    const uint16_t port = relay_port(r);
    if (!give(out, &port, sizeof port))
        return 1;
    while (!ended) {
        relay_wait(r, 100000);
        relay_step(r);
    }
    const bool told = give(out, relay_stats(r)->fates, sizeof relay_stats(r)->fates);
    relay_close(r);
    return told ? 0 : 1;
}

static struct child start_relay(const struct rig_cell *cell, uint16_t server)
{
    int out;
    const struct child c = begin(&out);
    if (c.pid == 0)
        exit(relay(cell, server, out));
    return c;
}

/* The process that plays the client, and has the other two as children. */
static int play(const struct rig_cell *cell, int out)
{
    struct rig_result result = {0};
    struct elv_sim_fates fates[2];
    uint16_t port = 0;
    const struct child server = start_server(cell);
    if (!take(server.pipe, &port, sizeof port))
        return 1;
    const struct child between = start_relay(cell, port);
    if (!take(between.pipe, &port, sizeof port))
        return 1;
    if (cell->method < RIG_CHUNKS_UP)
        rig_block_play(cell, port, &result);
    else
        rig_chunks_play(cell, port, &result);
    kill(between.pid, SIGTERM);
    if (!take(between.pipe, fates, sizeof fates))
        return 1;
    result.up = fates[0];
    result.down = fates[1];
    end(between);
    result.wrong = result.wrong || end(server) != 0;
    return give(out, &result, sizeof result) ? 0 : 1;
}

struct rig_run rig_start(const struct rig_cell *cell)
{
    int out;
    const struct child c = begin(&out);
    if (c.pid == 0)
        exit(play(cell, out));
    return (struct rig_run){.pid = c.pid, .pipe = c.pipe};
}

bool rig_wait(struct rig_run run, struct rig_result *result)
{
    int status = 0;
    const bool told = take(run.pipe, result, sizeof *result);
    close(run.pipe);
    waitpid(run.pid, &status, 0);
    return told && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
