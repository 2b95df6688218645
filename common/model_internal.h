/* SPDX-License-Identifier: Apache-2.0 */
/* common/model_internal.h - what reading a model's text needs of printing it. */
#ifndef ELV_COMMON_MODEL_INTERNAL_H
#define ELV_COMMON_MODEL_INTERNAL_H

#include "model.h"

/* SHA-256 of the canonical text into the model. */
void elv_model_take_fingerprint(struct elv_model *m);

#endif
