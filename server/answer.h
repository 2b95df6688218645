/* SPDX-License-Identifier: Apache-2.0 */
/* server/answer.h - requests that are answered once a STORE has gone through.
 *
 * A queue in the order the STOREs were asked for. What has become durable, or has failed, is
 * answered a bounded number per step. */
#ifndef ELV_SERVER_ANSWER_H
#define ELV_SERVER_ANSWER_H

#include "../common/arena.h"
#include "../common/msg.h"

enum elv_answer_kind { ELV_ANSWER_JOIN, ELV_ANSWER_LEAVE, ELV_ANSWER_DECISION, ELV_ANSWER_GRANT };
enum elv_answer_state { ELV_ANSWER_WAITS, ELV_ANSWER_STORED, ELV_ANSWER_FAILED };

struct elv_answer {
    uint32_t store;
    enum elv_answer_kind kind;
    enum elv_answer_state state;
    uint32_t row;
    bool asked;               /* false: nobody is owed an answer, but the STORE has a consequence */
    uint32_t request;         /* REQUEST id */
    struct elv_joined joined; /* JOIN */
    uint32_t assignment;      /* DECISION */
    enum elv_decision decision; /* DECISION */
    enum elv_reason reason;     /* DECISION */
};

struct elv_answers {
    struct elv_answer *at;
    uint32_t cap, head, n;
    uint32_t n_done; /* not in state WAITS */
};

void elv_answers_layout(struct elv_answers *q, struct elv_arena *a, uint32_t cap);
uint32_t elv_answers_room(const struct elv_answers *q);
void elv_answers_push(struct elv_answers *q, const struct elv_answer *a); /* there is room */
/* Marks every answer that waits for `store`. */
void elv_answers_stored(struct elv_answers *q, uint32_t store, bool ok);
/* Takes the oldest if it is done. */
bool elv_answers_pop(struct elv_answers *q, struct elv_answer *a);

#endif
