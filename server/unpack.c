/* SPDX-License-Identifier: Apache-2.0 */
#include "server/unpack.h"

#include "common/assert.h"

void elv_unpacked_layout(struct elv_unpacked *p, struct elv_arena *a)
{
    p->record = elv_arena_take_raw(a, ELV_LOG_RECORD_MAX, 1);
    p->inflated = elv_arena_take_raw(a, ELV_CHUNK_PAYLOAD_MAX, 1);
    p->values = elv_arena_take_raw(a, ELV_WINDOW, sizeof *p->values);
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

static enum elv_err inflate(struct elv_unpack *u, struct elv_unpacked *out,
                            struct elv_bytes *payload)
{
    size_t len = 0;
    if (u->squeeze == NULL)
        return ELV_ERR_UNSUPPORTED;
    if (u->squeeze->inflate(u->squeeze->self, out->inflated, ELV_CHUNK_PAYLOAD_MAX,
                            out->chunk.payload, &len) != ELV_OK)
        return ELV_ERR_FORMAT;
    *payload = (struct elv_bytes){out->inflated, len};
    return ELV_OK;
}

enum elv_err elv_unpack_open(struct elv_unpack *u, struct elv_unpacked *out)
{
    const struct elv_chunk *c = &out->chunk;
    const struct elv_codec *codec = elv_codec_by_id(c->codec);
    ELV_ASSERT(codec != NULL); /* checked on arrival */
    struct elv_bytes payload = c->payload;
    if (c->flags & ELV_CHUNK_DEFLATED) {
        const enum elv_err err = inflate(u, out, &payload);
        if (err != ELV_OK)
            return err;
    }
    return elv_decode_begin(&out->decoder, codec, payload, c->count);
}

/* Of the next `n` values. */
static struct elv_view view_of(const struct elv_unpacked *u, enum elv_view_kind kind, uint32_t n)
{
    return (struct elv_view){.kind = kind,
                             .values = u->values,
                             .first = u->chunk.first + (u->chunk.count - u->decoder.left),
                             .n = n,
                             .weight = 1};
}

enum elv_err elv_unpack_decode(struct elv_unpacked *out, uint32_t cap)
{
    ELV_ASSERT(cap >= ELV_DECODE_MIN && cap <= ELV_WINDOW);
    out->view = view_of(out, ELV_VIEW_F32, 0);
    return elv_decode_next(&out->decoder, out->values, cap, &out->view.n);
}

/* All of the payload that is left: what the decoder would read next. */
static enum elv_err view_rest(struct elv_unpacked *out, enum elv_view_kind kind)
{
    struct elv_decoder *d = &out->decoder;
    out->view = view_of(out, kind, d->left);
    out->view.scale = d->scale;
    out->view.values = d->in.at;
    d->left = 0;
    return ELV_OK;
}

enum elv_err elv_unpack_view(struct elv_unpacked *out, uint32_t cap)
{
    if (out->chunk.codec == ELV_CODEC_F32)
        return view_rest(out, ELV_VIEW_F32);
    if (out->chunk.codec == ELV_CODEC_Q8)
        return view_rest(out, ELV_VIEW_Q8);
    return elv_unpack_decode(out, cap);
}
