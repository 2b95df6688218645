/* SPDX-License-Identifier: Apache-2.0 */
/* tests/relay.c - see relay.h. */
#define _GNU_SOURCE
#include "relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE_MAX = 8192, DATAGRAM_MAX = 2048, READS_MAX = 512 };

struct held {
    int64_t due;
    uint64_t order; /* breaks ties, so equal times keep their order */
    uint32_t client;
    bool to_server;
    uint16_t len;
    uint8_t bytes[DATAGRAM_MAX];
};

struct client {
    struct sockaddr_storage at;
    socklen_t at_len;
    int fd; /* towards the server */
};

struct relay {
    struct relay_cfg cfg;
    struct sockaddr_storage server;
    socklen_t server_len;
    int listen_fd, epoll_fd;
    uint16_t port;
    struct elv_sim_way way[2]; /* [0] towards the server */
    struct elv_sim_lane lane[2];
    struct elv_rng rng;
    int64_t start, moves; /* when it was opened; when the addresses change next */
    uint64_t order;
    struct client client[RELAY_CLIENTS_MAX];
    uint32_t n_clients;
    struct held *heap[QUEUE_MAX]; /* earliest first */
    uint32_t n_held;
    struct held *spare[QUEUE_MAX];
    uint32_t n_spare;
    struct relay_stats stats;
};

int64_t relay_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static bool earlier(const struct held *a, const struct held *b)
{
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void swap(struct held **a, struct held **b)
{
    struct held *t = *a;
    *a = *b;
    *b = t;
}

static void push(struct relay *r, struct held *h)
{
    uint32_t i = r->n_held++;
    r->heap[i] = h;
    while (i > 0 && earlier(r->heap[i], r->heap[(i - 1) / 2])) {
        swap(&r->heap[i], &r->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
}

static struct held *pop(struct relay *r)
{
    struct held *first = r->heap[0];
    r->heap[0] = r->heap[--r->n_held];
    for (uint32_t i = 0;;) {
        uint32_t least = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < r->n_held; child++) {
            if (earlier(r->heap[child], r->heap[least]))
                least = child;
        }
        if (least == i)
            return first;
        swap(&r->heap[i], &r->heap[least]);
        i = least;
    }
}

static void hold(struct relay *r, uint32_t client, bool to_server, const uint8_t *at, size_t len,
                 int64_t due)
{
    if (r->n_held == QUEUE_MAX || len > DATAGRAM_MAX) {
        r->stats.overrun++;
        return;
    }
    struct held *h = r->n_spare != 0 ? r->spare[--r->n_spare] : malloc(sizeof *h);
    if (h == NULL) {
        r->stats.overrun++;
        return;
    }
    h->due = due;
    h->order = r->order++;
    h->client = client;
    h->to_server = to_server;
    h->len = (uint16_t)len;
    memcpy(h->bytes, at, len);
    push(r, h);
}

static void accept_datagram(struct relay *r, uint32_t client, bool to_server, const uint8_t *at,
                            size_t len)
{
    const int way = to_server ? 0 : 1;
    const size_t bytes = len + r->cfg.headers;
    r->stats.datagrams[way]++;
    r->stats.bytes[way] += len;
    if (r->cfg.tap != NULL)
        r->cfg.tap(r->cfg.tap_ctx, to_server, at, len);
    const struct elv_sim_passage p =
        elv_sim_pass(&r->lane[way], &r->way[way], &r->rng, relay_now() - r->start, bytes);
    elv_sim_fates_count(&r->stats.fates[way], &p, bytes);
    for (uint32_t i = 0; i < p.n; i++)
        hold(r, client, to_server, at, len, r->start + p.at[i]);
}

static void grow(int fd)
{
    const int size = 4 << 20;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) != 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

static int watch(struct relay *r, int fd, uint32_t tag)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = tag};
    grow(fd);
    return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

static int open_upstream(struct relay *r, uint32_t client)
{
    const int fd = socket(r->server.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&r->server, r->server_len) != 0 ||
        watch(r, fd, client) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The client's number; RELAY_CLIENTS_MAX when there is no room. */
static uint32_t client_of(struct relay *r, const struct sockaddr_storage *at, socklen_t len)
{
    for (uint32_t i = 0; i < r->n_clients; i++) {
        if (r->client[i].at_len == len && memcmp(&r->client[i].at, at, len) == 0)
            return i;
    }
    if (r->n_clients == RELAY_CLIENTS_MAX)
        return RELAY_CLIENTS_MAX;
    const int fd = open_upstream(r, r->n_clients);
    if (fd < 0)
        return RELAY_CLIENTS_MAX;
    r->client[r->n_clients] = (struct client){.at = *at, .at_len = len, .fd = fd};
    return r->n_clients++;
}

static void read_clients(struct relay *r)
{
    uint8_t bytes[DATAGRAM_MAX];
    for (int n = 0; n < READS_MAX; n++) {
        struct sockaddr_storage at;
        memset(&at, 0, sizeof at);
        socklen_t len = sizeof at;
        const ssize_t got =
            recvfrom(r->listen_fd, bytes, sizeof bytes, 0, (struct sockaddr *)&at, &len);
        if (got < 0)
            return;
        const uint32_t client = client_of(r, &at, len);
        if (client == RELAY_CLIENTS_MAX)
            r->stats.overrun++;
        else
            accept_datagram(r, client, true, bytes, (size_t)got);
    }
}

static void read_server(struct relay *r, uint32_t client)
{
    uint8_t bytes[DATAGRAM_MAX];
    for (int n = 0; n < READS_MAX; n++) {
        const ssize_t got = recv(r->client[client].fd, bytes, sizeof bytes, 0);
        if (got < 0)
            return;
        accept_datagram(r, client, false, bytes, (size_t)got);
    }
}

static void send_due(struct relay *r)
{
    const int64_t now = relay_now();
    while (r->n_held != 0 && r->heap[0]->due <= now) {
        struct held *h = pop(r);
        const struct client *c = &r->client[h->client];
        if (h->to_server)
            (void)send(c->fd, h->bytes, h->len, 0);
        else
            (void)sendto(r->listen_fd, h->bytes, h->len, 0, (const struct sockaddr *)&c->at,
                         c->at_len);
        r->spare[r->n_spare++] = h;
    }
}

void relay_step(struct relay *r)
{
    struct epoll_event got[RELAY_CLIENTS_MAX + 1];
    const int n = epoll_wait(r->epoll_fd, got, RELAY_CLIENTS_MAX + 1, 0);
    for (int i = 0; i < n; i++) {
        if (got[i].data.u32 == RELAY_CLIENTS_MAX)
            read_clients(r);
        else
            read_server(r, got[i].data.u32);
    }
    send_due(r);
    if (r->moves <= relay_now())
        relay_move(r);
}

int64_t relay_deadline(const struct relay *r)
{
    return r->n_held != 0 && r->heap[0]->due < r->moves ? r->heap[0]->due : r->moves;
}

void relay_wait(const struct relay *r, int64_t us)
{
    struct pollfd in = {.fd = r->epoll_fd, .events = POLLIN};
    const int64_t now = relay_now(), due = relay_deadline(r);
    if (due < now + us)
        us = due > now ? due - now : 0;
    const struct timespec wait = {us / 1000000, us % 1000000 * 1000};
    (void)ppoll(&in, 1, &wait, NULL);
}

static int resolve(struct relay *r)
{
    char port[8];
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM};
    snprintf(port, sizeof port, "%u", (unsigned)r->cfg.server_port);
    if (getaddrinfo(r->cfg.server_host, port, &hints, &found) != 0) {
        errno = EHOSTUNREACH;
        return -1;
    }
    memcpy(&r->server, found->ai_addr, found->ai_addrlen);
    r->server_len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int open_listen(struct relay *r)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(r->cfg.listen_port)};
    socklen_t len = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    r->listen_fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (r->epoll_fd < 0 || r->listen_fd < 0 ||
        bind(r->listen_fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        getsockname(r->listen_fd, (struct sockaddr *)&at, &len) != 0 ||
        watch(r, r->listen_fd, RELAY_CLIENTS_MAX) != 0)
        return -1;
    r->port = ntohs(at.sin_port);
    return 0;
}

static void open_lanes(struct relay *r)
{
    const struct relay_cfg *cfg = &r->cfg;
    const struct elv_sim_way plain = {
        .loss_ppm = cfg->loss_ppm,
        .duplicate_ppm = cfg->duplicate_ppm,
        .delay = {.min_us = cfg->delay_us, .spread_us = cfg->jitter_us}};
    r->way[0] = cfg->up != NULL ? *cfg->up : plain;
    r->way[1] = cfg->down != NULL ? *cfg->down : plain;
    r->rng = elv_rng_of((struct elv_rng_key){.seed = cfg->seed, .purpose = ELV_RNG_NETWORK});
    r->start = relay_now();
    r->moves = INT64_MAX;
    if (r->way[1].moves.first_us > 0)
        r->moves = r->start + r->way[1].moves.first_us;
}

struct relay *relay_open(const struct relay_cfg *cfg)
{
    struct relay *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->cfg = *cfg;
    open_lanes(r);
    r->listen_fd = r->epoll_fd = -1;
    if (resolve(r) != 0 || open_listen(r) != 0) {
        const int why = errno;
        relay_close(r);
        errno = why;
        return NULL;
    }
    return r;
}

void relay_close(struct relay *r)
{
    if (r == NULL)
        return;
    for (uint32_t i = 0; i < r->n_clients; i++)
        close(r->client[i].fd);
    if (r->listen_fd >= 0)
        close(r->listen_fd);
    if (r->epoll_fd >= 0)
        close(r->epoll_fd);
    for (uint32_t i = 0; i < r->n_held; i++)
        free(r->heap[i]);
    for (uint32_t i = 0; i < r->n_spare; i++)
        free(r->spare[i]);
    free(r);
}

void relay_move(struct relay *r)
{
    const elv_time_us next = elv_sim_times_next(&r->way[1].moves, relay_now() - r->start);
    r->moves = next == ELV_NEVER ? INT64_MAX : r->start + next;
    r->stats.moves++;
    for (uint32_t i = 0; i < r->n_clients; i++) {
        const int fd = open_upstream(r, i);
        if (fd < 0)
            continue;
        close(r->client[i].fd);
        r->client[i].fd = fd;
    }
}

void relay_inject(struct relay *r, bool from_client, const uint8_t *datagram, size_t len)
{
    if (r->n_clients != 0)
        hold(r, r->n_clients - 1, from_client, datagram, len,
             relay_now() + r->way[from_client ? 0 : 1].delay.min_us);
}

uint16_t relay_port(const struct relay *r) { return r->port; }
int relay_fd(const struct relay *r) { return r->epoll_fd; }
void relay_set_loss(struct relay *r, uint32_t ppm)
{
    r->way[0].loss_ppm = r->way[1].loss_ppm = ppm;
}
void relay_set_mtu(struct relay *r, uint32_t mtu) { r->way[0].mtu = r->way[1].mtu = mtu; }
const struct relay_stats *relay_stats(const struct relay *r) { return &r->stats; }
