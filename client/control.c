/* SPDX-License-Identifier: Apache-2.0 */
#include "client/control.h"

#include "common/assert.h"

void elv_control_sent(struct elv_control *c, enum elv_op op, uint32_t id, elv_time_us now)
{
    ELV_ASSERT(c->op == ELV_OP_NONE);
    c->op = op;
    c->id = id;
    c->sent_us = now;
}

void elv_control_forget(struct elv_control *c, uint32_t id)
{
    if (id == 0)
        return;
    ELV_ASSERT(c->n_forget < ELV_FORGET_MAX);
    c->forget[c->n_forget++] = id;
}

void elv_control_drop(struct elv_control *c)
{
    if (c->op == ELV_OP_NONE)
        return;
    elv_control_forget(c, c->id);
    c->op = ELV_OP_NONE;
    c->id = 0;
}

void elv_control_succeeded(struct elv_control *c)
{
    c->op = ELV_OP_NONE;
    c->id = 0;
    c->n_failures = 0;
    c->retry_us = 0;
}

void elv_control_moved(struct elv_control *c, elv_time_us now)
{
    c->op = ELV_OP_NONE;
    c->id = 0;
    c->retry_us = now;
}

void elv_control_failed(struct elv_control *c, elv_time_us now, elv_time_us wait,
                        struct elv_rng *rng)
{
    c->op = ELV_OP_NONE;
    c->id = 0;
    c->retry_us =
        now + (wait > 0 ? wait + elv_jitter(rng, wait / 4) : elv_backoff(rng, c->n_failures));
    c->n_failures += c->n_failures < 32;
}
