/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/world_parts.h - what the files of the world share; nobody else includes it. */
#ifndef ELV_PORTS_SIM_WORLD_PARTS_H
#define ELV_PORTS_SIM_WORLD_PARTS_H

#include "ports/sim/queue.h"
#include "ports/sim/world.h"

struct body { /* a message's bytes, shared by whoever still needs them */
    uint32_t refs;
    size_t len;
    uint8_t at[];
};

/* One SEND of a client, for as long as anybody remembers it: the client that waits, packets on
 * their way, a timer, a server that owes the answer. */
struct exchange {
    uint32_t refs;
    uint32_t client, life; /* the node, and which of its lives */
    uint32_t id;
    struct elv_request request;
    struct body *body;
    bool reliable;
    bool live;      /* the client waits for an answer, or observes */
    bool answered;  /* at least once */
    bool waiting;   /* for an association */
    uint32_t turn;  /* of the last notification seen */
    uint32_t epoch; /* which life of the server it goes to */
    uint32_t repeats;
    enum elv_err gone; /* why it gets no answer */
    elv_time_us wait_us, sent_us;
    struct exchange *prev, *next; /* the client's outstanding ones, in order of sending */

    /* What the server knows of this message. */
    uint32_t known_life; /* 0: nothing */
    elv_time_us known_us;
    bool replied, notifying;
    uint32_t notified; /* turns used */
    struct elv_response reply;
    struct body *reply_body;
};

struct packet { /* on its way; a hello has no exchange */
    struct exchange *ex;
    struct body *body;
    struct elv_response response; /* down */
    uint32_t turn;
    uint32_t client, life, serial, round, epoch;
};

struct pending {         /* a REQUEST that is owed a REPLY */
    struct exchange *ex; /* NULL: a free place */
    uint32_t generation, turn;
    uint32_t next_free;
};

struct number { /* what a server's port knows of a client number */
    struct exchange *observer;
    bool revoked;
};

struct work {
    struct elv_compute compute;
    uint32_t node, id;
    bool dead, cancelled, finished;
    bool gathered; /* will have been done when it is due */
    enum elv_err err;
    struct work *next;
    struct work *before, *after; /* gathered: in order of starting */
};

struct hello { /* an association being opened: three round trips, as DTLS 1.2 with a cookie */
    bool active;
    uint32_t serial, round, tries, epoch;
};

struct sim_node {
    struct elv_sim_node_cfg cfg;
    struct elv_node node;
    bool client, up, ended, stepping, told_to_stop;
    uint32_t life, starts, exit_code, spins;
    elv_time_us origin, base, last_now;
    bool doomed; /* dies after so many more actions */
    struct elv_sim_crash doom;
    struct elv_rng net, device;
    struct work *works;
    elv_time_us disk_due;

    /* client */
    struct exchange *first, *last;
    bool linked, plain_armed;
    uint32_t epoch; /* the server's life at the other end of the association */
    struct hello hello;
    struct elv_sim_lane up_lane, down_lane;

    /* server */
    struct pending *pending;
    uint32_t n_pending, pending_cap, first_free; /* places used so far; first_free: index + 1 */
    struct number *numbers;
    uint32_t n_numbers;
};

enum {
    AT_UP,         /* what: packet; arrives at the server */
    AT_DOWN,       /* what: packet */
    AT_HELLO_UP,   /* what: packet */
    AT_HELLO_DOWN, /* what: packet */
    AT_HELLO_LATE, /* arg: client; what: packet, only for its serial */
    AT_REPEAT,     /* what: exchange */
    AT_PLAIN,      /* arg: client; what: its life */
    AT_FAILED,     /* what: exchange that gets no answer */
    AT_NOTIFY,     /* what: exchange */
    AT_SLICE,      /* what: work */
    AT_COMPUTED,   /* what: work */
    AT_DISK,       /* arg: node */
    AT_STORED,     /* arg: node without a disk; what: stored */
    AT_START,      /* arg: node; what: its life */
    AT_END,        /* arg: node; what: its life */
    AT_STOP,       /* arg: node; what: its life */
    AT_GONE,       /* arg: client number; what: server node's index */
    AT_CALL,       /* what: call */
};

struct stored {
    uint32_t life, id;
};

struct call {
    void (*what)(void *ctx, uint32_t arg);
    void *ctx;
    uint32_t arg;
};

struct elv_sim {
    struct elv_sim_cfg cfg;
    elv_time_us now;
    struct elv_sim_queue queue;
    struct elv_sim_timers timers;
    struct sim_node **nodes; /* pointers: indices stay, so do addresses */
    uint32_t n_nodes, nodes_cap;
    uint64_t hash;
    struct elv_sim_stats stats; /* but for what the fates tell */
    uint64_t wire_more;         /* to ask for the other blocks of manifests */
    const char *broken;
    struct elv_actions actions; /* of the step just made: one node steps at a time */
    uint32_t actions_cap;
    struct elv_action *stores; /* its STOREs, side by side */
    uint32_t stores_cap;
    struct work *gathered, *gathered_last;
    struct elv_sim_piece *pieces;
    struct work **piece_works;
    uint32_t pieces_cap;
};

/* world.c */
void sim_deliver(struct elv_sim *w, uint32_t node, struct elv_event *ev);
void sim_break(struct elv_sim *w, const char *how);
void *sim_life(uint32_t life); /* a life as a queue entry carries it */

/* journal.c */
void sim_mix(struct elv_sim *w, uint64_t v);
void sim_say(const struct elv_sim *w, uint32_t node, const char *what, uint32_t id,
             const char *detail);
void sim_log_event(struct elv_sim *w, uint32_t node, const struct elv_event *ev);
void sim_log_action(struct elv_sim *w, uint32_t node, const struct elv_action *a);

/* work.c */
void sim_compute(struct elv_sim *w, uint32_t node, const struct elv_action *a);
void sim_cancel(struct elv_sim *w, uint32_t node, uint32_t id);
void sim_work_event(struct elv_sim *w, const struct elv_sim_entry *e);
void sim_work_lost(struct elv_sim *w, uint32_t node); /* with the node's life */

/* carry.c */
struct body *sim_body(struct elv_sim *w, struct elv_bytes bytes);
struct body *sim_share(struct body *b);
void sim_let_go(struct elv_sim *w, struct body **b);
struct elv_bytes sim_bytes(const struct body *b);
struct exchange *sim_hold(struct exchange *ex);
void sim_unref(struct elv_sim *w, struct exchange *ex);
struct packet *sim_packet(void);
struct packet *sim_packet_clone(const struct packet *p);
void sim_packet_free(struct elv_sim *w, struct packet *p);
/* Puts `p` on the link of `client`; it belongs to the link from then on. */
void sim_travel(struct elv_sim *w, uint32_t client, uint32_t kind, struct packet *p, size_t len);

/* hello.c */
void sim_hello_open(struct elv_sim *w, uint32_t client);
void sim_hello_up(struct elv_sim *w, struct packet *p);
void sim_hello_down(struct elv_sim *w, struct packet *p);
void sim_hello_late(struct elv_sim *w, struct packet *p);

/* net.c */
struct number *sim_number(struct sim_node *server, uint32_t number);
void net_send(struct elv_sim *w, uint32_t client, const struct elv_action *a);
void net_forget(struct elv_sim *w, uint32_t client, uint32_t id);
void net_relink(struct elv_sim *w, uint32_t client);
void net_reply(struct elv_sim *w, uint32_t server, const struct elv_action *a);
void net_notify(struct elv_sim *w, uint32_t server, uint32_t number);
void net_launch(struct elv_sim *w, struct exchange *ex); /* the first transmission */
void net_fail_soon(struct elv_sim *w, struct exchange *ex, enum elv_err why);
void net_event(struct elv_sim *w, const struct elv_sim_entry *e); /* AT_UP .. AT_PLAIN, AT_GONE */
void net_drop(struct elv_sim *w, const struct elv_sim_entry *e); /* the same, when the world ends */
void net_node_gone(struct elv_sim *w, uint32_t node);
void net_revoke(struct elv_sim *w, uint32_t server, uint32_t number);

#endif
