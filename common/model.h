/* SPDX-License-Identifier: Apache-2.0 */
/* common/model.h - the shape of a network: text in, a table of layers out.
 *
 *     input  1x28x28
 *     layers conv 8 5x5 relu, maxpool 2, dense 64 relu, dense 10 local
 *     loss   softmax-cross-entropy
 *
 *     conv OUT HxW [stride S] [pad P | pad same] [relu | none] [local]
 *     maxpool K [stride S]                                     stride K unless given
 *     dense OUT [relu | none] [local]
 *
 * Defaults: stride 1, pad 0, none. Arrays are ordered as in PyTorch: activations channel, row,
 * column; dense weights out x in; convolution weights out x in x height x width. A dense layer
 * reads whatever comes before it as one row. One flat vector holds all parameters: layers in text
 * order, weight then bias.
 *
 * A layer marked `local` stays on its device. The flat vector holds it, the wire does not: *shared
 * coordinates* number the other parameters only, in the same order.
 *
 * A struct elv_model owns no memory and points to none; copy it freely. Nothing here allocates. */
#ifndef ELV_COMMON_MODEL_H
#define ELV_COMMON_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cursor.h"
#include "err.h"
#include "sha256.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_MODEL_LAYERS_MAX 32u
#define ELV_MODEL_TEXT_MAX 2048u  /* no canonical text is longer, its closing zero included */
#define ELV_MODEL_SIDE_MAX 65535u /* of any channel count, height, width, kernel or stride */
#define ELV_MODEL_PARAMS_MAX 0x7FFFFFFFu /* of parameters, and of values in one activation */
#define ELV_MODEL_POOL_MAX 15u           /* a place in a pooling window fits one byte */

enum elv_layer_kind { ELV_LAYER_CONV, ELV_LAYER_MAXPOOL, ELV_LAYER_DENSE };
enum elv_activation { ELV_ACT_NONE, ELV_ACT_RELU };
enum elv_loss { ELV_LOSS_SOFTMAX_XENT = 1 }; /* softmax-cross-entropy; numbers are on the wire */

struct elv_shape { /* channels, height, width; a dense layer's row is {n, 1, 1} */
    uint32_t c, h, w;
};

struct elv_layer {
    enum elv_layer_kind kind;
    enum elv_activation act;
    bool local;
    struct elv_shape in, out;
    uint32_t kernel_h, kernel_w; /* conv and maxpool */
    uint32_t stride;
    uint32_t pad_h, pad_w;        /* zeros on each side; conv only */
    uint32_t weight_at, n_weight; /* place in the flat vector; maxpool: 0 values */
    uint32_t bias_at, n_bias;
    uint32_t shared_at; /* of the weight, in shared coordinates; the bias follows. Not for local */
};

struct elv_model {
    enum elv_loss loss;
    struct elv_shape input;
    uint32_t n_layers;
    uint32_t n_params;  /* length of the flat vector */
    uint32_t n_shared;  /* of these, how many travel; at least 1 */
    uint32_t n_classes; /* values the last layer gives; at least 2 */
    struct elv_layer layers[ELV_MODEL_LAYERS_MAX];
    uint8_t fingerprint[ELV_SHA256_LEN]; /* SHA-256 of the canonical text */
};

/* The parts as a job file has them. `loss` may be empty: softmax-cross-entropy. */
struct elv_model_text {
    struct elv_bytes input, layers, loss;
};

/* Where and why a text was refused. */
struct elv_text_err {
    uint32_t part;    /* which of several texts: the order of struct elv_model_text */
    size_t at;        /* offset in that text of the first byte that does not fit */
    const char *want; /* what would be accepted there, as a phrase; a constant */
};

static inline uint32_t elv_shape_len(struct elv_shape s) { return s.c * s.h * s.w; }

/* ELV_ERR_FORMAT: the text does not follow the grammar. ELV_ERR_RANGE: it does, but a number or a
 * combination is impossible. `why` (may be NULL) is written on failure, `m` on success. */
enum elv_err elv_model_parse(struct elv_model *m, struct elv_model_text text,
                             struct elv_text_err *why);

/* The same from one line, as the manifest and model files carry it:
 * "1x28x28 | conv 8 5x5 relu, maxpool 2, dense 10 | softmax-cross-entropy". `why->part` is 0. */
enum elv_err elv_model_parse_line(struct elv_model *m, struct elv_bytes line,
                                  struct elv_text_err *why);

/* Writes the canonical line and a closing zero; `*len` (without the zero) is set even when `cap` is
 * too small (ELV_ERR_SPACE). Texts that mean the same network print alike, and parsing what was
 * printed gives the same model. */
enum elv_err elv_model_print(const struct elv_model *m, char *out, size_t cap, size_t *len);

/* Initial values into `w` [n_params], the same bytes on every machine: weights uniform in +-b with
 * b = sqrt(6 / in) before a relu (He et al., ICCV 2015) and b = sqrt(6 / (in + out)) elsewhere
 * (Glorot and Bengio, AISTATS 2010), `in` and `out` counting the products into and out of a value;
 * biases zero. */
void elv_model_init_params(const struct elv_model *m, uint64_t seed, float *w);

/* Copies shared coordinates [first, first + n) from or into the flat vector `w` [n_params]. Asserts
 * that the range lies within n_shared. `shared` [n] must not overlap `w`. */
void elv_model_gather(const struct elv_model *m, const float *w, uint32_t first, uint32_t n,
                      float *shared);
void elv_model_scatter(const struct elv_model *m, float *w, uint32_t first, uint32_t n,
                       const float *shared);

/* The first stretch of shared coordinates from `first` that is contiguous in the flat vector too:
 * returns its length (0 at the end) and its place in the flat vector. */
uint32_t elv_model_run(const struct elv_model *m, uint32_t first, uint32_t *flat_at);

#ifdef __cplusplus
}
#endif
#endif
