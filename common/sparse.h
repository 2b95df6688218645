/* SPDX-License-Identifier: Apache-2.0 */
/* common/sparse.h - what the codecs that leave most coordinates out have in common.
 *
 * A payload is a head, then for each coordinate coded its gap, which is the number of coordinates
 * left out before it, and its value as some bits. The chunk's count says where the coordinates end,
 * so those left out at the end cost nothing, however many they are. Gaps are Rice codes with the
 * parameter that suits the chunk, or range coded with a model of their lengths where that is
 * shorter: what is learnt in training lies in clusters, and the model learns how dense they are.
 * See common/WIRE.md.
 *
 * Sources: Lin, Han, Mao, Wang, Dally, "Deep Gradient Compression", ICLR 2018 (arXiv:1712.01887);
 * Sattler, Wiedemann, Mueller, Samek, "Robust and Communication-Efficient Federated Learning from
 * Non-IID Data", IEEE TNNLS 2020 (arXiv:1903.02891), algorithms 2 to 4. */
#ifndef ELV_COMMON_SPARSE_H
#define ELV_COMMON_SPARSE_H

#include "range.h"
#include "rice.h"
#include "select_top.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_SPARSE_HEAD_LEN 4u
#define ELV_SPARSE_FRACTION_MIN 1e-6f
#define ELV_SPARSE_FRACTION_MAX 0.5f

/* The chunks of `n` coordinates of which a fraction is coded, with values of `value_bits`. */
uint32_t elv_sparse_chunks_max(uint32_t n, float fraction, unsigned value_bits);

/* The plan of both: the fraction `arg->param` of the largest magnitudes. */
enum elv_err elv_sparse_plan(struct elv_codec_plan *p, const float *v, uint32_t n,
                             const struct elv_codec_arg *arg, uint32_t budget);

#define ELV_SPARSE_MODELLED 31u   /* in place of a Rice parameter: range coded */
#define ELV_SPARSE_COUNT_BITS 13u /* how many are coded, before the first one then */
#define ELV_SPARSE_MODEL 32u      /* words */
void elv_sparse_model(uint16_t model[ELV_SPARSE_MODEL]); /* as both sides begin with it */

/* Where a chunk starts. */
struct elv_sparse_part {
    const struct elv_codec_plan *plan;
    const float *v; /* f32 [n] */
    uint32_t n, first;
    unsigned value_bits;
};

/* What goes into it. */
struct elv_sparse {
    uint32_t count;   /* coordinates */
    uint32_t n_coded; /* of them */
    unsigned rice;    /* the parameter that takes fewest bits, or ELV_SPARSE_MODELLED */
    double sum;       /* of the magnitudes coded, in order */
    float largest;    /* of them */
};

/* Chooses as many coordinates as `cap` bytes have room for. ELV_ERR_SPACE: none. */
enum elv_err elv_sparse_fill(struct elv_sparse *s, const struct elv_sparse_part *part, size_t cap);

/* A magnitude as the head holds it: cut to 18 bits after the point, and 0 below 2^-100. */
float elv_sparse_magnitude(float magnitude);

/* Writes what `elv_sparse_fill` chose; `of` gives a coordinate's value as bits. Returns the length.
 */
size_t elv_sparse_write(const struct elv_sparse *s, const struct elv_sparse_part *part,
                        float magnitude, uint32_t (*of)(float v, float magnitude), uint8_t *out,
                        size_t cap);

/* The codec's `open` and `next`. `of` turns bits into the value; it must be finite for all bits.
 * The head's magnitude is at most `most`. */
enum elv_err elv_sparse_open(struct elv_decoder *d, unsigned value_bits, float most);
enum elv_err elv_sparse_next(struct elv_decoder *d, unsigned value_bits,
                             float (*of)(uint32_t bits, float magnitude), float *out, uint32_t cap);

#ifdef __cplusplus
}
#endif
#endif
