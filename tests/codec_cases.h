/* SPDX-License-Identifier: Apache-2.0 */
/* tests/codec_cases.h - what each codec promises, for the tests that hold for all of them.
 *
 * A new codec gets a row in codec_cases.c, and is then encoded, decoded, cut into windows, cut
 * short and fuzzed like the others. */
#ifndef ELV_TESTS_CODEC_CASES_H
#define ELV_TESTS_CODEC_CASES_H

#include "common/codec.h"

/* One chunk there and back. */
struct codec_trial {
    const struct elv_codec_arg *arg;
    const float *v; /* [n], the whole vector */
    uint32_t n, first, count;
    const float *back; /* [count] */
};

struct codec_case {
    float params[4]; /* some to try, as `arg.param` has them */
    uint32_t n_params;
    /* The payload's length where the count alone decides it; NULL for other codecs. */
    size_t (*len_of)(uint32_t count);
    /* What is left of a payload cut short may be one: of the same values, the last ones zero. */
    bool open_ended;
    /* Whether `back` is as near to the values as the codec promises. */
    bool (*holds)(const struct codec_trial *t);
};

/* NULL when there is no row. */
const struct codec_case *codec_case_of(uint8_t id);

#endif
