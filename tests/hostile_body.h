/* SPDX-License-Identifier: Apache-2.0 */
/* tests/hostile_body.h - updates as a hostile client sends them: made properly, then spoilt. */
#ifndef ELV_TESTS_HOSTILE_BODY_H
#define ELV_TESTS_HOSTILE_BODY_H

#include "tests/hostile.h"

#define HOSTILE_CHUNKS_MAX 16

/* An update as it goes out; a group starts from a proper one and spoils it. */
struct body {
    uint8_t bytes[HOSTILE_CHUNKS_MAX][HOSTILE_BODY_MAX];
    size_t len[HOSTILE_CHUNKS_MAX];
    uint32_t n;
    uint64_t nonce;
};

void put_tag(uint8_t *chunk, uint64_t nonce);
void put_u32(uint8_t *at, uint32_t v);
void put_f32(uint8_t *at, float v);
void put_chunk(struct hostile *h, struct elv_bytes chunk, uint32_t index, struct answer *a);

/* Sends the body, commits it, and returns the verdict; without one its decision is 0. */
struct elv_verdict try_body(struct hostile *h, const struct body *b);
/* The same, and wants that verdict. */
void commit_body(struct hostile *h, const char *what, const struct body *b,
                 enum elv_decision decision, enum elv_reason reason);

#endif
