/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/learn_score.h - versions scored on a test set, as the server scores them. */
#ifndef ELV_PORTS_SIM_LAB_LEARN_SCORE_H
#define ELV_PORTS_SIM_LAB_LEARN_SCORE_H

#include "ports/sim/lab/learn.h"
#include "server/test_set.h"

struct elv_lab_exam { /* all zero: there is none */
    struct elv_test_set set;
    void *mem;
};

struct elv_lab_exam_cfg {
    const struct elv_model *model; /* borrowed, like the feed; the job is read here only */
    const struct elv_feed *feed;   /* NULL: versions are not scored */
    const struct elv_job *job;     /* its arithmetic */
    const struct elv_kernels *kernels;
    uint64_t seed;
};

/* ELV_ERR_MEMORY; else what elv_test_set_init says. */
enum elv_err elv_lab_exam_open(struct elv_lab_exam *e, const struct elv_lab_exam_cfg *cfg);
void elv_lab_exam_close(struct elv_lab_exam *e);

/* Of the shared coordinates `w`. Without a feed nothing is known afterwards, and that is no error.
 */
enum elv_err elv_lab_exam_score(struct elv_lab_exam *e, const float *w, struct elv_lab_score *out);

#endif
