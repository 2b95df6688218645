/* SPDX-License-Identifier: Apache-2.0 */
#include "server/model_file.h"

#include <math.h>

#include "common/assert.h"
#include "common/safetensors.h"
#include "common/text.h"

size_t elv_model_file_head(const struct elv_job *job, const uint8_t run[ELV_RUN_ID_LEN],
                           uint32_t version, uint8_t *out)
{
    char run_text[2 * ELV_RUN_ID_LEN + 1], number[11], shape[ELV_MODEL_TEXT_MAX];
    size_t len = 0;
    struct elv_line line = elv_line_of(run_text, sizeof run_text);
    elv_line_hex(&line, run, ELV_RUN_ID_LEN);
    line = elv_line_of(number, sizeof number);
    elv_line_uint(&line, version);
    enum elv_err err = elv_model_print(&job->model, shape, sizeof shape, &len);
    ELV_ASSERT(err == ELV_OK);
    const struct elv_safetensors_meta meta[] = {
        {"job", job->name}, {"run", run_text}, {"version", number}, {"shape", shape}};
    err = elv_safetensors_write(&job->model, true, meta, sizeof meta / sizeof meta[0], out,
                                ELV_MODEL_HEAD_CAP, &len);
    ELV_ASSERT(err == ELV_OK); /* 32 layers and these four always fit */
    return len;
}

size_t elv_model_file_write(const struct elv_job *job, const uint8_t run[ELV_RUN_ID_LEN],
                            uint32_t version, const float *w, uint8_t *out)
{
    const size_t head = elv_model_file_head(job, run, version, out);
    const size_t body = (size_t)job->model.n_shared * sizeof *w;
    struct elv_wr values = elv_wr_of(out + head, body);
    for (uint32_t i = 0; i < job->model.n_shared; i++)
        elv_wr_f32(&values, w[i]);
    return head + body;
}

static enum elv_err read_piece(const struct elv_safetensors_piece *piece, struct elv_bytes file,
                               float *flat)
{
    const struct elv_bytes values = {file.at + piece->file_at, (size_t)piece->n * sizeof(float)};
    struct elv_rd r = elv_rd_of(values);
    for (uint32_t i = 0; i < piece->n; i++) {
        flat[piece->flat_at + i] = elv_rd_f32(&r);
        if (!isfinite(flat[piece->flat_at + i]))
            return ELV_ERR_RANGE;
    }
    return ELV_OK;
}

enum elv_err elv_model_file_read(const struct elv_model *model, struct elv_bytes file, float *flat,
                                 float *w)
{
    struct elv_safetensors st;
    enum elv_err err = elv_safetensors_read(model, file, &st);
    if (err == ELV_OK && st.file_len != file.len)
        err = ELV_ERR_SHORT;
    for (uint32_t i = 0; err == ELV_OK && i < st.n_pieces; i++)
        err = read_piece(&st.piece[i], file, flat);
    if (err == ELV_OK)
        elv_model_gather(model, flat, 0, model->n_shared, w);
    return err;
}
