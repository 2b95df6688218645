/* SPDX-License-Identifier: Apache-2.0 */
#include "server/unpack.h"

#include <float.h>

#include "common/assert.h"

void elv_unpacked_layout(struct elv_unpacked *p, struct elv_arena *a, uint32_t coords_max)
{
    p->record = elv_arena_take_raw(a, ELV_LOG_RECORD_MAX, 1);
    p->inflated = elv_arena_take_raw(a, ELV_CHUNK_PAYLOAD_MAX, 1);
    p->values = elv_arena_take_raw(a, coords_max, sizeof *p->values);
}

enum elv_err elv_unpack_read(struct elv_unpack *u, const struct elv_upload *up, uint32_t index,
                             struct elv_unpacked *out)
{
    const struct elv_chunk_ref *ref = &up->refs[index];
    struct elv_log_record r;
    const enum elv_err err =
        elv_log_read(u->disk, u->log, elv_chunk_ref_offset(ref),
                     elv_chunk_ref_len(ref) + ELV_LOG_HEAD_LEN, out->record, &r);
    if (err != ELV_OK)
        return err;
    if (r.client != up->client || r.assignment != up->assignment ||
        elv_chunk_decode(r.chunk, &out->chunk) != ELV_OK || out->chunk.index != index)
        return ELV_ERR_MISMATCH;
    out->bytes = r.chunk;
    return ELV_OK;
}

static enum elv_err inflate(struct elv_unpack *u, struct elv_unpacked *out)
{
    size_t len = 0;
    if (u->squeeze == NULL)
        return ELV_ERR_UNSUPPORTED;
    if (u->squeeze->inflate(u->squeeze->self, out->inflated, ELV_CHUNK_PAYLOAD_MAX,
                            out->chunk.payload, &len) != ELV_OK)
        return ELV_ERR_FORMAT;
    out->payload = (struct elv_bytes){out->inflated, len};
    return ELV_OK;
}

static enum elv_err view_f32(struct elv_unpacked *out)
{
    if (out->payload.len != (size_t)out->chunk.count * 4)
        return ELV_ERR_FORMAT;
    out->view.kind = ELV_VIEW_F32;
    out->view.values = out->payload.at;
    return ELV_OK;
}

static enum elv_err view_q8(struct elv_unpacked *out)
{
    struct elv_rd r = elv_rd_of(out->payload);
    const float scale = elv_rd_f32(&r);
    if (r.err != ELV_OK || r.left != out->chunk.count)
        return ELV_ERR_FORMAT;
    if (!(scale >= 0.0f && scale <= FLT_MAX / 128.0f)) /* as the decoder has it */
        return ELV_ERR_RANGE;
    out->view.kind = ELV_VIEW_Q8;
    out->view.scale = scale;
    out->view.values = r.at;
    return ELV_OK;
}

static enum elv_err view_decoded(struct elv_unpacked *out)
{
    const struct elv_codec *codec = elv_codec_by_id(out->chunk.codec);
    ELV_ASSERT(codec != NULL); /* checked on arrival */
    const enum elv_err err = elv_codec_decode(codec, out->payload, out->chunk.count, out->values);
    out->view.kind = ELV_VIEW_F32;
    out->view.values = out->values;
    return err;
}

enum elv_err elv_unpack_view(struct elv_unpack *u, struct elv_unpacked *out)
{
    const uint8_t codec = out->chunk.codec;
    ELV_ASSERT(out->chunk.count <= u->coords_max);
    out->payload = out->chunk.payload;
    if (out->chunk.flags & ELV_CHUNK_DEFLATED) {
        const enum elv_err err = inflate(u, out);
        if (err != ELV_OK)
            return err;
    }
    out->view = (struct elv_view){.first = out->chunk.first, .n = out->chunk.count, .weight = 1};
    if (codec == ELV_CODEC_F32)
        return view_f32(out);
    return codec == ELV_CODEC_Q8 ? view_q8(out) : view_decoded(out);
}
