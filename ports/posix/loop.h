/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/loop.h - a program's one loop: waits for sources, deadlines and signals.
 *
 * The first SIGINT or SIGTERM becomes a STOP event and the node ends in its own time; a second one
 * ends the loop at once. `elv_loop_init` blocks both signals, and threads inherit that: call it
 * before anything that starts a thread. It also ignores SIGPIPE. One loop per process, on the
 * node's thread. Deadlines are times of `elv_posix_clock`, kept to the microsecond. */
#ifndef ELV_PORTS_POSIX_LOOP_H
#define ELV_PORTS_POSIX_LOOP_H

#include "common/port.h"
#include "ports/posix/host.h"

#define ELV_LOOP_SOURCES_MAX 16u

struct elv_loop {
    struct elv_clock clock;
    struct elv_source sources[ELV_LOOP_SOURCES_MAX];
    uint32_t n_sources;
    uint32_t n_signals;
    int last_signal;
    int epoll, signals, timer;
    elv_time_us armed; /* the timer's time; ELV_NEVER: off */
};

/* ELV_ERR_IO: the system gives no descriptor. */
enum elv_err elv_loop_init(struct elv_loop *l);

/* A source with a negative handle has only its deadline; `deadline` may be NULL. ELV_ERR_FULL;
 * ELV_ERR_IO: the handle cannot be waited for. */
enum elv_err elv_loop_add(struct elv_loop *l, struct elv_source source);

/* Steps `host` with a TICK, then runs until its node asks for END: returns the exit code it gave.
 * A second signal: returns 128 + its number, and the program should call _exit with that. */
int elv_loop_run(struct elv_loop *l, struct elv_host *host);

void elv_loop_free(struct elv_loop *l);

#endif
