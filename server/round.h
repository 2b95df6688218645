/* SPDX-License-Identifier: Apache-2.0 */
/* server/round.h - the round that is open, if one is. */
#ifndef ELV_SERVER_ROUND_H
#define ELV_SERVER_ROUND_H

#include "policies.h"
#include "sums.h"
#include "tally.h"

enum elv_round_state {
    ELV_ROUND_NONE,
    ELV_ROUND_OPENING,  /* assignments are being written down, a few blocks per step */
    ELV_ROUND_PROMISED, /* all written; durable any moment */
    ELV_ROUND_OPEN,     /* clients work */
    ELV_ROUND_CLOSING,  /* the set is fixed; what counts is being folded */
    ELV_ROUND_MAKING,   /* the next version is computed */
    ELV_ROUND_FAILING,  /* to be abandoned once no worker reads its log */
    ELV_ROUND_DROPPING, /* that is being made durable */
};

struct elv_round {
    enum elv_round_state state;
    enum elv_what what;          /* TRAIN, or EVALUATE: a survey, see survey.c */
    bool stream;                 /* it asks nobody: clients have work of their own, see offer.c */
    uint32_t seq;                /* of the open or, in NONE, the last one */
    uint32_t assignment;         /* number given out with it */
    uint32_t version;            /* it starts from */
    struct elv_candidate *asked; /* [clients_max] */
    uint32_t n_asked;
    uint32_t n_grants;
    uint32_t written, n_blocks; /* assignments and ASSIGN records so far */
    elv_time_us opened, deadline;
    elv_time_us ended;      /* NONE: the last one, or the server's start */
    elv_time_us not_before; /* NONE: when the next may open */
    uint32_t store;         /* the STORE waited for; 0: none */

    uint32_t n_got, n_waiting, n_refused, n_declined;
    uint32_t n_given;       /* stream: pieces of work handed out, */
    uint32_t n_lapsed;      /* those whose time was over, */
    uint32_t n_counted;     /* places used in `counted`, */
    elv_time_us may_at;     /* and when the policy lets it be published; ELV_NEVER: not yet */
    uint32_t n_discarded;   /* of those refused, by the policy */
    uint32_t wanted;        /* updates the policy waits for, as it said last; 0: no number */
    uint32_t n_soft;        /* decisions that are not durable yet */
    int32_t weight_bits;    /* the scale of its weights: that of the process that opened it */
    struct elv_tally tally; /* from MAKING on */
    uint64_t bytes_up, bytes_down;
    struct elv_sums sums; /* of the clients; `eval` is over what the round starts from */
};

/* An update that counts in the open round of a stream. A client may have several. */
struct elv_counted {
    uint32_t row;
    double rate;               /* learning rate it was trained with */
    struct elv_rec_decision d; /* assignment 0: nothing; it could not be stored */
};

/* What is left to say and store of a round that made a version. */
struct elv_closed {
    uint32_t seq, n_blocks;
    bool stream;
    uint32_t version; /* it started from */
    uint32_t n_asked, n_used, n_late, n_refused, n_declined, n_discarded, wanted;
    uint64_t bytes_up, bytes_down;
    elv_time_us opened, deadline;
    struct elv_tally tally;
    struct elv_sums sums;
};

#endif
