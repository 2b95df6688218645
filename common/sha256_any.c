/* SPDX-License-Identifier: Apache-2.0 */
/* common/sha256_any.c - machines without instructions for it. */
#include "common/sha256_internal.h"

void elv_sha256_blocks(uint32_t state[8], const uint8_t *p, size_t n)
{
    elv_sha256_blocks_plain(state, p, n);
}
