/* SPDX-License-Identifier: Apache-2.0 */
/* server/model_file.h - a version as a safetensors file, and a file as the model to start from. */
#ifndef ELV_SERVER_MODEL_FILE_H
#define ELV_SERVER_MODEL_FILE_H

#include "job.h"

#define ELV_MODEL_HEAD_CAP 16384u

/* Everything before the values: job, run, version and shape are its metadata, the shared
 * coordinates its tensors. `out` has room for ELV_MODEL_HEAD_CAP; returns the length. */
size_t elv_model_file_head(const struct elv_job *job, const uint8_t run[ELV_RUN_ID_LEN],
                           uint32_t version, uint8_t *out);

/* A whole file: head, then `w` f32 [n_shared] as little-endian bytes. `out` has room for
 * ELV_MODEL_HEAD_CAP and 4 bytes per coordinate; returns the length. */
size_t elv_model_file_write(const struct elv_job *job, const uint8_t run[ELV_RUN_ID_LEN],
                            uint32_t version, const float *w, uint8_t *out);

/* The shared coordinates of a whole file into `w` [n_shared]; `flat` [n_params] is scratch memory.
 * ELV_ERR_MISMATCH: of another model; ELV_ERR_SHORT: cut off or too long; ELV_ERR_RANGE: a value is
 * not finite; ELV_ERR_FORMAT: no such file. */
enum elv_err elv_model_file_read(const struct elv_model *model, struct elv_bytes file, float *flat,
                                 float *w);

#endif
