/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/shelf.h - what lies on a simulated disk: values by name, and logs. Owns its memory. */
#ifndef ELV_PORTS_SIM_SHELF_H
#define ELV_PORTS_SIM_SHELF_H

#include "common/cursor.h"
#include "ports/sim/draw.h"

struct sim_blob {
    uint8_t *at;
    size_t len;
};

/* Records and files are both values with a name of two numbers, kept in rising order. */
struct sim_named {
    uint32_t table;
    uint64_t number;
    struct sim_blob value;
};

struct sim_shelf { /* zero: empty */
    struct sim_named *at;
    uint32_t n, cap;
    uint64_t used; /* bytes of values */
};

struct sim_blob sim_blob_of(struct elv_bytes head, struct elv_bytes bytes);

/* The first place whose name is not below (table, number). */
uint32_t sim_shelf_place(const struct sim_shelf *s, uint32_t table, uint64_t number);
struct sim_named *sim_shelf_find(const struct sim_shelf *s, uint32_t table, uint64_t number);
/* Takes `value` over. */
void sim_shelf_put(struct sim_shelf *s, uint32_t table, uint64_t number, struct sim_blob value);
void sim_shelf_erase(struct sim_shelf *s, uint32_t table, uint64_t number);
void sim_shelf_free(struct sim_shelf *s);

struct sim_mark { /* the log was `end` bytes long after transaction `seq` */
    uint64_t seq;
    size_t end;
};

struct sim_log {
    uint64_t number;
    uint8_t *at;
    size_t len, cap;
    size_t durable;
    bool broken;            /* an append failed */
    bool dropping;          /* its DROP is queued */
    struct sim_mark *marks; /* of appends that are not durable yet */
    uint32_t n_marks, marks_cap;
};

struct sim_logs { /* zero: none */
    struct sim_log *at;
    uint32_t n, cap;
    uint64_t used;
};

struct sim_log *sim_logs_find(const struct sim_logs *l, uint64_t number);
struct sim_log *sim_logs_open(struct sim_logs *l, uint64_t number); /* made when missing */
bool sim_logs_broken(const struct sim_logs *l); /* one is, and nobody drops it */
void sim_logs_append(struct sim_logs *l, struct sim_log *log, struct elv_bytes bytes, uint64_t seq);
void sim_logs_drop(struct sim_logs *l, uint64_t number);
/* All that was appended up to transaction `seq` is safe from now on. */
void sim_logs_sync(struct sim_logs *l, uint64_t seq);
/* Cuts each log somewhere after what is safe, between two appends unless `torn`. Returns how many
 * bytes went. */
uint64_t sim_logs_tear(struct sim_logs *l, struct elv_rng *rng, bool torn);
/* The node starts again: what is there is safe, and nothing is broken. */
void sim_logs_settle(struct sim_logs *l);
void sim_logs_free(struct sim_logs *l);

#endif
