/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/posix/loop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/assert.h"
#include "ports/posix/clock.h"

/* What epoll reports: a source's place, or one of the loop's own two. */
enum { SIGNALS = ELV_LOOP_SOURCES_MAX, TIMER, EVENTS_MAX };

static bool watch(struct elv_loop *l, int fd, uint32_t what)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = what};
    return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) == 0;
}

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return -1;
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Whoever read our output may go away; writing to it is then an error, not the end. */
static void ignore_broken_pipes(void)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
}

enum elv_err elv_loop_init(struct elv_loop *l)
{
    memset(l, 0, sizeof *l);
    ignore_broken_pipes();
    l->clock = elv_posix_clock();
    l->armed = ELV_NEVER;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->signals = open_signals();
    l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (l->epoll < 0 || l->signals < 0 || l->timer < 0 || !watch(l, l->signals, SIGNALS) ||
        !watch(l, l->timer, TIMER)) {
        elv_loop_free(l);
        return ELV_ERR_IO;
    }
    return ELV_OK;
}

enum elv_err elv_loop_add(struct elv_loop *l, struct elv_source source)
{
    if (l->n_sources == ELV_LOOP_SOURCES_MAX)
        return ELV_ERR_FULL;
    if (source.handle >= 0 && !watch(l, (int)source.handle, l->n_sources))
        return ELV_ERR_IO;
    l->sources[l->n_sources++] = source;
    return ELV_OK;
}

static elv_time_us now_of(const struct elv_loop *l) { return l->clock.now(l->clock.self); }

static elv_time_us deadline_of(const struct elv_source *s)
{
    return s->deadline == NULL ? ELV_NEVER : s->deadline(s->self);
}

static elv_time_us next_deadline(const struct elv_loop *l, const struct elv_host *host)
{
    elv_time_us next = elv_host_deadline(host);
    for (uint32_t i = 0; i < l->n_sources; i++) {
        const elv_time_us d = deadline_of(&l->sources[i]);
        if (d < next)
            next = d;
    }
    return next;
}

/* Epoll's own timeout counts milliseconds, too coarse to pace packets. */
static void arm(struct elv_loop *l, elv_time_us at)
{
    if (at == l->armed)
        return;
    struct itimerspec t = {0};
    if (at != ELV_NEVER) {
        t.it_value.tv_sec = (time_t)(at / 1000000);
        t.it_value.tv_nsec = (long)(at % 1000000) * 1000;
    }
    const int rc = timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &t, NULL);
    ELV_ASSERT(rc == 0);
    l->armed = at;
}

static void on_timer(struct elv_loop *l)
{
    uint64_t count;
    if (read(l->timer, &count, sizeof count) > 0)
        l->armed = ELV_NEVER;
}

static void on_signals(struct elv_loop *l, struct elv_host *host)
{
    struct signalfd_siginfo info;
    while (read(l->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        l->last_signal = (int)info.ssi_signo;
        if (++l->n_signals == 1)
            elv_host_stop(host);
    }
}

static void dispatch(struct elv_loop *l, struct elv_host *host, uint32_t what)
{
    if (what == SIGNALS)
        on_signals(l, host);
    else if (what == TIMER)
        on_timer(l);
    else
        l->sources[what].ready(l->sources[what].self);
}

static void wait_and_dispatch(struct elv_loop *l, struct elv_host *host)
{
    const elv_time_us next = next_deadline(l, host);
    const bool overdue = next <= now_of(l);
    if (!overdue)
        arm(l, next);
    struct epoll_event found[EVENTS_MAX];
    const int n = epoll_wait(l->epoll, found, EVENTS_MAX, overdue ? 0 : -1);
    ELV_ASSERT(n >= 0 || errno == EINTR);
    for (int i = 0; i < n && !host->ended; i++)
        dispatch(l, host, found[i].data.u32);
}

static void call_overdue(struct elv_loop *l, struct elv_host *host)
{
    const elv_time_us now = now_of(l);
    for (uint32_t i = 0; i < l->n_sources && !host->ended; i++) {
        if (deadline_of(&l->sources[i]) <= now)
            l->sources[i].ready(l->sources[i].self);
    }
    if (elv_host_deadline(host) <= now)
        elv_host_tick(host);
}

int elv_loop_run(struct elv_loop *l, struct elv_host *host)
{
    elv_host_tick(host);
    while (!host->ended && l->n_signals < 2) {
        wait_and_dispatch(l, host);
        call_overdue(l, host);
    }
    return host->ended ? (int)host->exit_code : 128 + l->last_signal;
}

void elv_loop_free(struct elv_loop *l)
{
    const int fds[] = {l->epoll, l->signals, l->timer};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    l->epoll = l->signals = l->timer = -1;
}
