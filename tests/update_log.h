/* SPDX-License-Identifier: Apache-2.0 */
/* tests/update_log.h - updates in every codec as a server's upload log holds them, in memory. */
#ifndef ELV_TESTS_UPDATE_LOG_H
#define ELV_TESTS_UPDATE_LOG_H

#include "server/fold.h"
#include "server/verify.h"

enum { UPDATE_LOG_UPDATES = 8 };

struct update_log {
    uint32_t n;     /* coordinates */
    uint8_t *bytes; /* the log */
    size_t len, cap;
    struct elv_uploads uploads;
    struct elv_upload *up[UPDATE_LOG_UPDATES]; /* client i + 1, as after its commit */
    float *decoded[UPDATE_LOG_UPDATES];        /* f32 [n]: what was sent says so */
    uint32_t n_up;
    struct elv_unpack unpack;
    struct elv_disk disk;
    void *slots;
};

/* A number the codec takes: 1 %, or 2 bits. */
float update_log_param(const struct elv_codec *codec);

void update_log_open(struct update_log *l, uint32_t n);
void update_log_close(struct update_log *l);
/* One more, of normal values about `size`, in `codec`. Its weight is 10 + its index. */
void update_log_add(struct update_log *l, const struct elv_codec *codec, float size);
/* Its chunk's bytes, to be damaged; then `update_log_seal` makes the record whole again. */
uint8_t *update_log_chunk(struct update_log *l, uint32_t up, uint32_t index, size_t *len);
void update_log_seal(struct update_log *l, uint32_t up, uint32_t index);

#endif
