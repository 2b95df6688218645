/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz_squeeze.c - inflating anything stays in its bounds, and deflating it is undone.
 *
 * The first two bytes of an input say how much room there is. */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "ports/zlib/squeeze.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expand_within(struct elv_squeeze s, struct elv_bytes in, size_t cap)
{
    size_t len = 0;
    uint8_t *out = malloc(cap + 1); /* an exact block, so that a sanitizer sees a byte too many */
    ELV_ASSERT(out != NULL);
    const enum elv_err err = s.inflate(s.self, cap != 0 ? out + 1 : out, cap, in, &len);
    ELV_ASSERT(err == ELV_OK || err == ELV_ERR_SPACE || err == ELV_ERR_FORMAT);
    ELV_ASSERT(err != ELV_OK || len <= cap);
    free(out);
}

static void undo(struct elv_squeeze s, struct elv_bytes in)
{
    const size_t cap = in.len + in.len / 100 + 64;
    size_t packed_len = 0, len = 0;
    uint8_t *packed = malloc(cap), *out = malloc(in.len + 1);
    ELV_ASSERT(packed != NULL && out != NULL);
    ELV_ASSERT(s.deflate(s.self, packed, cap, in, &packed_len) == ELV_OK);
    const struct elv_bytes p = {packed, packed_len};
    ELV_ASSERT(s.inflate(s.self, out, in.len, p, &len) == ELV_OK);
    ELV_ASSERT(len == in.len && (len == 0 || memcmp(out, in.at, len) == 0));
    free(packed);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct elv_zlib *zlib; /* reused, as in a program: one input must not harm the next */
    if (zlib == NULL)
        ELV_ASSERT(elv_zlib_open(&zlib) == ELV_OK);
    if (size < 2)
        return 0;
    const struct elv_squeeze s = elv_zlib_squeeze(zlib);
    const struct elv_bytes in = {data + 2, size - 2};
    uint8_t *file = NULL;
    size_t len = 0;
    expand_within(s, in, (size_t)(data[0] | data[1] << 8));
    undo(s, in);
    if (elv_zlib_gunzip(in, 1u << 16, &file, &len) == ELV_OK)
        ELV_ASSERT(len <= 1u << 16);
    elv_zlib_free(file);
    return 0;
}
