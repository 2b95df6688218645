/* SPDX-License-Identifier: Apache-2.0 */
/* tests/transfer_rig.h - one transfer over a bad network between processes, timed.
 *
 * A cell is a server, a relay and a client, each a process of its own, so that none takes another's
 * time, libcoap's process-wide state is nobody's business, and cells that mostly wait can run side
 * by side. The client's process hands its result back. */
#ifndef ELV_TESTS_TRANSFER_RIG_H
#define ELV_TESTS_TRANSFER_RIG_H

#include <sys/types.h>

#include "tests/relay.h"

enum { RIG_PLAYERS_MAX = 2 };

/* What carries the bytes. */
enum rig_method { RIG_BLOCK1, RIG_Q_BLOCK1, RIG_CHUNKS_UP, RIG_CHUNKS_DOWN };

struct rig_cell {
    const char *name;
    enum rig_method method;
    uint32_t bytes; /* of each player's body */
    uint32_t n_players;
    int64_t stagger_us; /* between the starts of two players */
    int64_t limit_us;   /* given up then, counted from the handshake's end */
    int64_t from_us;    /* several players: bytes are compared from here until the end */
    struct elv_sim_way up, down;
};

struct rig_result {
    bool finished;                   /* everything arrived, and was right */
    bool wrong;                      /* something arrived that was not */
    bool missing;                    /* this libcoap has no Q-Block */
    int64_t us;                      /* from the first request to the last answer */
    uint64_t bytes[RIG_PLAYERS_MAX]; /* of the body, of each player; of several, since `from_us` */
    uint64_t sent, repeated;         /* chunks only */
    struct elv_sim_fates up, down;   /* of the relay */
};

/* The byte at place `i` of every body. */
uint8_t rig_byte(uint32_t i);

/* Starts a cell; what it finds comes with rig_wait. */
struct rig_run {
    pid_t pid;
    int pipe;
};
struct rig_run rig_start(const struct rig_cell *cell);
/* False: the cell broke down. */
bool rig_wait(struct rig_run run, struct rig_result *result);

/* The two kinds of server and client; each runs in a process of its own.
 *
 * A server writes its port to `port_pipe`, serves until the process is told to end, and returns the
 * exit code. A client runs against `port` of the relay and fills everything but the relay's. */
int rig_block_serve(const struct rig_cell *cell, int port_pipe);
void rig_block_play(const struct rig_cell *cell, uint16_t port, struct rig_result *result);
int rig_chunks_serve(const struct rig_cell *cell, int port_pipe);
void rig_chunks_play(const struct rig_cell *cell, uint16_t port, struct rig_result *result);

bool rig_ended(void); /* the process was told to end */

#endif
