/* SPDX-License-Identifier: Apache-2.0 */
/* client/persist_form.c - heads and log records as bytes, little-endian.
 *
 *     head      u32 mark, u8 form, u8 which file, u16 its length, 16 bytes run, 32 bytes shape
 *
 *     BASE      u32 version, u32 parameters, 32 bytes digest
 *
 *     WORK      8 bytes manifest, u32 assignment, u32 round, u32 version, u32 shared parameters
 *               u8 codec, f32 its number, u8 flags (1 feeds back, 2 sparse), f64 norm of what was
 *               learnt, u16 length of the commit, the commit as it is sent
 *
 *     RESIDUAL, VELOCITY
 *               u32 assignment, u32 shared parameters, u8 kind, u8 whether held, f64 norm of what
 *               was sent
 *
 *     record    u16 mark, u16 length, u32 check sum, the chunk as it travelled
 *
 * After a head follow the values, f32 or binary16, as the machine has them. */
#include "client/persist.h"

#include <float.h>
#include <string.h>

#include "common/assert.h"

enum { FORM = 1, RECORD_MARK = 0xE1C7 };
#define HEAD_MARK UINT32_C(0x564C4565) /* "eELV" */

static struct elv_bytes view(const void *at, size_t len)
{
    return (struct elv_bytes){.at = at, .len = len};
}

static void put_head(struct elv_wr *w, const struct elv_persist_owner *o,
                     enum elv_persist_file file, size_t len)
{
    elv_wr_u32(w, HEAD_MARK);
    elv_wr_u8(w, FORM);
    elv_wr_u8(w, (uint8_t)file);
    elv_wr_u16(w, (uint16_t)len);
    elv_wr_bytes(w, view(o->run, sizeof o->run));
    elv_wr_bytes(w, view(o->fingerprint, sizeof o->fingerprint));
}

/* `*len` is the whole head's length, which `in` has. */
static enum elv_err take_head(struct elv_rd *r, const struct elv_persist_owner *o,
                              enum elv_persist_file file, size_t *len)
{
    const size_t whole = r->left;
    const uint32_t mark = elv_rd_u32(r);
    const uint8_t form = elv_rd_u8(r), which = elv_rd_u8(r);
    *len = elv_rd_u16(r);
    const struct elv_bytes run = elv_rd_bytes(r, sizeof o->run);
    const struct elv_bytes shape = elv_rd_bytes(r, sizeof o->fingerprint);
    if (r->err != ELV_OK)
        return r->err;
    if (mark != HEAD_MARK || form != FORM || which != file || *len < ELV_PERSIST_HEAD_LEN)
        return ELV_ERR_FORMAT;
    if (*len > whole)
        return ELV_ERR_SHORT;
    if (memcmp(run.at, o->run, run.len) != 0 || memcmp(shape.at, o->fingerprint, shape.len) != 0)
        return ELV_ERR_MISMATCH;
    r->left = *len - ELV_PERSIST_HEAD_LEN;
    return ELV_OK;
}

/* All of the head was read, and nothing is left. */
static enum elv_err ended(const struct elv_rd *r)
{
    return r->err != ELV_OK ? r->err : r->left == 0 ? ELV_OK : ELV_ERR_FORMAT;
}

static void put_f64(struct elv_wr *w, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    elv_wr_u64(w, bits);
}

/* A norm; anything else is an error. */
static double take_norm(struct elv_rd *r)
{
    double v;
    const uint64_t bits = elv_rd_u64(r);
    memcpy(&v, &bits, sizeof v);
    if (!(v >= 0.0 && v <= DBL_MAX))
        elv_rd_fail(r, ELV_ERR_RANGE);
    return v;
}

size_t elv_persist_base_encode(const struct elv_persist_owner *o, const struct elv_persist_base *b,
                               uint8_t out[ELV_PERSIST_BASE_LEN])
{
    struct elv_wr w = elv_wr_of(out, ELV_PERSIST_BASE_LEN);
    put_head(&w, o, ELV_PERSIST_BASE, ELV_PERSIST_BASE_LEN);
    elv_wr_u32(&w, b->version);
    elv_wr_u32(&w, b->n_params);
    elv_wr_bytes(&w, view(b->digest, sizeof b->digest));
    ELV_ASSERT(w.err == ELV_OK && w.left == 0);
    return ELV_PERSIST_BASE_LEN;
}

enum elv_err elv_persist_base_decode(struct elv_bytes in, const struct elv_persist_owner *o,
                                     struct elv_persist_base *b, size_t *len)
{
    struct elv_rd r = elv_rd_of(in);
    enum elv_err err = take_head(&r, o, ELV_PERSIST_BASE, len);
    if (err != ELV_OK)
        return err;
    struct elv_persist_base got = {.version = elv_rd_u32(&r)};
    got.n_params = elv_rd_u32(&r);
    const struct elv_bytes digest = elv_rd_bytes(&r, sizeof got.digest);
    err = ended(&r);
    if (err != ELV_OK)
        return err;
    memcpy(got.digest, digest.at, digest.len);
    *b = got;
    return ELV_OK;
}

size_t elv_persist_work_encode(const struct elv_persist_owner *o, const struct elv_persist_work *k,
                               uint8_t out[ELV_PERSIST_WORK_MAX])
{
    uint8_t *commit = out + (ELV_PERSIST_WORK_MAX - ELV_MSG_MAX);
    size_t commit_len = 0;
    if (elv_commit_encode(&k->commit, commit, ELV_MSG_MAX, &commit_len) != ELV_OK)
        return 0;
    const size_t len = ELV_PERSIST_WORK_MAX - ELV_MSG_MAX + commit_len;
    struct elv_wr w = elv_wr_of(out, ELV_PERSIST_WORK_MAX - ELV_MSG_MAX);
    put_head(&w, o, ELV_PERSIST_WORK, len);
    elv_wr_bytes(&w, view(k->manifest, sizeof k->manifest));
    elv_wr_u32(&w, k->assignment);
    elv_wr_u32(&w, k->round);
    elv_wr_u32(&w, k->version);
    elv_wr_u32(&w, k->n_shared);
    elv_wr_u8(&w, k->up.id);
    elv_wr_f32(&w, k->up.param);
    elv_wr_u8(&w, (uint8_t)(k->feeds_back | k->sparse << 1));
    put_f64(&w, k->learnt);
    elv_wr_u16(&w, (uint16_t)commit_len);
    ELV_ASSERT(w.err == ELV_OK && w.left == 0);
    return len;
}

enum elv_err elv_persist_work_decode(struct elv_bytes in, const struct elv_persist_owner *o,
                                     struct elv_persist_work *k, size_t *len)
{
    struct elv_rd r = elv_rd_of(in);
    enum elv_err err = take_head(&r, o, ELV_PERSIST_WORK, len);
    if (err != ELV_OK)
        return err;
    struct elv_persist_work got;
    memset(&got, 0, sizeof got);
    const struct elv_bytes manifest = elv_rd_bytes(&r, sizeof got.manifest);
    got.assignment = elv_rd_u32(&r);
    got.round = elv_rd_u32(&r);
    got.version = elv_rd_u32(&r);
    got.n_shared = elv_rd_u32(&r);
    got.up.id = elv_rd_u8(&r);
    got.up.param = elv_rd_f32(&r);
    const uint8_t flags = elv_rd_u8(&r);
    got.feeds_back = flags & 1;
    got.sparse = flags >> 1 & 1;
    got.learnt = take_norm(&r);
    const struct elv_bytes commit = elv_rd_bytes(&r, elv_rd_u16(&r));
    err = ended(&r);
    if (err == ELV_OK)
        err = elv_commit_decode(commit, &got.commit);
    if (err == ELV_OK && (got.assignment == 0 || got.commit.status != ELV_STATUS_DONE ||
                          got.commit.n_chunks == 0 || flags > 3 || !(got.up.param == got.up.param)))
        err = ELV_ERR_RANGE;
    if (err != ELV_OK)
        return err;
    memcpy(got.manifest, manifest.at, manifest.len);
    *k = got;
    return ELV_OK;
}

size_t elv_persist_left_encode(const struct elv_persist_owner *o, enum elv_persist_file file,
                               const struct elv_persist_left *l, uint8_t out[ELV_PERSIST_LEFT_LEN])
{
    struct elv_wr w = elv_wr_of(out, ELV_PERSIST_LEFT_LEN);
    put_head(&w, o, file, ELV_PERSIST_LEFT_LEN);
    elv_wr_u32(&w, l->assignment);
    elv_wr_u32(&w, l->n_shared);
    elv_wr_u8(&w, (uint8_t)l->kind);
    elv_wr_u8(&w, l->held);
    put_f64(&w, l->sent);
    ELV_ASSERT(w.err == ELV_OK && w.left == 0);
    return ELV_PERSIST_LEFT_LEN;
}

enum elv_err elv_persist_left_decode(struct elv_bytes in, const struct elv_persist_owner *o,
                                     enum elv_persist_file file, struct elv_persist_left *l,
                                     size_t *len)
{
    struct elv_rd r = elv_rd_of(in);
    enum elv_err err = take_head(&r, o, file, len);
    if (err != ELV_OK)
        return err;
    struct elv_persist_left got = {.assignment = elv_rd_u32(&r)};
    got.n_shared = elv_rd_u32(&r);
    const uint8_t kind = elv_rd_u8(&r), held = elv_rd_u8(&r);
    got.sent = take_norm(&r);
    err = ended(&r);
    if (err == ELV_OK && (kind < ELV_FEEDBACK_F32 || kind > ELV_FEEDBACK_F16 || held > 1))
        err = ELV_ERR_RANGE;
    if (err != ELV_OK)
        return err;
    got.kind = (enum elv_feedback)kind;
    got.held = held;
    *l = got;
    return ELV_OK;
}

/* Only has to notice torn writes and wear: a body's digest covers what its chunks say. In the
 * manner of Fowler, Noll and Vo. */
static uint32_t check_sum(struct elv_bytes chunk)
{
    uint32_t h = UINT32_C(0x811C9DC5) ^ (uint32_t)chunk.len;
    for (size_t i = 0; i < chunk.len; i++)
        h = (h ^ chunk.at[i]) * UINT32_C(0x01000193);
    return h;
}

size_t elv_persist_record_encode(struct elv_bytes chunk, uint8_t out[ELV_PERSIST_RECORD_MAX])
{
    ELV_ASSERT(chunk.len <= ELV_CHUNK_MAX);
    struct elv_wr w = elv_wr_of(out, ELV_PERSIST_RECORD_MAX);
    elv_wr_u16(&w, RECORD_MARK);
    elv_wr_u16(&w, (uint16_t)chunk.len);
    elv_wr_u32(&w, check_sum(chunk));
    elv_wr_bytes(&w, chunk);
    return w.need;
}

enum elv_err elv_persist_record_decode(struct elv_bytes in, struct elv_bytes *chunk)
{
    struct elv_rd r = elv_rd_of(in);
    const uint16_t mark = elv_rd_u16(&r), len = elv_rd_u16(&r);
    const uint32_t sum = elv_rd_u32(&r);
    if (r.err == ELV_OK && (mark != RECORD_MARK || len > ELV_CHUNK_MAX))
        return ELV_ERR_FORMAT;
    const struct elv_bytes got = elv_rd_bytes(&r, len);
    if (r.err != ELV_OK)
        return r.err;
    if (sum != check_sum(got))
        return ELV_ERR_FORMAT;
    *chunk = got;
    return ELV_OK;
}
