/* SPDX-License-Identifier: Apache-2.0 */
/* common/field.h - a message as a table of fields; for common/msg.c only.
 *
 * One table drives encoder, decoder and checks, so the three cannot disagree: a field is on the
 * wire exactly when `has` says so of the rest of the message, and only with values in its range.
 * Fields stand in the order of their keys, at most 32 of them. */
#ifndef ELV_COMMON_FIELD_H
#define ELV_COMMON_FIELD_H

#include <stdbool.h>

#include "cursor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum elv_field_kind {
    ELV_FIELD_UINT,
    ELV_FIELD_BOOL,
    ELV_FIELD_SINGLE,
    ELV_FIELD_DOUBLE,
    ELV_FIELD_BYTES, /* as many as the member has */
    ELV_FIELD_TEXT,  /* printable ASCII */
    ELV_FIELD_NAME,  /* see elv_name_ok */
    ELV_FIELD_SPECIAL,
};

struct elv_field_special { /* values that are arrays, or strings of varying length */
    void (*write)(struct elv_wr *w, const void *value, const void *message);
    void (*read)(struct elv_rd *r, void *value, void *message);
    bool (*sound)(const void *value, const void *message);
};

struct elv_field {
    uint8_t key;
    uint8_t kind;
    uint16_t at;       /* offset in the struct */
    uint16_t size;     /* of the member */
    uint32_t min, max; /* UINT of up to 32 bits: the value; TEXT and NAME: the length */
    bool (*has)(const void *message); /* NULL: always */
    const struct elv_field_special *special;
};

struct elv_layout {
    const struct elv_field *fields;
    size_t n;
    bool (*sound)(const void *message); /* what single fields cannot show; NULL: nothing */
};

/* Which kind of value, in which struct, which member: {key, ELV_FIELD(UINT, elv_join, speed), ...}
 */
#define ELV_FIELD(kind_, type, member)                                                             \
    .kind = ELV_FIELD_##kind_, .at = offsetof(struct type, member),                                \
    .size = sizeof(((struct type *)0)->member)

/* `*len`: what would have sufficed, also on ELV_ERR_SPACE. ELV_ERR_RANGE: the decoder would refuse
 * it. */
enum elv_err elv_field_encode(const struct elv_layout *l, const void *message, uint8_t *out,
                              size_t cap, size_t *len);

/* `message` comes as zeros and is worthless on failure. ELV_ERR_SPACE: longer than `len_max`. */
enum elv_err elv_field_decode(const struct elv_layout *l, struct elv_bytes in, size_t len_max,
                              void *message);

/* For special values. */
uint32_t elv_field_rd_u32(struct elv_rd *r, uint32_t min, uint32_t max);
float elv_field_rd_f32(struct elv_rd *r);
void elv_field_rd_array(struct elv_rd *r, uint32_t n); /* an array of exactly `n` */

#ifdef __cplusplus
}
#endif
#endif
