/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/learn_score.h"

#include <math.h>
#include <stdlib.h>

#include "common/arena.h"

enum elv_err elv_lab_exam_open(struct elv_lab_exam *e, const struct elv_lab_exam_cfg *cfg)
{
    *e = (struct elv_lab_exam){.mem = NULL};
    if (cfg->feed == NULL)
        return ELV_OK;
    const bool reference = cfg->job->arithmetic == ELV_ARITHMETIC_REFERENCE;
    const struct elv_test_set_cfg set = {.model = cfg->model,
                                         .feed = cfg->feed,
                                         .kernels =
                                             reference ? elv_kernels_by_name("ref") : cfg->kernels,
                                         .seed = cfg->seed};
    const size_t len = elv_test_set_mem(&set);
    if (len == 0)
        return ELV_ERR_MEMORY;
    e->mem = aligned_alloc(ELV_ARENA_ALIGN, len + ELV_ARENA_ALIGN - len % ELV_ARENA_ALIGN);
    if (e->mem == NULL)
        return ELV_ERR_MEMORY;
    const enum elv_err err = elv_test_set_init(&e->set, &set, e->mem, len);
    if (err != ELV_OK)
        elv_lab_exam_close(e);
    return err;
}

void elv_lab_exam_close(struct elv_lab_exam *e)
{
    free(e->mem);
    e->mem = NULL;
}

enum elv_err elv_lab_exam_score(struct elv_lab_exam *e, const float *w, struct elv_lab_score *out)
{
    *out = (struct elv_lab_score){.loss = (double)NAN, .accuracy = -1};
    if (e->mem == NULL)
        return ELV_OK;
    const struct elv_scorer s = elv_test_set_scorer(&e->set);
    enum elv_err err = ELV_ERR_BUSY;
    s.begin(s.self, w);
    while (err == ELV_ERR_BUSY)
        err = s.run(s.self, UINT32_MAX);
    if (err != ELV_OK)
        return err;
    struct elv_score score;
    s.sums(s.self, &out->sums);
    elv_score_of(&out->sums, &score);
    out->loss = score.loss;
    out->accuracy = score.accuracy;
    return ELV_OK;
}
