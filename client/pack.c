/* SPDX-License-Identifier: Apache-2.0 */
#include "client/pack.h"

#include <string.h>

_Static_assert(ELV_PACK_VALUES * sizeof(float) >= ELV_CHUNK_PAYLOAD_MAX, "payloads are made there");

enum elv_err elv_chunk_expect(struct elv_bytes in, const struct elv_chunk_want *want,
                              struct elv_chunk *c)
{
    struct elv_chunk got;
    const enum elv_err err = elv_chunk_decode(in, &got);
    if (err != ELV_OK)
        return err;
    if (got.kind != want->kind || got.codec != want->codec || got.index != want->index ||
        memcmp(got.tag, want->tag, sizeof got.tag) != 0)
        return ELV_ERR_MISMATCH;
    *c = got;
    return ELV_OK;
}

static enum elv_err inflated(const struct elv_pack *p, const struct elv_chunk *c,
                             struct elv_bytes *out)
{
    *out = c->payload;
    if ((c->flags & ELV_CHUNK_DEFLATED) == 0)
        return ELV_OK;
    if (p->squeeze == NULL)
        return ELV_ERR_UNSUPPORTED;
    size_t len = 0;
    const enum elv_err err =
        p->squeeze->inflate(p->squeeze->self, p->bytes, ELV_CHUNK_PAYLOAD_MAX, c->payload, &len);
    *out = (struct elv_bytes){.at = p->bytes, .len = len};
    return err;
}

enum elv_err elv_unpack_begin(struct elv_unpacking *u, const struct elv_pack *p,
                              const struct elv_chunk *c)
{
    const struct elv_codec *codec = elv_codec_by_id(c->codec);
    if (codec == NULL)
        return ELV_ERR_UNSUPPORTED;
    struct elv_bytes payload;
    const enum elv_err err = inflated(p, c, &payload);
    u->pack = p;
    u->at = c->first;
    return err == ELV_OK ? elv_decode_begin(&u->decoder, codec, payload, c->count) : err;
}

enum elv_err elv_unpack_next(struct elv_unpacking *u, uint32_t *first, uint32_t *n)
{
    const enum elv_err err = elv_decode_next(&u->decoder, u->pack->values, ELV_PACK_VALUES, n);
    if (err != ELV_OK)
        return err;
    *first = u->at;
    u->at += *n;
    return u->decoder.left > 0 ? ELV_ERR_BUSY : ELV_OK;
}

/* Replaces the payload by its deflated form, when that is shorter; known beforehand of tight codecs
 * that it is not. */
static void squeeze(const struct elv_pack *p, struct elv_chunk *c)
{
    if (!p->deflate || p->squeeze == NULL || c->payload.len < 2 || elv_codec_by_id(c->codec)->tight)
        return;
    size_t len;
    if (p->squeeze->deflate(p->squeeze->self, p->bytes, c->payload.len - 1, c->payload, &len) !=
        ELV_OK)
        return;
    c->payload = (struct elv_bytes){.at = p->bytes, .len = len};
    c->flags |= ELV_CHUNK_DEFLATED;
}

enum elv_err elv_pack(const struct elv_pack *p, const float *v, uint32_t n,
                      const struct elv_codec_arg *arg, struct elv_chunk *c,
                      uint8_t out[ELV_CHUNK_MAX], size_t *len)
{
    const struct elv_codec *codec = elv_codec_by_id(c->codec);
    if (codec == NULL)
        return ELV_ERR_UNSUPPORTED;
    size_t payload_len;
    enum elv_err err = codec->encode(v, n, c->first, c->index, arg, (uint8_t *)p->values,
                                     ELV_CHUNK_PAYLOAD_MAX, &payload_len, &c->count);
    if (err != ELV_OK)
        return err;
    c->payload = (struct elv_bytes){.at = (const uint8_t *)p->values, .len = payload_len};
    c->flags = 0;
    squeeze(p, c);
    return elv_chunk_encode(c, out, ELV_CHUNK_MAX, len);
}
