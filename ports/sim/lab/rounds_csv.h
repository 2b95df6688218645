/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/rounds_csv.h - rounds.csv and events.jsonl: what happened, line by line.
 *
 * A column or key is a promise: they are only ever added, at the end. Times are virtual seconds.
 *
 *     round        number of the round, from 1; rounds given up count
 *     version      made by it; when it was given up, started from
 *     abandoned    1: given up at its deadline without the quorum
 *     opened, closed, deadline
 *     wanted       updates the policy waited for; 0: no number in particular
 *     asked        clients given work
 *     used         updates in the version
 *     late         of the others: there and without an answer at its end; a stream's: lapsed
 *     discarded    turned away, by the policy or because they are not sound
 *     dropped      never delivered
 *     bytes_up, bytes_down   of the round's chunks, their heads included
 *     train_loss   mean of what the clients report; empty: nothing is
 *     loss         of the version made; empty: not evaluated
 *     accuracy     likewise
 *     staleness    mean over the updates used
 *     waiting      seconds that clients spent waiting since the round before, all together
 *     working      and downloading, computing or uploading
 *     waiting_share   waiting / (waiting + working); empty: neither
 *     model        SHA-256 of the version made; empty: nothing is learnt
 *     wire_up, wire_down   all datagrams since the round before, IP, UDP, DTLS and CoAP included.
 *                  Where messages are only times ([world] detail) those that the work takes: no
 *                  handshakes, no polls, no repeats
 *
 * Where rounds ask, asked = used + late + discarded + dropped: late is who was still at work when
 * the round closed, dropped who was silent by then, having dropped out, gone away or left. In a
 * stream work does not belong to rounds, and the four tell what happened since the round before;
 * late is then what came after its client had lapsed.
 *
 * events.jsonl has a JSON object a line: rounds with the columns above as keys, and with
 * `--events all` what happened to single clients. */
#ifndef ELV_PORTS_SIM_LAB_ROUNDS_CSV_H
#define ELV_PORTS_SIM_LAB_ROUNDS_CSV_H

#include "common/text.h"
#include "ports/sim/lab/record.h"

#define ELV_LAB_ROW_MAX 1024u /* bytes that a line of either file takes at most */

/* Lines come without their end. */
void elv_lab_csv_head(struct elv_line *out);
void elv_lab_csv_row(struct elv_line *out, const struct elv_lab_round *r);

/* {"at":1.5,"event":"closed","round":3,...}; "abandoned" instead of "closed". */
void elv_lab_round_event(struct elv_line *out, const struct elv_lab_round *r);
/* {"at":1.5,"event":"used","client":3,"round":7,"version":6,"assignment":7,"staleness":0,
 * "weight":10} */
void elv_lab_client_event(struct elv_line *out, const struct elv_lab_event *e);

/* One row as elv_lab_csv_row writes it; false: it is none. What no column has is zero. */
bool elv_lab_csv_read(struct elv_text row, struct elv_lab_round *r);
/* The whole file: false when its head is another. Rows start behind it. */
bool elv_lab_csv_begins(struct elv_text file, struct elv_text *rows);

#endif
