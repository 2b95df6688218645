/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fake_disk.h - a store in memory that can crash, fail and lose what was not synced.
 *
 * It is both halves: hand it the STORE actions of a step, take STORED events from it, and read it
 * back through `elv_disk`. Nothing becomes durable before `fake_disk_flush`; a crash loses what was
 * not flushed, but for appended log bytes. */
#ifndef ELV_TESTS_FAKE_DISK_H
#define ELV_TESTS_FAKE_DISK_H

#include "common/port.h"

struct fake_item {
    uint32_t table;
    uint64_t number;
    uint8_t *at;
    size_t len;
};

struct fake_items {
    struct fake_item *at;
    size_t n, cap;
};

struct fake_log {
    uint64_t number;
    uint8_t *at;
    size_t len, cap, synced;
};

struct fake_op {
    struct elv_store_op op; /* bytes owned */
    uint32_t id;
    uint8_t *own;
};

struct fake_disk {
    struct fake_items records, files;
    struct fake_log *logs;
    size_t n_logs;
    struct fake_op *queue; /* submitted, not durable; a transaction ends with `last` */
    bool *last;
    size_t n_queue, cap_queue;
    struct elv_event *events;
    size_t n_events, cap_events, at_event;

    uint64_t n_transactions; /* made durable so far */
    uint64_t crash_at;       /* this one, counted from 1, and all later ones are lost; 0: never */
    bool dead;               /* it has come to that: nothing is heard of again until revived */
    uint32_t fail;           /* so many transactions fail */
    bool failing;            /* one without an id did, and nobody has been told yet */
    bool drop_appends;       /* a full disk: appends vanish, and that log's transactions fail */
    uint64_t broken_log;     /* the log they vanished from; 0: none */
};

void fake_disk_init(struct fake_disk *d);
void fake_disk_free(struct fake_disk *d);

/* The STORE actions of one step; others are passed over. Appends are carried out at once. */
void fake_disk_submit(struct fake_disk *d, const struct elv_action *actions, uint32_t n);
/* Makes everything submitted durable, or fails it, transaction by transaction. */
void fake_disk_flush(struct fake_disk *d);
/* The next STORED event. False: none. */
bool fake_disk_next(struct fake_disk *d, struct elv_event *ev);

/* The process dies: what is not durable is gone. `power`: so are unsynced log bytes. */
void fake_disk_crash(struct fake_disk *d, bool power);

struct elv_disk fake_disk_disk(struct fake_disk *d);

/* NULL: no such record. */
const struct fake_item *fake_disk_record(const struct fake_disk *d, uint32_t table,
                                         uint64_t number);
const struct fake_item *fake_disk_file(const struct fake_disk *d, uint32_t table, uint64_t number);
struct fake_log *fake_disk_log(struct fake_disk *d, uint64_t number);

#endif
