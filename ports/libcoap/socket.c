/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/socket.c - the socket work around libcoap. */
#define _GNU_SOURCE /* SO_RCVBUFFORCE */
#include "ports/libcoap/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256, /* reads in one pass */
    PASSES_MAX = 16,  /* then the program's other sources get their turn */
};

static bool take(const char **at, const char *prefix)
{
    const size_t n = strlen(prefix);
    if (strncmp(*at, prefix, n) != 0)
        return false;
    *at += n;
    return true;
}

static bool parse_port(const char *text, uint16_t *port)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    const unsigned long value = strtoul(text, &end, 10);
    if (*end != '\0' || value > 65535)
        return false;
    *port = (uint16_t)value;
    return true;
}

enum elv_err elv_coap_place_parse(const char *text, struct elv_coap_place *place)
{
    const char *at = text;
    struct elv_coap_place p = {.secure = true};
    if (take(&at, "coap://"))
        p.secure = false;
    else
        (void)take(&at, "coaps://");
    p.port = (uint16_t)(p.secure ? ELV_COAPS_PORT : ELV_COAP_PORT);

    size_t len = strcspn(at, "/");
    if (at[len] == '/' && at[len + 1] != '\0')
        return ELV_ERR_FORMAT;
    char host[ELV_COAP_HOST_MAX + 16];
    if (len == 0 || len >= sizeof host)
        return ELV_ERR_FORMAT;
    memcpy(host, at, len);
    host[len] = '\0';

    char *name = host, *port = NULL;
    if (host[0] == '[') {
        char *close = strchr(host, ']');
        if (close == NULL || (close[1] != '\0' && close[1] != ':'))
            return ELV_ERR_FORMAT;
        port = close[1] == ':' ? close + 2 : NULL;
        *close = '\0';
        name = host + 1;
    } else if ((port = strchr(host, ':')) != NULL) {
        *port++ = '\0';
        if (strchr(port, ':') != NULL) /* a bare IPv6 address is ambiguous: ask for brackets */
            return ELV_ERR_FORMAT;
    }
    if ((port != NULL && !parse_port(port, &p.port)) || *name == '\0' ||
        strlen(name) > ELV_COAP_HOST_MAX)
        return ELV_ERR_FORMAT;
    memcpy(p.host, name, strlen(name) + 1);
    *place = p;
    return ELV_OK;
}

uint32_t elv_coap_resolve(const struct elv_coap_place *place, coap_address_t *out, uint32_t cap)
{
    char port[8];
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_DGRAM,
        .ai_flags = AI_NUMERICSERV | AI_PASSIVE,
    };
    snprintf(port, sizeof port, "%u", (unsigned)place->port);
    if (getaddrinfo(place->host, port, &hints, &found) != 0)
        return 0;
    uint32_t n = 0;
    for (const struct addrinfo *a = found; a != NULL && n < cap; a = a->ai_next) {
        if (a->ai_addrlen > sizeof out->addr)
            continue;
        coap_address_init(&out[n]);
        out[n].size = a->ai_addrlen;
        memcpy(&out[n].addr, a->ai_addr, a->ai_addrlen);
        n++;
    }
    freeaddrinfo(found);
    return n;
}

int elv_coap_next_socket(void)
{
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd >= 0)
        close(fd);
    return fd;
}

static uint16_t local_port(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        return 0;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (at.ss_family == AF_INET) {
        memcpy(&v4, &at, sizeof v4);
        return ntohs(v4.sin_port);
    }
    if (at.ss_family == AF_INET6) {
        memcpy(&v6, &at, sizeof v6);
        return ntohs(v6.sin6_port);
    }
    return 0;
}

void elv_coap_own(int fd)
{
    const int off = 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &off, sizeof off);
}

uint32_t elv_coap_grow(int fd, uint32_t want, uint16_t *port)
{
    int type = 0, size = 0;
    socklen_t len = sizeof type;
    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 || type != SOCK_DGRAM)
        return 0;
    if (port != NULL)
        *port = local_port(fd);
    /* The system doubles what it is asked for, for its own accounting, and says the double. */
    const int half = (int)(want > INT32_MAX ? INT32_MAX / 2 : want / 2);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &half, sizeof half) != 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &half, sizeof half);
    len = sizeof size;
    if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &len) != 0 || size < 0)
        return 0;
    return (uint32_t)size;
}

void elv_coap_pump_init(struct elv_coap_pump *pump, coap_context_t *context)
{
    *pump = (struct elv_coap_pump){
        .context = context, .epoll = coap_context_get_coap_fd(context), .burst = 1};
}

/* Libcoap reads one datagram for each event it is handed, and then goes over all its sessions to
 * see what is due. With thousands of sessions that costs more than the datagram, so each event is
 * handed over as often as it is likely to find something; a read too many costs one system call. */
static size_t repeat(const struct epoll_event *got, size_t n, uint32_t burst,
                     struct epoll_event work[EVENTS_MAX])
{
    size_t k = 0;
    for (uint32_t round = 0; round < burst; round++) {
        for (size_t i = 0; i < n && k < EVENTS_MAX; i++) {
            const bool reads = got[i].data.ptr != NULL && got[i].events == EPOLLIN;
            if (round == 0 || reads)
                work[k++] = got[i];
        }
    }
    return k;
}

void elv_coap_pump_run(struct elv_coap_pump *pump)
{
    struct epoll_event got[16], work[EVENTS_MAX];
    for (int pass = 0; pass < PASSES_MAX; pass++) {
        const int n = epoll_wait(pump->epoll, got, 16, 0);
        if (n <= 0) {
            if (pass == 0) {
                coap_tick_t now;
                coap_ticks(&now);
                coap_io_prepare_epoll(pump->context, now);
            } else if (pump->burst > 1) {
                pump->burst -= (pump->burst + 3) / 4;
            }
            return;
        }
        if (pass > 0 && pump->burst < EVENTS_MAX)
            pump->burst *= 2;
        coap_io_do_epoll(pump->context, work, repeat(got, (size_t)n, pump->burst, work));
    }
}
