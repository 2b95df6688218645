/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/journal.c - the event log: a hash of everything, and text for whoever wants to read. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ports/sim/world_parts.h"

#define LINE_MAX_LEN 160

void sim_mix(struct elv_sim *w, uint64_t v)
{
    w->hash = (w->hash ^ v) * 0x9E3779B97F4A7C15u;
    w->hash ^= w->hash >> 32;
}

static void mix_bytes(struct elv_sim *w, struct elv_bytes b)
{
    sim_mix(w, b.len);
    size_t i = 0;
    for (; b.len - i >= 8; i += 8) {
        uint64_t v;
        memcpy(&v, b.at + i, 8);
        sim_mix(w, v);
    }
    for (; i < b.len; i++)
        sim_mix(w, b.at[i]);
}

void sim_say(const struct elv_sim *w, uint32_t node, const char *what, uint32_t id,
             const char *detail)
{
    if (w->cfg.watch.line == NULL)
        return;
    char text[LINE_MAX_LEN];
    snprintf(text, sizeof text, "%" PRId64 ".%06" PRId64 " node=%" PRIu32 " %s id=%" PRIu32 "%s%s",
             w->now / 1000000, w->now % 1000000, node, what, id, detail[0] == '\0' ? "" : " ",
             detail);
    w->cfg.watch.line(w->cfg.watch.line_self, text);
}

static const char *op_text(enum elv_op op)
{
    static const char *const names[] = {
        [ELV_OP_NONE] = "none",       [ELV_OP_MANIFEST] = "manifest",
        [ELV_OP_JOIN] = "join",       [ELV_OP_LEAVE] = "leave",
        [ELV_OP_TICKET] = "ticket",   [ELV_OP_MODEL_CHUNK] = "model",
        [ELV_OP_STEP_CHUNK] = "step", [ELV_OP_UPDATE_CHUNK] = "update",
        [ELV_OP_COMMIT] = "commit",
    };
    return (size_t)op < sizeof names / sizeof names[0] ? names[op] : "unknown";
}

static const char *store_text(enum elv_store_kind kind)
{
    static const char *const names[] = {
        [ELV_STORE_APPEND] = "append", [ELV_STORE_DROP] = "drop", [ELV_STORE_PUT] = "put",
        [ELV_STORE_ERASE] = "erase",   [ELV_STORE_FILE] = "file", [ELV_STORE_UNLINK] = "unlink",
        [ELV_STORE_MEND] = "mend",
    };
    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

static void say_store(const struct elv_sim *w, uint32_t node, const char *what,
                      const struct elv_action *a)
{
    if (w->cfg.watch.line == NULL)
        return;
    const struct elv_store_op *s = &a->store;
    char detail[LINE_MAX_LEN];
    snprintf(detail, sizeof detail, "%s table=%" PRIu32 " number=%" PRIu64 " len=%zu",
             store_text(s->kind), s->table, s->number, s->bytes.len);
    sim_say(w, node, what, a->id, detail);
}

static void say_request(const struct elv_sim *w, uint32_t node, const char *what, uint32_t id,
                        uint32_t peer, const struct elv_request *r)
{
    if (w->cfg.watch.line == NULL)
        return;
    char detail[LINE_MAX_LEN];
    snprintf(detail, sizeof detail,
             "peer=%" PRIu32 " op=%s assignment=%" PRIu32 " chunk=%" PRIu32 " len=%zu", peer,
             op_text(r->op), r->assignment, r->chunk, r->body.len);
    sim_say(w, node, what, id, detail);
}

static void say_response(const struct elv_sim *w, uint32_t node, const char *what, uint32_t id,
                         const struct elv_response *r)
{
    if (w->cfg.watch.line == NULL)
        return;
    char detail[LINE_MAX_LEN];
    snprintf(detail, sizeof detail, "code=%u.%02u len=%zu", r->code >> 5, r->code & 31u,
             r->body.len);
    sim_say(w, node, what, id, detail);
}

static void mix_request(struct elv_sim *w, const struct elv_request *r)
{
    sim_mix(w, (uint64_t)r->op << 32 | r->chunk);
    sim_mix(w, r->digest);
    sim_mix(w, (uint64_t)r->assignment << 1 | r->observe);
    mix_bytes(w, r->body);
}

static void mix_response(struct elv_sim *w, const struct elv_response *r)
{
    sim_mix(w, (uint64_t)r->code << 32 | r->max_age_s);
    mix_bytes(w, r->body);
}

void sim_log_event(struct elv_sim *w, uint32_t node, const struct elv_event *ev)
{
    static const char *const names[] = {
        [ELV_EV_TICK] = "tick",         [ELV_EV_REQUEST] = "request",
        [ELV_EV_RESPONSE] = "response", [ELV_EV_NO_ANSWER] = "no_answer",
        [ELV_EV_STORED] = "stored",     [ELV_EV_COMPUTED] = "computed",
        [ELV_EV_GONE] = "gone",         [ELV_EV_STOP] = "stop",
    };
    sim_mix(w, (uint64_t)w->now);
    sim_mix(w, (uint64_t)node << 32 | (uint64_t)ev->kind);
    sim_mix(w, (uint64_t)ev->peer << 32 | ev->id);
    sim_mix(w, (uint64_t)ev->now);
    sim_mix(w, (uint64_t)(int64_t)ev->err);
    if (ev->kind == ELV_EV_REQUEST) {
        mix_request(w, &ev->request);
        say_request(w, node, names[ev->kind], ev->id, ev->peer, &ev->request);
    } else if (ev->kind == ELV_EV_RESPONSE) {
        mix_response(w, &ev->response);
        say_response(w, node, names[ev->kind], ev->id, &ev->response);
    } else {
        sim_say(w, node, names[ev->kind], ev->id, ev->err == ELV_OK ? "" : elv_err_text(ev->err));
    }
}

void sim_log_action(struct elv_sim *w, uint32_t node, const struct elv_action *a)
{
    static const char *const names[] = {
        [ELV_DO_SEND] = "-> send",       [ELV_DO_FORGET] = "-> forget",
        [ELV_DO_RELINK] = "-> relink",   [ELV_DO_REPLY] = "-> reply",
        [ELV_DO_NOTIFY] = "-> notify",   [ELV_DO_STORE] = "-> store",
        [ELV_DO_COMPUTE] = "-> compute", [ELV_DO_CANCEL] = "-> cancel",
        [ELV_DO_END] = "-> end",
    };
    sim_mix(w, (uint64_t)a->kind << 32 | a->id);
    sim_mix(w, (uint64_t)a->peer << 1 | a->reliable);
    switch (a->kind) {
    case ELV_DO_SEND:
        mix_request(w, &a->request);
        say_request(w, node, names[a->kind], a->id, a->peer, &a->request);
        return;
    case ELV_DO_REPLY:
        mix_response(w, &a->response);
        say_response(w, node, names[a->kind], a->id, &a->response);
        return;
    case ELV_DO_STORE:
        sim_mix(w, (uint64_t)a->store.kind << 32 | a->store.table);
        sim_mix(w, a->store.number);
        mix_bytes(w, a->store.head);
        mix_bytes(w, a->store.bytes);
        say_store(w, node, names[a->kind], a);
        return;
    default:
        sim_mix(w, a->compute.kind);
        sim_say(w, node, names[a->kind], a->id, "");
        return;
    }
}
