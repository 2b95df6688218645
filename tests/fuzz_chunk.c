/* SPDX-License-Identifier: Apache-2.0 */
/* A chunk is refused or survives a round trip byte for byte; its hash does not look at its tag. */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elv_chunk c;
    if (elv_chunk_decode((struct elv_bytes){data, size}, &c) != ELV_OK)
        return 0;
    uint8_t *out = malloc(size), a[ELV_CHUNK_HASH_LEN], b[ELV_CHUNK_HASH_LEN];
    size_t len;
    ELV_ASSERT(out != NULL);
    ELV_ASSERT(elv_chunk_encode(&c, out, size, &len) == ELV_OK);
    ELV_ASSERT(len == size && memcmp(out, data, size) == 0);

    elv_chunk_hash((struct elv_bytes){out, len}, a);
    memset(c.tag, 0x5A, sizeof c.tag);
    ELV_ASSERT(elv_chunk_encode(&c, out, size, &len) == ELV_OK);
    elv_chunk_hash((struct elv_bytes){out, len}, b);
    ELV_ASSERT(memcmp(a, b, sizeof a) == 0);
    free(out);
    return 0;
}
