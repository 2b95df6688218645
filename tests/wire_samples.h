/* SPDX-License-Identifier: Apache-2.0 */
/* tests/wire_samples.h - one of every message and chunk, for golden files, unit and fuzz tests. */
#ifndef ELV_TESTS_WIRE_SAMPLES_H
#define ELV_TESTS_WIRE_SAMPLES_H

#include "common/msg.h"

union wire_msg {
    struct elv_manifest manifest;
    struct elv_join join;
    struct elv_joined joined;
    struct elv_refusal refusal;
    struct elv_ticket ticket;
    struct elv_progress progress;
    struct elv_commit commit;
    struct elv_verdict verdict;
};

struct wire_codec {
    const char *name;
    enum elv_err (*encode)(const union wire_msg *m, uint8_t *out, size_t cap, size_t *len);
    enum elv_err (*decode)(struct elv_bytes in, union wire_msg *m);
};
enum { MANIFEST, JOIN, JOINED, REFUSAL, TICKET, PROGRESS, COMMIT, VERDICT, WIRE_CODECS };
extern const struct wire_codec wire_codecs[WIRE_CODECS];

struct wire_sample {
    const char *file; /* under tests/golden/wire-1/ */
    int codec;        /* into wire_codecs; negative: a chunk */
    void (*fill)(union wire_msg *m);
    void (*fill_chunk)(struct elv_chunk *c, uint8_t payload[ELV_CHUNK_PAYLOAD_MAX]);
};
extern const struct wire_sample wire_samples[];
extern const size_t wire_samples_n;

/* The sample as it travels; `out` holds ELV_MANIFEST_MAX bytes. */
size_t wire_sample_bytes(const struct wire_sample *s, uint8_t *out);

#endif
