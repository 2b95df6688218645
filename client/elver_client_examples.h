/* SPDX-License-Identifier: Apache-2.0 */
/* client/elver_client_examples.h - part of the program elver-client: the device's examples.
 *
 * Loaded once; which of them are ours, and which are kept for evaluation, is chosen when the
 * manifest is known. */
#ifndef ELV_CLIENT_ELVER_CLIENT_EXAMPLES_H
#define ELV_CLIENT_ELVER_CLIENT_EXAMPLES_H

#include "client/trainer.h"
#include "common/feed.h"
#include "ports/posix/dataset.h"
#include "ports/posix/log.h"

struct elv_client_examples {
    struct elv_dataset data;
    uint32_t index, of; /* of 0: all examples are ours */
    uint32_t *mine;     /* [data.n] ours, those kept for evaluation last */
    uint32_t n_train, n_test;
    struct elv_dataset_feed train_feed, test_feed;
    struct elv_feed train, test; /* for the trainer */
    const struct elv_log *log;
};

/* Loads what `spec` names, as --data has it; `index`, `of` and `log` (borrowed) are set. Returns 0
 * or the exit code, having told why. Free it in any case. */
int elv_client_examples_load(struct elv_client_examples *e, const char *spec);
void elv_client_examples_free(struct elv_client_examples *e);

#endif
