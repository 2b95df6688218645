/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/world.h - a whole deployment in one thread, on virtual time.
 *
 * The nodes that run on real machines run here unchanged. The world carries out their actions: it
 * moves requests and responses over links that delay, lose, repeat and reorder them, repeats
 * reliable requests and recognises the repeats, opens associations, does the computing, owns the
 * disks, and kills and restarts nodes between any two actions. One seed decides everything, so a
 * failing run is replayed by its seed; the hash of the event log tells two runs apart.
 *
 * Every event costs O(log n), whatever the number of nodes; an idle node costs nothing. The world
 * allocates as it goes and stops the program when it cannot; memory in flight is bounded by what
 * the nodes have outstanding. Not thread-safe; separate worlds are independent. */
#ifndef ELV_PORTS_SIM_WORLD_H
#define ELV_PORTS_SIM_WORLD_H

#include "common/node.h"
#include "common/port.h"
#include "common/wire_size.h"
#include "ports/sim/disk.h"
#include "ports/sim/draw.h"
#include "ports/sim/link.h"

/* One client's link with its server. Each direction draws for itself. May be changed at any time.
 */
struct elv_sim_link {
    struct elv_sim_delay delay; /* one way */
    /* Draws a packet's delay instead of that; NULL: nobody does. */
    elv_time_us (*draw)(void *draw_self, struct elv_rng *rng);
    void *draw_self;
    uint32_t loss_ppm, duplicate_ppm;
    uint32_t reorder_ppm;           /* chance to be held back on top of the delay... */
    struct elv_sim_delay held_back; /* ...by so much */
    bool in_order;                  /* packets that are not held back do not overtake each other */
    uint32_t up_bps;                /* bytes per second; 0: no limit */
    uint32_t down_bps;
    elv_time_us queue_us;  /* what would wait longer for the line is lost; 0: no limit */
    uint32_t mtu;          /* longer datagrams vanish, all headers counted; 0: no limit */
    bool cut_up, cut_down; /* nothing passes from, to the client */
    /* What each direction is like, instead of everything above but the cuts: borrowed, such as
     * those of a profile. NULL: as above. */
    const struct elv_sim_way *up, *down;
};

/* How a node is made and thrown away. */
struct elv_sim_host {
    void *self;
    /* Makes node `node`, restoring it from its disk when there is something. `now` is by the node's
     * own clock. A failure is tried again after `retry_us`. */
    enum elv_err (*start)(void *self, uint32_t node, elv_time_us now, struct elv_node *out);
    /* The node crashed or ended: nothing will touch it again. NULL: nothing to do. */
    void (*gone)(void *self, uint32_t node);
};

/* How long work takes. `units` is what `run` was asked for since the last call. NULL: no time. */
struct elv_sim_device {
    void *self;
    elv_time_us (*cost)(void *self, uint32_t node, const struct elv_compute *work, uint32_t units,
                        struct elv_rng *rng);
};

struct elv_sim_node_cfg {
    struct elv_sim_host host;
    elv_time_us start_us; /* when it starts; ELV_NEVER: by elv_sim_start */
    elv_time_us retry_us; /* after a failed start; 0 means 1 s */
    elv_time_us
        linger_us; /* it goes on so long after an END nobody asked for; ELV_NEVER: for good */
    struct elv_sim_disk *disk; /* borrowed; NULL: it keeps nothing, every STORE goes well */
    struct elv_sim_device device;
    uint32_t slice;    /* units of work per slice, between which other things happen; 0: the
                          whole work at once */
    int32_t drift_ppm; /* its clock runs so much too fast */
    bool odd_clock;    /* its clock starts anywhere, anew with each start */
    /* Clients only. */
    uint32_t server; /* the node it talks to */
    uint32_t number; /* its client number, 1 or more; a copied identity may run twice */
    struct elv_sim_link link;
};

/* RFC 7252, section 4.8, by default (all zero). */
struct elv_sim_repeat {
    elv_time_us first_us;  /* first repeat of a reliable request after 1 to 1.5 times this; 2 s */
    uint32_t max;          /* repeats; then one last wait; 4 */
    elv_time_us memory_us; /* how long a server knows a repeated request; 247 s */
    elv_time_us plain_us;  /* after this a request that is not reliable has no answer; 145 s */
};

/* What a watcher sees after each step, before the actions are carried out. */
struct elv_sim_watch {
    void *self;
    void (*stepped)(void *self, uint32_t node, const struct elv_event *ev,
                    const struct elv_actions *did);
    /* One line of text per event and action; NULL: none are made. */
    void *line_self;
    void (*line)(void *line_self, const char *text);
};

struct elv_sim_piece {
    uint32_t node;
    const struct elv_compute *work;
    enum elv_err err; /* out: what the node's `run` would return at the end */
};

/* Clients' work that nothing interrupts (slice 0) need not be done before it is due. What was
 * started until then is gathered, and done with the first of it that is due; what is cancelled or
 * lost before is never done. It takes as long and ends in the same order as if it were done when it
 * starts. */
struct elv_sim_gather {
    uint32_t kind; /* of COMPUTE; 0: nothing is gathered */
    uint32_t most; /* pieces at once: the one that is due, then in the order of starting; 0: all */
    void *self;
    /* NULL: by the nodes' own `run`, one after the other. */
    void (*work)(void *self, struct elv_sim_piece *pieces, uint32_t n);
};

struct elv_sim_cfg {
    uint64_t seed;
    struct elv_wire_way way; /* for counting bytes on the wire; all zero: elv_wire_usual of a job
                                whose name has three characters */
    struct elv_sim_repeat repeat;
    struct elv_sim_watch watch;
    struct elv_sim_gather gather;
};

struct elv_sim_stats {
    uint64_t events, sent, lost, duplicated, black_holed;
    uint64_t bytes_up, bytes_down; /* bodies put on links */
    struct elv_sim_fates up, down; /* datagrams from and to clients, all headers counted */
    uint64_t wire_up, wire_down;   /* the datagrams around them and of handshakes, IP included */
    uint64_t repeats, recognised;  /* of reliable requests; by a server that knew them */
    uint64_t gathered;             /* times that gathered work was done */
    uint64_t no_answers, links, crashes, starts, failed_starts;
    uint64_t spins;     /* a node's deadline had passed when its TICK returned */
    uint32_t spins_max; /* of one node in a row: one that makes progress needs few */
    uint32_t requests;  /* owed a REPLY now */
    uint32_t requests_peak;
    uint64_t bodies, bodies_peak; /* bytes of bodies in flight or kept for repeats */
};

struct elv_sim;

struct elv_sim *elv_sim_new(const struct elv_sim_cfg *cfg);
void elv_sim_free(struct elv_sim *w); /* nodes, hosts and disks stay the caller's */

/* The world's time, from 0. */
elv_time_us elv_sim_now(const struct elv_sim *w);
struct elv_clock elv_sim_clock(struct elv_sim *w);

/* Return the node's index, from 0 in the order of adding. A server is added before its clients. */
uint32_t elv_sim_add_server(struct elv_sim *w, const struct elv_sim_node_cfg *cfg);
uint32_t elv_sim_add_client(struct elv_sim *w, const struct elv_sim_node_cfg *cfg);

/* When the next thing happens; ELV_NEVER: nothing ever will. */
elv_time_us elv_sim_next(const struct elv_sim *w);
/* Lets it happen. False: nothing ever will, or a node broke the rules. */
bool elv_sim_step(struct elv_sim *w);
/* Until the world's time is `until`. False as above. */
bool elv_sim_run(struct elv_sim *w, elv_time_us until);
/* NULL, or how a node broke the contract of node.h. */
const char *elv_sim_broken(const struct elv_sim *w);

/* Calls `what` at `when`, between two events. */
void elv_sim_at(struct elv_sim *w, elv_time_us when, void (*what)(void *ctx, uint32_t arg),
                void *ctx, uint32_t arg);

/* Kills a node once it has carried out `actions` more actions: in the middle of a step, if that is
 * where they end, and now when it is 0. Starts it again `down_us` later; ELV_NEVER: not by itself.
 * `power`: the machine goes down, not only the process. Nothing happens when it is not running. */
struct elv_sim_crash {
    uint32_t actions;
    elv_time_us down_us;
    bool power;
};
void elv_sim_crash(struct elv_sim *w, uint32_t node, struct elv_sim_crash how);

void elv_sim_start(struct elv_sim *w, uint32_t node); /* does nothing when it runs */
void elv_sim_stop(struct elv_sim *w, uint32_t node);  /* ELV_EV_STOP, as from an operator */
/* Ends all associations of `number` with `server`, for good, and tells the server. */
void elv_sim_revoke(struct elv_sim *w, uint32_t server, uint32_t number);

bool elv_sim_up(const struct elv_sim *w, uint32_t node);
/* True once the node ended by itself since its last start. */
bool elv_sim_ended(const struct elv_sim *w, uint32_t node, uint32_t *exit_code);
uint32_t elv_sim_starts(const struct elv_sim *w, uint32_t node);
struct elv_sim_link *elv_sim_link(struct elv_sim *w, uint32_t client);

/* What the world keeps of a node that does nothing. */
size_t elv_sim_node_bytes(void);

/* Of everything that happened so far: events, actions, crashes, bodies included. */
uint64_t elv_sim_hash(const struct elv_sim *w);
struct elv_sim_stats elv_sim_stats(const struct elv_sim *w);

#endif
