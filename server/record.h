/* SPDX-License-Identifier: Apache-2.0 */
/* server/record.h - what the ledger's records are made of. For ledger*.c only.
 *
 * A record may have grown since the schema's first release: what came later lies at its end and is
 * left out where it says nothing, or the record says schema 2, again only where there is something
 * to say. So older records still read, and the same value has one spelling. */
#ifndef ELV_SERVER_RECORD_H
#define ELV_SERVER_RECORD_H

#include <stdbool.h>

#include "../common/cursor.h"

#define ELV_REC_SCHEMA 1u
#define ELV_REC_SCHEMA_2 2u /* of those records that have come to hold more */

struct elv_wr elv_rec_start(uint8_t *out); /* [ELV_REC_MAX] */
struct elv_wr elv_rec_start_as(uint8_t *out, uint8_t schema);
size_t elv_rec_end(const struct elv_wr *w);
struct elv_rd elv_rec_open(struct elv_bytes in);
/* `*schema` is 1 or 2. */
struct elv_rd elv_rec_open_any(struct elv_bytes in, uint8_t *schema);
/* Is there a later addition? */
bool elv_rec_more(const struct elv_rd *r);
enum elv_err elv_rec_close(const struct elv_rd *r);

void elv_rec_wr_f64(struct elv_wr *w, double v);
double elv_rec_rd_f64(struct elv_rd *r);
bool elv_rec_rd_bool(struct elv_rd *r);
void elv_rec_wr_raw(struct elv_wr *w, const uint8_t *at, size_t len);
void elv_rec_rd_raw(struct elv_rd *r, uint8_t *out, size_t len);

#endif
