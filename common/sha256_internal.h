/* SPDX-License-Identifier: Apache-2.0 */
/* common/sha256_internal.h - the function all of SHA-256's time goes into, and who provides it. */
#ifndef ELV_COMMON_SHA256_INTERNAL_H
#define ELV_COMMON_SHA256_INTERNAL_H

#include "sha256.h"

extern const uint32_t elv_sha256_k[64]; /* FIPS 180-4, 4.2.2 */

/* FIPS 180-4, 6.2.2, over `n` blocks of 64 bytes. */
void elv_sha256_blocks_plain(uint32_t state[8], const uint8_t *p, size_t n);

/* The same, in the best way this machine has: sha256_any.c or sha256_x86.c. */
void elv_sha256_blocks(uint32_t state[8], const uint8_t *p, size_t n);

#endif
