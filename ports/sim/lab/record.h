/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/record.h - what a run says of itself as it goes, for whoever writes it down. */
#ifndef ELV_PORTS_SIM_LAB_RECORD_H
#define ELV_PORTS_SIM_LAB_RECORD_H

#include "ports/sim/lab/learn.h"

#define ELV_LAB_STALE_BINS 32u /* staleness 0, 1, ..., 30, and more */

/* A round that ended: closed with a version, or abandoned. */
struct elv_lab_round {
    uint32_t seq, version; /* version made; abandoned: started from */
    bool abandoned;
    elv_time_us opened, closed, deadline;
    uint32_t wanted; /* updates the policy waited for; 0: no number */
    uint32_t n_asked, n_used, n_late, n_discarded, n_dropped; /* see rounds_csv.h */
    uint64_t bytes_up, bytes_down;
    uint64_t wire_up, wire_down; /* datagrams, with all headers; see rounds_csv.h */
    double train_loss;           /* mean the clients report; NAN: none */
    struct elv_lab_score score;  /* of the version made; accuracy < 0 and loss NAN: not evaluated */
    uint64_t stale[ELV_LAB_STALE_BINS]; /* of the updates used, by staleness */
    double stale_mean;
    double waiting_us; /* clients' time spent waiting for others, since the round before */
    double working_us; /* and downloading, computing or uploading */
    uint8_t model[32]; /* SHA-256 of the f32 vector; zeros: nothing is learnt */
};

/* One thing that happened to one client. */
enum elv_lab_event_kind {
    ELV_LAB_JOINED,
    ELV_LAB_LEFT,
    ELV_LAB_STARTED,
    ELV_LAB_USED,
    ELV_LAB_LATE,
    ELV_LAB_DISCARDED,
    ELV_LAB_DROPPED,
    ELV_LAB_HELD,
    ELV_LAB_INTERRUPTED,
    ELV_LAB_LAPSED,
};
const char *elv_lab_event_name(enum elv_lab_event_kind kind);

struct elv_lab_event {
    elv_time_us at;
    enum elv_lab_event_kind kind;
    uint32_t client, round, version, assignment, staleness;
    uint32_t weight; /* USED */
};

/* Either may be NULL. */
struct elv_lab_sink {
    void *self;
    void (*round)(void *self, const struct elv_lab_round *r);
    void (*event)(void *self, const struct elv_lab_event *e);
};

/* What a whole run came to. */
struct elv_lab_summary {
    elv_time_us ended;
    uint32_t version, rounds, abandoned;
    bool reached; /* the target */
    elv_time_us reached_at;
    uint64_t events; /* of clients: starts, arrivals, joins, leaves */
    /* Pieces of work: each that was started is used, late, discarded, dropped, interrupted, or
     * still under way at the end. */
    uint64_t started, used, late, discarded, dropped, interrupted;
    uint64_t lapsed; /* clients, from a stream */
    uint64_t bytes_up, bytes_down;
    uint64_t wire_up, wire_down;
    double waiting_us, working_us;
    double fairness;            /* Jain's index of updates used per client that ever joined */
    struct elv_lab_score score; /* of the last version */
    double best_accuracy;
    double stale_mean;
    uint64_t stale[ELV_LAB_STALE_BINS];
    elv_time_us worst_overrun; /* of a round past its deadline */
    uint8_t model[32];
    uint64_t hash; /* of everything that happened, in order */
};

/* Counts an event in what it belongs to. */
void elv_lab_count(struct elv_lab_summary *sum, struct elv_lab_round *round,
                   enum elv_lab_event_kind kind);

/* Jain's index of `n` shares from their sum and the sum of their squares; 1 when there are none. */
double elv_lab_fairness(double sum, uint32_t n, double squares);

#endif
