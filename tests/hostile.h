/* SPDX-License-Identifier: Apache-2.0 */
/* tests/hostile.h - a client that holds a key and means no good: what its parts share.
 *
 * hostile.c acts out what needs no work from the server; hostile_update.c sends updates that no
 * honest client would. */
#ifndef ELV_TESTS_HOSTILE_H
#define ELV_TESTS_HOSTILE_H

#include "tests/hostile_net.h"

struct hostile {
    uint16_t port;
    const char *job, *identity;
    const uint8_t *key;
    size_t key_len;
    uint32_t n_params; /* shared coordinates of the job's model */
    uint64_t nonce;    /* the last one used */
    uint32_t n_bad;    /* answers that were not as they should be */
    uint32_t n_checks;
    struct elv_ticket ticket;
};

/* Counts, and complains, unless the answer has this code and reason. */
void expect(struct hostile *h, const char *what, const struct answer *a, uint8_t code,
            enum elv_reason reason);
void check(struct hostile *h, const char *what, bool ok);

/* "j/JOB" and what follows; a buffer of its own until the next but seven. */
const char *path_of(const struct hostile *h, const char *format, ...);

/* A proper join; `codec` is the only one it can encode. */
bool join_as(struct hostile *h, uint64_t boot, uint8_t codec);
/* An assignment that has not been worked on; false when none comes within some seconds. */
bool take_work(struct hostile *h);
void decline(struct hostile *h); /* gives the round back to the others */
void ask_for(const char *path, uint8_t method, struct elv_bytes body, struct answer *a);

void bad_chunks(struct hostile *h);
void bad_values(struct hostile *h);
void bad_q8(struct hostile *h);
void bad_deflate(struct hostile *h);
void bad_codecs(struct hostile *h);
void bad_commits(struct hostile *h);

#endif
