/* SPDX-License-Identifier: Apache-2.0 */
/* common/cbor.h - the subset of CBOR our messages use, in deterministic encoding only.
 *
 * RFC 8949, section 4.2.1: definite lengths, every integer and length in its shortest form, every
 * float in the shortest of 16, 32 and 64 bits that keeps its value, map keys strictly ascending.
 * Supported: unsigned and negative integers, byte and text strings, arrays, maps, false, true,
 * null and finite floats. All else, and anything encoded in another way, is refused, so a value
 * has one encoding and a round trip gives the same bytes.
 *
 * Readers and writers are the cursors of common/cursor.h, with the same sticky failure: a message
 * codec is a list of calls and one check at the end. No recursion, no heap; a view lives as long as
 * the bytes it was read from.
 *
 * ELV_ERR_SHORT: the input ended early. ELV_ERR_FORMAT: another type, a form that is not the
 * shortest, keys out of order, deeper than ELV_CBOR_DEPTH_MAX. ELV_ERR_RANGE: a float that is not
 * finite, an integer beyond 64 bits with sign. */
#ifndef ELV_COMMON_CBOR_H
#define ELV_COMMON_CBOR_H

#include <stdbool.h>

#include "cursor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_CBOR_DEPTH_MAX 8u /* containers inside each other, in a value that is skipped */

void elv_cbor_wr_uint(struct elv_wr *w, uint64_t v);
void elv_cbor_wr_int(struct elv_wr *w, int64_t v);
void elv_cbor_wr_bool(struct elv_wr *w, bool v);
void elv_cbor_wr_null(struct elv_wr *w);
void elv_cbor_wr_float(struct elv_wr *w, double v); /* asserts that it is finite */
void elv_cbor_wr_bytes(struct elv_wr *w, struct elv_bytes v);
void elv_cbor_wr_text(struct elv_wr *w, struct elv_bytes v); /* the caller's promise: UTF-8 */
void elv_cbor_wr_array(struct elv_wr *w, uint32_t n);        /* `n` values follow */
/* `n` pairs follow, keys ascending: write each with elv_cbor_wr_uint. */
void elv_cbor_wr_map(struct elv_wr *w, uint32_t n);

uint64_t elv_cbor_rd_uint(struct elv_rd *r);
int64_t elv_cbor_rd_int(struct elv_rd *r); /* of either sign */
bool elv_cbor_rd_bool(struct elv_rd *r);
void elv_cbor_rd_null(struct elv_rd *r);
double elv_cbor_rd_float(struct elv_rd *r);
struct elv_bytes elv_cbor_rd_bytes(struct elv_rd *r);
struct elv_bytes elv_cbor_rd_text(struct elv_rd *r); /* well-formed UTF-8 */
/* Never more than the bytes left: a claim cannot make a caller loop for long. */
uint32_t elv_cbor_rd_array(struct elv_rd *r);

/* A map with unsigned keys, read pair by pair:
 *
 *     struct elv_cbor_map map = elv_cbor_rd_map(&r);
 *     uint64_t key;
 *     while (elv_cbor_rd_key(&r, &map, &key)) ... read or skip one value ...
 */
struct elv_cbor_map {
    uint32_t left;
    uint64_t least; /* the smallest key that may come next */
    bool full;      /* the greatest key there is was read */
};
struct elv_cbor_map elv_cbor_rd_map(struct elv_rd *r);
/* False after the last pair and after any failure. */
bool elv_cbor_rd_key(struct elv_rd *r, struct elv_cbor_map *map, uint64_t *key);

/* Passes over one value of any supported type, checked as strictly as if it had been read. Keys in
 * skipped maps are integers or strings. */
void elv_cbor_rd_skip(struct elv_rd *r);

#ifdef __cplusplus
}
#endif
#endif
