/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/state_file.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/cursor.h"

enum { HEAD_LEN = 17, RECORD = 1, LOG, FILES, CAP = 1 << 20 };

static void stop(const char *path)
{
    perror(path);
    exit(1);
}

static void save(FILE *f, const char *path, uint8_t kind, const struct fake_item *item)
{
    uint8_t head[HEAD_LEN];
    struct elv_wr w = elv_wr_of(head, sizeof head);
    elv_wr_u8(&w, kind);
    elv_wr_u32(&w, item->table);
    elv_wr_u64(&w, item->number);
    elv_wr_u32(&w, (uint32_t)item->len);
    if (fwrite(head, 1, sizeof head, f) != sizeof head ||
        fwrite(item->at, 1, item->len, f) != item->len)
        stop(path);
}

void state_file_save(const struct fake_disk *d, const char *path)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL)
        stop(path);
    for (size_t i = 0; i < d->records.n; i++)
        save(f, path, RECORD, &d->records.at[i]);
    for (size_t i = 0; i < d->files.n; i++)
        save(f, path, FILES, &d->files.at[i]);
    for (size_t i = 0; i < d->n_logs; i++) {
        const struct fake_log *log = &d->logs[i];
        save(f, path, LOG,
             &(struct fake_item){.number = log->number, .at = log->at, .len = log->len});
    }
    if (fclose(f) != 0)
        stop(path);
}

static struct elv_store_op op_of(struct elv_rd *r)
{
    static const enum elv_store_kind kinds[] = {
        [RECORD] = ELV_STORE_PUT, [LOG] = ELV_STORE_APPEND, [FILES] = ELV_STORE_FILE};
    struct elv_store_op op = {.kind = kinds[elv_rd_u8(r) % 4]};
    op.table = elv_rd_u32(r);
    op.number = elv_rd_u64(r);
    op.bytes = elv_rd_bytes(r, elv_rd_u32(r));
    return op;
}

void state_file_load(struct fake_disk *d, const char *path)
{
    uint8_t *all = malloc(CAP);
    FILE *f = fopen(path, "rb");
    if (f == NULL || all == NULL)
        stop(path);
    struct elv_rd r = elv_rd_of((struct elv_bytes){all, fread(all, 1, CAP, f)});
    fclose(f);
    while (r.err == ELV_OK && r.left > 0) {
        const struct elv_action a = {.kind = ELV_DO_STORE, .store = op_of(&r)};
        fake_disk_submit(d, &a, 1);
        fake_disk_flush(d);
    }
    if (r.err != ELV_OK)
        stop(path);
    free(all);
}
