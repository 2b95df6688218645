/* SPDX-License-Identifier: Apache-2.0 */
/* A path, after a byte for the method, is refused or comes out again as it went in. */
#include <string.h>

#include "common/assert.h"
#include "common/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const enum elv_method method = (enum elv_method)(ELV_GET + data[0] % 4);
    const struct elv_text path = {(const char *)data + 1, size - 1};
    struct elv_text job;
    struct elv_request r;
    if (elv_path_decode(method, path, &job, &r) != ELV_OK)
        return 0;
    char out[ELV_PATH_MAX];
    size_t len;
    enum elv_method again;
    ELV_ASSERT(elv_path_encode(&r, job, out, &len, &again) == ELV_OK);
    ELV_ASSERT(len == path.len && memcmp(out, path.at, len) == 0);
    ELV_ASSERT(again == method);
    return 0;
}
