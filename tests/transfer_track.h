/* SPDX-License-Identifier: Apache-2.0 */
/* tests/transfer_track.h - transfers over one modelled link, on virtual time.
 *
 * Each racer moves a body of numbered chunks, up or down, with the client's transfer engine at one
 * end and a receiver's or sender's bitmap at the other; all share the two lanes of a track. What a
 * client does around the engine is done here, too: a new association after a silence, and a commit
 * at the end that says what is missing. The first broken promise is kept as a sentence. */
#ifndef ELV_TESTS_TRANSFER_TRACK_H
#define ELV_TESTS_TRANSFER_TRACK_H

#include "client/link.h"
#include "client/transfer.h"
#include "ports/sim/link.h"
#include "ports/sim/queue.h"

enum {
    TRACK_CHUNKS_MAX = 10500,
    TRACK_RACERS_MAX = 8,
    TRACK_WINDOW_MAX = 256,
    TRACK_BIG = 1090, /* a chunk as a UDP payload: 1024 bytes, CoAP 28, DTLS 38 */
    TRACK_ASK = 66,   /* a request without one */
    TRACK_TELL = 150, /* an answer with a list of what is missing */
    TRACK_IP_UDP = 28,
    TRACK_VALUES = 1000, /* bytes of a chunk that are the model's */
};

struct racer {
    struct elv_transfer t;
    struct elv_flight flights[TRACK_WINDOW_MAX];
    uint64_t words[ELV_BITMAP_WORDS(TRACK_CHUNKS_MAX)];
    struct elv_link link;
    bool upload, started, done;
    uint32_t n, grant, burst, number;
    elv_time_us start_us, done_us;

    /* The other end. */
    uint64_t there[ELV_BITMAP_WORDS(TRACK_CHUNKS_MAX)];
    struct elv_bitmap got; /* upload */

    /* The association: packets of another one are dropped. */
    uint32_t epoch, server_epoch;
    elv_time_us up_us; /* a handshake ends then; 0: it stands */

    elv_time_us commit_us; /* the answer to the commit comes then; 0: none is out */
    uint32_t id, n_sent, n_repeated, n_relinks;
    uint32_t n_vain;       /* requests for chunks that the other end had delivered or got */
    uint32_t n_done_by_us; /* chunks at their goal */
};

struct track {
    struct elv_sim_way up, down;
    struct elv_sim_lane lane_up, lane_down;
    struct elv_sim_fates fates_up, fates_down;
    struct elv_rng net, rng;
    struct elv_sim_queue queue;
    uint32_t header; /* beyond UDP payload, of each datagram on a lane */
    elv_time_us now;
    struct racer *racers[TRACK_RACERS_MAX];
    uint32_t n_racers;
    const char *broken;
};

void track_open(struct track *k, const struct elv_sim_way *up, const struct elv_sim_way *down,
                uint64_t seed);
void track_close(struct track *k);

/* A transfer of `n` chunks that starts at `at`, with up to `grant` requests in flight. */
void track_enter(struct track *k, struct racer *r, bool upload, uint32_t n, uint32_t grant,
                 elv_time_us at);

/* Goes on until the time `until`, or until all are done. True when all are. */
bool track_run(struct track *k, elv_time_us until);

/* The server has lost the association. */
void track_cut(struct racer *r);
/* The receiver loses those of the latest `n` chunks that chance says. */
void track_forget(struct track *k, struct racer *r, uint32_t n);

/* A round trip without waiting for the line. */
elv_time_us track_trip(const struct track *k);
/* The time that the line takes for so many chunks, repeats included. */
elv_time_us track_ideal(const struct track *k, bool upload, uint32_t n);

#endif
