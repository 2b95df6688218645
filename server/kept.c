/* SPDX-License-Identifier: Apache-2.0 */
#include "server/kept.h"

#include <string.h>

#include "common/assert.h"
#include "common/safetensors.h"

struct elv_kept *elv_kept_find(struct elv_kepts *k, uint32_t version)
{
    for (uint32_t i = k->n; i > 0; i--)
        if (k->at[i - 1].version == version)
            return &k->at[i - 1];
    return NULL;
}

struct elv_kept *elv_kept_find_body(struct elv_kepts *k, uint64_t digest)
{
    for (uint32_t i = k->n; i > 0; i--)
        if (elv_digest_key(k->at[i - 1].full.digest) == digest)
            return &k->at[i - 1];
    return NULL;
}

const struct elv_kept *elv_kept_newest(const struct elv_kepts *k)
{
    ELV_ASSERT(k->n > 0);
    return &k->at[k->n - 1];
}

bool elv_kept_is_idle(const struct elv_kepts *k, const struct elv_kept *v)
{
    return v != elv_kept_newest(k) && v->n_offers == 0 && v->n_used == 0;
}

/* Updates stop being used when the version that they are in is there. */
bool elv_kept_has_room(const struct elv_kepts *k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->n; i++)
        n += k->at[i].n_offers > 0;
    return n + 1 < ELV_KEPT_CAP; /* the newest stays whether it is in use or not */
}

static void expire_oldest(struct elv_kepts *k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->n; i++)
        n += k->at[i].n_offers > 0 && !k->at[i].expired;
    for (uint32_t i = 0; i < k->n && n > ELV_KEPT_MAX; i++) {
        n -= k->at[i].n_offers > 0 && !k->at[i].expired;
        k->at[i].expired = true;
    }
}

void elv_kept_add(struct elv_kepts *k, const struct elv_kept *v)
{
    ELV_ASSERT(k->n < ELV_KEPT_CAP);
    ELV_ASSERT(k->n == 0 || elv_kept_newest(k)->version < v->version);
    k->at[k->n++] = *v;
    expire_oldest(k);
}

void elv_kept_remove(struct elv_kepts *k, struct elv_kept *v)
{
    const uint32_t i = (uint32_t)(v - k->at);
    memmove(v, v + 1, (k->n - i - 1) * sizeof *v);
    k->n--;
}

static enum elv_err find_values(struct elv_kept *v, const struct elv_disk *disk)
{
    uint8_t bytes[8];
    size_t got = 0, len = 0;
    enum elv_err err =
        disk->read_file(disk->self, ELV_FILE_MODEL, v->version, 0, bytes, sizeof bytes, &got);
    if (err == ELV_OK)
        err = elv_safetensors_head_len((struct elv_bytes){bytes, got}, &len);
    if (err == ELV_OK)
        v->values_at = len;
    return err;
}

enum elv_err elv_kept_read(struct elv_kept *v, const struct elv_disk *disk, uint32_t first,
                           uint32_t n, uint8_t *out)
{
    enum elv_err err = v->values_at > 0 ? ELV_OK : find_values(v, disk);
    size_t got = 0;
    if (err == ELV_OK)
        err = disk->read_file(disk->self, ELV_FILE_MODEL, v->version,
                              v->values_at + 4 * (uint64_t)first, out, 4 * (size_t)n, &got);
    if (err == ELV_OK && got != 4 * (size_t)n)
        err = ELV_ERR_FORMAT;
    return err;
}
