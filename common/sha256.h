/* SPDX-License-Identifier: Apache-2.0 */
/* common/sha256.h - SHA-256 for digests that detect accidents and mix-ups.
 *
 * Streaming: init, any number of updates, final. No secrets pass through here; keys and sessions
 * belong to the crypto port. Source: FIPS 180-4. */
#ifndef ELV_COMMON_SHA256_H
#define ELV_COMMON_SHA256_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_SHA256_LEN 32u

struct elv_sha256 { /* the fields belong to sha256.c; copy it to fork a digest */
    uint32_t state[8];
    uint64_t len; /* bytes taken so far */
    uint8_t block[64];
};

void elv_sha256_init(struct elv_sha256 *h);
void elv_sha256_update(struct elv_sha256 *h, const void *data, size_t len); /* NULL when len is 0 */
void elv_sha256_final(struct elv_sha256 *h, uint8_t out[ELV_SHA256_LEN]);   /* init before reuse */

/* All three at once. */
void elv_sha256(const void *data, size_t len, uint8_t out[ELV_SHA256_LEN]);

/* `n` floats count as their little-endian bytes, whatever the machine's byte order. */
void elv_sha256_update_f32(struct elv_sha256 *h, const float *v, size_t n);
void elv_sha256_f32(const float *v, size_t n, uint8_t out[ELV_SHA256_LEN]);

#ifdef __cplusplus
}
#endif
#endif
