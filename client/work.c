/* SPDX-License-Identifier: Apache-2.0 */
#include "client/work.h"

#include "common/assert.h"

void elv_work_begin(struct elv_work *w, uint32_t id, uint32_t kind, elv_time_us now)
{
    ELV_ASSERT(w->id == 0 && id != 0);
    w->id = id;
    w->kind = kind;
    w->cancel = w->cancel_told = false;
    w->since = now;
}

elv_time_us elv_work_end(struct elv_work *w, elv_time_us now)
{
    const elv_time_us took = now - w->since;
    w->id = 0;
    w->rest_until = now + took * (100 - (elv_time_us)w->duty) / (elv_time_us)w->duty;
    return took;
}

static enum elv_err start(const struct elv_client_train *t, uint32_t kind)
{
    const struct elv_trainer *trainer = t->trainer;
    if (kind == ELV_CLIENT_EVALUATE)
        return trainer->evaluate(trainer->self, &t->task, t->weights);
    return t->resumed ? ELV_OK : trainer->begin(trainer->self, &t->task, t->weights);
}

enum elv_err elv_client_train_run(const struct elv_client_train *t, uint32_t kind, uint32_t budget,
                                  bool *begun, uint32_t *left)
{
    if (!*begun) {
        const enum elv_err err = start(t, kind);
        if (err != ELV_OK)
            return err;
        *begun = true;
    }
    const bool limited = kind == ELV_CLIENT_TRAIN && t->steps_max > 0;
    uint32_t steps = budget > 0 ? budget : 1;
    if (limited && steps > *left)
        steps = *left;
    const enum elv_err err = t->trainer->run(t->trainer->self, steps);
    if (err != ELV_OK && err != ELV_ERR_BUSY)
        return err;
    *left -= limited ? steps : 0;
    if (err == ELV_ERR_BUSY && (!limited || *left > 0))
        return ELV_ERR_BUSY;
    t->outcome->finished = err == ELV_OK;
    t->outcome->result = *t->trainer->result(t->trainer->self);
    return ELV_OK;
}
