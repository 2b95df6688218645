/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is refused with a sentence and a line that is in it, or gives spans that keep what the
 * header promises. */
#include <string.h>

#include "common/assert.h"
#include "ports/sim/lab/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_client(const struct elv_lab_trace *t, uint32_t client)
{
    const uint32_t from = t->first[client - 1], to = t->first[client];
    ELV_ASSERT(from < to && to <= t->n);
    for (uint32_t i = from; i < to; i++) {
        const struct elv_lab_span *s = &t->spans[i];
        ELV_ASSERT(s->client == client && 0 <= s->start && s->start < s->end);
        ELV_ASSERT(i == from || s[-1].end <= s->start);
        ELV_ASSERT(s->compute_us > 0.0 && s->up_bps >= 0.0 && s->down_bps >= 0.0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elv_lab_trace t;
    char why[256] = "";
    uint32_t line = 0;
    const enum elv_err err =
        elv_lab_trace_parse(&t, (struct elv_bytes){.at = data, .len = size}, why, &line);
    ELV_ASSERT(line >= 1 && line <= size + 1);
    if (err != ELV_OK) {
        ELV_ASSERT(t.spans == NULL && why[0] != '\0' && memchr(why, 0, sizeof why) != NULL);
        return 0;
    }
    ELV_ASSERT(t.n_clients >= 1 && t.first[0] == 0 && t.first[t.n_clients] == t.n);
    for (uint32_t c = 1; c <= t.n_clients; c++)
        check_client(&t, c);
    elv_lab_trace_free(&t);
    return 0;
}
