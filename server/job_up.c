/* SPDX-License-Identifier: Apache-2.0 */
/* The codec of updates: which one, with what number, and what clients keep of what it leaves out.
 *
 * A warm-up of the sparsity: the share of the coordinates that is sent falls exponentially from
 * ELV_CODEC_WARM to the job's, so that the first versions, in which most is learnt, lose little.
 * Source: Lin et al., "Deep Gradient Compression", ICLR 2018, section 3.3. */
#include <math.h>

#include "common/codec.h"
#include "common/exact.h"
#include "server/job.h"

static bool any_is_biased(const struct elv_job *job)
{
    for (uint32_t i = 0; i < job->n_up; i++)
        if (elv_codec_is_biased(elv_codec_by_id(job->up[i].id), job->up[i].param))
            return true;
    return false;
}

enum elv_feedback elv_job_keeps(const struct elv_job *job)
{
    if (job->feedback == ELV_JOB_FEEDBACK_NONE || !any_is_biased(job))
        return ELV_FEEDBACK_NONE;
    return job->feedback == ELV_JOB_FEEDBACK_F16 ? ELV_FEEDBACK_F16 : ELV_FEEDBACK_F32;
}

/* Falls by the same factor from each version to the next. */
static float warmed(const struct elv_job *job, float widest, float param, uint32_t version)
{
    const bool option = param < 0.0f;
    const float last = option ? -param : param, most = option ? -widest : widest;
    const float progress = (float)version / (float)job->warm_up;
    const float share = most * elv_exp(progress * elv_ln(last / most));
    const float kept = share < last ? last : share > most ? most : share;
    return option ? -kept : kept;
}

struct elv_codec_choice elv_job_up(const struct elv_job *job, uint8_t codec, uint32_t version)
{
    struct elv_codec_choice up = job->up[0];
    for (uint32_t i = 0; i < job->n_up; i++)
        if (job->up[i].id == codec)
            up = job->up[i];
    const float widest = elv_codec_widest(elv_codec_by_id(up.id), up.param);
    if (version < job->warm_up && widest != up.param)
        up.param = warmed(job, widest, up.param, version);
    return up;
}

uint32_t elv_job_chunks_max(const struct elv_job *job, uint8_t codec)
{
    for (uint32_t i = 0; i < job->n_up; i++) {
        if (job->up[i].id != codec)
            continue;
        const struct elv_codec *c = elv_codec_by_id(codec);
        const float param = job->up[i].param;
        const struct elv_codec_arg arg = {.param = job->warm_up > 0 ? elv_codec_widest(c, param)
                                                                    : param};
        return c->chunks_max(job->model.n_shared, &arg);
    }
    return 0;
}
