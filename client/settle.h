/* SPDX-License-Identifier: Apache-2.0 */
/* client/settle.h - after the decision: the vector that was sent becomes the residual.
 *
 * What the server got of it is found by making the chunks again and decoding them: encoders are
 * pure functions, and deflating changes no value. Two passes at most, cut into slices. */
#ifndef ELV_CLIENT_SETTLE_H
#define ELV_CLIENT_SETTLE_H

#include "delta.h"
#include "residual.h"

#ifdef __cplusplus
extern "C" {
#endif

struct elv_settling { /* the fields belong to settle.c */
    struct elv_residual *residual;
    const struct elv_delta *delta;
    uint32_t done; /* coordinates of the current pass */
    uint32_t chunk;
    bool reading; /* of chunk `chunk` the decoder has some */
    struct elv_decoder decoder;
    double left2, vector2; /* squared norms */
    bool scaling;          /* the second pass */
    double factor;
};

/* `residual` is unsettled, and `delta` made its vector; both borrowed, as is the scratch memory of
 * `delta`, until the run is over. */
void elv_settle_begin(struct elv_settling *s, struct elv_residual *residual,
                      const struct elv_delta *delta);

/* `budget` slices of some thousand coordinates. ELV_ERR_BUSY: there is more. ELV_OK: the vector's
 * memory is free. Any other failure: so it is, but what was left is lost: the residual is zero. */
enum elv_err elv_settle_run(struct elv_settling *s, uint32_t budget);

#ifdef __cplusplus
}
#endif
#endif
