/* SPDX-License-Identifier: Apache-2.0 */
/* common/port.h - what the world must provide. A port implements some of these; see ports/.
 *
 * Each interface is a value: a few functions and the `self` they are called with, so two worlds can
 * live in one process. Who holds one borrows it. */
#ifndef ELV_COMMON_PORT_H
#define ELV_COMMON_PORT_H

#include "node.h"

#ifdef __cplusplus
extern "C" {
#endif

struct elv_clock {
    void *self;
    /* Monotonic: a call may repeat a value, never return a smaller one. Any thread may call. */
    elv_time_us (*now)(void *self);
};

/* Unpredictable bytes for keys, nonces and boot ids. Fails rather than fall back to anything
 * weaker. Any thread may call. */
struct elv_random {
    void *self;
    enum elv_err (*fill)(void *self, uint8_t *out, size_t len);
};

/* Carries a node's SEND, FORGET, RELINK, REPLY and NOTIFY. Copies what it keeps and returns at
 * once; promises neither delivery nor order. Answers and requests reach the node as events. */
struct elv_net {
    void *self;
    void (*act)(void *self, const struct elv_action *action);
};

/* Where a port delivers what happened. The host behind it steps the node and carries out all its
 * actions before it returns, so a REPLY may reach the port inside the call that brought the
 * request. Called on the node's own thread only. `ev->now` is filled in by the host. */
struct elv_sink {
    void *self;
    void (*event)(void *self, struct elv_event *ev);
};

/* Something a program's loop waits for besides time. */
struct elv_source {
    void *self;
    intptr_t handle;           /* readable when there is something to do: a descriptor on POSIX */
    void (*ready)(void *self); /* do what can be done without waiting */
    elv_time_us (*deadline)(const void *self); /* call `ready` then at the latest; ELV_NEVER */
};

/* The durable state: records, append-only upload logs, files. See the STORE action. */
struct elv_store {
    void *self;
    /* Queues the STORE actions of one step as one transaction. STORED events for ids other than 0
     * follow when everything up to them is durable, or failed. */
    void (*submit)(void *self, const struct elv_action *actions, uint32_t n);
};

/* Reading it back: when a node is restored, and from `run` on any thread. */
struct elv_disk {
    void *self;
    /* Calls `each` for the records of `table` in rising order of number; `value` is borrowed for
     * the call; stops early, with that error, when `each` fails. */
    enum elv_err (*scan)(void *self, uint32_t table, void *ctx,
                         enum elv_err (*each)(void *ctx, uint64_t number, struct elv_bytes value));
    /* Reads up to `len` bytes at `offset`; `*got` is less only at the end. A log or file that does
     * not exist reads as ELV_ERR_MISSING. */
    enum elv_err (*read_log)(void *self, uint64_t number, uint64_t offset, uint8_t *out, size_t len,
                             size_t *got);
    enum elv_err (*read_file)(void *self, uint32_t table, uint64_t number, uint64_t offset,
                              uint8_t *out, size_t len, size_t *got);
};

/* Raw deflate (RFC 1951) of one chunk's payload. One thread per value. */
struct elv_squeeze {
    void *self;
    /* ELV_ERR_SPACE: the result would not fit in `cap`; nothing useful in `out`. */
    enum elv_err (*deflate)(void *self, uint8_t *out, size_t cap, struct elv_bytes in, size_t *len);
    /* Never writes past `cap`, whatever the input claims. ELV_ERR_SPACE: more than `cap`.
     * ELV_ERR_FORMAT: damaged, truncated, or bytes after the end. */
    enum elv_err (*inflate)(void *self, uint8_t *out, size_t cap, struct elv_bytes in, size_t *len);
};

#ifdef __cplusplus
}
#endif
#endif
