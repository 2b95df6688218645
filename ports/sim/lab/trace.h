/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/trace.h - what devices did in real life, to be replayed.
 *
 * A CSV file, with a byte order mark or without, and the header
 * `client,start,end,compute_ms,up_bytes_s,down_bytes_s`: from `start` to `end` (seconds from the
 * beginning) the device was there, what the world's `per` names took it compute_ms, and its link
 * carried so many bytes per second, 0 for no limit. Lines are in order of client, which count from
 * 1 without gaps, and of start, and do not overlap. */
#ifndef ELV_PORTS_SIM_LAB_TRACE_H
#define ELV_PORTS_SIM_LAB_TRACE_H

#include "common/err.h"
#include "common/node.h"

struct elv_lab_span {
    uint32_t client; /* from 1, without gaps */
    elv_time_us start, end;
    double compute_us;       /* of the unit that the world's `per` names */
    double up_bps, down_bps; /* bytes per second; 0: no limit */
};

struct elv_lab_trace {
    struct elv_lab_span *spans;
    uint32_t n;
    uint32_t n_clients;
    uint32_t *first; /* [n_clients + 1] place of each client's first span; the last is n */
};

/* Parses the whole text. On failure `why` (of 256 bytes) is a sentence and `*line` counts from 1.
 */
enum elv_err elv_lab_trace_parse(struct elv_lab_trace *t, struct elv_bytes text, char *why,
                                 uint32_t *line);
void elv_lab_trace_free(struct elv_lab_trace *t);

#endif
