/* SPDX-License-Identifier: Apache-2.0 */
/* common/node.h - how a state machine meets the world.
 *
 * Client and server are both nodes: events go in, actions come out, and `deadline` says when to
 * call back if nothing happens before. A node reads no clock, opens nothing, allocates nothing and
 * never computes for long: heavy work leaves it as a COMPUTE action, which the port carries out by
 * calling `run` in slices wherever it likes (between polls, on a worker thread, gathered over many
 * nodes in a simulator). One thread steps a node; separate nodes are independent.
 *
 * Requests and responses are values that mirror the resources of common/WIRE.md, so a node speaks
 * the protocol without knowing CoAP: the port turns a request into a path, a token and a datagram.
 */
#ifndef ELV_COMMON_NODE_H
#define ELV_COMMON_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cursor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t elv_time_us; /* monotonic microseconds; the origin is the port's */
#define ELV_NEVER INT64_MAX

/* What is asked; one per method and path of common/WIRE.md. */
enum elv_op {
    ELV_OP_NONE = 0,
    ELV_OP_MANIFEST,     /* GET /j/{job} */
    ELV_OP_JOIN,         /* POST /j/{job}/join */
    ELV_OP_LEAVE,        /* DELETE /j/{job}/join */
    ELV_OP_TICKET,       /* GET /j/{job}/t */
    ELV_OP_MODEL_CHUNK,  /* GET /j/{job}/m/{digest}/{chunk} */
    ELV_OP_STEP_CHUNK,   /* GET /j/{job}/d/{digest}/{chunk} */
    ELV_OP_UPDATE_CHUNK, /* PUT /j/{job}/u/{assignment}/{chunk} */
    ELV_OP_COMMIT,       /* POST /j/{job}/u/{assignment} */
};

struct elv_request {
    enum elv_op op;
    uint64_t digest;     /* MODEL_CHUNK, STEP_CHUNK: the first 8 bytes, the first one highest */
    uint32_t assignment; /* UPDATE_CHUNK, COMMIT */
    uint32_t chunk;      /* the chunk requests */
    bool observe;        /* TICKET: each change is another RESPONSE with the same id (RFC 7641) */
    struct elv_bytes body;
};

/* Response codes are CoAP's (RFC 7252, section 12.1.2): class in the upper three bits. */
#define ELV_CODE(class_, detail) ((uint8_t)((class_) << 5 | (detail)))
#define ELV_CODE_CREATED ELV_CODE(2, 1)
#define ELV_CODE_DELETED ELV_CODE(2, 2)
#define ELV_CODE_CHANGED ELV_CODE(2, 4)
#define ELV_CODE_CONTENT ELV_CODE(2, 5)
#define ELV_CODE_BAD_REQUEST ELV_CODE(4, 0)
#define ELV_CODE_FORBIDDEN ELV_CODE(4, 3)
#define ELV_CODE_NOT_FOUND ELV_CODE(4, 4)
#define ELV_CODE_CONFLICT ELV_CODE(4, 9)
#define ELV_CODE_TOO_LARGE ELV_CODE(4, 13)
#define ELV_CODE_INTERNAL ELV_CODE(5, 0)
#define ELV_CODE_UNAVAILABLE ELV_CODE(5, 3)

struct elv_response {
    uint8_t code;
    uint32_t max_age_s; /* 0: do not cache; for 5.03: when to try again */
    struct elv_bytes body;
};

static inline bool elv_code_is_success(uint8_t code) { return code >> 5 == 2; }

/* STORE: one change of the durable state. All STORE actions of one step are one transaction; steps
 * are carried out in order; nothing of a later one survives a crash that lost an earlier one, but
 * for appended log bytes, which are only ordered among themselves. */
enum elv_store_kind {
    ELV_STORE_APPEND, /* `bytes` go to the end of upload log `number`; survives the process at once,
                         a power loss only once a later STORE with an id is reported */
    ELV_STORE_DROP,   /* delete upload log `number` and its space */
    ELV_STORE_PUT,    /* record (`table`, `number`) = `bytes` */
    ELV_STORE_ERASE,  /* record (`table`, `number`) is no more; fine when there is none */
    ELV_STORE_FILE,   /* file `table`/`number` = `head` then `bytes`, replaced atomically */
    ELV_STORE_UNLINK, /* file `table`/`number` is no more; fine when there is none */
    ELV_STORE_MEND,   /* the node will measure upload log `number`, whose end may be lost: take
                         appends to it again */
};

struct elv_store_op {
    enum elv_store_kind kind;
    uint32_t table;  /* meaning is the node's: which kind of record or file */
    uint64_t number; /* log, key or file number */
    struct elv_bytes head;
    struct elv_bytes bytes; /* FILE: stays as it is until STORED; all else is copied in the step */
};

/* COMPUTE: work for `run`. `kind` and `input` name it for ports that gather work of many nodes (see
 * client/work.h and server/server.h); others just call `run`. */
struct elv_compute {
    uint32_t kind;
    const void *input; /* untouched by the node until the work ended */
};

enum elv_event_kind {
    ELV_EV_TICK,    /* time passed; also sent once at the start */
    ELV_EV_REQUEST, /* `peer` asks `request`; owed exactly one REPLY with this `id`, now or later */
    ELV_EV_RESPONSE,  /* `response` to SEND `id` */
    ELV_EV_NO_ANSWER, /* SEND `id` will not be answered: given up, reset, or its link is gone;
                         `err` CANCELLED: replaced by a new one, so ask again at once */
    ELV_EV_STORED,    /* STORE `id` is durable, or `err` says why not: then nothing of it is */
    ELV_EV_COMPUTED,  /* COMPUTE `id` ended with `err`: OK, CANCELLED, or what `run` returned */
    ELV_EV_GONE,      /* server: `peer` was revoked; its links are closed */
    ELV_EV_STOP,      /* the operator wants an orderly end: park what can be resumed, leave */
};

struct elv_event {
    elv_time_us now; /* never earlier than the previous event's */
    enum elv_event_kind kind;
    uint32_t peer; /* REQUEST, GONE: the authenticated client number, never an address */
    uint32_t id;
    enum elv_err err;
    struct elv_request request;   /* bodies are borrowed for the duration of the step */
    struct elv_response response; /* likewise */
};

enum elv_action_kind {
    ELV_DO_SEND,    /* client: ask `request`; `reliable`: repeat until answered or given up,
                       else send once and let the node repeat */
    ELV_DO_FORGET,  /* client: SEND `id` is no longer of interest; a late answer is dropped */
    ELV_DO_RELINK,  /* client: open a new association beside the old one and move to it when it
                       stands; requests in flight may or may not be answered */
    ELV_DO_REPLY,   /* server: `response` to REQUEST `id` */
    ELV_DO_NOTIFY,  /* server: `peer`'s ticket changed; tell its observer, if it has one */
    ELV_DO_STORE,   /* `store`; STORED comes back when `id` is not 0 */
    ELV_DO_COMPUTE, /* `compute`; COMPUTED always comes back */
    ELV_DO_CANCEL,  /* COMPUTE `id` need not go on; COMPUTED still comes back */
    ELV_DO_END,     /* the node has finished; `id` is the program's exit code */
};

struct elv_action {
    enum elv_action_kind kind;
    uint32_t peer;
    uint32_t id; /* SEND, STORE, COMPUTE: chosen by the node, unique among those outstanding */
    bool reliable;
    struct elv_request request;   /* bodies are borrowed until the next step */
    struct elv_response response; /* likewise, but for what the node promises to keep */
    struct elv_store_op store;
    struct elv_compute compute;
};

struct elv_actions {
    struct elv_action *at;
    uint32_t n, cap; /* cap: at least the node's `actions_max` */
};

struct elv_node {
    void *self;
    uint32_t actions_max; /* the most one step returns */
    void (*step)(void *self, const struct elv_event *ev, struct elv_actions *out);
    elv_time_us (*deadline)(const void *self);
    /* One slice of a COMPUTE, on any thread, slices of one work never at the same time. Does about
     * `budget` units (a training step, a chunk folded), at least one. Touches only what the work
     * owns. ELV_ERR_BUSY: call again; ELV_OK: finished; else: failed. Not called after CANCEL. */
    enum elv_err (*run)(void *self, const struct elv_compute *work, uint32_t budget);
};

#ifdef __cplusplus
}
#endif
#endif
