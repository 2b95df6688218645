/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are either refused as a record or written back as they were. The first byte of the
 * input chooses the record. */
#include <string.h>

#include "common/assert.h"
#include "server/ledger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROUND_TRIP(type)                                                                           \
    {                                                                                              \
        struct elv_rec_##type r;                                                                   \
        if (elv_rec_##type##_decode(in, &r) == ELV_OK)                                             \
            len = elv_rec_##type##_encode(&r, out);                                                \
        break;                                                                                     \
    }

static size_t decision(struct elv_bytes in, uint8_t out[ELV_REC_MAX])
{
    struct elv_rec_decision r;
    struct elv_sums sums;
    if (elv_rec_decision_decode(in, &r, &sums) != ELV_OK)
        return 0;
    return elv_rec_decision_encode(&r, &sums, out);
}

static size_t counted(struct elv_bytes in, uint8_t out[ELV_REC_MAX])
{
    uint32_t client;
    struct elv_rec_decision r;
    struct elv_sums sums;
    if (elv_rec_counted_decode(in, &client, &r, &sums) != ELV_OK)
        return 0;
    return elv_rec_counted_encode(client, &r, &sums, out);
}

static void assignments(struct elv_bytes in)
{
    uint32_t assignment, n;
    struct elv_rec_assign item;
    if (elv_rec_assign_open(in, &assignment, &n) != ELV_OK)
        return;
    for (uint32_t i = 0; i < n; i++)
        elv_rec_assign_at(in, i, &item);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t out[ELV_REC_MAX];
    size_t len = 0;
    if (size == 0)
        return 0;
    const struct elv_bytes in = {data + 1, size - 1};
    switch (data[0] % 16) {
    case 0:
        ROUND_TRIP(run)
    case 1:
        ROUND_TRIP(head)
    case 2:
        ROUND_TRIP(clock)
    case 3:
        ROUND_TRIP(client)
    case 4:
        ROUND_TRIP(round)
    case 5:
        ROUND_TRIP(version)
    case 6:
        len = decision(in, out);
        break;
    case 8:
        ROUND_TRIP(offer)
    case 9:
        len = counted(in, out);
        break;
    default:
        assignments(in);
    }
    ELV_ASSERT(len == 0 || (len == in.len && memcmp(out, in.at, len) == 0));
    return 0;
}
