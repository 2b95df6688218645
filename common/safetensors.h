/* SPDX-License-Identifier: Apache-2.0 */
/* common/safetensors.h - model files that other tools can read.
 *
 * A file is an 8-byte little-endian header length, that many bytes of JSON, and the values. The
 * tensors of layer i of the model's text, counted from 0 with every layer counting (pooling too),
 * are "i.weight" and "i.bias", F32, in PyTorch's shapes. Written files hold them in flat order, so
 * that the data is the flat vector as it is; files by others may hold them in any order.
 *
 * Source: "Format" in the documentation of safetensors. */
#ifndef ELV_COMMON_SAFETENSORS_H
#define ELV_COMMON_SAFETENSORS_H

#include "cursor.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_SAFETENSORS_HEAD_MAX 65536u /* longest header read, its 8 bytes of length included */

struct elv_safetensors_meta { /* both terminated, printable ASCII */
    const char *key, *value;
};

/* Writes everything before the data: the length and the header, padded so that the data is aligned
 * to 64 bytes. The data is then the flat vector (n_params) or, with `shared_only`, the shared
 * coordinates (n_shared), as little-endian f32. `*len` is set even when `cap` is too small
 * (ELV_ERR_SPACE). ELV_ERR_ARG: a key or value has other than printable ASCII, or a key occurs
 * twice. */
enum elv_err elv_safetensors_write(const struct elv_model *m, bool shared_only,
                                   const struct elv_safetensors_meta *meta, size_t n_meta,
                                   uint8_t *out, size_t cap, size_t *len);

/* Where one tensor's values are: `n` of them from byte `file_at` of the file belong at `flat_at` of
 * the flat vector. */
struct elv_safetensors_piece {
    uint64_t file_at;
    uint32_t flat_at, n;
};

struct elv_safetensors {
    struct elv_safetensors_piece piece[2 * ELV_MODEL_LAYERS_MAX]; /* in flat order */
    uint32_t n_pieces;
    uint64_t file_len;     /* the whole file's */
    bool has_local;        /* false: tensors of local layers are not in the file */
    struct elv_bytes json; /* the header, for `elv_safetensors_find`; views the caller's bytes */
};

/* How many bytes of the file `elv_safetensors_read` must be given, from its first 8. ELV_ERR_RANGE:
 * longer than ELV_SAFETENSORS_HEAD_MAX; ELV_ERR_SHORT: fewer than 8 given. */
enum elv_err elv_safetensors_head_len(struct elv_bytes start, size_t *len);

/* Reads a header strictly. `head` starts the file; bytes after the header are ignored. It must hold
 * the model's tensors and no others, each once, in F32 and the model's shapes, tiling the data;
 * those of local layers all or none. ELV_ERR_SHORT: cut off; ELV_ERR_FORMAT: not such a file;
 * ELV_ERR_MISMATCH: a file of another model; ELV_ERR_RANGE: too long. `*st` is written on success.
 * The caller checks that the file has `file_len` bytes and that values are finite. */
enum elv_err elv_safetensors_read(const struct elv_model *m, struct elv_bytes head,
                                  struct elv_safetensors *st);

/* The metadata value of `key` into `out`, with a closing zero. ELV_ERR_MISSING: there is none;
 * ELV_ERR_SPACE: longer than cap - 1; ELV_ERR_UNSUPPORTED: it has an escape we never write. */
enum elv_err elv_safetensors_find(const struct elv_safetensors *st, const char *key, char *out,
                                  size_t cap);

#ifdef __cplusplus
}
#endif
#endif
