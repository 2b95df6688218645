/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever lies on a client's disk: what is taken for a head says itself again in the same bytes,
 * and a log's records are found whole or not at all. */
#include <string.h>

#include "client/persist.h"
#include "common/assert.h"
#include "ports/posix/client_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void file_head(struct elv_bytes in)
{
    struct elv_client_state_head h;
    uint8_t out[ELV_CLIENT_STATE_HEAD_LEN];
    if (elv_client_state_head_decode(in, &h) != ELV_OK)
        return;
    elv_client_state_head_encode(&h, out);
    ELV_ASSERT(memcmp(out, in.at, sizeof out) == 0);
}

/* Its owner is who it says, so that what follows is looked at. */
static struct elv_persist_owner owner_of(struct elv_bytes in)
{
    struct elv_persist_owner o = {{0}, {0}};
    if (in.len < ELV_PERSIST_HEAD_LEN)
        return o;
    memcpy(o.run, in.at + 8, sizeof o.run);
    memcpy(o.fingerprint, in.at + 24, sizeof o.fingerprint);
    return o;
}

static void what_is_left(struct elv_bytes in, enum elv_persist_file file)
{
    const struct elv_persist_owner o = owner_of(in);
    uint8_t out[ELV_PERSIST_LEFT_LEN];
    struct elv_persist_left l;
    size_t len;
    if (elv_persist_left_decode(in, &o, file, &l, &len) != ELV_OK)
        return;
    ELV_ASSERT(elv_persist_left_encode(&o, file, &l, out) == len);
    ELV_ASSERT(memcmp(out, in.at, len) == 0);
}

static void heads(struct elv_bytes in)
{
    const struct elv_persist_owner o = owner_of(in);
    struct elv_persist_base b;
    struct elv_persist_work w, w2;
    uint8_t base[ELV_PERSIST_BASE_LEN], work[ELV_PERSIST_WORK_MAX];
    size_t len = 0, len2 = 0;
    if (elv_persist_base_decode(in, &o, &b, &len) == ELV_OK) {
        ELV_ASSERT(elv_persist_base_encode(&o, &b, base) == len);
        ELV_ASSERT(memcmp(base, in.at, len) == 0);
    }
    if (elv_persist_work_decode(in, &o, &w, &len) != ELV_OK)
        return;
    /* The commit may have been said at greater length than we do. */
    len2 = elv_persist_work_encode(&o, &w, work);
    ELV_ASSERT(len2 > 0 && len2 <= len);
    const enum elv_err err = elv_persist_work_decode((struct elv_bytes){work, len2}, &o, &w2, &len);
    ELV_ASSERT(err == ELV_OK && w2.assignment == w.assignment && w2.commit.nonce == w.commit.nonce);
}

static void records(struct elv_bytes in)
{
    uint8_t out[ELV_PERSIST_RECORD_MAX];
    struct elv_bytes chunk;
    while (in.len > 0) {
        size_t len = 1;
        if (elv_persist_record_decode(in, &chunk) == ELV_OK) {
            len = elv_persist_record_encode(chunk, out);
            ELV_ASSERT(len <= in.len && memcmp(out, in.at, len) == 0);
        }
        in.at += len;
        in.len -= len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct elv_bytes in = {data, size};
    file_head(in);
    heads(in);
    what_is_left(in, ELV_PERSIST_RESIDUAL);
    what_is_left(in, ELV_PERSIST_VELOCITY);
    records(in);
    return 0;
}
