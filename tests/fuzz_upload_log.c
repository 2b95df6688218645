/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever lies in an upload log, a scan ends, accounts for every byte, and what it finds reads
 * back from its place. */
#include <string.h>

#include "common/assert.h"
#include "server/upload_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum elv_err read_log(void *self, uint64_t number, uint64_t offset, uint8_t *out, size_t len,
                             size_t *got)
{
    const struct elv_bytes *log = self;
    (void)number;
    *got = 0;
    if (offset >= log->len)
        return ELV_OK;
    *got = len < log->len - (size_t)offset ? len : log->len - (size_t)offset;
    memcpy(out, log->at + offset, *got);
    return ELV_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t buf[ELV_LOG_SCAN_BUF];
    struct elv_bytes log = {data, size};
    const struct elv_disk disk = {.self = &log, .read_log = read_log};
    struct elv_log_scan s = elv_log_scan_of(&disk, 1, buf);
    struct elv_log_record r, again;
    uint64_t found = 0;
    enum elv_err err;
    while ((err = elv_log_scan_next(&s, &r)) == ELV_OK) {
        uint8_t out[ELV_LOG_RECORD_MAX];
        const size_t len = r.chunk.len + ELV_LOG_HEAD_LEN;
        err = elv_log_read(&disk, 1, r.at, len, out, &again);
        ELV_ASSERT(err == ELV_OK && again.client == r.client);
        ELV_ASSERT(elv_log_record_encode(&r, out) == len);
        ELV_ASSERT(memcmp(out, data + r.at, len) == 0);
        found += len;
    }
    ELV_ASSERT(err == ELV_ERR_MISSING);
    ELV_ASSERT(found + s.skipped == size && s.base + s.at == size);
    return 0;
}
