/* SPDX-License-Identifier: Apache-2.0 */
/* tests/e2e_resume_main.c - breaks transfers in the middle, and counts what that costs.
 *
 *     e2e_resume_main SERVER CLIENT DIR PORT CHUNKS ROUNDS DEEDS SEED
 *
 * Runs the two programs with what e2e_resume.sh put into DIR, for so many rounds, and stands
 * between them as the relay of relay.h, with 10 ms each way and without loss. Each update, and each
 * model but the first, is CHUNKS chunks. At DEEDS random points of each of these transfers, told by
 * the chunks that have passed, something happens: the client is killed with SIGKILL and started
 * again, or the server is, or the client appears at another address; in turn, over the updates and
 * over the models, or within one when there are several. In the last transfer the client sleeps for
 * some seconds, too.
 *
 * Whatever passes beyond CHUNKS was sent again. It must not be more than two windows for each deed.
 * Prints a line for each transfer. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/transfer.h"
#include "common/rng.h"
#include "tests/relay.h"

enum {
    BIG = 1000, /* a datagram so long carries a chunk; a body's last may be shorter */
    POINTS_MAX = 128,
    LEGS_MAX = 64,
    SECOND = 1000000,
    LIMIT_S = 900,
    SLEEP_US = 3 * SECOND,
    NOT_RUNNING = -1000, /* an exit code that no program has */
};

enum deed { KILL_CLIENT, KILL_SERVER, MOVE, DEEDS, SLEEP = DEEDS };
static const char *const deed_names[] = {"client_killed", "server_killed", "moved"};

struct point {
    uint32_t at; /* chunks that passed */
    enum deed deed;
};

struct transfer {
    uint32_t passed; /* chunks */
    struct point points[POINTS_MAX];
    uint32_t n_points, next;
};

struct drive {
    const char *server_path, *client_path, *dir;
    uint16_t port, relay_port;
    uint32_t chunks;
    uint64_t seed;
    struct relay *relay;
    struct transfer legs[LEGS_MAX]; /* updates and models in turn, an update first */
    uint32_t leg, n_legs;
    pid_t server, client;
    int64_t wake_at; /* the client sleeps until then; 0: it does not */
};

static struct drive d;

static void give_up(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "e2e_resume_main: ");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    if (d.server > 0)
        kill(d.server, SIGKILL);
    if (d.client > 0)
        kill(d.client, SIGKILL);
    exit(1);
}

/* Programs. */

static const char *in_dir(const char *name)
{
    static char path[8][512];
    static unsigned next;
    char *p = path[next++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", d.dir, name);
    return p;
}

static pid_t launch(const char *log, const char *out, char *const argv[])
{
    const pid_t pid = fork();
    if (pid < 0)
        give_up("fork: %s", strerror(errno));
    if (pid > 0)
        return pid;
    const int to = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int result = open(out, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(to, STDERR_FILENO);
    dup2(result, STDOUT_FILENO);
    execv(argv[0], argv);
    _exit(127);
}

static void start_server(void)
{
    const char *argv[] = {d.server_path, "--config",        in_dir("server.ini"),
                          "--job",       in_dir("job.ini"), NULL};
    d.server = launch(in_dir("server.log"), in_dir("server.out"), (char *const *)argv);
}

static void start_client(void)
{
    static char uri[64], data[512];
    snprintf(uri, sizeof uri, "coaps://127.0.0.1:%u", (unsigned)d.relay_port);
    snprintf(data, sizeof data, "csv %s", in_dir("train.csv"));
    const char *argv[] = {d.client_path,
                          "--server",
                          uri,
                          "--job",
                          "tiny",
                          "--credential",
                          in_dir("dev-1.cred"),
                          "--data",
                          data,
                          "--state",
                          in_dir("client-state"),
                          NULL};
    d.client = launch(in_dir("client-1.log"), in_dir("client-1.out"), (char *const *)argv);
}

static void bury(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* The exit code, or NOT_RUNNING while it runs. */
static int ended(pid_t pid)
{
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) != pid)
        return NOT_RUNNING;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* The relay. */

static void tap(void *ctx, bool from_client, const uint8_t *datagram, size_t len)
{
    (void)ctx, (void)datagram;
    if (len < BIG)
        return;
    if (from_client != (d.leg % 2 == 0) && d.leg + 1 < d.n_legs)
        d.leg++; /* a transfer is over before the next begins */
    d.legs[d.leg].passed++;
}

static void open_relay(void)
{
    const struct relay_cfg cfg = {.server_host = "127.0.0.1",
                                  .server_port = d.port,
                                  .listen_port = d.relay_port,
                                  .seed = d.seed,
                                  .delay_us = 10000,
                                  .tap = tap};
    d.relay = relay_open(&cfg);
    if (d.relay == NULL)
        give_up("relay: %s", strerror(errno));
    d.relay_port = relay_port(d.relay);
}

/* Its table of clients is bounded, and each association has a place. */
static void renew_relay(void)
{
    relay_close(d.relay);
    open_relay();
}

/* What happens. */

static int by_place(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void add(struct elv_rng *rng, struct transfer *t, enum deed deed)
{
    if (t->n_points < POINTS_MAX)
        t->points[t->n_points++] = (struct point){1 + elv_rng_below(rng, d.chunks - 1), deed};
}

static void plan(uint32_t deeds)
{
    struct elv_rng rng = elv_rng_of((struct elv_rng_key){.seed = d.seed, .purpose = ELV_RNG_TEST});
    for (uint32_t i = 0; i < d.n_legs; i++) {
        struct transfer *t = &d.legs[i];
        for (uint32_t k = 0; k < deeds; k++)
            add(&rng, t, (enum deed)((i / 2 + k) % DEEDS));
        if (i + 1 == d.n_legs && deeds > 0)
            add(&rng, t, SLEEP);
        qsort(t->points, t->n_points, sizeof t->points[0], by_place);
    }
}

static void happen(enum deed deed)
{
    switch (deed) {
    case KILL_CLIENT:
        bury(d.client);
        start_client();
        break;
    case KILL_SERVER:
        bury(d.server);
        start_server();
        break;
    case MOVE:
        relay_move(d.relay);
        break;
    case SLEEP:
        kill(d.client, SIGSTOP);
        d.wake_at = relay_now() + SLEEP_US;
        break;
    }
}

static void look(void)
{
    static uint32_t seen;
    struct transfer *t = &d.legs[d.leg];
    if (seen != d.leg)
        renew_relay();
    seen = d.leg;
    if (d.wake_at != 0 && relay_now() >= d.wake_at) {
        kill(d.client, SIGCONT);
        d.wake_at = 0;
    }
    if (t->next == t->n_points || t->passed < t->points[t->next].at)
        return;
    happen(t->points[t->next++].deed);
}

static int run(void)
{
    const int64_t end = relay_now() + (int64_t)LIMIT_S * SECOND;
    int code;
    open_relay();
    start_server();
    start_client();
    while ((code = ended(d.client)) == NOT_RUNNING) {
        relay_wait(d.relay, 50000);
        relay_step(d.relay);
        look();
        if (ended(d.server) != NOT_RUNNING)
            give_up("the server ended by itself");
        if (relay_now() > end)
            give_up("still not over; %u chunks of transfer %u passed", d.legs[d.leg].passed, d.leg);
    }
    kill(d.server, SIGTERM);
    for (int i = 0; i < 100 && ended(d.server) == NOT_RUNNING; i++)
        poll(NULL, 0, 100);
    relay_close(d.relay);
    return code;
}

static bool judge(void)
{
    bool fine = true;
    for (uint32_t i = 0; i < d.n_legs; i++) {
        const struct transfer *t = &d.legs[i];
        const uint32_t again = t->passed > d.chunks ? t->passed - d.chunks : 0;
        const uint32_t most = 2 * ELV_WINDOW_MAX * (t->n_points > 0 ? t->n_points : 1);
        printf("bench resume round=%u what=%s chunks=%u passed=%u deeds=%u first=%s again=%u "
               "limit=%u\n",
               (i + 1) / 2 + 1, i % 2 == 0 ? "update" : "model", d.chunks, t->passed, t->n_points,
               t->n_points > 0 ? deed_names[i / 2 % DEEDS] : "nothing", again, most);
        if (t->next < t->n_points || again > most || t->passed + 1 < d.chunks)
            fine = false;
    }
    return fine;
}

int main(int argc, char **argv)
{
    if (argc != 9) {
        fprintf(stderr, "usage: %s SERVER CLIENT DIR PORT CHUNKS ROUNDS DEEDS SEED\n", argv[0]);
        return 2;
    }
    d = (struct drive){.server_path = argv[1],
                       .client_path = argv[2],
                       .dir = argv[3],
                       .port = (uint16_t)atoi(argv[4]),
                       .chunks = (uint32_t)atoi(argv[5]),
                       .n_legs = 2 * (uint32_t)atoi(argv[6]) - 1,
                       .seed = strtoull(argv[8], NULL, 10)};
    if (d.n_legs > LEGS_MAX || d.chunks < 2)
        give_up("up to %d rounds, of 2 chunks or more", LEGS_MAX / 2);
    plan((uint32_t)atoi(argv[7]));
    const int code = run();
    const bool fine = judge();
    if (code != 0)
        give_up("the client ended with %d", code);
    return fine ? 0 : 1;
}
