/* SPDX-License-Identifier: Apache-2.0 */
/* common/select_top.h - the k coordinates of largest magnitude, exactly.
 *
 * Without their sign bit, finite floats are in the order of their bits, so the k-th largest is
 * found digit by digit: a histogram of the highest eight bits of all, then one of the next eight
 * among those that share the digits found, and so on. Four passes, no memory but the histogram.
 * Where several are equal to the k-th, the first ones are taken. Zeros never are: when there are
 * less than k others, it is those.
 *
 * Source: Knuth, "The Art of Computer Programming", volume 3, section 5.2.5 (radix sorting, most
 * significant digit first). */
#ifndef ELV_COMMON_SELECT_TOP_H
#define ELV_COMMON_SELECT_TOP_H

#include "codec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ceil(fraction * n), between 1 and n; fraction and n above 0. The product is rounded to binary64
 * first. */
uint32_t elv_select_count(float fraction, uint32_t n);

/* Looks through `v` f32 [n], finite, about `budget` thousand values further; `p` is all zero at
 * first. ELV_ERR_BUSY: call again with the same arguments. `k` is 1 to n. */
enum elv_err elv_select_top(struct elv_codec_plan *p, const float *v, uint32_t n, uint32_t k,
                            uint32_t budget);

/* Walks along the coordinates chosen. */
struct elv_select_scan {
    const struct elv_codec_plan *plan; /* finished */
    const float *v;
    uint32_t n, at; /* looked at before */
    uint32_t base;  /* the block before `at`, and which of it are still to come */
    uint32_t found;
};
struct elv_select_scan elv_select_from(const struct elv_codec_plan *plan, const float *v,
                                       uint32_t n, uint32_t first);
uint32_t elv_select_next(struct elv_select_scan *s); /* n: no more */

#ifdef __cplusplus
}
#endif
#endif
