/* SPDX-License-Identifier: Apache-2.0 */
/* server/note.h - what happened, as numbered values; the program turns them into log lines. */
#ifndef ELV_SERVER_NOTE_H
#define ELV_SERVER_NOTE_H

#include "../common/msg.h"
#include "sums.h"

/* Names, snake_case, are stable: add, never rename. */
#define ELV_NOTE_LIST(X)                                                                           \
    X(STARTED, "started")           /* fresh state; version */                                     \
    X(RESTORED, "restored")         /* version, round, value: accepted updates found */            \
    X(JOINED, "joined")             /* client */                                                   \
    X(LEFT, "left")                 /* client */                                                   \
    X(REVOKED, "revoked")           /* client */                                                   \
    X(TWIN, "twin")                 /* client: two processes use one identity */                   \
    X(CAPPED, "capped")             /* client, value: claimed weight */                            \
    X(ROUND_OPENED, "round_opened") /* round, version, value: clients asked, report.wanted */      \
    X(ROUND_CLOSED, "round_closed") /* report */                                                   \
    X(ROUND_ABANDONED, "round_abandoned") /* report; value: microseconds until the next */         \
    X(UPDATE_ACCEPTED, "update_accepted") /* client, round, value: weight */                       \
    X(UPDATE_REFUSED, "update_refused")   /* client, round, reason */                              \
    X(UPDATE_DECLINED, "update_declined") /* client, round, reason the client gave */              \
    X(UPDATE_FAILED, "update_failed")     /* client, round, reason the client gave */              \
    X(JOIN_REFUSED, "join_refused")       /* client, reason */                                     \
    X(EVALUATED, "evaluated")             /* version, score */                                     \
    X(CLIENTS_EVALUATED,                                                                           \
      "clients_evaluated") /* version, score, report.user: sums of the clients */                  \
    X(EVALUATION_FAILED, "evaluation_failed") /* version */                                        \
    X(STORE_FAILED, "store_failed")           /* value: enum elv_err */                            \
    X(LOG_LOST, "log_lost") /* round: the upload log does not hold what it should */               \
    X(OVER, "over")         /* version, value: 1 when the target was reached */                    \
    X(STOPPED, "stopped")                                                                          \
    X(EVALUATION_OPENED, "evaluation_opened")     /* round, version, value: clients asked */       \
    X(EVALUATION_TAKEN, "evaluation_taken")       /* client, round, version */                     \
    X(EVALUATION_DECLINED, "evaluation_declined") /* client, round, reason the client gave */      \
    X(LAPSED, "lapsed") /* client, round, version: silent past the time of its work */

enum elv_note_kind {
#define X(name, text) ELV_NOTE_##name,
    ELV_NOTE_LIST(X)
#undef X
};

struct elv_round_report {
    uint32_t round, version; /* sequence number; the version it made, or started from */
    uint32_t n_asked, n_used;
    uint32_t n_late;     /* asked, there, and without a decision when it ended */
    uint32_t n_refused;  /* updates turned down */
    uint32_t n_declined; /* declined or failed on the device */
    uint64_t weight_sum;
    uint64_t bytes_up, bytes_down; /* chunks as they travelled, repeats counted */
    elv_time_us took;              /* from tickets to the next version */
    elv_time_us overrun;           /* past the deadline; 0 or more */
    double loss;                   /* mean training loss the clients report; NAN: none */
    struct elv_user_totals user;   /* sums the clients gave names */
    uint32_t n_discarded;          /* of those refused, by the policy: of no use to it */
    uint32_t wanted;               /* updates the policy waited for; 0: no number in particular */
    double staleness;              /* mean over those used: updates that came between */
    uint64_t wire_up, wire_down;   /* what the program's sockets received and sent since the round
                                      before, headers, handshakes and repeats included; the program
                                      fills them in */
};

struct elv_note {
    uint64_t number; /* from 1 */
    elv_time_us at;
    enum elv_note_kind kind;
    uint32_t client, round, version;
    enum elv_reason reason;
    uint64_t value;
    struct elv_round_report report;
    struct elv_score score;
};

const char *elv_note_name(enum elv_note_kind kind);

/* How much an operator should care. */
enum elv_note_weight { ELV_NOTE_USUAL, ELV_NOTE_ODD, ELV_NOTE_BAD };
enum elv_note_weight elv_note_weight(enum elv_note_kind kind);

#define ELV_NOTES_KEPT 256u
struct elv_notes { /* a ring: who does not read in time sees a gap in the numbers */
    struct elv_note at[ELV_NOTES_KEPT];
    uint64_t last; /* number of the newest */
};

/* A new note to fill in, number, time and kind already there. */
struct elv_note *elv_note_add(struct elv_notes *n, enum elv_note_kind kind, elv_time_us at);

/* The oldest kept note with a number above `*seen`, which moves on to it. NULL: none. */
const struct elv_note *elv_note_next(const struct elv_notes *n, uint64_t *seen);

#endif
