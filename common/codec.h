/* SPDX-License-Identifier: Apache-2.0 */
/* common/codec.h - how coordinates become a chunk's payload.
 *
 * Encoders are pure functions of (vector, seed, index), so any chunk can be made again, in any
 * order, on any machine, with the same bytes. A codec is a file of its own and a line in codec.c's
 * list. Codec numbers are part of the wire: add, never reuse. */
#ifndef ELV_COMMON_CODEC_H
#define ELV_COMMON_CODEC_H

#include "chunk.h"

#ifdef __cplusplus
extern "C" {
#endif

enum elv_codec_id {
    ELV_CODEC_F32 = 1,     /* little-endian binary32, as it is */
    ELV_CODEC_Q8 = 2,      /* f32 scale, then one int8 per coordinate: value = scale * q */
    ELV_CODEC_F16 = 3,     /* little-endian binary16 */
    ELV_CODEC_Q4 = 4,      /* f32 scale, then two coordinates a byte: value = scale * q */
    ELV_CODEC_SIGN = 5,    /* f32 magnitude, then one bit per coordinate */
    ELV_CODEC_TERNARY = 6, /* the largest, as signs of one magnitude */
    ELV_CODEC_TOPK = 7,    /* the largest, as in q8 */
    ELV_CODEC_ROTATE = 8,  /* 1 to 4 bits per coordinate after a randomised Hadamard transform */
};

/* What a codec has to know of the whole vector before it can encode a part. All zero: nothing was
 * looked at yet. */
struct elv_codec_plan {
    uint32_t pass, at; /* how far it came; the fields belong to select_top.c */
    uint32_t bits;     /* what is known of the least magnitude coded; all of it at the end */
    uint32_t rest;     /* how many that are not larger are wanted */
    uint32_t tie_end;  /* of those equal to it, the ones below this coordinate are coded */
    uint32_t n[256];   /* a histogram */
};

struct elv_codec_arg { /* what the encoder may depend on besides the vector */
    uint64_t seed;     /* per body; only for codecs that round or turn at random */
    float param;       /* the job's number after the codec's name, else 1 when there is an option
                          word, else 0; negative when the option word is there */
    const struct elv_codec_plan *plan; /* finished, of this vector; NULL for codecs without */
};

/* Reads a payload from front to back, a window of values at a time. */
struct elv_decoder {
    const struct elv_codec *codec;
    struct elv_rd in; /* what is left of the payload */
    uint32_t left;    /* values still to come */
    float scale;      /* these are the codec's */
    uint32_t word[8];
    uint16_t model[32];
};
#define ELV_DECODE_MIN 1024u /* values a window holds at least, but for the last */

struct elv_codec {
    uint8_t id;
    const char *name;           /* in job files */
    float param_min, param_max; /* of the number after the name; both 0: there is none */
    const char *option;         /* the word that may follow; NULL: none */
    bool biased; /* without the option it loses something, and the same of the same vector each
                    time: worth a residual */
    bool tight;  /* its payloads are as short as deflate could make them: nobody tries. Measured on
                    updates of a network: 0 % off ternary, topk and rotate, 3 % off q8, 20 % off q4
                    and sign. */

    /* An upper bound on the number of chunks of `n` coordinates; 0 when it passes UINT32_MAX. */
    uint32_t (*chunks_max)(uint32_t n, const struct elv_codec_arg *arg);

    /* Looks through `v` f32 [n], finite, about `budget` thousand values further. ELV_ERR_BUSY: call
     * again. `arg->plan` is not read. NULL: this codec needs no plan. */
    enum elv_err (*plan)(struct elv_codec_plan *p, const float *v, uint32_t n,
                         const struct elv_codec_arg *arg, uint32_t budget);

    /* Encodes v[first..] into at most `cap` bytes, as many coordinates as fit but none past `n`;
     * at least one. `v` f32 [n], finite. `*count` coordinates were taken, `*len` bytes written.
     * ELV_ERR_SPACE: not even one fits. */
    enum elv_err (*encode)(const float *v, uint32_t n, uint32_t first, uint32_t index,
                           const struct elv_codec_arg *arg, uint8_t *out, size_t cap, size_t *len,
                           uint32_t *count);

    /* Where chunk `index` starts, for codecs whose ranges do not depend on the values; NULL for the
     * others, whose chunks are made in order. */
    uint32_t (*first_of)(uint32_t index);

    /* `d` holds the payload and the count. ELV_ERR_FORMAT: they disagree; ELV_ERR_RANGE: a value
     * would not be finite. */
    enum elv_err (*open)(struct elv_decoder *d);
    /* The next values, 1 or more but at most `cap`, which is ELV_DECODE_MIN or all that are left.
     * The values do not depend on how they are cut into windows. ELV_ERR_FORMAT: damaged, or bytes
     * are left after the last value; ELV_ERR_RANGE: one is not finite. */
    enum elv_err (*next)(struct elv_decoder *d, float *out, uint32_t cap, uint32_t *n);
};

/* Whether `param` is one the codec takes, as `arg.param` has it. */
bool elv_codec_takes(const struct elv_codec *codec, float param);

/* Whether what it loses adds up, round after round, unless the sender keeps it (error feedback). */
bool elv_codec_is_biased(const struct elv_codec *codec, float param);
/* Whether its number is the share of coordinates it sends. It may begin a run with a greater one,
 * up to ELV_CODEC_WARM, and whoever makes room for its chunks makes it for that. */
#define ELV_CODEC_WARM 0.25f
bool elv_codec_is_sparse(const struct elv_codec *codec);
/* The number that takes the most room, of those a run with `param` may use. */
float elv_codec_widest(const struct elv_codec *codec, float param);

/* Begins to decode `count` values, 1 or more. The payload is borrowed. Errors: see `open`. */
enum elv_err elv_decode_begin(struct elv_decoder *d, const struct elv_codec *codec,
                              struct elv_bytes payload, uint32_t count);
/* The next `*n` values, `d->left` of which remain. Errors: see `next`. */
enum elv_err elv_decode_next(struct elv_decoder *d, float *out, uint32_t cap, uint32_t *n);
/* All at once: `out` f32 [count]. */
enum elv_err elv_codec_decode(const struct elv_codec *codec, struct elv_bytes payload,
                              uint32_t count, float *out);
/* All at once; `arg->plan` is `p` then, or NULL when the codec needs none. */
void elv_codec_plan(const struct elv_codec *codec, struct elv_codec_plan *p, const float *v,
                    uint32_t n, struct elv_codec_arg *arg);

/* NULL when there is no such codec. */
const struct elv_codec *elv_codec_by_id(uint8_t id);
const struct elv_codec *elv_codec_by_name(const char *name, size_t len);
size_t elv_codec_count(void);
const struct elv_codec *elv_codec_at(size_t i); /* tests walk this list */

#ifdef __cplusplus
}
#endif
#endif
