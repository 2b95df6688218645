/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/wire.h - what a piece of work puts on the wire, from what its chunks hold.
 *
 * For simulations whose messages are times only. Chunks are taken for full but the last; each is
 * asked for and answered by a datagram, without losses, and so are the ticket and the commit. A
 * poll that brought no work, a handshake and a repeat are not in it: `detail = messages` counts
 * those, too. */
#ifndef ELV_PORTS_SIM_LAB_WIRE_H
#define ELV_PORTS_SIM_LAB_WIRE_H

#include "common/wire_size.h"

struct elv_lab_wire { /* bytes with all headers */
    uint64_t up, down;
};

/* A ticket, and then the model in chunks of `bytes` together. */
struct elv_lab_wire elv_lab_wire_fetch(struct elv_text job, uint64_t bytes);
/* An update in chunks of `bytes` together, and its commit. */
struct elv_lab_wire elv_lab_wire_send(struct elv_text job, uint64_t bytes);

#endif
