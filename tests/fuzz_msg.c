/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte names a message, the rest is decoded as one. It is refused, or it encodes again to
 * the same bytes; to fewer when it had keys of a later version, and these bytes are stable. */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "tests/wire_samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const struct wire_codec *codec = &wire_codecs[data[0] % WIRE_CODECS];
    const struct elv_bytes in = {data + 1, size - 1};
    union wire_msg m;
    if (codec->decode(in, &m) != ELV_OK)
        return 0;

    uint8_t *out = malloc(in.len), *again = malloc(in.len);
    size_t len, len_again;
    ELV_ASSERT(out != NULL && again != NULL);
    ELV_ASSERT(codec->encode(&m, out, in.len, &len) == ELV_OK);
    ELV_ASSERT(len <= in.len);
    ELV_ASSERT(len < in.len || memcmp(out, in.at, len) == 0);
    ELV_ASSERT(codec->decode((struct elv_bytes){out, len}, &m) == ELV_OK);
    ELV_ASSERT(codec->encode(&m, again, in.len, &len_again) == ELV_OK);
    ELV_ASSERT(len_again == len && memcmp(again, out, len) == 0);
    free(out);
    free(again);
    return 0;
}
