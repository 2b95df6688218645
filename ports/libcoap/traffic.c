/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/libcoap/traffic.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum { UDP = 8, IPV4 = 20, IPV6 = 40 };

static _Thread_local struct elv_coap_traffic *counted;

/* The names are the linker's. */
ssize_t __real_send(int fd, const void *at, size_t len, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __real_recv(int fd, void *at, size_t len, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_send(int fd, const void *at, size_t len, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_recv(int fd, void *at, size_t len, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);

struct elv_coap_traffic *elv_coap_traffic_begin(struct elv_coap_traffic *t)
{
    struct elv_coap_traffic *before = counted;
    counted = t;
    return before;
}

void elv_coap_traffic_end(struct elv_coap_traffic *before) { counted = before; }

/* Bytes of headers on the way to or from that address. */
static uint64_t below(const struct sockaddr_storage *at)
{
    struct sockaddr_in6 v6;
    if (at->ss_family != AF_INET6)
        return IPV4 + UDP;
    memcpy(&v6, at, sizeof v6);
    return (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) ? IPV4 : IPV6) + UDP;
}

static uint64_t below_peer(int fd)
{
    struct sockaddr_storage at = {.ss_family = AF_INET};
    socklen_t len = sizeof at;
    (void)getpeername(fd, (struct sockaddr *)&at, &len);
    return below(&at);
}

static uint64_t below_message(int fd, const struct msghdr *m)
{
    struct sockaddr_storage at = {.ss_family = AF_INET};
    if (m->msg_name == NULL || m->msg_namelen == 0)
        return below_peer(fd);
    memcpy(&at, m->msg_name, m->msg_namelen < sizeof at ? m->msg_namelen : sizeof at);
    return below(&at);
}

static void count_out(ssize_t len, uint64_t more)
{
    counted->datagrams_out++;
    counted->wire_out += (uint64_t)len + more;
}

static void count_in(ssize_t len, uint64_t more)
{
    counted->datagrams_in++;
    counted->wire_in += (uint64_t)len + more;
}

ssize_t __wrap_send(int fd, const void *at, size_t len, int flags)
{
    const ssize_t n = __real_send(fd, at, len, flags);
    if (n >= 0 && counted != NULL)
        count_out(n, below_peer(fd));
    return n;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
    const ssize_t n = __real_sendmsg(fd, m, flags);
    if (n >= 0 && counted != NULL)
        count_out(n, below_message(fd, m));
    return n;
}

ssize_t __wrap_recv(int fd, void *at, size_t len, int flags)
{
    const ssize_t n = __real_recv(fd, at, len, flags);
    if (n >= 0 && counted != NULL)
        count_in(n, below_peer(fd));
    return n;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
    const ssize_t n = __real_recvmsg(fd, m, flags);
    if (n >= 0 && counted != NULL)
        count_in(n, below_message(fd, m));
    return n;
}
