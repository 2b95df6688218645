/* SPDX-License-Identifier: Apache-2.0 */
#include "server/answer.h"

#include "common/assert.h"

void elv_answers_layout(struct elv_answers *q, struct elv_arena *a, uint32_t cap)
{
    *q = (struct elv_answers){.cap = cap};
    q->at = elv_arena_take(a, cap, sizeof *q->at);
}

uint32_t elv_answers_room(const struct elv_answers *q) { return q->cap - q->n; }

void elv_answers_push(struct elv_answers *q, const struct elv_answer *a)
{
    ELV_ASSERT(q->n < q->cap);
    q->at[(q->head + q->n++) % q->cap] = *a;
}

void elv_answers_stored(struct elv_answers *q, uint32_t store, bool ok)
{
    bool found = false;
    for (uint32_t i = 0; i < q->n; i++) {
        struct elv_answer *a = &q->at[(q->head + i) % q->cap];
        if (a->store != store) {
            if (found)
                return; /* those of one STORE lie together */
            continue;
        }
        found = true;
        if (a->state == ELV_ANSWER_WAITS)
            q->n_done++;
        a->state = ok ? ELV_ANSWER_STORED : ELV_ANSWER_FAILED;
    }
}

bool elv_answers_pop(struct elv_answers *q, struct elv_answer *a)
{
    if (q->n == 0 || q->at[q->head].state == ELV_ANSWER_WAITS)
        return false;
    *a = q->at[q->head];
    q->head = (q->head + 1) % q->cap;
    q->n--;
    q->n_done--;
    return true;
}
