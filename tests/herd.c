/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of clients in one process: the real client nodes over real DTLS, each with a session
 * and a socket of its own. Only their training is pretended: it takes up to SPREAD_MS and moves the
 * weights a little.
 *
 *     herd SERVER JOB COUNT PREFIX SPREAD_MS
 *
 * takes part as PREFIX1.cred ... PREFIXCOUNT.cred until the job is over for all (exit code 0) or it
 * is told to stop. Its last line on standard output has the sums:
 *
 *     herd clients=2000 ended=2000 joins=2000 handshakes=4000 relinks=2000 accepted=6000 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "client/client.h"
#include "common/assert.h"
#include "ports/libcoap/client.h"
#include "ports/posix/clock.h"
#include "ports/posix/credential.h"
#include "ports/posix/random.h"

enum { MEM = 1 << 18, EVENTS = 512, WAIT_MS = 200, FILES_EACH = 4, ACTIONS_MAX = 256 };
enum { OPENING_MAX = 64 }; /* at the start; later nobody holds them back */

struct work {
    bool busy, cancelled;
    uint32_t id;
    struct elv_compute compute;
    elv_time_us due;
};

struct member {
    struct elv_client client;
    struct elv_node node;
    struct elv_coap_client *coap;
    struct elv_source source;
    struct elv_net net;
    struct work work;
    struct elv_train_result result;
    float *weights;
    uint32_t number;
    bool ended;
};

static struct member *members;
static uint32_t n_members, n_open, n_ended;
static const char *server, *job, *prefix;
static uint64_t spread_us;
static struct elv_rng dice;
static volatile sig_atomic_t stopped;

static elv_time_us now_us(void) { return elv_posix_clock().now(NULL); }

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* The trainer. */

static uint32_t samples(const void *self)
{
    (void)self;
    return 10;
}

static enum elv_err begin(void *self, const struct elv_task *task, float *weights)
{
    struct member *m = self;
    (void)task;
    m->weights = weights;
    m->result = (struct elv_train_result){.samples = 10, .seen = 10, .steps = 1, .loss_sum = 5.0};
    return ELV_OK;
}

static enum elv_err evaluate(void *self, const struct elv_task *task, const float *weights)
{
    (void)self, (void)task, (void)weights;
    return ELV_ERR_MISSING;
}

static enum elv_err run(void *self, uint32_t steps)
{
    const struct member *m = self;
    (void)steps;
    for (uint32_t i = 0; i < m->client.model.n_params; i++)
        m->weights[i] += 0.001f * (float)((i + m->number) % 7);
    return ELV_OK;
}

static const struct elv_train_result *result(const void *self)
{
    return &((const struct member *)self)->result;
}

static void stop_training(void *self) { (void)self; }

/* One node at home. */

static void step(struct member *m, struct elv_event *ev);

static void start_work(struct member *m, const struct elv_action *a)
{
    const bool trains = a->compute.kind == ELV_CLIENT_TRAIN;
    const uint32_t span = (uint32_t)(spread_us / 1000 + 1);
    const elv_time_us wait = trains ? 1000 * (elv_time_us)elv_rng_below(&dice, span) : 0;
    m->work =
        (struct work){.busy = true, .id = a->id, .compute = a->compute, .due = now_us() + wait};
}

static void carry_out(struct member *m, const struct elv_action *a)
{
    switch (a->kind) {
    case ELV_DO_COMPUTE:
        start_work(m, a);
        break;
    case ELV_DO_CANCEL:
        if (m->work.busy && m->work.id == a->id) {
            m->work.cancelled = true;
            m->work.due = 0;
        }
        break;
    case ELV_DO_END:
        m->ended = true;
        n_ended++;
        break;
    default:
        m->net.act(m->net.self, a);
        break;
    }
}

static void step(struct member *m, struct elv_event *ev)
{
    static struct elv_action at[ACTIONS_MAX];
    struct elv_actions out = {.at = at, .cap = ACTIONS_MAX};
    if (m->ended)
        return;
    ev->now = now_us();
    m->node.step(m->node.self, ev, &out);
    for (uint32_t i = 0; i < out.n; i++)
        carry_out(m, &out.at[i]);
}

static void on_event(void *self, struct elv_event *ev) { step(self, ev); }

static void do_work(struct member *m)
{
    struct elv_event ev = {.kind = ELV_EV_COMPUTED, .id = m->work.id, .err = ELV_ERR_CANCELLED};
    if (!m->work.cancelled)
        do
            ev.err = m->node.run(m->node.self, &m->work.compute, 64);
        while (ev.err == ELV_ERR_BUSY);
    m->work.busy = false;
    step(m, &ev);
}

/* What is due; returns when the next thing is. */
static elv_time_us look_after(struct member *m)
{
    const elv_time_us now = now_us();
    if (m->ended)
        return ELV_NEVER;
    if (m->source.deadline(m->source.self) <= now)
        m->source.ready(m->source.self);
    if (m->work.busy && m->work.due <= now)
        do_work(m);
    if (!m->ended && m->node.deadline(m->node.self) <= now)
        step(m, &(struct elv_event){.kind = ELV_EV_TICK});
    if (m->ended)
        return ELV_NEVER;
    elv_time_us next = m->node.deadline(m->node.self);
    if (m->work.busy && m->work.due < next)
        next = m->work.due;
    return m->source.deadline(m->source.self) < next ? 0 : next;
}

static void complain(const char *what, const char *why)
{
    fprintf(stderr, "herd: %s: %s\n", what, why);
    exit(1);
}

static void open_member(struct member *m, uint32_t number, int epoll)
{
    char path[1024];
    struct elv_credential c;
    struct elv_key_error e = {0};
    struct elv_coap_problem problem = {{0}};
    snprintf(path, sizeof path, "%s%" PRIu32 ".cred", prefix, number);
    if (elv_credential_load(path, &c, &e) != ELV_OK)
        complain(path, e.why);
    m->number = number;
    const struct elv_client_cfg cfg = {
        .trainer = {.self = m,
                    .samples = samples,
                    .begin = begin,
                    .evaluate = evaluate,
                    .run = run,
                    .result = result,
                    .abort = stop_training},
        .software = {"elver/0.1.0", 11},
        .boot = elv_rng_u64(&dice),
        .jitter_seed = elv_rng_u64(&dice),
    };
    void *mem = aligned_alloc(ELV_ARENA_ALIGN, MEM); /* what is not touched costs nothing */
    if (mem == NULL || elv_client_init(&m->client, &cfg, mem, MEM) != ELV_OK)
        complain("client", "out of memory");
    m->node = elv_client_node(&m->client);
    ELV_ASSERT(m->node.actions_max <= ACTIONS_MAX);
    const struct elv_coap_client_cfg net = {.server = server,
                                            .job = {job, strlen(job)},
                                            .sink = {m, on_event},
                                            .identity = {c.identity, strlen(c.identity)},
                                            .psk = {c.key, c.key_len},
                                            .receive_buffer = 65536};
    if (elv_coap_client_open(&net, &m->coap, &problem) != ELV_OK)
        complain(server, problem.text);
    m->net = elv_coap_client_net(m->coap);
    m->source = elv_coap_client_source(m->coap);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = m};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, (int)m->source.handle, &ev) != 0)
        complain("epoll", "cannot wait for a client");
    step(m, &(struct elv_event){.kind = ELV_EV_TICK});
}

static void open_some(int epoll)
{
    uint32_t opening = 0;
    for (uint32_t i = 0; i < n_open; i++)
        opening += members[i].client.stats.joins == 0;
    for (; n_open < n_members && opening < OPENING_MAX; n_open++, opening++)
        open_member(&members[n_open], n_open + 1, epoll);
}

static void let_many_files_be_open(uint32_t n)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
        l.rlim_cur = l.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &l);
    }
    if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur < n) {
        fprintf(stderr, "herd: the system allows %lu open files; %lu are needed\n",
                (unsigned long)l.rlim_cur, (unsigned long)n);
        exit(77);
    }
}

static elv_time_us look_after_all(void)
{
    elv_time_us next = ELV_NEVER;
    for (uint32_t i = 0; i < n_open; i++) {
        const elv_time_us at = look_after(&members[i]);
        next = at < next ? at : next;
    }
    return next;
}

static void live(int epoll)
{
    static struct epoll_event got[EVENTS];
    while (!stopped && n_ended < n_members) {
        if (n_open < n_members)
            open_some(epoll);
        const elv_time_us next = look_after_all(), now = now_us();
        const int ms = next <= now                   ? 0
                       : next - now > WAIT_MS * 1000 ? WAIT_MS
                                                     : (int)((next - now) / 1000 + 1);
        const int n = epoll_wait(epoll, got, EVENTS, ms);
        for (int i = 0; i < n; i++) {
            const struct member *m = got[i].data.ptr;
            m->source.ready(m->source.self);
        }
    }
}

static void tell(void)
{
    uint64_t joins = 0, handshakes = 0, relinks = 0, accepted = 0;
    for (uint32_t i = 0; i < n_open; i++) {
        joins += members[i].client.stats.joins;
        relinks += members[i].client.stats.relinks;
        accepted += members[i].client.stats.accepted;
        handshakes += elv_coap_client_status(members[i].coap)->handshakes;
    }
    printf("herd clients=%" PRIu32 " ended=%" PRIu32 " joins=%" PRIu64 " handshakes=%" PRIu64
           " relinks=%" PRIu64 " accepted=%" PRIu64 "\n",
           n_members, n_ended, joins, handshakes, relinks, accepted);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: %s SERVER JOB COUNT PREFIX SPREAD_MS\n", argv[0]);
        return 2;
    }
    server = argv[1];
    job = argv[2];
    prefix = argv[4];
    n_members = (uint32_t)strtoul(argv[3], NULL, 10);
    spread_us = strtoull(argv[5], NULL, 10) * 1000;
    uint64_t seed;
    const struct elv_random random = elv_posix_random();
    if (random.fill(random.self, (uint8_t *)&seed, sizeof seed) != ELV_OK)
        complain("seed", "the system gives no random bytes");
    dice = elv_rng_of((struct elv_rng_key){.seed = seed});
    let_many_files_be_open(FILES_EACH * n_members + 64);
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    members = calloc(n_members, sizeof *members);
    if (epoll < 0 || members == NULL)
        complain("start", "the system gives no memory or descriptor");
    live(epoll);
    tell();
    return n_ended == n_members ? 0 : 1;
}
