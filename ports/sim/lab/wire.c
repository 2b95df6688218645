/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/wire.h"

/* Bodies of the messages around the chunks: with three steps offered, and chunks that come in
 * order. */
enum { TICKET_LEN = 300, COMMIT_LEN = 90, VERDICT_LEN = 3, PROGRESS_LEN = 14 };
enum { CHUNK_INDEX = 20, ASSIGNMENT = 200 }; /* of as many digits as most have */

static struct elv_wire_way way_of(struct elv_text job)
{
    return elv_wire_usual(job.len > 0 ? job : (struct elv_text){"job", 3});
}

static void ask(struct elv_lab_wire *w, const struct elv_wire_way *way, const struct elv_request *r,
                const struct elv_response *answer, uint64_t times)
{
    w->up += times * elv_wire_request(way, r);
    w->down += times * elv_wire_response(way, r->op, answer, false);
}

struct elv_lab_wire elv_lab_wire_fetch(struct elv_text job, uint64_t bytes)
{
    const struct elv_wire_way way = way_of(job);
    const struct elv_request chunk = {.op = ELV_OP_STEP_CHUNK, .chunk = CHUNK_INDEX};
    struct elv_response answer = {.code = ELV_CODE_CONTENT, .body.len = TICKET_LEN};
    struct elv_lab_wire w = {0};
    ask(&w, &way, &(struct elv_request){.op = ELV_OP_TICKET}, &answer, 1);
    answer.max_age_s = 86400;
    answer.body.len = ELV_CHUNK_MAX;
    ask(&w, &way, &chunk, &answer, bytes / ELV_CHUNK_MAX);
    answer.body.len = bytes % ELV_CHUNK_MAX;
    ask(&w, &way, &chunk, &answer, answer.body.len > 0);
    return w;
}

struct elv_lab_wire elv_lab_wire_send(struct elv_text job, uint64_t bytes)
{
    const struct elv_wire_way way = way_of(job);
    struct elv_request chunk = {.op = ELV_OP_UPDATE_CHUNK,
                                .assignment = ASSIGNMENT,
                                .chunk = CHUNK_INDEX,
                                .body.len = ELV_CHUNK_MAX};
    const struct elv_request commit = {
        .op = ELV_OP_COMMIT, .assignment = ASSIGNMENT, .body.len = COMMIT_LEN};
    struct elv_response answer = {.code = ELV_CODE_CHANGED, .body.len = PROGRESS_LEN};
    struct elv_lab_wire w = {0};
    ask(&w, &way, &chunk, &answer, bytes / ELV_CHUNK_MAX);
    chunk.body.len = bytes % ELV_CHUNK_MAX;
    ask(&w, &way, &chunk, &answer, chunk.body.len > 0);
    /* The decision comes when it is durable, after an acknowledgement; it is acknowledged, too. */
    answer.body.len = VERDICT_LEN;
    ask(&w, &way, &commit, &answer, 1);
    w.up += elv_wire_empty(&way, true);
    w.down += elv_wire_empty(&way, false);
    return w;
}
