/* SPDX-License-Identifier: Apache-2.0 */
/* tests/wire_golden.c - writes the golden files of the wire and the seeds of its fuzz targets.
 *
 *     build/tests/wire_golden tests
 *
 * Run by hand when a wire version is born; test_golden then pins what was written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/wire_samples.h"

static void put(const char *root, const char *folder, const char *name, struct elv_bytes head,
                struct elv_bytes data)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", root, folder, name);
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(head.at, 1, head.len, f) != head.len ||
        fwrite(data.at, 1, data.len, f) != data.len || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s TESTS_FOLDER\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < wire_samples_n; i++) {
        const struct wire_sample *s = &wire_samples[i];
        uint8_t out[ELV_MANIFEST_MAX];
        const struct elv_bytes bytes = {out, wire_sample_bytes(s, out)};
        const uint8_t which = (uint8_t)s->codec; /* fuzz_msg picks its decoder by the first byte */
        const struct elv_bytes none = {&which, 0}, first = {&which, 1};
        put(argv[1], "golden/wire-1", s->file, none, bytes);
        if (s->codec < 0) {
            put(argv[1], "corpus/chunk", s->file, none, bytes);
        } else {
            put(argv[1], "corpus/msg", s->file, first, bytes);
            put(argv[1], "corpus/cbor", s->file, none, bytes);
        }
    }
    return 0;
}
