/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/outcome.h - what one run came to: summary.json and the line `run ...`.
 *
 * Both are promises: keys are only ever added, at the end. summary.json has a key a line:
 *
 *     program, kind       "elver-sim 0.1.0", "run"
 *     configuration       SHA-256 of everything that decides the run; a finished run is known by it
 *     label, seed
 *     partition           SHA-256 of who has which example; null: no data set
 *     has_target, reached, reached_at    virtual seconds
 *     ended, version, rounds, abandoned
 *     events, started, used, late, discarded, dropped, interrupted, lapsed
 *                         pieces of work: late is what was delivered in vain, interrupted what was
 *                         called off; both are late in rounds.csv
 *     bytes_up, bytes_down
 *     waiting, working, waiting_share, updates_per_s
 *     fairness            Jain's index of updates used per client
 *     loss, accuracy, best_accuracy
 *     staleness           mean over the updates used
 *     worst_overrun       of a round past its deadline
 *     model, history      SHA-256 of the last version; hash of everything that happened
 *     rounds_bytes, events_bytes, participation_bytes    of the files beside it; 0: there is none.
 *                         A run whose files are of another size is not taken for finished
 *     staleness_counts    of staleness 0, 1, ..., 30, and more
 *     end                 why it ended: rounds (all were made), target, horizon, idle (nothing
 *                         could happen any more) or stuck (no version in a day and a thousand
 *                         deadlines, and nothing else was sure to end it)
 *     wire_up, wire_down  datagrams, IP, UDP, DTLS and CoAP included, as in rounds_csv.h; bytes_up
 *                         and bytes_down are chunks only */
#ifndef ELV_PORTS_SIM_LAB_OUTCOME_H
#define ELV_PORTS_SIM_LAB_OUTCOME_H

#include "common/sha256.h"
#include "common/text.h"
#include "ports/sim/lab/plan.h"
#include "ports/sim/lab/record.h"

#define ELV_LAB_OUTCOME_MAX 4096u /* bytes of a summary.json */

/* Why a run ended. */
enum elv_lab_end {
    ELV_LAB_END_ROUNDS, /* as many versions as it was to make */
    ELV_LAB_END_TARGET,
    ELV_LAB_END_HORIZON,
    ELV_LAB_END_IDLE, /* nothing could ever happen any more */
    ELV_LAB_END_STUCK /* for so long no version came that none is expected */
};
const char *elv_lab_end_name(enum elv_lab_end end);

struct elv_lab_outcome {
    char label[ELV_LAB_LABEL_MAX];
    uint64_t seed;
    uint8_t configuration[ELV_SHA256_LEN], partition[ELV_SHA256_LEN];
    bool has_target;
    struct elv_lab_summary summary;
    enum elv_lab_end end;
    uint64_t rounds_bytes, events_bytes, participation_bytes; /* of its files; 0: there is none */
};

double elv_lab_waiting_share(const struct elv_lab_outcome *o); /* NAN: neither worked nor waited */
double elv_lab_updates_per_s(const struct elv_lab_outcome *o); /* used; NAN: no time passed */
/* When the target was reached; without a target when it ended; NAN: it was missed. */
double elv_lab_time_s(const struct elv_lab_outcome *o);

void elv_lab_outcome_json(struct elv_line *out, const struct elv_lab_outcome *o);
/* As elv_lab_outcome_json writes it. False: it is none, or of another version. The label is not
 * read. */
bool elv_lab_outcome_read(struct elv_text json, struct elv_lab_outcome *o);

/* "run label=dbw seed=1 reached=1 time=12.5 rounds=60 accuracy=0.8512 loss=0.4375 waiting=0.1200
 * updates_per_s=8.3 bytes_up=123456 bytes_down=123456 used=500 late=3 discarded=0 dropped=0
 * abandoned=0 staleness=0.0000 ended=12.5 interrupted=2 model=... end=target wire_up=123456
 * wire_down=123456": `rounds` are versions made, as elver-server counts them, `reached` is -
 * without a target, figures that are not known are nan. */
void elv_lab_outcome_line(struct elv_line *out, const struct elv_lab_outcome *o);

#endif
