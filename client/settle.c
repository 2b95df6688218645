/* SPDX-License-Identifier: Apache-2.0 */
#include "client/settle.h"

#include <math.h>

#include "common/assert.h"

enum { SLICE = 4096, WINDOWS_PER_SLICE = 4 };

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

void elv_settle_begin(struct elv_settling *s, struct elv_residual *residual,
                      const struct elv_delta *delta)
{
    ELV_ASSERT(elv_residual_unsettled(residual));
    *s = (struct elv_settling){.residual = residual, .delta = delta};
}

/* Nothing of the vector arrived, or the codec of another build is missing. */
static enum elv_err keep_some(struct elv_settling *s)
{
    const uint32_t n = smaller(s->residual->cfg.n - s->done, SLICE);
    elv_residual_move(s->residual, s->done, s->delta->cfg.trained + s->done, s->delta->whole, NULL,
                      n, &s->left2);
    s->done += n;
    return ELV_ERR_BUSY;
}

static enum elv_err open_chunk(struct elv_settling *s)
{
    const struct elv_delta *d = s->delta;
    size_t len;
    ELV_ASSERT(s->chunk < d->n_chunks);
    elv_delta_payload(d, s->chunk, d->cfg.pack->bytes, &len);
    const uint32_t count = d->cfg.first[s->chunk + 1] - d->cfg.first[s->chunk];
    s->reading = true;
    return elv_decode_begin(&s->decoder, elv_codec_by_id(d->cfg.codec),
                            (struct elv_bytes){d->cfg.pack->bytes, len}, count);
}

static double squares(const float *v, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)v[i] * (double)v[i];
    return sum;
}

static enum elv_err take_window(struct elv_settling *s)
{
    float *sent = s->delta->cfg.pack->values;
    uint32_t n;
    enum elv_err err = s->reading ? ELV_OK : open_chunk(s);
    if (err == ELV_OK)
        err = elv_decode_next(&s->decoder, sent, ELV_PACK_VALUES, &n);
    if (err != ELV_OK)
        return err;
    const float *vector = s->delta->cfg.trained + s->done;
    elv_residual_move(s->residual, s->done, vector, s->delta->whole, sent, n, &s->left2);
    s->vector2 += squares(vector, n) * s->delta->whole * s->delta->whole;
    s->done += n;
    if (s->decoder.left == 0) {
        s->reading = false;
        s->chunk++;
    }
    return ELV_ERR_BUSY;
}

static enum elv_err take_some(struct elv_settling *s)
{
    enum elv_err err = ELV_ERR_BUSY;
    for (uint32_t i = 0;
         i < WINDOWS_PER_SLICE && err == ELV_ERR_BUSY && s->done < s->residual->cfg.n; i++)
        err = take_window(s);
    return err;
}

static enum elv_err finish(struct elv_settling *s)
{
    s->residual->saved.vector = ELV_VECTOR_NONE;
    return ELV_OK;
}

/* How long may it be? Too long: once more over all of it. */
static enum elv_err cap(struct elv_settling *s)
{
    struct elv_residual_saved *r = &s->residual->saved;
    if (r->vector == ELV_VECTOR_ACCEPTED)
        r->sent = sqrt(s->vector2);
    r->held = true;
    const double norm = sqrt(s->left2);
    const double most = ELV_RESIDUAL_CAP * (r->sent > 0 ? r->sent : r->learnt);
    if (norm <= most)
        return finish(s);
    s->factor = most / norm;
    s->scaling = true;
    s->done = 0;
    return ELV_ERR_BUSY;
}

static enum elv_err scale_some(struct elv_settling *s)
{
    const uint32_t n = smaller(s->residual->cfg.n - s->done, SLICE);
    elv_residual_scale(s->residual, s->done, n, s->factor);
    s->done += n;
    return s->done < s->residual->cfg.n ? ELV_ERR_BUSY : finish(s);
}

static enum elv_err slice(struct elv_settling *s)
{
    if (s->scaling)
        return scale_some(s);
    const bool accepted = s->residual->saved.vector == ELV_VECTOR_ACCEPTED;
    const enum elv_err err = accepted ? take_some(s) : keep_some(s);
    return err == ELV_ERR_BUSY && s->done == s->residual->cfg.n ? cap(s) : err;
}

enum elv_err elv_settle_run(struct elv_settling *s, uint32_t budget)
{
    enum elv_err err = ELV_ERR_BUSY;
    for (uint32_t i = 0; i == 0 || (i < budget && err == ELV_ERR_BUSY); i++)
        err = slice(s);
    if (err == ELV_OK || err == ELV_ERR_BUSY)
        return err;
    s->residual->saved.held = false;
    s->residual->saved.vector = ELV_VECTOR_NONE;
    return err;
}
