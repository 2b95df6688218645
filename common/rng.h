/* SPDX-License-Identifier: Apache-2.0 */
/* common/rng.h - random numbers that depend on what they are for, not on when they are drawn.
 *
 * A stream is named by (run seed, client number, round, purpose) and read by position, so two
 * programs, or one program restarted, draw the same numbers in any order of events. The same bits
 * come out on every machine: integers and single IEEE operations only. Never use it for secrets.
 *
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011:
 * Philox4x32 with ten rounds. */
#ifndef ELV_COMMON_RNG_H
#define ELV_COMMON_RNG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a stream is for; it takes part in the key, so a value is never reused for another meaning.
 * At most 255. */
enum elv_rng_purpose {
    ELV_RNG_TEST = 0,
    ELV_RNG_INIT = 1,      /* initial weights; `round` is the layer */
    ELV_RNG_SHUFFLE = 2,   /* batch order of local training */
    ELV_RNG_SELECT = 3,    /* whom a round asks */
    ELV_RNG_PARTITION = 4, /* how an experiment splits a data set */
    ELV_RNG_HOLDOUT = 5,   /* which local examples are kept for evaluation */
    ELV_RNG_CODEC = 6,     /* stochastic rounding, rotations */
    ELV_RNG_JITTER = 7,    /* polling and back-off */
    ELV_RNG_NETWORK = 8,   /* the simulated links */
    ELV_RNG_DEVICE = 9,    /* the simulated devices: speed, dropout, crashes */
    ELV_RNG_NOISE = 10     /* noise that protects nothing, in experiments only */
};

struct elv_rng_key {
    uint64_t seed;   /* of the run */
    uint32_t client; /* client number; 0 where nobody in particular is meant */
    uint32_t round;  /* round, version or assignment */
    enum elv_rng_purpose purpose;
};

struct elv_rng { /* copy it to remember a place; the fields belong to rng.c */
    struct elv_rng_key key;
    uint64_t at;       /* 32-bit words drawn so far */
    uint32_t block[4]; /* words of the block that `at` points into, unless at % 4 == 0 */
};

/* The stream's first word is at position 0. */
struct elv_rng elv_rng_of(struct elv_rng_key key);

/* Continues from word `at`. Positions below 2^58 are distinct; beyond, the stream repeats. */
void elv_rng_seek(struct elv_rng *r, uint64_t at);

uint32_t elv_rng_u32(struct elv_rng *r);
/* The next `n` words, as so many calls give them but faster. */
void elv_rng_words(struct elv_rng *r, uint32_t *out, uint32_t n);
uint64_t elv_rng_u64(struct elv_rng *r);

/* Uniform in [0, n), without bias; n >= 1. Draws one word, rarely more.
 * Source: Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS 2019. */
uint32_t elv_rng_below(struct elv_rng *r, uint32_t n);

/* Uniform in [0, 1): a multiple of 2^-24. Draws one word. */
float elv_rng_unit(struct elv_rng *r);

/* Standard normal, by Marsaglia's polar method. Draws an even number of words, 2.5 on average. */
float elv_rng_normal(struct elv_rng *r);

/* Shuffles `at[0..n)` in place (Fisher-Yates): every order equally likely. */
void elv_rng_shuffle(struct elv_rng *r, uint32_t *at, uint32_t n);

/* The bare bijection, for known-answer tests and for drawing block i of a stream directly. */
void elv_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

#ifdef __cplusplus
}
#endif
#endif
