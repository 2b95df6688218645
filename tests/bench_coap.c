/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench_coap.c - requests per second of the CoAP server, one core against another.
 *
 * A child process serves; this one plays several clients that keep a window of non-confirmable
 * requests in flight over DTLS on loopback. Prints what a pair of request and response costs the
 * server in processor time, which is what limits one core; then what sessions cost to open and to
 * keep. ports/libcoap/README.md says where the time goes. */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ports/libcoap/client.h"
#include "ports/libcoap/server.h"
#include "relay.h"

enum { CLIENTS_MAX = 64, IDLE_MAX = 2000, WARM_US = 300000, RUN_US = 2000000 };

static const uint8_t chunk[1024];
static const char key[] = "0123456789abcdef";
static volatile sig_atomic_t stopped;

/* ---- the server */

static struct elv_net server_net;

static void serve(void *self, struct elv_event *ev)
{
    struct elv_action a = {.kind = ELV_DO_REPLY, .id = ev->id};
    (void)self;
    if (ev->request.op == ELV_OP_MODEL_CHUNK) {
        a.response.code = ELV_CODE_CONTENT;
        a.response.max_age_s = 86400;
        a.response.body = (struct elv_bytes){chunk, sizeof chunk};
    } else {
        a.response.code = ELV_CODE_CHANGED;
        a.response.body = (struct elv_bytes){chunk, 70}; /* about a bitmap */
    }
    server_net.act(server_net.self, &a);
}

static enum elv_err find(void *self, struct elv_text identity, struct elv_coap_key *out)
{
    (void)self;
    *out = (struct elv_coap_key){(uint32_t)strtoul(identity.at, NULL, 10) + 1,
                                 {(const uint8_t *)key, sizeof key - 1}};
    return ELV_OK;
}

static void on_term(int number)
{
    (void)number;
    stopped = 1;
}

static int run_server(int port_pipe)
{
    static const char *const listen[] = {"127.0.0.1:0"};
    struct elv_coap_problem problem;
    struct elv_coap_server *server;
    const struct elv_coap_server_cfg cfg = {
        .listen = listen,
        .n_listen = 1,
        .job = {"bench", 5},
        .sink = {NULL, serve},
        .keys = {NULL, find, NULL},
    };
    signal(SIGTERM, on_term);
    if (elv_coap_server_open(&cfg, &server, &problem) != ELV_OK) {
        fprintf(stderr, "bench_coap: %s\n", problem.text);
        return 1;
    }
    server_net = elv_coap_server_net(server);
    const struct elv_source source = elv_coap_server_source(server);
    const uint16_t port = elv_coap_server_info(server)->port[0];
    if (write(port_pipe, &port, sizeof port) != sizeof port)
        return 1;
    while (!stopped) {
        struct pollfd fd = {.fd = (int)source.handle, .events = POLLIN};
        (void)poll(&fd, 1, 100);
        source.ready(source.self);
    }
    elv_coap_server_close(server);
    return 0;
}

/* ---- the clients */

struct player {
    struct elv_coap_client *coap;
    struct elv_net net;
    struct elv_source source;
    enum elv_op op;
    uint32_t id, in_flight, window;
    uint64_t answered;
    int64_t heard;
};

static void ask(struct player *p)
{
    struct elv_action a = {.kind = ELV_DO_SEND, .id = ++p->id};
    a.request.op = p->op;
    a.request.chunk = p->id % 1000;
    a.request.digest = 1;
    a.request.assignment = 1;
    if (p->op == ELV_OP_UPDATE_CHUNK)
        a.request.body = (struct elv_bytes){chunk, sizeof chunk};
    p->in_flight++;
    p->net.act(p->net.self, &a);
}

static void on_answer(void *self, struct elv_event *ev)
{
    struct player *p = self;
    (void)ev;
    p->answered++;
    if (p->window == 0)
        return;
    p->in_flight--;
    p->heard = relay_now();
    while (p->in_flight < p->window)
        ask(p);
}

/* Lost datagrams must not end the run: what is missing after a while is given up. */
static void revive(struct player *p)
{
    if (relay_now() - p->heard < 20000)
        return;
    for (uint32_t i = 0; i < 2 * p->window && i < p->id; i++) {
        const struct elv_action a = {.kind = ELV_DO_FORGET, .id = p->id - i};
        p->net.act(p->net.self, &a);
    }
    p->in_flight = 0;
    p->heard = relay_now();
    while (p->in_flight < p->window)
        ask(p);
}

static void play(struct player *p, int n, int64_t us)
{
    const int64_t until = relay_now() + us;
    struct pollfd fd[CLIENTS_MAX];
    while (relay_now() < until) {
        for (int i = 0; i < n; i++)
            fd[i] = (struct pollfd){.fd = (int)p[i].source.handle, .events = POLLIN};
        (void)poll(fd, (nfds_t)n, 10);
        for (int i = 0; i < n; i++) {
            p[i].source.ready(p[i].source.self);
            revive(&p[i]);
        }
    }
}

static uint64_t total(const struct player *p, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += p[i].answered;
    return sum;
}

static struct elv_coap_client *open_client(struct player *p, uint16_t port, int number,
                                           uint32_t window)
{
    char uri[64], identity[16];
    struct elv_coap_problem problem;
    struct elv_coap_client *coap;
    snprintf(uri, sizeof uri, "coaps://127.0.0.1:%u", (unsigned)port);
    const int len = snprintf(identity, sizeof identity, "%d", number);
    const struct elv_coap_client_cfg cfg = {
        .server = uri,
        .job = {"bench", 5},
        .identity = {identity, (size_t)len},
        .psk = {(const uint8_t *)key, sizeof key - 1},
        .sink = {p, on_answer},
        .in_flight_max = 4 * window,
    };
    if (elv_coap_client_open(&cfg, &coap, &problem) != ELV_OK) {
        fprintf(stderr, "bench_coap: %s\n", problem.text);
        exit(1);
    }
    return coap;
}

/* Microseconds of processor time used by `pid`, from its clock. */
static double cpu_us(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void measure(pid_t server, uint16_t port, const char *name, enum elv_op op, int n,
                    uint32_t window)
{
    static struct player p[CLIENTS_MAX];
    memset(p, 0, sizeof p);
    for (int i = 0; i < n; i++) {
        p[i].coap = open_client(&p[i], port, i, window);
        p[i].net = elv_coap_client_net(p[i].coap);
        p[i].source = elv_coap_client_source(p[i].coap);
        p[i].op = op;
        p[i].window = window;
    }
    play(p, n, WARM_US);
    const uint64_t before = total(p, n);
    const double server_before = cpu_us(server), own_before = cpu_us(0);
    play(p, n, RUN_US);
    const double pairs = (double)(total(p, n) - before);
    const double cost = (cpu_us(server) - server_before) / pairs;
    printf("bench coap_%s_%dx%u %.2f us/pair ref budget 25 ratio %.2f\n", name, n, window, cost,
           cost / 25);
    printf("bench coap_%s_%dx%u_client %.2f us/pair ref server %.2f ratio %.2f\n", name, n, window,
           (cpu_us(0) - own_before) / pairs, cost, (cpu_us(0) - own_before) / pairs / cost);
    fflush(stdout);
    for (int i = 0; i < n; i++)
        elv_coap_client_close(p[i].coap);
}

/* Resident memory of `pid` in KiB. */
static long resident_kib(pid_t pid)
{
    char path[64];
    long pages = 0;
    snprintf(path, sizeof path, "/proc/%ld/statm", (long)pid);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return 0;
    if (fscanf(f, "%*d %ld", &pages) != 1)
        pages = 0;
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Sessions that do nothing: what opening and keeping them costs. */
static void idle(pid_t server, uint16_t port, int n)
{
    static struct player p[IDLE_MAX];
    const long before = resident_kib(server);
    const double cpu = cpu_us(server);
    for (int first = 0; first < n; first += CLIENTS_MAX) {
        const int m = n - first < CLIENTS_MAX ? n - first : CLIENTS_MAX;
        struct player *some = &p[first];
        for (int i = 0; i < m; i++) {
            some[i].coap = open_client(&some[i], port, 1000 + first + i, 1);
            some[i].net = elv_coap_client_net(some[i].coap);
            some[i].source = elv_coap_client_source(some[i].coap);
            const struct elv_action a = {
                .kind = ELV_DO_SEND, .id = 1, .reliable = true, .request.op = ELV_OP_TICKET};
            some[i].net.act(some[i].net.self, &a);
        }
        while (total(some, m) < (uint64_t)m) {
            for (int i = 0; i < m; i++)
                some[i].source.ready(some[i].source.self);
        }
    }
    const double each = (cpu_us(server) - cpu) / n;
    const double kib = (double)(resident_kib(server) - before) / n;
    printf("bench coap_session_opened %.0f us ref budget 1000 ratio %.2f\n", each, each / 1000);
    printf("bench coap_session_kept %.1f KiB ref budget 64 ratio %.2f\n", kib, kib / 64);
    fflush(stdout);
}

int main(void)
{
    int fd[2];
    uint16_t port = 0;
    if (pipe(fd) != 0)
        return 1;
    const pid_t server = fork();
    if (server == 0)
        return run_server(fd[1]);
    if (server < 0 || read(fd[0], &port, sizeof port) != sizeof port)
        return 1;
    measure(server, port, "get", ELV_OP_MODEL_CHUNK, 1, 32);
    measure(server, port, "get", ELV_OP_MODEL_CHUNK, 8, 16);
    measure(server, port, "put", ELV_OP_UPDATE_CHUNK, 1, 32);
    measure(server, port, "put", ELV_OP_UPDATE_CHUNK, 8, 16);
    idle(server, port, IDLE_MAX);
    measure(server, port, "get+idle", ELV_OP_MODEL_CHUNK, 8, 16);
    measure(server, port, "put+idle", ELV_OP_UPDATE_CHUNK, 8, 16);
    kill(server, SIGTERM);
    int status = 0;
    waitpid(server, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
